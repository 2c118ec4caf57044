// The console page: live queue, countdowns, keys. Everything here is a convenience; the page works without it.

import { arm, fail, guard, onAnnounce, settle } from "./answer.js";
import { comeBack } from "./back.js";
import { head, identical, keepArrangement, place, query } from "./order.js";

const base = document.body.dataset.base;
const single = document.body.dataset.page === "one";
const queue = document.querySelector("[data-queue]");
const log = document.querySelector("[data-log]");
const announcer = document.querySelector("[data-announce]");
const live = document.querySelector("[data-live]");
const stale = document.querySelector("[data-stale]");
const LOG_LENGTH = 12;
const LINGER = 2600; // how long a settled card stays readable, in milliseconds
const PRUNED = 500; // how long a card outlives its deadline, in milliseconds
let skew = 0; // server clock minus ours
let timed = false; // whether the skew is known; before, no card may be taken for late
let due = 0; // the timer of the next deadline

rememberPath();
if (!single) keepArrangement();
onAnnounce((text) => { announcer.textContent = text; });
guard(document.querySelector("main"), answered, answeredAll);
arm(cards());
document.querySelector("[data-keys]")?.removeAttribute("hidden");
listen();
tick();
setInterval(tick, 1000);

// The session's path is half of its key (the cookie is the other half). Storage belongs to this origin, port
// included, so that another program's page on this machine cannot read it.
function rememberPath() {
  try {
    if (localStorage.getItem("toolward.path") !== base || !localStorage.getItem("toolward.browser")) rememberBrowser();
    localStorage.setItem("toolward.path", base);
  } catch { /* private windows may refuse; sign in again then */ }
}

// What the sign-in page shows the next time, so that wrong passphrases of others are not counted against this browser.
async function rememberBrowser() {
  const response = await fetch(base + "/browser", { headers: { Accept: "application/json" } });
  if (response.ok) localStorage.setItem("toolward.browser", (await response.json()).token);
}

function cards() {
  return [...document.querySelectorAll(".card")];
}

function open() {
  return [...queue.querySelectorAll(".card:not(.gone)")];
}

function cardOf(id) {
  return queue.querySelector(`.card[data-id="${CSS.escape(id)}"]`);
}

// live updates

function listen() {
  const source = new EventSource(base + "/events?" + query);
  const on = (name, handle) => source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  source.addEventListener("open", () => show("on", "Live"));
  source.addEventListener("error", () => {
    show("off", "Reconnecting");
    // 204 and errors close the source for good: the session is over, and the page says so by reloading.
    if (source.readyState === EventSource.CLOSED) comeBack(base + "/");
  });
  on("sync", ({ now, ids }) => {
    skew = now - Date.now();
    timed = true;
    const known = new Set(ids);
    const over = open().filter((card) => !known.has(card.dataset.id));
    if (single && over.some((card) => card.querySelector(".answer"))) location.reload(); // decided meanwhile: show how
    if (!single) for (const card of over) settleAndRemove(card, "No longer waiting", "");
    prune();
  });
  on("card", ({ html }) => { if (!single) insert(fragment(html)); });
  on("gone", ({ id, said, outcome }) => {
    const card = cardOf(id);
    if (card) settleAndRemove(card, said, outcome);
  });
  on("entry", ({ html }) => addEntry(fragment(html)));
  on("config", ({ html }) => showConfig(html && fragment(html)));
  on("count", ({ waiting, headline, subline }) => count(waiting, headline, subline));
  on("reload", () => { // signed out, or the gateway ends
    source.close();
    show("off", "Reconnecting");
    comeBack(base + "/");
  });
}

function show(state, text) {
  if (live) { live.dataset.state = state; live.textContent = text; }
  if (stale) stale.hidden = state === "on";
}

// fragment parses HTML that our own server rendered.
function fragment(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  return holder.content.firstElementChild;
}

function insert(card) {
  if (!card || cardOf(card.dataset.id)) return;
  card.classList.add("new");
  const moved = place(queue, card);
  arm([card, ...moved]);
  identical(open());
  tick();
  prune();
  announcer.textContent = "New call waiting: " + card.querySelector("h2").textContent;
  if (document.activeElement === document.body && open().length === 1) focusDeny(card);
}

// showConfig puts the card of a changed configuration above the queue. Everything below moves, and is inert for it.
function showConfig(card) {
  const old = document.querySelector("#config");
  if (single || (old && card && old.dataset.revision === card.dataset.revision)) return;
  old?.remove();
  if (card) queue.before(card);
  arm(cards());
  announcer.textContent = card ? "The configuration file was changed and waits for you." : "";
}

function addEntry(entry) {
  if (!log || !entry) return;
  log.querySelector(".none")?.remove();
  log.querySelector(`[data-entry="${CSS.escape(entry.dataset.entry)}"]`)?.remove();
  log.prepend(entry);
  while (log.children.length > LOG_LENGTH) log.lastElementChild.remove();
}

function count(waiting, headline, subline) {
  for (const badge of document.querySelectorAll("[data-count]")) {
    badge.textContent = waiting;
    badge.dataset.n = waiting;
  }
  const heading = document.querySelector("[data-headline]");
  if (heading) {
    heading.textContent = headline;
    document.querySelector("[data-subline]").textContent = subline;
  }
  const arrange = document.querySelector("[data-arrange]");
  if (arrange) arrange.hidden = waiting < 2;
  const beyond = document.querySelector("[data-beyond]");
  if (beyond) {
    const more = waiting - open().length;
    beyond.hidden = more <= 0;
    beyond.querySelector("[data-more]").textContent = more;
  }
  if (!single) document.title = (waiting ? `(${waiting}) ` : "") + "Waiting · Toolward";
}

// answers

function answered(card, answer) {
  const next = neighbour(card, 1) ?? neighbour(card, -1);
  settleAndRemove(card, answer.said ?? answer.error, answer.outcome ?? "");
  if (next) focusDeny(next);
}

// Opening "Always" asks what it would have allowed in the last week. What comes in moves the buttons: they are inert
// for a moment again.
queue.addEventListener("toggle", (event) => {
  if (!event.target.matches("details.always") || !event.target.open) return;
  for (const place of event.target.querySelectorAll("[data-past]")) lookBack(place, event.target.closest(".card"));
}, true);

async function lookBack(place, card) {
  const address = place.dataset.past;
  place.removeAttribute("data-past");
  try {
    const reply = await fetch(address, { headers: { Accept: "application/json" } });
    if (!reply.ok) return; // the link stays, and leads to the page that says why
    place.replaceChildren(fragment((await reply.json()).html));
    arm([card]);
  } catch { /* the link stays */ }
}

// answeredAll tells what became of several identical calls. Each has its own outcome.
function answeredAll(card, answer) {
  for (const one of answer.calls ?? []) {
    const its = cardOf(one.id);
    if (!its) continue;
    if (one.said) settleAndRemove(its, one.said, one.outcome ?? "");
    else fail(its, "Not answered: " + one.error);
  }
}

function settleAndRemove(card, said, outcome) {
  const held = card.contains(document.activeElement);
  const next = held ? neighbour(card, 1) ?? neighbour(card, -1) : null;
  settle(card, said, outcome);
  identical(open());
  if (next) focusDeny(next);
  if (single) return;
  const late = Date.now() + skew - Number(card.dataset.expires);
  setTimeout(() => {
    // Removing a card moves those below it under the pointer: they are inert for a moment again.
    const moved = open().filter((other) => card.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);
    card.remove();
    head(queue);
    arm(moved);
  }, late < -1000 ? LINGER : Math.max(0, PRUNED - late)); // clocks may differ a little
}

// prune settles what is past its deadline, whatever the gateway says or cannot say any more, and looks again at the
// next deadline.
function prune() {
  clearTimeout(due);
  if (!timed) return;
  const now = Date.now() + skew;
  let next = Infinity;
  for (const card of open()) {
    const expires = Number(card.dataset.expires);
    if (expires > now) next = Math.min(next, expires);
    else if (card.querySelector(".answer")) settleAndRemove(card, "Its time is over", "");
  }
  if (next < Infinity) due = setTimeout(prune, Math.min(next - now, 2 ** 31 - 1));
}

// keys and focus

function neighbour(card, step) {
  const all = open();
  const at = all.indexOf(card);
  if (at < 0) return all[0];
  return all[at + step];
}

function focusDeny(card) {
  arm([card]);
  card.querySelector("[data-deny]")?.focus({ preventScroll: true });
  const box = card.getBoundingClientRect();
  if (box.top < 70 || box.bottom > innerHeight) card.scrollIntoView({ block: box.height > innerHeight - 90 ? "start" : "nearest" });
}

document.addEventListener("focusin", (event) => {
  for (const card of queue.querySelectorAll(".current")) card.classList.remove("current");
  event.target.closest?.(".card")?.classList.add("current");
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select")) return;
  const sheet = document.querySelector("[data-keysheet]");
  if (sheet?.open) return;
  if (event.key === "?") {
    event.preventDefault();
    return sheet?.showModal();
  }
  const here = document.activeElement?.closest?.(".card");
  if (event.key.toLowerCase() === "e") {
    const more = (here ?? open()[0])?.querySelector("details.more");
    if (more) more.open = !more.open;
    return;
  }
  const step = { j: 1, k: -1 }[event.key.toLowerCase()];
  if (!step || !open().length) return;
  event.preventDefault();
  const next = here ? neighbour(here, step) : open()[0];
  if (next) focusDeny(next);
});

// Coming back to the window: the click that brings it to the front must not answer anything.
addEventListener("focus", () => arm(open()));
document.querySelector("[data-keysheet]")?.addEventListener("close", () => arm(open()));
document.addEventListener("visibilitychange", () => { if (!document.hidden) { arm(open()); tick(); prune(); } });

// countdowns

function tick() {
  if (document.hidden) return;
  const now = Date.now() + skew;
  for (const card of open()) {
    const left = Math.max(0, Math.ceil((Number(card.dataset.expires) - now) / 1000));
    const label = card.querySelector("[data-left]");
    const clock = card.querySelector(".clock");
    if (label) {
      label.textContent = left ? words(left) : "time is up";
      label.classList.toggle("soon", left <= 20);
    }
    if (clock) clock.value = Math.min(left, clock.max);
  }
}

function words(seconds) {
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  if (h) return h + " h " + String(m).padStart(2, "0") + " m left";
  return m ? m + " m " + String(s).padStart(2, "0") + " s left" : s + " s left";
}
