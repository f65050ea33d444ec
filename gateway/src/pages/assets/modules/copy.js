// Buttons with data-copy="#id" copy that element's text, and say so for a moment (data-done).
document.addEventListener("click", async event => {
  const button = event.target.closest?.("[data-copy]");
  const source = button && document.querySelector(button.dataset.copy);
  if (!source) return;
  try {
    await navigator.clipboard.writeText(source.value ?? source.textContent);
  } catch {
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
for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
document.addEventListener("cairn:swapped", () => {
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
});
