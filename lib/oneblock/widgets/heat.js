import { h, headCell } from "./figure.js";

// Matrices on one scale: the larger a number, the stronger its ground; a negative one has another colour.
// Zero has none, and every number stands in its cell, so that colour is never needed.
export function mountHeat(stage, frame, numbers) {
  const draw = (now) => {
    const largest = Math.max(...now.map((text) => Math.abs(Number(text))).filter(Number.isFinite)) || 1;
    const maps = frame.names.map((name, k) => heatMap(frame, k, now, largest));
    stage.replaceChildren(h("div", { class: "ob-tensors" }, ...maps));
  };
  draw(numbers);
  return { setNumbers: draw };
}

function heatMap({ names, rows, columns, corner }, k, numbers, largest) {
  const at = (r, c) => (k * rows.length + r) * columns.length + c;
  const head = h("tr", {}, ...[corner, ...columns].map(headCell));
  const line = (name, r) => h("tr", {}, h("th", { scope: "row" }, name), ...columns.map((_, c) => cell(at(r, c))));
  return h(
    "figure",
    { class: "ob-tensor ob-heat" },
    h("figcaption", {}, names[k]),
    h("table", { "aria-label": names[k] }, h("thead", {}, head), h("tbody", {}, ...rows.map(line))),
  );

  function cell(place) {
    const text = numbers[place];
    const strength = Math.round((70 * Math.abs(Number(text))) / largest) || 0;
    const sign = Number(text) < 0 ? "ob-minus" : "ob-plus";
    return h("td", { class: strength || Number(text) ? sign : "", style: `--ob-heat: ${strength}%` }, text);
  }
}
