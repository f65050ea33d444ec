// The editor: drafts survive a session that ends, the preview follows what is typed, lists go on.
const form = document.querySelector("form[data-editor]");
const field = form?.elements.content;
if (field) {
  const key = `cairn-draft:${form.dataset.editor}:${form.elements.part?.value ?? ""}`;
  const hash = form.elements.hash.value;
  const begun = field.value;
  let isLeaving = false;
  let timer = 0;

  const kept = () => {
    try { return JSON.parse(sessionStorage.getItem(key)); } catch { return null; }
  };
  const keep = () => {
    try { sessionStorage.setItem(key, JSON.stringify({ hash, text: field.value })); } catch { /* Full: the draft stays in the field. */ }
  };
  const draft = kept();
  sessionStorage.removeItem("cairn-sent");
  // A draft of an older text, and whatever stands where two texts were put together, is not replaced.
  if (draft && draft.hash === hash && draft.text !== field.value && !form.hasAttribute("data-merged")) {
    field.value = draft.text;
    const told = document.createElement("output");
    told.className = "notice";
    told.textContent = "Your draft from before is back. ";
    const discard = document.createElement("button");
    discard.type = "button";
    discard.textContent = "Discard the draft";
    discard.addEventListener("click", () => { field.value = begun; sessionStorage.removeItem(key); told.remove(); });
    told.append(discard);
    form.before(told);
  }

  field.addEventListener("input", () => {
    keep();
    clearTimeout(timer);
    if (field.value.length < 200000) timer = setTimeout(() => form.requestSubmit(form.querySelector("[data-swap]")), 300);
  });
  field.addEventListener("keydown", event => {
    if (event.key !== "Enter" || event.shiftKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    const before = field.value.slice(0, field.selectionStart);
    const line = before.slice(before.lastIndexOf("\n") + 1);
    const item = /^(\s*)([-*+] (?:\[[ xX]\] )?|(\d{1,9})([.)]) )(.*)$/.exec(line);
    if (!item) return;
    event.preventDefault();
    if (!item[5]) {
      field.setRangeText("", field.selectionStart - line.length, field.selectionStart, "end");
    } else {
      const mark = item[3] ? `${Number(item[3]) + 1}${item[4]} ` : item[2].replace(/\[[xX]\]/, "[ ]");
      field.setRangeText(`\n${item[1]}${mark}`, field.selectionStart, field.selectionEnd, "end");
    }
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  document.addEventListener("keydown", event => {
    if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    form.requestSubmit(form.querySelector("button.primary"));
  });
  form.addEventListener("submit", event => {
    if (event.submitter?.dataset.swap) return;
    isLeaving = true;
    sessionStorage.setItem("cairn-sent", key);
  });
  form.querySelector("a.button")?.addEventListener("click", () => { isLeaving = true; sessionStorage.removeItem(key); });
  window.addEventListener("beforeunload", event => {
    if (!isLeaving && field.value !== begun) event.preventDefault();
  });
}
