import { apply, h, onEnter, tableOf, zoomButton } from "./figure.js";
import { figureRoot, mountSteps, renderStepper, stepState } from "./stepper.js";
import { mountCurves } from "./curves.js";
import { mountHeat } from "./heat.js";
import { mountCard } from "./card.js";

const PATIENCE = 10000; // milliseconds until a silent kernel is called silent

// The place of each value in its control's list; -1 where it is not one of them.
export function placesOf(setting, controls) {
  return setting.map((value, k) => {
    const { kind, values } = controls[k];
    return values.findIndex((text) => (kind === "slider" ? Number(text) === value : text === value));
  });
}

// A setting's name in the payload: what differs from the start. Null if a value is off the grid.
export function keyOf(setting, controls) {
  const places = placesOf(setting, controls);
  if (places.includes(-1)) return null;
  return places.map((place, k) => (place === controls[k].start ? "" : `${k}=${place}`)).filter(Boolean).join(" ");
}

export const valueAt = (control, place) => (control.kind === "slider" ? Number(control.values[place]) : control.values[place]);
export const startOf = (controls) => controls.map((control) => valueAt(control, control.start));

// On a page without a kernel, and where sliders leave the start one by one: the others go back.
export function onlyMoved(setting, moved, controls) {
  const start = startOf(controls);
  return setting.map((value, k) => (k === moved || controls[k].kind !== "slider" ? value : start[k]));
}

export function renderExplorer({ model, el }) {
  const figure = model.get("figure");
  const { title, ui, controls, points } = figure;
  const live = model.get("live");
  const me = Math.random().toString(36).slice(2);
  const root = figureRoot(el, title);
  const status = h("p", { class: "ob-status", role: "status" });
  const inputs = controls.map((control, k) => controlInput(control, (value) => set(k, value), live, ui));
  const reset = h("button", { type: "button", onclick: () => choose(startOf(controls)) }, ui.reset);
  let asked = null; // the name of the question on its way to the kernel
  let waiting = null; // the newest setting behind it; older ones are dropped
  let timer = null; // runs until the kernel answers, or is called silent
  let count = 0;

  root.append(
    h("div", { class: "ob-controls" }, ...groups(controls, inputs), reset),
    figure.one_at_a_time && !live ? h("p", { class: "ob-note" }, ui.one_at_a_time) : "",
    status,
  );
  const view = mountView(root, figure, model);
  model.on("change:setting", show);
  model.on("change:answer", onAnswer);
  if (view.draw) model.on("change:step", view.draw);
  show();
  return () => {
    clearTimeout(timer);
    if (view.stop) view.stop();
    model.off("change:setting", show);
    model.off("change:answer", onAnswer);
    if (view.draw) model.off("change:step", view.draw);
  };

  function set(k, value) {
    const setting = model.get("setting").slice();
    setting[k] = value;
    choose(!live && figure.one_at_a_time && controls[k].kind === "slider" ? onlyMoved(setting, k, controls) : setting);
  }

  function choose(setting) {
    model.set("setting", setting);
    model.save_changes();
  }

  function show() {
    const setting = model.get("setting");
    inputs.forEach((input, k) => input.show(setting[k]));
    const key = keyOf(setting, controls);
    if (key !== null && key in points) {
      forget();
      status.textContent = "";
      view.setNumbers(apply(figure.numbers, points[key]));
    } else ask(setting);
  }

  function ask(setting) {
    if (timer) return (waiting = setting);
    forget();
    asked = `${me}-${++count}`;
    status.textContent = ui.computing;
    timer = setTimeout(() => {
      timer = null; // a late answer is still taken; the next setting is asked for anew
      status.textContent = ui.not_answering;
    }, PATIENCE);
    model.set("ask", { id: asked, setting });
    model.save_changes();
  }

  // The question is answered, or its answer is not needed any more.
  function forget() {
    clearTimeout(timer);
    asked = waiting = timer = null;
  }

  function onAnswer() {
    const { id, error, numbers } = model.get("answer");
    if (!asked || id !== asked) return;
    const next = waiting;
    forget();
    status.textContent = error || ui.by_kernel;
    if (!error) view.setNumbers(numbers);
    if (next) ask(next);
  }
}

function mountView(root, figure, model) {
  const { frame, numbers, ui, predict } = figure;
  if (frame.kind === "steps") return mountSteps(root, frame, numbers, ui, { ...stepState(model), predict });
  const stage = h("div", { class: "ob-stage", tabindex: 0, role: "group", "aria-label": figure.title });
  root.append(h("div", { class: "ob-bar" }, zoomButton(root, ui)), stage);
  if (frame.kind === "curves") return mountCurves(stage, frame, numbers);
  if (frame.kind === "heat") return mountHeat(stage, frame, numbers);
  if (frame.kind === "card") return mountCard(stage, frame, numbers);
  const moved = h("p", { class: "ob-note" }, `• ${ui.moved}`);
  root.append(moved);
  const draw = (changed) => {
    stage.replaceChildren(tableOf(frame.columns, frame.rows, changed, numbers));
    moved.hidden = !stage.querySelector("sup");
  };
  draw(numbers);
  return { setNumbers: draw };
}

// Controls of one tensor stand together.
function groups(controls, inputs) {
  const sets = new Map();
  controls.forEach((control, k) => {
    if (!sets.has(control.group)) sets.set(control.group, h("fieldset", {}, h("legend", {}, control.group)));
    sets.get(control.group).append(inputs[k].element);
  });
  return sets.values();
}

function controlInput(control, onchange, live, ui) {
  return control.kind === "slider" ? sliderInput(control, onchange, live) : choiceInput(control, onchange, live, ui);
}

// With a kernel a text can also be typed.
function choiceInput({ kind, label, values }, onchange, live, ui) {
  const options = values.map((text) => h("option", { value: text }, text));
  const select = h("select", { "aria-label": label, onchange: () => onchange(select.value) }, ...options);
  const enter = () => onchange(field.value);
  const field =
    live && kind === "text" ? h("input", { type: "text", size: 30, "aria-label": ui.type, onchange: enter, onkeydown: onEnter(enter) }) : null;
  return {
    element: h("label", { class: "ob-control" }, select, field),
    show(value) {
      select.value = value;
      if (field) field.value = value;
    },
  };
}

// Without a kernel a slider moves over the grid's values. With one it also has a field for any number in range.
function sliderInput(control, onchange, live) {
  const { values, label } = control;
  const numbers = values.map(Number);
  const range = h("input", { type: "range", min: 0, max: values.length - 1, step: live ? 0.05 : 1, "aria-label": label });
  range.addEventListener("input", () => onchange(between(numbers, +range.value)));
  const field = live
    ? h("input", { type: "number", step: "any", min: numbers[0], max: numbers[numbers.length - 1], "aria-label": label })
    : h("output");
  const enter = () => field.value !== "" && field.reportValidity() && onchange(+field.value);
  if (live) field.addEventListener("change", enter);
  if (live) field.addEventListener("keydown", onEnter(enter));
  return {
    element: h("label", { class: "ob-control" }, h("span", {}, label), range, field),
    show(value) {
      range.value = stopOf(numbers, value);
      range.setAttribute("aria-valuetext", String(value));
      if (live) field.value = value;
      else field.textContent = values[numbers.indexOf(value)];
    },
  };
}

// The number at a place between two grid values, and the other way round. Straight lines between neighbours.
export function between(numbers, place) {
  if (Number.isInteger(place)) return numbers[place];
  const k = Math.floor(place);
  return +(numbers[k] + (place - k) * (numbers[k + 1] - numbers[k])).toPrecision(6);
}

export function stopOf(numbers, value) {
  const k = Math.max(0, Math.min(numbers.length - 2, numbers.findIndex((n) => n > value) - 1 + (value >= numbers[numbers.length - 1] ? numbers.length : 0)));
  return k + (value - numbers[k]) / (numbers[k + 1] - numbers[k]);
}

export function render(context) {
  return (context.model.get("figure").kind === "stepper" ? renderStepper : renderExplorer)(context);
}

export default { render };
