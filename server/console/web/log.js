// The live log: new records come in at the top. Pausing holds them back and counts them; nothing is lost by it but what
// is more than the page keeps.

import { comeBack } from "./back.js";

const base = document.body.dataset.base;
const list = document.querySelector("[data-lines]");
const pause = document.querySelector("[data-pause]");
const live = document.querySelector("[data-live]");
const stale = document.querySelector("[data-stale]");
const KEPT = 300; // lines on the page, and lines held back
let last = Number(document.body.dataset.last);
let held = [];
let paused = false;

const source = new EventSource(base + "/log/events?type=" + encodeURIComponent(document.body.dataset.type));
source.addEventListener("open", () => show("on", paused ? "Paused" : "Live"));
source.addEventListener("error", () => {
  show("off", "Reconnecting");
  if (source.readyState === EventSource.CLOSED) comeBack(base + "/");
});
source.addEventListener("reload", () => {
  source.close();
  show("off", "Reconnecting");
  comeBack(base + "/");
});
source.addEventListener("lines", (event) => {
  const { html, missed } = JSON.parse(event.data);
  if (missed) held.push(gap());
  for (const text of html) {
    const holder = document.createElement("template");
    holder.innerHTML = text; // rendered by our own server
    const line = holder.content.firstElementChild;
    if (Number(line.dataset.seq) <= last) continue;
    last = Number(line.dataset.seq);
    held.push(line);
  }
  held = held.slice(-KEPT);
  if (!paused) release();
  else tell();
});

pause.hidden = false;
pause.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
  if (!paused) release();
  tell();
  show(live?.dataset.state, paused ? "Paused" : "Live");
});

function release() {
  if (held.length) list.querySelector(".none")?.remove();
  for (const line of held) list.prepend(line);
  held = [];
  while (list.children.length > KEPT) list.lastElementChild.remove();
}

function tell() {
  pause.textContent = paused ? (held.length ? `Go on, ${held.length} new` : "Go on") : "Pause";
}

function gap() {
  const line = document.createElement("li");
  line.className = "gap";
  line.textContent = "Records came faster than a page can show; some are not here. Load the page again to see them.";
  return line;
}

function show(state, text) {
  if (live) { live.dataset.state = state; live.textContent = text; }
  if (stale) stale.hidden = state !== "off";
}
