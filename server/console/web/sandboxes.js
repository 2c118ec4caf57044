// Sandboxes: figures change in place; what is around them is replaced only when it differs, so that nothing moves under a
// hand that is about to press something.

import { comeBack } from "./back.js";

const base = document.body.dataset.base;
const name = document.body.dataset.name;
const boxes = document.querySelector("[data-boxes]");
const live = document.querySelector("[data-live]");
const stale = document.querySelector("[data-stale]");
const gone = document.querySelector("[data-gone]");

if (boxes) {
  const source = new EventSource(base + "/sandboxes/events" + (name ? "?name=" + encodeURIComponent(name) : ""));
  source.addEventListener("open", () => show("on", "Live"));
  source.addEventListener("error", () => {
    show("off", "Reconnecting");
    if (source.readyState === EventSource.CLOSED) comeBack(base + "/");
  });
  source.addEventListener("reload", () => {
    source.close();
    show("off", "Reconnecting");
    comeBack(base + "/");
  });
  source.addEventListener("boxes", (event) => {
    replace(boxes, event);
    if (gone) gone.hidden = boxes.childElementCount > 0;
  });
  source.addEventListener("figures", (event) => put(JSON.parse(event.data)));
  for (const part of ["ports", "calls", "life", "engines"]) {
    source.addEventListener(part, (event) => replace(document.querySelector("[data-" + part + "]"), event));
  }
}

// replace puts what our own server rendered in the place of what is there. A link that had the focus has it again.
function replace(place, event) {
  const held = place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  place.innerHTML = JSON.parse(event.data).html;
  if (held) [...place.querySelectorAll("a")].find((link) => link.getAttribute("href") === held)?.focus();
}

function put(all) {
  for (const box of boxes.querySelectorAll("[data-box]")) {
    const figures = all[box.dataset.box];
    if (!figures) continue;
    for (const at of box.querySelectorAll("[data-figure]")) {
      const figure = figures[at.dataset.figure];
      const text = figure?.text ?? figure;
      if (at.textContent !== text) at.textContent = text;
    }
    for (const at of box.querySelectorAll("[data-meter]")) {
      const figure = figures[at.dataset.meter];
      at.hidden = !figure.max;
      if (figure.max) { at.max = Number(figure.max); at.value = Number(figure.value); }
    }
  }
}

function show(state, text) {
  if (live) { live.dataset.state = state; live.textContent = text; }
  if (stale) stale.hidden = state !== "off";
}
