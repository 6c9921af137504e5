import { h, tableOf } from "./figure.js";

const WIDTH = [300, 700]; // the narrowest and the widest picture, in pixels of 12-pixel letters
const HEIGHT = 300;
const EDGE = { left: 52, top: 12, bottom: 34 };
const LINE = 15; // from one name to the next
const LETTER = 7; // the width of one, about
const DASHES = ["", "7 4", "2 3", "9 3 2 3", "1 5", "12 4"]; // a curve is known by its dashes and its name, not by colour alone

// Round values that cut an interval in about `count` parts.
export function ticks(low, high, count = 5) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const first = Math.ceil(low / step - 1e-9);
  const result = [];
  for (let k = first; k * step <= high + 1e-9 * step; k++) result.push(+(k * step).toPrecision(6));
  return result;
}

// Curves over one axis, with a line where the reader is and the heights there below.
export function mountCurves(stage, frame, numbers) {
  let width = 0;
  const fitting = () => Math.max(WIDTH[0], Math.min(WIDTH[1], stage.clientWidth || WIDTH[1]));
  const draw = () => {
    width = fitting();
    stage.replaceChildren(picture(frame, numbers, width), readings(frame, numbers));
  };
  const setNumbers = (now) => {
    numbers = now;
    draw();
  };
  const resized = new ResizeObserver(() => fitting() === width || draw());
  resized.observe(stage);
  draw();
  return { setNumbers, stop: () => resized.disconnect() };
}

function readings(frame, numbers) {
  if (frame.mark === undefined) return "";
  const row = [frame.label, ...frame.series].map((_, k) => `{${frame.mark + k}}`);
  return tableOf([frame.label, ...frame.series], [row], numbers);
}

function picture(frame, numbers, width) {
  const column = (c) => numbers.slice(c * frame.points, (c + 1) * frame.points).map(Number);
  const xs = column(0);
  const curves = frame.series.map((_, k) => column(k + 1));
  const drawable = (v) => Number.isFinite(v) && (!frame.log || v > 0);
  const height = (v) => (frame.log ? Math.log10(v) : v);
  const heights = curves.flat().filter(drawable).map(height);
  const [low, high] = [Math.min(...heights), Math.max(...heights)];
  const right = width - 34 - LETTER * Math.max(...frame.series.map((name) => name.length));
  const x = scale(xs[0], xs[xs.length - 1], EDGE.left, right);
  const straight = scale(low, high === low ? low + 1 : high, HEIGHT - EDGE.bottom, EDGE.top);
  const y = (v) => straight(height(v));
  const label = `${frame.series.join(", ")} / ${frame.label}`;
  return h(
    "svg",
    { class: "ob-curves", viewBox: `0 0 ${width} ${HEIGHT}`, width, role: "img", "aria-label": label },
    ...axes(xs, heightTicks(low, high, frame.log), x, y, right, frame.label),
    ...curves.map((ys, k) => curve(xs, ys, x, y, k, drawable)),
    ...names(frame.series, curves, y, drawable, right),
    ...mark(frame, numbers, x, y, drawable),
  );
}

const scale = (a, b, from, to) => (v) => +(from + ((v - a) / (b - a)) * (to - from)).toFixed(2);

// On a logarithmic axis the powers of ten; of many powers, some; of few, twice and five times too.
export function heightTicks(low, high, log) {
  if (!log) return ticks(low, high);
  const powers = ticks(low, high).filter(Number.isInteger);
  if (powers.length > 1) return powers.map((power) => +`1e${power}`);
  const between = [];
  for (let power = Math.floor(low); power <= high; power++) between.push(...[1, 2, 5].map((m) => +`${m}e${power}`));
  return between.filter((t) => Math.log10(t) >= low - 1e-9 && Math.log10(t) <= high + 1e-9);
}

// A tick has little room: 1e-5, not 0.00001.
const short = (value) => (value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential() : String(value));

function axes(xs, heights, x, y, right, label) {
  const bottom = HEIGHT - EDGE.bottom;
  const text = (attributes, value) => h("text", attributes, short(value).replace("-", "−"));
  return [
    ...ticks(xs[0], xs[xs.length - 1]).flatMap((t) => [
      h("line", { class: "ob-rule", x1: x(t), x2: x(t), y1: EDGE.top, y2: bottom }),
      text({ x: x(t), y: bottom + 16, "text-anchor": "middle" }, t),
    ]),
    ...heights.flatMap((t) => [
      h("line", { class: "ob-rule", x1: EDGE.left, x2: right, y1: y(t), y2: y(t) }),
      text({ x: EDGE.left - 6, y: y(t) + 4, "text-anchor": "end" }, t),
    ]),
    h("text", { x: (EDGE.left + right) / 2, y: HEIGHT - 3, "text-anchor": "middle" }, label),
  ];
}

function curve(xs, ys, x, y, k, drawable) {
  const points = xs.map((v, i) => (drawable(ys[i]) ? `${x(v)} ${y(ys[i])}` : null)).filter(Boolean);
  return h("path", { class: `ob-curve ob-c${k}`, d: `M${points.join("L")}`, "stroke-dasharray": DASHES[k] });
}

// Each name at its curve's end, moved where two would overlap: down, and up again at the bottom.
function names(series, curves, y, drawable, right) {
  const ends = series.map((name, k) => ({ name, k, y: y(curves[k].findLast(drawable)) + 4 }));
  ends.sort((a, b) => a.y - b.y);
  ends.forEach((end, i) => (end.y = Math.max(end.y, i ? ends[i - 1].y + LINE : EDGE.top + 4)));
  ends.reduceRight((limit, end) => (end.y = Math.min(end.y, limit)) - LINE, HEIGHT - EDGE.bottom + 4);
  return ends.map(({ name, k, y: at }) => {
    const sample = h("path", { class: `ob-curve ob-c${k}`, d: `M${right + 4} ${at - 4}h22`, "stroke-dasharray": DASHES[k] });
    return h("g", {}, sample, h("text", { class: `ob-name ob-c${k}`, x: right + 30, y: at }, name));
  });
}

function mark(frame, numbers, x, y, drawable) {
  if (frame.mark === undefined) return [];
  const at = x(Number(numbers[frame.mark]));
  const heights = frame.series.map((_, k) => Number(numbers[frame.mark + 1 + k]));
  return [
    h("line", { class: "ob-mark", x1: at, x2: at, y1: EDGE.top, y2: HEIGHT - EDGE.bottom }),
    ...heights.map((v, k) => (drawable(v) ? h("circle", { class: `ob-dot ob-c${k}`, cx: at, cy: y(v), r: 4 }) : null)),
  ];
}
