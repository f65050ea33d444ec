// Keyboard shortcuts: single keys press data-key elements, `g` and a key navigates (data-go). Never in fields.
const isField = element => element?.matches?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
const press = (name, key) => {
  const all = [...document.querySelectorAll(`[${name}]`)].filter(one => one.getAttribute(name) === key);
  // If each row has one, that of the focused row.
  const found = all.find(one => one.closest("tr")?.contains(document.activeElement)) ?? all[0];
  if (!found) return false;
  if (isField(found)) found.focus();
  else found.click();
  return true;
};
// Rows and results are focused by their link; by their check box only if they have none.
const ROW = "main tbody tr, main .result";
const rows = () => [...document.querySelectorAll(ROW)]
  .filter(row => row.checkVisibility() && !row.parentElement.closest(".result"))
  .map(row => row.querySelector("a") ?? row.querySelector("button, input")).filter(Boolean);
const current = () => document.activeElement.closest("main .result") ?? document.activeElement.closest(ROW);
// Actions on the focused row: `x` selects it, `t` shows the trace.
const inRow = key => {
  if (key === "x") current()?.querySelector("input[type=checkbox]")?.click();
  else if (key === "t") (current() ?? document.querySelector("main .result"))?.querySelector("summary")?.click();
  else return false;
  return true;
};
let goes = false;

// Ctrl or ⌘ with Enter submits the form of the focused field.
document.addEventListener("keydown", event => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing || !isField(event.target)) return;
  // Other handlers, as in the palette, have run by now.
  if (event.defaultPrevented) return;
  const form = event.target.form;
  const send = form?.querySelector("button.primary");
  if (!form || event.target.closest("[data-grid]")) return;
  event.preventDefault();
  form.requestSubmit(send && !send.disabled ? send : undefined);
});

document.addEventListener("keydown", event => {
  if (document.documentElement.dataset.keys === "off") return;
  if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target) || document.querySelector("dialog[open]")) return;
  const key = event.key;
  let isOurs = true;
  if (goes) isOurs = press("data-go", key);
  else if (key === "j" || key === "k") {
    const all = rows();
    const at = all.findIndex(one => one.closest(ROW) === current());
    all[at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, at + (key === "j" ? 1 : -1)))]?.focus();
  } else if (key === "[" || key === "]") {
    const link = document.querySelector(key === "[" ? "a[rel=prev]" : "a[rel=next]");
    link?.click();
  } else if (key === "?") document.getElementById("keys")?.showModal();
  else isOurs = key !== "g" && (press("data-key", key) || inRow(key));
  goes = !goes && key === "g";
  if (isOurs) event.preventDefault();
});

// An opened popover focuses its first field, so that a key and then a name is enough.
document.addEventListener("toggle", event => {
  if (event.newState !== "open" || !event.target.matches?.("main [popover]")) return;
  event.target.querySelector("input:not([type=hidden]), select, textarea")?.focus();
}, true);

// Shift-click selects a range of check boxes.
let last = null;
document.addEventListener("click", event => {
  const box = event.target.closest?.("tbody input[type=checkbox]");
  if (!box) return;
  const all = [...box.closest("table").querySelectorAll("tbody input[type=checkbox]")];
  if (event.shiftKey && last && all.includes(last)) {
    const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((one, other) => one - other);
    for (const one of all.slice(from, to + 1)) one.checked = box.checked;
  }
  last = box;
});
