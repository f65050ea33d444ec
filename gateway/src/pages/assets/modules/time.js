// Times in the reader's own zone and language; the server wrote UTC. In a table, what is near is told by how far away it is,
// and the exact time is its title.
const written = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const near = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];
const told = at => {
  const seconds = (at - Date.now()) / 1000;
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", Infinity];
  return Math.abs(seconds) < 7 * 86400 ? near.format(Math.trunc(seconds / length), unit) : written.format(at);
};
const localize = root => {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const text = time.closest("td") ? told(at) : written.format(at);
    if (time.textContent !== text) time.textContent = text;
    time.title = written.format(at);
  }
};
localize(document);
document.addEventListener("cairn:arrived", event => localize(event.detail));
setInterval(() => { if (!document.hidden) localize(document); }, 30000);
// On paper there is no title, and the day goes on.
window.addEventListener("beforeprint", () => {
  for (const time of document.querySelectorAll("time[title]")) time.textContent = time.title;
});
window.addEventListener("afterprint", () => localize(document));

// A toast without Undo goes by itself, unless somebody reads it.
const toast = document.querySelector(".toast:not(:has(button))");
if (toast) setInterval(() => { if (!toast.matches(":hover, :focus-within")) toast.remove(); }, 6000);

// What is down is tried again when it said.
const retry = document.querySelector("[data-retry]");
if (retry) {
  let left = Number(retry.dataset.retry);
  const tick = setInterval(() => {
    left -= 1;
    retry.textContent = String(Math.max(0, left));
    if (left <= 0) {
      clearInterval(tick);
      location.reload();
    }
  }, 1000);
}
