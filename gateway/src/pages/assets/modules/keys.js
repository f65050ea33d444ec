// Single keys press what bears them (data-key), `g` and a key go to a place (data-go). Never in fields.
const isField = element => element?.matches?.("input, textarea, select, [contenteditable]");
const press = (name, key) => {
  const found = [...document.querySelectorAll(`[${name}]`)].find(one => one.getAttribute(name) === key);
  if (!found) return false;
  if (isField(found)) found.focus();
  else found.click();
  return true;
};
const rows = () => [...document.querySelectorAll("main tbody tr")].map(row => row.querySelector("a, button, input")).filter(Boolean);
let goes = false;

document.addEventListener("keydown", event => {
  if (document.documentElement.dataset.keys === "off") return;
  if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target) || document.querySelector("dialog[open]")) return;
  const key = event.key;
  let isOurs = true;
  if (goes) isOurs = press("data-go", key);
  else if (key === "j" || key === "k") {
    const all = rows();
    const at = all.findIndex(one => one.closest("tr").contains(document.activeElement));
    all[at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, at + (key === "j" ? 1 : -1)))]?.focus();
  } else if (key === "[" || key === "]") {
    const link = document.querySelector(key === "[" ? "a[rel=prev]" : "a[rel=next]");
    link?.click();
  } else if (key === "?") document.getElementById("keys")?.showModal();
  else isOurs = key !== "g" && press("data-key", key);
  goes = !goes && key === "g";
  if (isOurs) event.preventDefault();
});

// Shift-click takes the check boxes between.
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
