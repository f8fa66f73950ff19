// Keys, copying, the theme, and what is live. Pages are complete without any of it.
(() => {
  const root = document.documentElement;
  const find = (selector) => document.querySelector(selector);
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));

  // The theme: as the system has it, or the other one.
  const toggle = find("[data-theme-toggle]");
  if (toggle) {
    toggle.hidden = false;
    toggle.addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      localStorage.setItem("theme", root.dataset.theme);
      document.dispatchEvent(new CustomEvent("theme"));
    });
  }

  // Ids and commands are copied by a click or Enter.
  const copy = (target) => {
    navigator.clipboard?.writeText(target.dataset.copy);
    target.classList.add("copied");
    setTimeout(() => target.classList.remove("copied"), 900);
  };
  document.addEventListener("click", (event) => {
    const target = event.target.closest("[data-copy]");
    if (target) copy(target);
  });

  // Keys.
  const keys = find("#keys");
  const opener = find("[data-keys]");
  if (opener && keys) {
    opener.hidden = false;
    opener.addEventListener("click", () => keys.showModal());
  }
  let awaiting = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "Enter" && event.target.matches("[data-copy]")) copy(event.target);
    if (typing) return;
    if (awaiting) {
      awaiting = false;
      const link = all("nav [data-key]").find((one) => one.dataset.key === event.key);
      if (link) link.click();
      return;
    }
    if (event.key === "g") { awaiting = true; setTimeout(() => { awaiting = false; }, 1500); }
    else if (event.key === "?" && keys) keys.showModal();
    else if (event.key === "p") find("[data-pause]")?.click();
    else if (event.key === "/") {
      const search = find("[data-search]");
      if (search) { event.preventDefault(); search.focus(); }
    }
  });

  // Relative times stay true.
  const units = [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"], [Infinity, 86400, "d"]];
  const tell = (time) => {
    const seconds = (new Date(time.dateTime) - Date.now()) / 1000;
    const [, unit, name] = units.find(([most]) => Math.abs(seconds) < most);
    const count = Math.round(Math.abs(seconds) / unit);
    time.textContent = count === 0 ? "now" : seconds > 0 ? `in ${count} ${name}` : `${count} ${name} ago`;
  };
  setInterval(() => { if (!document.hidden) all("time[datetime]:not([data-fixed])").forEach(tell); }, 5000);

  // What is live: an element with data-live="/live/…" is told by server-sent events, each with a JSON object, and hands
  // it on as an event of its own; data-refresh has htmx load a part of the page anew when something is told.
  const streams = new Map();
  const live = (element) => {
    const source = new EventSource(element.dataset.live);
    streams.set(element, source);
    element.dataset.state = "live";
    source.onmessage = (message) => {
      element.dispatchEvent(new CustomEvent("told", { detail: JSON.parse(message.data), bubbles: true }));
      if (element.dataset.refresh && window.htmx) window.htmx.trigger(element, "refresh");
    };
    source.onerror = () => { element.dataset.state = source.readyState === 2 ? "ended" : "waiting"; };
    source.onopen = () => { element.dataset.state = "live"; };
  };
  const quiet = (element) => { streams.get(element)?.close(); streams.delete(element); element.dataset.state = "paused"; };
  all("[data-live]").forEach(live);
  const pause = find("[data-pause]");
  if (pause) {
    pause.hidden = false;
    pause.addEventListener("click", () => {
      const paused = pause.getAttribute("aria-pressed") === "true";
      pause.setAttribute("aria-pressed", String(!paused));
      pause.textContent = paused ? "Pause" : "Resume";
      all("[data-live]").forEach(paused ? live : quiet);
    });
  }
  addEventListener("pagehide", () => streams.forEach((source) => source.close()));
})();
