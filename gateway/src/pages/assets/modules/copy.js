// Buttons with data-copy="#id" copy that element's text, without an id the page's URL, and confirm it for a moment
// (data-done).
document.addEventListener("click", async event => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const source = button.dataset.copy && document.querySelector(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source ? source.value ?? source.textContent : location.href);
  } catch {
    if (!source) return;
    const range = document.createRange();
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return;
  }
  const label = button.textContent;
  button.textContent = button.dataset.done;
  setTimeout(() => { button.textContent = label; }, 2000);
});
