// The first page while one looks: its parts drawn anew as they change, and two charts.
(() => {
  const root = document.querySelector("[data-now]");
  if (!root) return;

  // What is told of each moment: [seconds, calls, failed, median ms, slow ms].
  const KEPT = 150;
  let points = [];

  const charts = [];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const time = (seconds) => (seconds == null ? "–" : clock.format(seconds * 1000));
  const number = (value, unit) => (value == null ? "–" : `${+value.toPrecision(3)}${unit}`);
  const KINDS = {
    calls: { columns: [1, 2], unit: "/s", lines: [["all", "--accent", true], ["failed", "--bad", false]] },
    latency: { columns: [3, 4], unit: " ms", lines: [["middle", "--accent", true], ["95 %", "--warn", false]] },
  };
  // No failure is no line: one at zero looks like one.
  const drawn = (value, column) => (column === 2 && value === 0 ? null : value);
  const columns = (kind) => [0, ...kind.columns].map((at) => points.map((point) => drawn(point[at], at)));
  // While nobody points at a moment, the legend tells the latest that is known.
  const latest = (kind) => (chart) => {
    if (chart.cursor.left >= 0) return;
    chart.setLegend({ idxs: [0, ...kind.columns].map((at) => points.findLastIndex((point) => point[at] != null)) }, false);
  };
  const draw = (element) => {
    const kind = KINDS[element.dataset.chart];
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const series = kind.lines.map(([label, tint, filled], place) => ({
      label, stroke: colour(tint), width: 2, spanGaps: kind.unit === " ms", points: { show: label !== "all", size: 4 },
      fill: filled && kind.unit === "/s" ? `${colour(tint)}22` : undefined,
      value: (_chart, _drawn, _series, at) => number(points[at]?.[kind.columns[place]], kind.unit),
    }));
    element.textContent = "";
    const chart = new uPlot({
      width: element.clientWidth || 300, height: 190, cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_chart, _low, high) => [0, Math.max(high * 1.1, 1)] } },
      axes: [{ ...axis, space: 70, values: (_chart, splits) => splits.map(time) }, { ...axis, size: 48 }],
      series: [{ label: "at", value: (_chart, seconds) => time(seconds) }, ...series],
      hooks: { draw: [latest(kind)], setCursor: [latest(kind)] },
    }, columns(kind), element);
    charts.push({ chart, kind, element });
  };
  const redraw = () => {
    charts.splice(0).forEach(({ chart }) => chart.destroy());
    document.querySelectorAll("[data-chart]").forEach(draw);
  };

  // Nobody loses their place: what has the focus stays as it is until they have moved on.
  const waiting = new Map();
  const place = () => {
    for (const [name, html] of [...waiting]) {
      const part = root.querySelector(`[data-part="${name}"]`);
      if (part && part.contains(document.activeElement)) continue;
      if (part) part.innerHTML = html;
      waiting.delete(name);
    }
  };
  const told = ({ parts, points: news, anew }) => {
    Object.entries(parts).forEach(([name, html]) => waiting.set(name, html));
    place();
    points = (anew ? news : points.concat(news)).slice(-KEPT);
    if (!charts.length) {
      document.querySelector("[data-charts]").hidden = false;
      redraw();
    } else charts.forEach(({ chart, kind }) => chart.setData(columns(kind)));
  };

  root.addEventListener("told", (event) => told(event.detail));
  document.addEventListener("theme", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("resize", () => charts.forEach(({ chart, element }) => chart.setSize({ width: element.clientWidth, height: 190 })));

  const STATES = { live: "live", paused: "paused", waiting: "waiting for the server", ended: "no longer live; load the page again" };
  const state = document.querySelector("[data-live-state]");
  const show = () => { state.textContent = STATES[root.dataset.state] || ""; };
  new MutationObserver(show).observe(root, { attributes: true, attributeFilter: ["data-state"] });
  show();
})();
