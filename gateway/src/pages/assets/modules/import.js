// An archive dropped on the page fills the form, with upload progress. Without this module the form submits itself.
const form = () => document.querySelector("form[data-archive]");
const hasFiles = event => form() && [...(event.dataTransfer?.types ?? [])].includes("Files");

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
  const input = form().querySelector("input[type=file]");
  input.files = event.dataTransfer.files;
  input.focus();
});

document.addEventListener("submit", event => {
  if (event.target !== form()) return;
  event.preventDefault();
  const bar = event.target.querySelector("progress");
  const sent = new XMLHttpRequest();
  sent.open("POST", event.target.action);
  sent.responseType = "document";
  sent.upload.onprogress = at => { if (at.lengthComputable) [bar.max, bar.value] = [at.total, at.loaded]; };
  sent.onload = () => {
    const page = sent.status >= 400 && sent.response?.getElementById("main");
    if (!page) return location.assign(sent.responseURL || location.href);
    document.getElementById("main").replaceWith(document.adoptNode(page));
    document.getElementById("problem")?.focus();
  };
  sent.onerror = () => { bar.hidden = true; event.target.submit(); };
  bar.hidden = false;
  sent.send(new FormData(event.target));
});
