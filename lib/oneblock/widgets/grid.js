import { apply } from "./figure.js";

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

export function choose(model, setting) {
  model.set("setting", setting);
  model.save_changes();
}

// Shows the model's setting, now and whenever it changes: the numbers of the grid from the payload, others from the kernel.
export function follow(model, { show, setNumbers, say }) {
  const { numbers, ui, controls, points } = model.get("figure");
  const me = Math.random().toString(36).slice(2);
  let asked = null; // the name of the question on its way to the kernel
  let waiting = null; // the newest setting behind it; older ones are dropped
  let timer = null; // runs until the kernel answers, or is called silent
  let count = 0;
  model.on("change:setting", update);
  model.on("change:answer", onAnswer);
  update();
  return () => {
    clearTimeout(timer);
    model.off("change:setting", update);
    model.off("change:answer", onAnswer);
  };

  function update() {
    const setting = model.get("setting");
    show(setting);
    const key = keyOf(setting, controls);
    if (key !== null && key in points) {
      forget();
      say("");
      setNumbers(apply(numbers, points[key]));
    } else ask(setting);
  }

  function ask(setting) {
    if (timer) return (waiting = setting);
    forget();
    asked = `${me}-${++count}`;
    say(ui.computing);
    timer = setTimeout(() => {
      timer = null; // a late answer is still taken; the next setting is asked for anew
      say(ui.not_answering);
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
    const answer = model.get("answer");
    if (!asked || answer.id !== asked) return;
    const next = waiting;
    forget();
    say(answer.error || ui.by_kernel);
    if (!answer.error) setNumbers(answer.numbers);
    if (next) ask(next);
  }
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
