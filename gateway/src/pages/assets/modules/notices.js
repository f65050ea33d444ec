// A toast without Undo closes by itself, unless somebody reads it.
const toast = document.querySelector(".toast:not(:has(button))");
if (toast) setInterval(() => { if (!toast.matches(":hover, :focus-within")) toast.remove(); }, 6000);

// Retries unavailable parts when due.
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
