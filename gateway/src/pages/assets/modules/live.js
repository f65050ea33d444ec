// Live updates: elements with data-live="change index …" are fetched again when such an event arrives
// ("change:<id>" for one item). Hidden pages close the stream; without a stream the page polls.
const main = document.querySelector("main[data-events]");
if (main) {
  const EVERYTHING = "everything";
  const wanted = new Set();
  let source, timer;

  const isWanted = part => wanted.has(EVERYTHING) || part.dataset.live.split(" ").some(kind => wanted.has(kind));
  // Elements with input or an open form are skipped, and retried.
  const isInUse = part => part.matches(":focus-within") || part.querySelector("details[open] :focus, dialog[open], :popover-open");
  // Opened details stay open.
  const keepOpen = (part, next) => {
    const [before, after] = [part, next].map(one => [...one.querySelectorAll("details")]);
    if (before.length === after.length) before.forEach((one, at) => { after[at].open = one.open; });
  };
  const follow = () => {
    timer = 0;
    if (document.hidden) return;
    const parts = [...document.querySelectorAll("[data-live]")].filter(isWanted);
    const free = parts.filter(part => !isInUse(part));
    if (free.length === parts.length) wanted.clear();
    else note([]);
    if (!free.length) return;
    const take = fresh => {
      if (!fresh) setTimeout(note, 5000, [EVERYTHING]);
      else if (!source && fresh.dataset.events && !document.hidden) open();
      for (const part of free) {
        const next = fresh?.querySelector(`#${CSS.escape(part.id)}`);
        if (!next || isInUse(part)) continue;
        keepOpen(part, next);
        if (next.isEqualNode(part)) continue;
        part.replaceWith(document.adoptNode(next));
        document.dispatchEvent(new CustomEvent("cairn:swapped", { detail: next }));
      }
    };
    document.dispatchEvent(new CustomEvent("cairn:fetch", { detail: { selector: "main", address: location.href, take } }));
  };
  const note = kinds => {
    for (const kind of kinds) wanted.add(kind);
    timer ||= setTimeout(follow, kinds.length ? 500 : 2000);
  };

  const close = () => {
    source?.close();
    source = undefined;
  };
  const open = () => {
    close();
    source = new EventSource(main.dataset.events);
    for (const kind of ["change", "changes", "index", "run", "token", "call"]) {
      source.addEventListener(kind, event => note([kind, `${kind}:${JSON.parse(event.data).id}`]));
    }
    // Catch up on events between the page and the stream.
    source.addEventListener("ready", () => note([EVERYTHING]));
    // Reconnects after the page was fetched again: that shows missed changes, and stops after a sign-out.
    source.addEventListener("error", () => {
      close();
      setTimeout(note, 3000, [EVERYTHING]);
    });
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return close();
    // The page is fetched first, which tells whether there is still something to follow.
    note([EVERYTHING]);
  });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", event => { if (event.persisted && !document.hidden) note([EVERYTHING]); });
  if (!document.hidden) open();
}
