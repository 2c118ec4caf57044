// Answering a card: what makes a button inert, what Enter may do, and what happens after the answer.

// Time, in milliseconds, for which a card that has just appeared or moved cannot be answered. It stops a click or a
// key press meant for something else. The server checks the same by the time stamp it signed into the form.
const INERT = 500;

const inertUntil = new WeakMap();
let tell = () => {};

export function onAnnounce(announce) {
  tell = announce;
}

// arm makes the buttons of cards inert from now for a moment. Focus stays where it is.
export function arm(cards) {
  const until = performance.now() + INERT;
  for (const card of cards) {
    inertUntil.set(card, until);
    mark(card, true);
    for (const box of card.querySelectorAll(".call pre")) markRest(box);
  }
  setTimeout(() => {
    for (const card of cards) if (!inert(card)) mark(card, false);
  }, INERT + 20);
}

function inert(card) {
  return card.dataset.busy !== undefined || performance.now() < (inertUntil.get(card) ?? Infinity);
}

function mark(card, disabled) {
  for (const control of card.querySelectorAll(".answer button, .answer summary")) {
    if (disabled) control.setAttribute("aria-disabled", "true");
    else control.removeAttribute("aria-disabled");
  }
}

// A long text scrolls in its box, and its end is where things are hidden: it cannot be allowed before its end has been on
// the screen. Denying needs no reading.
function read(box) {
  if (box.scrollTop + box.clientHeight >= box.scrollHeight - 4) box.dataset.read = "";
  return box.dataset.read !== undefined;
}

function markRest(box) {
  box.closest(".call").toggleAttribute("data-rest", !read(box));
}

function unread(card) {
  return [...card.querySelectorAll(".call pre")].find((box) => box.checkVisibility() && !read(box));
}

// guard installs the rules on a region that holds cards.
export function guard(region, answered, answeredAll) {
  region.addEventListener("click", (event) => {
    const control = event.target.closest(".answer button, .answer summary");
    if (!control) return;
    const card = control.closest(".card");
    if (!event.isTrusted || inert(card)) return event.preventDefault();
    const rest = control.matches("[data-allow]") && unread(card);
    if (!rest) return;
    event.preventDefault();
    const why = "Not all of this call has been on the screen: scroll to its end first.";
    fail(card, why);
    tell(why);
    rest.focus();
  });
  region.addEventListener("scroll", (event) => { if (event.target.matches?.(".call pre")) markRest(event.target); }, true);
  // Enter never allows: it is the key that people press without reading.
  const enter = (event) => {
    if (event.key !== "Enter") return;
    if (event.target.closest("[data-allow], .narrow")) {
      event.preventDefault();
      tell("Enter does not allow. Press the space bar to allow.");
    } else if (event.repeat && event.target.closest(".answer")) {
      event.preventDefault();
    }
  };
  region.addEventListener("keydown", enter);
  region.addEventListener("keypress", enter);
  region.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-answer], form[data-batch]");
    const card = event.target.closest(".card");
    if (card && inert(card)) return event.preventDefault();
    if (!form) return;
    event.preventDefault();
    const button = event.submitter ?? form.querySelector("[value=deny]");
    send(form, card, button, form.matches("[data-batch]") ? answeredAll : answered);
  });
}

async function send(form, card, button, answered) {
  const body = new URLSearchParams(new FormData(form, button));
  card.querySelector(".error").hidden = true;
  card.dataset.busy = "";
  mark(card, true);
  try {
    const reply = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
    if (reply.status === 401) return location.reload();
    const answer = await reply.json();
    if (reply.ok || reply.status === 409 || reply.status === 404) return answered(card, answer);
    throw new Error([answer.error, answer.hint].filter(Boolean).join(". "));
  } catch (problem) {
    fail(card, problem instanceof TypeError
      ? "The gateway cannot be reached. Your answer was not given."
      : "Not answered: " + problem.message);
  } finally {
    delete card.dataset.busy;
    if (!inert(card)) mark(card, false);
  }
}

// fail says on a card why it is not answered.
export function fail(card, text) {
  const error = card.querySelector(".error");
  if (!error) return;
  error.textContent = text;
  error.hidden = false;
}

// settle replaces the buttons of a card by what became of it.
export function settle(card, said, outcome) {
  if (card.classList.contains("gone")) return;
  card.classList.add("gone");
  const line = document.createElement("p");
  line.className = "said " + outcome;
  line.textContent = said;
  card.querySelector(".answer")?.replaceWith(line);
  card.querySelector("[data-left]")?.remove();
  card.querySelector(".clock")?.remove();
  tell(said);
}
