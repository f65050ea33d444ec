// Files dropped on the list are sent by the upload form.
const form = document.querySelector("form[data-upload]");
const input = form?.querySelector("input[type=file]");
if (input) {
  const hasFiles = event => [...(event.dataTransfer?.types ?? [])].includes("Files");
  document.addEventListener("dragover", event => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  document.addEventListener("dragleave", event => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  document.addEventListener("drop", event => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    document.body.classList.remove("dropping");
    if (!event.dataTransfer.files.length) return;
    input.files = event.dataTransfer.files;
    form.requestSubmit();
  });
}
