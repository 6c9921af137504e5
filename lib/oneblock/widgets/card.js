import { h } from "./figure.js";

// A label and a text a row. In a payload a space parts two texts, so that within one there are others.
export function mountCard(stage, frame, texts) {
  const draw = (now) => {
    const row = ([label, code], k) => now[k] && [h("dt", {}, label), h("dd", {}, code ? h("pre", {}, spaced(now[k])) : spaced(now[k]))];
    stage.replaceChildren(h("dl", { class: "ob-card" }, ...frame.rows.map(row).filter(Boolean).flat()));
  };
  draw(texts);
  return { setNumbers: draw };
}

export const spaced = (text) => text.replaceAll("\u00a0", " ");
