// Links and forms with data-swap="#id": fetches the URL and swaps in only that element of its page.
// The only place that creates HTML from text: it accepts only HTML responses of our own origin.
const policy = window.trustedTypes?.createPolicy("cairn", { createHTML: text => text }) ?? { createHTML: text => text };

const fetched = async (selector, address, options) => {
  const answer = await fetch(address, { ...options, headers: { "x-cairn-part": selector.slice(1), accept: "text/html" } });
  const isOurs = new URL(answer.url).origin === location.origin;
  if (!isOurs || !answer.headers.get("content-type")?.startsWith("text/html")) return null;
  const part = new DOMParser().parseFromString(policy.createHTML(await answer.text()), "text/html").querySelector(selector);
  // Other modules prepare it (times, script-only buttons) before it is compared or shown.
  if (part) document.dispatchEvent(new CustomEvent("cairn:arrived", { detail: part }));
  return part;
};

// The latest request wins, however late an earlier response arrives.
const asked = new Map();
const LATE = "late";

/** Whether the part was shown; LATE if a newer request superseded it. */
const swap = async (selector, address, options) => {
  const place = document.querySelector(selector);
  if (!place) return false;
  const number = (asked.get(selector) ?? 0) + 1;
  asked.set(selector, number);
  if (!options?.quiet) place.setAttribute("aria-busy", "true");
  try {
    const part = await fetched(selector, address, options);
    if (asked.get(selector) !== number) return LATE;
    if (!part) return false;
    const focused = document.activeElement?.id;
    place.replaceWith(document.adoptNode(part));
    if (focused) document.getElementById(focused)?.focus();
    document.dispatchEvent(new CustomEvent("cairn:swapped", { detail: part }));
    return true;
  } catch {
    return false;
  } finally {
    place.removeAttribute("aria-busy");
  }
};

document.addEventListener("click", async event => {
  const link = event.target.closest?.("a[data-swap]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const shown = await swap(link.dataset.swap, link.href);
  if (shown === true) history.pushState(null, "", link.href);
  else if (!shown) location.assign(link.href);
});

document.addEventListener("submit", async event => {
  const form = event.target;
  const selector = event.submitter?.dataset.swap ?? form.dataset?.swap;
  if (!selector) return;
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(form, event.submitter));
  const target = event.submitter?.hasAttribute("formaction") ? event.submitter.formAction : form.action;
  const method = (event.submitter?.getAttribute("formmethod") ?? form.method).toUpperCase();
  if (method === "GET") {
    const address = new URL(target);
    address.search = fields;
    const shown = await swap(selector, address.href);
    if (shown === true) history.pushState(null, "", address.href);
    else if (!shown) location.assign(address.href);
  } else if (!(await swap(selector, target, { method, body: fields }))) {
    form.removeAttribute("data-swap");
    form.requestSubmit(event.submitter);
  }
});

// Other modules request a part of a page by this event; `take` receives the element, or null.
document.addEventListener("cairn:fetch", async ({ detail: { selector, address, take } }) => {
  take(await fetched(selector, address).catch(() => null));
});

window.addEventListener("popstate", () => location.reload());

for (const place of document.querySelectorAll("[data-load]")) swap(`#${CSS.escape(place.id)}`, place.dataset.load);
// Polls pending parts until the response no longer asks for it.
setInterval(() => {
  if (document.hidden) return;
  for (const place of document.querySelectorAll("[data-poll]")) {
    // Keeps the keyboard focus in it.
    if (place.contains(document.activeElement)) continue;
    swap(`#${CSS.escape(place.id)}`, place.dataset.poll || location.href, { quiet: true });
  }
}, 2000);
