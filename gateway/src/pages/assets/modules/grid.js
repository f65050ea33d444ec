// The grid of a database: Enter or a double click edits a cell, arrow keys move between cells, Esc cancels.
// The server renders the form (?cell=), and it is swapped in: without this module the record panel is the form.
const isCell = element => element?.matches?.("[data-grid] [data-record] > [data-field]");
const all = () => [...document.querySelectorAll("[data-grid] [data-record] > [data-field]")];

// Roving tabindex: one cell is in the tab order; the arrows move on from there.
const rove = current => {
  for (const cell of all()) cell.tabIndex = -1;
  const first = current ?? all()[0];
  if (first) first.tabIndex = 0;
};

const open = cell => {
  const record = cell.parentElement.dataset.record;
  const field = cell.dataset.field;
  const head = cell.closest("table").querySelector(`thead [data-field="${field}"]`);
  const address = new URL(location.href);
  address.searchParams.set("cell", `${record}:${head.dataset.id}`);
  const link = document.createElement("a");
  link.href = address.href;
  link.dataset.swap = `[data-record="${record}"] > [data-field="${field}"]`;
  link.hidden = true;
  cell.append(link);
  link.click();
};

const beside = (cell, key) => {
  if (key === "ArrowLeft") return cell.previousElementSibling;
  if (key === "ArrowRight") return cell.nextElementSibling;
  const row = key === "ArrowUp" ? cell.parentElement.previousElementSibling : cell.parentElement.nextElementSibling;
  return row?.querySelector(`:scope > [data-field="${cell.dataset.field}"]`);
};

document.addEventListener("dblclick", event => {
  const cell = event.target.closest?.("[data-field]");
  if (isCell(cell) && !event.target.closest("a, form")) open(cell);
});

document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape") {
    if (document.querySelector("dialog[open], :popover-open")) return;
    const form = event.target.closest?.("form.cell");
    // In other fields Esc keeps its default, and the input stays.
    if (!form && event.target.matches?.("input, textarea, select")) return;
    (form ? form.querySelector("a[data-swap]") : document.querySelector("a[data-close]"))?.click();
    return;
  }
  if (!isCell(event.target)) return;
  if (event.key === "Enter") {
    event.preventDefault();
    open(event.target);
    return;
  }
  if (!event.key.startsWith("Arrow")) return;
  const next = beside(event.target, event.key);
  if (!isCell(next)) return;
  event.preventDefault();
  rove(next);
  next.focus();
});

document.addEventListener("cairn:swapped", event => {
  if (!isCell(event.detail)) return;
  rove(event.detail);
  const field = event.detail.querySelector("form :is(input:not([type=hidden]), select, textarea)");
  if (field) {
    field.focus();
    return;
  }
  const address = new URL(location.href);
  address.searchParams.delete("cell");
  history.replaceState(null, "", address);
  event.detail.focus();
});
rove();

// Warns before unsaved input of a record is lost.
const form = document.querySelector("form.record");
if (form) {
  let isDirty = false;
  form.addEventListener("input", () => { isDirty = true; });
  form.addEventListener("submit", () => { isDirty = false; });
  window.addEventListener("beforeunload", event => { if (isDirty) event.preventDefault(); });
}
