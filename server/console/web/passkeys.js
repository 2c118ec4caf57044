// Adding a passkey: presence first, by passphrase or by a passkey that is there, then the new one.

import { answer, impossible, make, possible, send, why } from "./passkey.js";

const base = document.body.dataset.base;
const form = document.querySelector("[data-add]");
const trouble = document.querySelector("[data-trouble]");
const button = form.querySelector("button");

function tell(words) {
  trouble.textContent = words;
  trouble.hidden = !words;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  tell("");
  button.disabled = true;
  try {
    const { name, passphrase } = Object.fromEntries(new FormData(form));
    const shown = passphrase ? { passphrase } : { answer: await answer((await send(base + "/passkeys/presence")).question) };
    const { question } = await send(base + "/passkeys/new", shown);
    const { to } = await send(base + "/passkeys", { name, answer: await make(question) });
    location.assign(to);
  } catch (error) {
    tell(why(error));
    button.disabled = false;
  }
});

if (possible()) form.hidden = false;
else tell(impossible);
