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

  // Ids and commands are copied by a click or Enter. Where the browser lets no page copy, as it does beyond this machine
  // without HTTPS, the whole text is selected, to be copied by hand.
  const select = (target) => {
    target.textContent = target.dataset.copy;
    getSelection().selectAllChildren(target);
  };
  const copy = async (target) => {
    try {
      await navigator.clipboard.writeText(target.dataset.copy);
    } catch {
      select(target);
      return;
    }
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

  // Nobody loses what they are doing: a part of the page is not loaded anew while somebody is at work in it, and what
  // they have opened in it stays open when it is.
  const changed = (control) => {
    if (control.matches("select")) {
      const usual = Array.from(control.options).findIndex((option) => option.defaultSelected);
      return control.selectedIndex !== Math.max(usual, 0);
    }
    if (control.matches("[type=radio], [type=checkbox]")) return control.checked !== control.defaultChecked;
    return control.value !== control.defaultValue;
  };
  const atWork = (element) => {
    const active = document.activeElement;
    // A click leaves the focus where it was made; who types, chooses or goes by keys is in the midst of something.
    const within = element.contains(active) && active.matches("input, select, textarea, :focus-visible");
    const words = getSelection();
    const selects = !words.isCollapsed && words.containsNode(element, true);
    return within || selects || element.querySelector("details.sure[open]") !== null
      || all("input:not([type=hidden]), select, textarea", element).some(changed);
  };
  const held = new Set();
  const hold = (element) => { held.add(element); element.dataset.held = "yes"; };
  const release = (element) => { held.delete(element); delete element.dataset.held; };
  const refresh = (element) => {
    if (atWork(element)) { hold(element); return; }
    release(element);
    window.htmx.trigger(element, "refresh");
  };
  // Whoever is done leaves, closes, or puts things back; what comes of that is known once it is over.
  const done = () => setTimeout(() => held.forEach(refresh));
  ["focusout", "change", "toggle", "reset", "selectionchange"].forEach((name) => document.addEventListener(name, done, true));

  const place = (element, within) => {
    const near = element.closest("[id]");
    const start = near && within.contains(near) ? near : within;
    const name = element.tagName.toLowerCase();
    return [start.id, start === element ? "" : name, start === element ? 0 : all(name, start).indexOf(element)];
  };
  const found = ([id, name, number]) => {
    const start = document.getElementById(id);
    return name && start ? all(name, start)[number] : start;
  };
  const sign = (element) => [element.textContent, element.getAttribute("href"), element.closest("form")?.getAttribute("action")].join();
  let opened = [];
  let focus = null;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const asker = event.detail.requestConfig.elt;
    const target = event.detail.target;
    if (!asker.matches("[data-refresh]")) return;
    if (atWork(asker)) { event.detail.shouldSwap = false; hold(asker); return; }
    opened = all("details[open]", target).map((one) => place(one, target));
    const active = document.activeElement;
    focus = target.contains(active) ? { where: place(active, target), sign: sign(active) } : null;
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (!event.detail.requestConfig.elt.matches("[data-refresh]")) return;
    opened.forEach((where) => { const one = found(where); if (one) one.open = true; });
    const again = focus && found(focus.where);
    // In a list that has moved on, the same place is another thing's.
    if (again && sign(again) === focus.sign) again.focus({ preventScroll: true });
  });

  // What is live: an element with data-live="/live/…" is told by server-sent events, each with a JSON object, and hands
  // it on as an event of its own; data-refresh has htmx load a part of the page anew when something is told.
  const streams = new Map();
  const live = (element) => {
    streams.get(element)?.close();
    const source = new EventSource(element.dataset.live);
    streams.set(element, source);
    element.dataset.state = "live";
    source.onmessage = (message) => {
      element.dispatchEvent(new CustomEvent("told", { detail: JSON.parse(message.data), bubbles: true }));
      if (element.dataset.refresh && window.htmx) refresh(element);
    };
    source.onerror = () => { element.dataset.state = source.readyState === 2 ? "ended" : "waiting"; };
    source.onopen = () => { element.dataset.state = "live"; };
  };
  const quiet = (element) => {
    streams.get(element)?.close();
    streams.delete(element);
    release(element);
    element.dataset.state = "paused";
  };
  if (!document.hidden) all("[data-live]").forEach(live);
  const pause = find("[data-pause]");
  if (pause) {
    pause.hidden = false;
    pause.addEventListener("click", () => {
      const paused = pause.getAttribute("aria-pressed") === "true";
      pause.setAttribute("aria-pressed", String(!paused));
      pause.textContent = paused ? "Pause live" : "Resume live";
      all("[data-live]").forEach(paused ? live : quiet);
    });
  }
  // A tab that nobody sees is told nothing, and hears what it missed once it is shown.
  document.addEventListener("visibilitychange", () => {
    if (pause?.getAttribute("aria-pressed") !== "true") all("[data-live]").forEach(document.hidden ? quiet : live);
  });
  addEventListener("pagehide", () => streams.forEach((source) => source.close()));
})();
