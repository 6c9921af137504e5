import { fill, h, judge, onEnter, parseNumber, phrase, questionOf, tensorGrid, zoomButton } from "./figure.js";

const BEAT = 1800; // milliseconds a step stays while playing

// Shows a trace's steps in `root`. `read` and `write` keep the step in the model. Returns what the owner may call.
export function mountSteps(root, frame, numbers, ui, { read, write, predict }) {
  const last = frame.steps.length - 1;
  const answered = new Set();
  const start = numbers;
  let timer = null;
  let message = "";

  const button = (text, onclick) => h("button", { type: "button", onclick }, text);
  const previous = button(ui.previous, () => go(read() - 1));
  const play = button(ui.play, toggle);
  const next = button(ui.next, () => go(read() + 1));
  const slider = h("input", { type: "range", min: 0, max: last, "aria-label": ui.step, oninput: () => go(+slider.value) });
  const place = h("output", { class: "ob-place" });
  const stage = h("div", { class: "ob-stage", tabindex: 0, role: "group", "aria-label": ui.stage });
  const moved = h("p", { class: "ob-note" }, `• ${ui.moved}`);
  const says = h("p", { class: "ob-says" });
  const spoken = h("div", { class: "ob-spoken", "aria-live": "polite" });
  const questions = Object.keys(frame.questions).length > 0;
  const asks = h("input", { type: "checkbox", onchange: askAgain });
  asks.checked = predict;
  root.append(
    h("div", { class: "ob-bar" }, previous, play, next, slider, place, zoomButton(root, ui)),
    questions ? h("label", { class: "ob-predict" }, asks, ` ${ui.predict}`) : "",
    stage,
    moved,
    says,
    spoken,
  );

  root.addEventListener("keydown", onKey);
  draw();
  return {
    draw,
    setNumbers(changed) {
      numbers = changed;
      draw();
    },
    stop,
  };

  function go(step) {
    const bounded = Math.max(0, Math.min(last, step));
    if (bounded === last) stop();
    message = "";
    if (bounded !== read()) write(bounded);
    draw();
    announce();
  }

  function askAgain() {
    answered.clear();
    draw();
  }

  function toggle() {
    if (timer || openQuestion()) return stop();
    if (read() === last) go(0);
    timer = setInterval(() => (openQuestion() ? stop() : go(read() + 1)), BEAT);
    play.textContent = ui.pause;
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = ui.play;
  }

  function onKey(event) {
    const { target, key } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || target.closest(".ob-controls, .ob-question, details")) return;
    if (target === stage && stage.scrollWidth > stage.clientWidth && key.startsWith("Arrow")) return;
    const presses = target.tagName === "BUTTON" || target.type === "checkbox";
    const action = {
      ArrowLeft: () => go(read() - 1),
      ArrowRight: () => go(read() + 1),
      Home: () => go(0),
      End: () => go(last),
      " ": presses ? null : toggle,
    }[key];
    if (!action) return;
    event.preventDefault();
    if (!(key === " " && event.repeat)) action(); // a held space bar is one press
  }

  function openQuestion() {
    const question = frame.questions[read()];
    return asks.checked && question && !answered.has(read()) ? questionOf(question, frame.tensors, numbers) : null;
  }

  function draw() {
    const step = frame.steps[read()];
    const question = openQuestion();
    const where = phrase(ui.step_of, read() + 1, last + 1, step.title);
    place.textContent = where;
    slider.value = read();
    slider.setAttribute("aria-valuetext", where);
    previous.setAttribute("aria-disabled", read() === 0); // a button that were disabled would lose the focus, and the keys with it
    next.setAttribute("aria-disabled", read() === last);
    play.setAttribute("aria-disabled", Boolean(question)); // an open question waits for its answer
    const worked = question ? [] : step.worked.map((line) => h("p", {}, fill(line, numbers)));
    stage.replaceChildren(
      step.formula ? h("p", { class: "ob-formula" }, step.formula) : "",
      h("div", { class: "ob-tensors" }, ...step.shows.map((name) => grid(name)), ...made(step, question)),
      h("div", { class: "ob-worked" }, ...worked),
    );
    moved.hidden = !stage.querySelector("sup");
    says.replaceChildren(question ? form(question) : [message, fill(step.sentence, numbers)].filter(Boolean).join(" "));
  }

  function made(step, question) {
    if (!step.makes) return [];
    const before = step.before ? frame.tensors[step.before] : null;
    return [h("span", { class: "ob-arrow", "aria-hidden": "true" }, "→"), grid(step.makes, { before, isNew: true, hidden: Boolean(question) })];
  }

  function grid(name, options = {}) {
    return tensorGrid(frame.tensors[name], numbers, { ...options, start, ui });
  }

  function announce() {
    const question = openQuestion();
    spoken.textContent = `${ui.step} ${place.textContent}. ${question ? phrase(ui.ask, question.label) : says.textContent}`;
  }

  function form(question) {
    const field = h("input", { type: "text", inputmode: "text", size: 8, "aria-label": phrase(ui.ask, question.label) });
    const reply = h("span", { class: "ob-reply", role: "status" });
    const submit = (event) => {
      event.preventDefault();
      const guess = parseNumber(field.value);
      if (Number.isNaN(guess)) return (reply.textContent = ui.not_a_number);
      const verdict = judge(question, guess);
      if (verdict.right) return reveal(phrase(ui.right, question.label, question.answer));
      reply.textContent = verdict.says.length ? phrase(ui.misread, field.value, verdict.says.join(` ${ui.or} `)) : phrase(ui.wrong, field.value);
    };
    field.addEventListener("keydown", onEnter(submit));
    return h(
      "form",
      { class: "ob-question", onsubmit: submit },
      h("label", {}, phrase(ui.ask, question.label), " ", field),
      h("button", { type: "submit" }, ui.check),
      h("button", { type: "button", onclick: () => reveal("") }, ui.show),
      reply,
    );
  }

  function reveal(text) {
    answered.add(read());
    message = text;
    draw();
    announce();
    root.focus({ preventScroll: true });
  }
}

// The frame around a figure: one focus, a title, room for the rest. Returns it with a clean-up for the owner.
export function figureRoot(el, title) {
  const root = h("div", { class: "ob", role: "group", "aria-label": title, tabindex: 0 }, h("p", { class: "ob-title" }, title));
  el.append(root);
  return root;
}

// A step kept in the model, so that every view of one widget and Python agree.
export function stepState(model) {
  return {
    read: () => model.get("step"),
    write: (step) => {
      model.set("step", step);
      model.save_changes();
    },
  };
}

export function renderStepper({ model, el }) {
  const { title, frame, numbers, ui, predict } = model.get("figure");
  const steps = mountSteps(figureRoot(el, title), frame, numbers, ui, { ...stepState(model), predict });
  model.on("change:step", steps.draw);
  return () => {
    steps.stop();
    model.off("change:step", steps.draw);
  };
}
