// Pieces that every figure uses. Words come with the figure's data; none stand here.

const SVG = "http://www.w3.org/2000/svg";

// An element. Children given as text become text, never markup.
export function h(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "circle", "text", "g"].includes(tag);
  const element = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  // A browser that restores a page's fields would show what the figure does not.
  if (["input", "select"].includes(tag)) element.setAttribute("autocomplete", "off");
  element.append(...children.filter((child) => child != null));
  return element;
}

// Enter in a field. In an output of JupyterLab it neither submits a form nor ends a change.
export const onEnter = (action) => (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  action(event);
};

// Puts numbers in the places of {k}; a negative one behind an operator gets parentheses.
export function fill(template, numbers) {
  return template.replace(/\{(\d+)\}/g, (_, k, at) => {
    const before = template.slice(0, at).trimEnd().slice(-1);
    const text = numbers[k];
    return text.startsWith("-") && before && "·+−×/√⊙".includes(before) ? `(${text})` : text;
  });
}

// Puts arguments in the places of {0}, {1} in a phrase.
export const phrase = (template, ...values) => template.replace(/\{(\d)\}/g, (_, k) => values[k]);

// The numbers of a point of the grid: the start's, with "12=-1.5 13=0" put in.
export function apply(numbers, difference) {
  const changed = numbers.slice();
  for (const pair of difference.split(" ").filter(Boolean)) {
    const at = pair.indexOf("=");
    changed[pair.slice(0, at)] = pair.slice(at + 1);
  }
  return changed;
}

// A number as people type it: -1.5, −1.5, 2/3, 0,5. NaN if it is none, as 1/0.
export function parseNumber(typed) {
  const text = typed.trim().replace(/−/g, "-").replace(/^(-?\d*),(\d+)$/, "$1.$2");
  const [top, bottom, ...rest] = text.split("/");
  if (rest.length || !top.trim() || (bottom !== undefined && !bottom.trim())) return NaN;
  const value = Number(top) / Number(bottom ?? 1);
  return Number.isFinite(value) ? value : NaN;
}

// Two decimals are enough to be right, and so is a relative error of a thousandth.
export const close = (a, b) => a === b || Math.abs(a - b) <= Math.max(0.0051, 1e-3 * Math.abs(b));

// The element to ask for: the one that tells the most misreadings from the right number and from each other.
export function questionOf({ of, wrong }, tensors, numbers) {
  const { at, shape, symbol } = tensors[of];
  const size = shape.reduce((a, b) => a * b, 1);
  const telling = (k) => new Set(wrong.map(([start]) => numbers[start + k]).filter((text) => text !== numbers[at + k])).size;
  const cells = [...Array(size).keys()];
  const cell = cells.reduce((best, k) => (telling(k) > telling(best) ? k : best), 0);
  const misreadings = wrong.map(([start, says]) => ({ value: numbers[start + cell], says }));
  return { cell, label: size > 1 ? element(symbol, cell + 1) : symbol, answer: numbers[at + cell], misreadings };
}

// The name of one element: h₁, or d²[1] where a subscript would not read well.
export function element(symbol, n) {
  const subscript = String(n).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
  return /^\p{L}+$/u.test(symbol) ? symbol + subscript : `${symbol}[${n}]`;
}

// Whether a prediction is right, and otherwise what the misreadings that lead to it say; there may be none.
export function judge({ answer, misreadings }, guess) {
  const off = (text) => Math.abs(guess - Number(text));
  const telling = misreadings.filter(({ value }) => value !== answer && Number.isFinite(Number(value)));
  const nearest = telling.sort((a, b) => off(a.value) - off(b.value))[0];
  if (close(guess, Number(answer)) && !(nearest && off(nearest.value) < off(answer))) return { right: true };
  const hit = nearest && close(guess, Number(nearest.value));
  return { right: false, says: hit ? telling.filter(({ value }) => value === nearest.value).map(({ says }) => says) : [] };
}

// The place along each axis of the k-th of all places.
export function placeOf(k, shape) {
  return shape.reduceRight(([rest, ...places], size) => [Math.floor(rest / size), rest % size, ...places], [k]).slice(1);
}

// A tensor as a grid: axis letters outside, numbers inside. Leading axes beyond two become several grids.
// A number that differs from `before` (what the step acted on) says from what; one that differs from
// `start` (an explorer's first setting) carries a dot.
export function tensorGrid(tensor, numbers, { before = null, hidden = false, isNew = false, start = numbers, ui }) {
  const { axes, labels = {} } = tensor;
  const upright = tensor.shape.length === 1 && axes[0] in labels; // names need room: one below the other
  const shape = upright ? [...tensor.shape, 1] : tensor.shape;
  const matrices = shape.slice(0, -2).reduce((a, b) => a * b, 1);
  const rows = shape.length > 1 ? shape[shape.length - 2] : 1;
  const columns = shape.length ? shape[shape.length - 1] : 1;
  const label = `${tensor.symbol} [${axes.filter((a) => a !== "1").join(", ")}]`.replace(" []", "");
  const box = h("figure", { class: isNew ? "ob-tensor ob-new" : "ob-tensor" });
  box.append(h("figcaption", {}, label, isNew ? h("b", {}, ` ${ui.new}`) : null));
  for (let m = 0; m < matrices; m++) {
    const where = placeOf(m, shape.slice(0, -2)).map((k, axis) => `${axes[axis]} = ${k + 1}`).join(", ");
    const table = h("table", { "aria-label": `${label} ${where}`.trim() });
    if (matrices > 1) table.append(h("caption", {}, where));
    const across = upright ? "" : axes[axes.length - 1];
    const down = shape.length > 1 ? axes[shape.length - 2] : null;
    if (across && across !== "1") {
      table.append(h("thead", {}, h("tr", {}, down && h("th", {}, `${down} ↓`), h("th", { colspan: columns }, `${across} →`))));
    }
    const body = h("tbody");
    for (let r = 0; r < rows; r++) {
      const row = h("tr", {}, down && across !== "1" ? h("th", {}, down in labels ? numbers[labels[down] + r] : String(r + 1)) : null);
      for (let c = 0; c < columns; c++) row.append(cell((m * rows + r) * columns + c));
      body.append(row);
    }
    table.append(body);
    box.append(table);
  }
  return box;

  function cell(k) {
    const text = numbers[tensor.at + k];
    if (hidden) return h("td", { class: "ob-hidden" }, "?");
    const was = before && numbers[before.at + k];
    const changed = before && was !== text;
    const moved = start[tensor.at + k] !== text ? h("sup", {}, "•") : null;
    return h("td", { class: changed ? "ob-changed" : "" }, text, moved, changed ? h("small", {}, phrase(ui.was, was)) : null);
  }
}

// Zoom: a button that cycles the size of what scrolls inside the figure.
export function zoomButton(root, ui) {
  const sizes = [100, 150, 200];
  let now = 0;
  const button = h("button", { type: "button", class: "ob-zoom", onclick: next });
  const show = () => {
    button.textContent = `${ui.zoom} ${sizes[now]} %`;
    root.style.setProperty("--ob-zoom", sizes[now] / 100);
  };
  function next() {
    now = (now + 1) % sizes.length;
    show();
  }
  show();
  return button;
}

// The head of a column; one without a name is none.
export const headCell = (text) => (text ? h("th", { scope: "col" }, text) : h("td"));

// A table of rows of templates. A number that differs from `start` carries a dot.
export function tableOf(columns, rows, numbers, start = numbers) {
  const head = h("tr", {}, ...columns.map(headCell));
  const dot = (k) => (numbers[k] !== start[k] ? h("sup", {}, "•") : null);
  const pieces = (template) => template.split(/\{(\d+)\}/).flatMap((piece, i) => (i % 2 ? [numbers[piece], dot(piece)] : [piece]));
  const cell = (template) => h("td", { class: /^[[\d-]/.test(fill(template, numbers)) ? "ob-n" : "" }, ...pieces(template));
  const line = (cells) => h("tr", {}, ...cells.map(cell));
  return h("table", { class: "ob-table" }, h("thead", {}, head), h("tbody", {}, ...rows.map(line)));
}
