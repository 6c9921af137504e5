import { h, onEnter, tableOf, zoomButton } from "./figure.js";
import { between, choose, follow, onlyMoved, startOf, stopOf } from "./grid.js";
import { figureRoot, mountSteps, renderStepper, stepState } from "./stepper.js";
import { mountCurves } from "./curves.js";
import { mountHeat } from "./heat.js";
import { mountCard } from "./card.js";
import { renderSentence } from "./sentence.js";

export function renderExplorer({ model, el }) {
  const figure = model.get("figure");
  const { title, ui, controls } = figure;
  const live = model.get("live");
  const root = figureRoot(el, title);
  const status = h("p", { class: "ob-status", role: "status" });
  const inputs = controls.map((control, k) => controlInput(control, (value) => set(k, value), live, ui));
  const reset = h("button", { type: "button", onclick: () => choose(model, startOf(controls)) }, ui.reset);
  root.append(
    h("div", { class: "ob-controls" }, ...groups(controls, inputs), reset),
    figure.one_at_a_time && !live ? h("p", { class: "ob-note" }, ui.one_at_a_time) : "",
    status,
  );
  const view = mountView(root, figure, model);
  const leave = follow(model, {
    show: (setting) => inputs.forEach((input, k) => input.show(setting[k])),
    setNumbers: view.setNumbers,
    say: (text) => (status.textContent = text),
  });
  if (view.draw) model.on("change:step", view.draw);
  return () => {
    leave();
    if (view.stop) view.stop();
    if (view.draw) model.off("change:step", view.draw);
  };

  function set(k, value) {
    const setting = model.get("setting").slice();
    setting[k] = value;
    choose(model, !live && figure.one_at_a_time && controls[k].kind === "slider" ? onlyMoved(setting, k, controls) : setting);
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

const KINDS = { stepper: renderStepper, explorer: renderExplorer, sentence: renderSentence };

export const render = (context) => KINDS[context.model.get("figure").kind](context);

export default { render };
