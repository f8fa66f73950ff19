// What a person has opened, and where they are, stays as it is when a part of the page is loaded anew.
(() => {
  const place = (element, within) => {
    const near = element.closest("[id]");
    if (near === element) return `#${CSS.escape(near.id)}`;
    const root = near && within.contains(near) ? near : within;
    const name = element.tagName.toLowerCase();
    return [root.id, name, Array.from(root.querySelectorAll(name)).indexOf(element)];
  };
  const found = (where) => {
    if (typeof where === "string") return document.querySelector(where);
    const [id, name, number] = where;
    return document.getElementById(id)?.querySelectorAll(name)[number];
  };
  let open = [];
  let focus = null;
  let words = [];
  document.addEventListener("htmx:beforeSwap", (event) => {
    const target = event.detail.target;
    open = Array.from(target.querySelectorAll("details[open]")).map((one) => place(one, target));
    focus = target.contains(document.activeElement) ? place(document.activeElement, target) : null;
    words = Array.from(target.querySelectorAll("input:not([type=hidden])")).map((one) => [one.name, one.value, one.checked]);
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    open.forEach((where) => { const one = found(where); if (one) one.open = true; });
    words.forEach(([name, value, checked]) => {
      event.detail.target.querySelectorAll("input:not([type=hidden])").forEach((one) => {
        if (one.name !== name) return;
        if (one.type === "radio") { if (one.value === value) one.checked = checked; }
        else one.value = value;
      });
    });
    if (focus) found(focus)?.focus({ preventScroll: true });
  });
})();
