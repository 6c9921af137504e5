// Turns the tables that a page carries into figures: the same render, with a stand-in for the widget's model.

function standIn(figure) {
  const state = { figure, step: 0, setting: figure.controls ? startOf(figure.controls) : [], answer: {}, live: false };
  const listeners = {};
  return {
    get: (name) => state[name],
    set(name, value) {
      state[name] = value;
      (listeners[`change:${name}`] || []).forEach((listener) => listener());
    },
    save_changes() {},
    on: (event, listener) => (listeners[event] = [...(listeners[event] || []), listener]),
    off: (event, listener) => (listeners[event] = (listeners[event] || []).filter((each) => each !== listener)),
  };
}

function mountAll() {
  for (const place of document.querySelectorAll(".ob-figure, .ob-sentence")) {
    const payload = place.querySelector("script[type='application/json']");
    if (!payload) reachable(place);
    if (!payload || place.querySelector(".ob, .ob-drag")) continue;
    try {
      mount(place, payload, JSON.parse(payload.textContent));
    } catch (error) {
      console.error(error); // this figure stays a table; the others are drawn
    }
  }
}

function mount(place, payload, figure) {
  const view = h("div");
  render({ model: standIn(figure), el: view });
  if (figure.kind === "sentence") return place.querySelector("p").replaceWith(view);
  const numbers = h("details", { class: "ob-numbers" }, h("summary", {}, figure.ui.table));
  numbers.append(...[...place.children].filter((child) => child !== payload));
  place.append(view, numbers);
}

// A table too wide for the page scrolls in its place; then keys can reach it.
function reachable(place) {
  new ResizeObserver(() => (place.tabIndex = place.scrollWidth > place.clientWidth ? 0 : -1)).observe(place);
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", mountAll);
else mountAll();
