// A click on a line number cites it in the URL, Shift-click a range: a copied URL then leads to these lines.
let begun = 0;
document.addEventListener("click", event => {
  const line = event.target.closest?.(".source[data-hash] .line[id]");
  if (!line) return;
  const end = line.getBoundingClientRect().left + Number.parseFloat(getComputedStyle(line, "::before").width) + 12;
  if (event.clientX > end) return;
  const number = Number(line.dataset.n);
  if (!event.shiftKey || !begun) begun = number;
  const [first, last] = [begun, number].sort((one, other) => one - other);
  for (const one of line.parentElement.querySelectorAll(".line")) {
    const isCited = Number(one.dataset.n) >= first && Number(one.dataset.n) <= last;
    one.toggleAttribute("data-cited", isCited);
    if (isCited) one.setAttribute("aria-current", "true");
    else one.removeAttribute("aria-current");
  }
  const address = new URL(location.href);
  address.searchParams.set("lines", `${first}-${last}`);
  address.searchParams.set("hash", line.parentElement.dataset.hash);
  address.hash = `L${first}`;
  history.replaceState(null, "", address);
});
