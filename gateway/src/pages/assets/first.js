// What must be so before anything is painted, so that nothing moves afterwards; a page waits for it, so it is short, and it
// makes nothing that the page does not need.

// Times in the reader's own zone and language; the server wrote UTC. In a table, what is near is told by how far away it is,
// and the exact time is its title.
let [written, near] = [];
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];
const told = at => {
  const seconds = (at - Date.now()) / 1000;
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", Infinity];
  return Math.abs(seconds) < 7 * 86400 ? near.format(Math.trunc(seconds / length), unit) : written.format(at);
};
const localize = root => {
  for (const time of root.querySelectorAll("time[datetime]")) {
    written ??= new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
    near ??= new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const text = time.closest("td") ? told(at) : written.format(at);
    if (time.textContent !== text) time.textContent = text;
    time.title = written.format(at);
  }
};

// Buttons that only a script makes work.
const show = root => {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
};

for (const prepare of [localize, show]) {
  prepare(document);
  document.addEventListener("cairn:arrived", event => prepare(event.detail));
}
setInterval(() => { if (!document.hidden) localize(document); }, 30000);
// On paper there is no title, and the day goes on.
window.addEventListener("beforeprint", () => {
  for (const time of document.querySelectorAll("time[title]")) time.textContent = time.title;
});
window.addEventListener("afterprint", () => localize(document));
