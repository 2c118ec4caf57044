// The matrix: finding a tool while typing. Without script the form does the same.

const field = document.querySelector("input[data-find]");
const shown = document.querySelector("[data-shown]");
const none = document.querySelector("[data-none]");
const lines = [...document.querySelectorAll("tr[data-find]")];
const sections = [...document.querySelectorAll("[data-section]")];

field.addEventListener("input", () => {
  const text = field.value.trim().toLowerCase();
  let count = 0;
  for (const line of lines) {
    line.hidden = !line.dataset.find.includes(text);
    if (!line.hidden) count++;
  }
  for (const section of sections) section.hidden = !section.querySelector("tr[data-find]:not([hidden])");
  shown.textContent = count;
  none.hidden = count > 0;
});
