// SPDX-License-Identifier: Apache-2.0
// What the parts of the report share: the data, texts of numbers, elements, and which row is chosen.
"use strict";
const report = JSON.parse(document.getElementById("data").textContent);

const text = {
  digits(value) { return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0); },
  seconds(value) {
    for (const [size, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "\u00b5s"]])
      if (value >= size) return text.digits(value / size) + " " + unit;
    return text.digits(value / 1e-9) + " ns";
  },
  spread(e) { return "\u00b1" + (100 * Math.max(e.median - e.low, e.high - e.median) / e.median).toFixed(1) + "%"; },
  short(value) { return value >= 1000 ? value.toFixed(0) : Number(value.toPrecision(3)).toString(); },
};

/// An element with attributes and children; texts become text, never markup.
function make(name, attributes = {}, ...children) {
  const isSvg = ["svg", "g", "line", "path", "circle", "rect", "text", "title"].includes(name);
  const element = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children)
    if (child !== null && child !== undefined) element.append(child);
  return element;
}

/// One row may be chosen; every part that shows rows is told.
const chosen = {
  row: null,
  listeners: [],
  set(row) {
    chosen.row = row;
    for (const listener of chosen.listeners) listener(row);
  },
};

const tip = {
  element: document.getElementById("tip"),
  show(target, content) {
    tip.element.textContent = content;
    tip.element.hidden = false;
    const place = target.getBoundingClientRect(), own = tip.element.getBoundingClientRect();
    const left = Math.min(Math.max(4, place.left + place.width / 2 - own.width / 2), innerWidth - own.width - 4);
    const above = place.top - own.height - 8;
    tip.element.style.left = Math.max(4, left) + "px";
    tip.element.style.top = (above > 4 ? above : place.bottom + 8) + "px";
  },
  hide() { tip.element.hidden = true; },
};
document.addEventListener("keydown", event => { if (event.key === "Escape") tip.hide(); });

/// Shows the tip while the element is pointed at or has the focus.
function explain(element, content) {
  element.addEventListener("mouseenter", () => tip.show(element, content));
  element.addEventListener("focus", () => tip.show(element, content));
  element.addEventListener("mouseleave", tip.hide);
  element.addEventListener("blur", tip.hide);
}

/// What Enter and the space bar do to a button, for an element that is none.
function onActivate(element, action) {
  element.addEventListener("click", action);
  element.addEventListener("keydown", event => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    action(event);
  });
}
