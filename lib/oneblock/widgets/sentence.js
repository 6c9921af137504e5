import { spaced } from "./card.js";
import { fill, h } from "./figure.js";
import { between, choose, follow, stopOf } from "./grid.js";

const WAY = 240; // pixels from the first value to the last
const STEPS = [8, 40]; // pixels from one value to the next, at least and at most

// A line of text. A piece that is a number is a control's place; the others are texts with {k} for what follows it.
export function renderSentence({ model, el }) {
  const { frame, controls, hint } = model.get("figure");
  const live = model.get("live");
  const drags = controls.map((control, k) => draggedNumber(control, (value) => set(k, value), live, hint));
  const texts = frame.pieces.map((piece) => (typeof piece === "number" ? drags[piece].element : h("span")));
  const status = h("small", { class: "ob-status" });
  const spoken = h("span", { class: "ob-spoken", role: "status" });
  const line = h("p", { class: "ob-line" }, ...texts);
  let told = null; // the sentence before; at first there is none, and nothing to be heard
  el.classList.add("ob-sentence");
  el.append(line, spoken, status);
  const leave = follow(model, {
    show: (setting) => drags.forEach((drag, k) => drag.show(setting[k])),
    setNumbers(numbers) {
      frame.pieces.forEach((piece, k) => typeof piece === "string" && (texts[k].textContent = fill(piece, numbers.map(spaced))));
      if (told !== null && told !== line.textContent) spoken.textContent = line.textContent;
      told = line.textContent;
    },
    say: (text) => (status.textContent = text),
  });
  return () => {
    leave();
    el.replaceChildren();
  };

  function set(k, value) {
    const setting = model.get("setting").slice();
    setting[k] = value;
    choose(model, setting);
  }
}

// Where a key leads from a place between 0 and `last`; null if it is not for this number.
export function placeByKey(key, place, last) {
  const page = Math.max(1, Math.round(last / 5));
  const up = Math.floor(place) + 1;
  const down = Math.ceil(place) - 1;
  const ways = { ArrowRight: up, ArrowUp: up, ArrowLeft: down, ArrowDown: down, PageUp: up + page - 1, PageDown: down - page + 1, Home: 0, End: last };
  return key in ways ? Math.max(0, Math.min(last, ways[key])) : null;
}

// Where a pointer leads that moved so many pixels. With a kernel there are places between the grid's values.
export function placeByWay(place, way, last, live) {
  const step = Math.max(STEPS[0], Math.min(STEPS[1], WAY / last));
  const to = Math.max(0, Math.min(last, place + way / step));
  return live ? Math.round(20 * to) / 20 : Math.round(to);
}

function draggedNumber({ label, values }, onchange, live, hint) {
  const numbers = values.map(Number);
  const last = numbers.length - 1;
  const isWhole = numbers.every(Number.isInteger);
  let place = 0;
  let held = null; // where a pointer took the number: its x, and the place then
  const move = (to) => onchange(isWhole ? Math.round(between(numbers, to)) : between(numbers, to));
  const letGo = () => (held = null);
  const element = h("span", {
    class: "ob-drag",
    role: "slider",
    tabindex: 0,
    title: hint,
    style: `min-width: ${Math.max(...values.map((text) => text.length))}ch`,
    "aria-label": label,
    "aria-valuemin": numbers[0],
    "aria-valuemax": numbers[last],
    "data-lm-suppress-shortcuts": "true", // JupyterLab leaves the keys to us
    onpointerdown(event) {
      if (event.button) return;
      element.setPointerCapture(event.pointerId);
      held = { x: event.clientX, place };
    },
    onpointermove: (event) => held && move(placeByWay(held.place, event.clientX - held.x, last, live)),
    onpointerup: letGo,
    onpointercancel: letGo,
    onkeydown(event) {
      const to = event.altKey || event.ctrlKey || event.metaKey ? null : placeByKey(event.key, place, last);
      if (to === null) return;
      event.preventDefault();
      event.stopPropagation(); // the arrows also turn the pages of a book
      move(to);
    },
  });
  return {
    element,
    show(value) {
      place = stopOf(numbers, value);
      const text = values[numbers.indexOf(value)] ?? String(value);
      element.textContent = text;
      element.setAttribute("aria-valuenow", value);
      element.setAttribute("aria-valuetext", text);
    },
  };
}
