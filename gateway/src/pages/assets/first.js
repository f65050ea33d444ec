// Render-blocking, to avoid layout shifts: the page waits for it, so it is short, and does only what every page
// needs.

// Times in the reader's time zone and language; the server renders UTC. In tables, recent ones are relative,
// with the exact time as title.
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

// Buttons that need a script.
const show = root => {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
};

for (const prepare of [localize, show]) {
  prepare(document);
  document.addEventListener("cairn:arrived", event => prepare(event.detail));
}
setInterval(() => { if (!document.hidden) localize(document); }, 30000);
// Print has no titles, and relative times would go stale.
window.addEventListener("beforeprint", () => {
  for (const time of document.querySelectorAll("time[title]")) time.textContent = time.title;
});
window.addEventListener("afterprint", () => localize(document));
