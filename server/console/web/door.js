// The sign-in page: somebody who is signed in already goes on to the console, or to the call that a link named.
// The path is kept per origin, port included; it is worth nothing without the cookie.

import { answer, possible, send, why } from "./passkey.js";

try {
  if (new URLSearchParams(location.search).has("out")) localStorage.removeItem("toolward.path");
  const path = localStorage.getItem("toolward.path") ?? "";
  const here = location.pathname;
  if (/^\/c\/[a-z0-9]{16}$/.test(path) && (here === "/" || here.startsWith("/approvals/"))) location.replace(path + here);
} catch { /* without storage the person signs in again */ }

// A browser that signed in before says so: it can sign in while somebody else guesses at the passphrase.
try {
  const known = document.querySelector("[data-browser]");
  if (known) known.value = localStorage.getItem("toolward.browser") ?? "";
} catch { /* without storage it is a stranger */ }

// A passkey in place of the passphrase, where there is one and the browser can.
const offer = document.querySelector("[data-passkey]");
if (offer && possible()) {
  const button = offer.querySelector("[data-ask]");
  const trouble = offer.querySelector("[data-trouble]");
  offer.hidden = false;
  button.addEventListener("click", async () => {
    trouble.hidden = true;
    button.disabled = true;
    try {
      const asked = await send("/sign-in/passkey");
      const { to } = await send(asked.answer, { answer: await answer(asked.question), for: offer.dataset.for });
      location.assign(to);
    } catch (error) {
      trouble.textContent = why(error);
      trouble.hidden = false;
      button.disabled = false;
    }
  });
}
