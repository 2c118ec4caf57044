// Where a waiting call stands in the queue, and which waiting calls are one and the same.

const asked = new URLSearchParams(location.search);
const KEPT = "toolward.queue";

export const risk = asked.get("order") === "risk";
export const bySession = asked.get("group") === "session";
export const query = new URLSearchParams({ order: risk ? "risk" : "arrival", ...(bySession && { group: "session" }) }).toString();

// keepArrangement remembers the order that was chosen last, and goes there if none is asked for.
export function keepArrangement() {
  try {
    const kept = localStorage.getItem(KEPT) ?? "";
    if (asked.has("order")) localStorage.setItem(KEPT, query);
    else if (/^order=(risk|arrival)(&group=session)?$/.test(kept) && kept !== query) location.replace("?" + kept);
  } catch { /* without storage the order is chosen anew each time */ }
}

function comesBefore(a, b) {
  if (risk && a.dataset.rank !== b.dataset.rank) return Number(a.dataset.rank) < Number(b.dataset.rank);
  if (a.dataset.created !== b.dataset.created) return Number(a.dataset.created) < Number(b.dataset.created);
  return a.dataset.id < b.dataset.id;
}

// place puts a new card where it belongs and returns the cards that moved. In the order of arrival that is the end, and
// nothing moves.
export function place(queue, card) {
  const all = [...queue.querySelectorAll(".card")];
  let after = all.find((other) => comesBefore(card, other));
  if (bySession) {
    const peers = all.filter((other) => other.dataset.session === card.dataset.session);
    const leaders = all.filter((other, i) => !i || all[i - 1].dataset.session !== other.dataset.session);
    after = peers.length
      ? peers.find((other) => comesBefore(card, other)) ?? all[all.indexOf(peers.at(-1)) + 1]
      : leaders.find((other) => comesBefore(card, other));
  }
  queue.insertBefore(card, after ?? null);
  head(queue);
  return after ? all.slice(all.indexOf(after)) : [];
}

// head puts the name of each session above the first of its calls.
export function head(queue) {
  for (const old of queue.querySelectorAll("[data-session-head]")) if (old.closest("template") === null) old.remove();
  if (!bySession) return;
  let last = null;
  for (const card of queue.querySelectorAll(".card")) {
    if (card.dataset.session !== last) queue.insertBefore(card.querySelector("template[data-head]").content.cloneNode(true), card);
    last = card.dataset.session;
  }
}

// identical shows, at the first of several identical calls, the form that answers all of them, and fills it with the
// calls that are on the page now and the stamps that they were shown with.
export function identical(cards) {
  const groups = new Map();
  for (const card of cards) {
    const batch = card.querySelector("form[data-batch]");
    if (!batch) continue;
    const key = card.dataset.same || card.dataset.id;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(card);
  }
  for (const group of groups.values()) {
    group.forEach((card, i) => fill(card.querySelector("form[data-batch]"), i ? [] : group));
  }
}

function fill(form, group) {
  form.hidden = group.length < 2;
  for (const old of form.querySelectorAll("input[name=call]")) old.remove();
  for (const many of form.querySelectorAll("[data-many]")) many.textContent = group.length;
  if (form.hidden) return;
  for (const card of group) {
    const field = document.createElement("input");
    field.type = "hidden";
    field.name = "call";
    field.value = card.dataset.id + " " + card.querySelector("input[name=seen]").value;
    form.append(field);
  }
}
