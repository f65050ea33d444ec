// The editor: drafts survive an expired session, the preview is live, lists continue, links are completed.
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
  // A draft of an older text does not replace the field, nor a merge in progress.
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
  // A pressed button takes precedence over a pending preview.
  form.addEventListener("submit", () => clearTimeout(timer));
  // `[[` completes file names, as a combobox; Escape closes it.
  const list = document.getElementById("links");
  if (list) {
    const told = document.getElementById("links-told");
    let [shown, at, wait, left] = [[], -1, 0, -1];

    const begunLink = () => {
      const end = field.selectionStart;
      const before = field.value.slice(Math.max(0, end - 300), end);
      const open = before.lastIndexOf("[[");
      const name = before.slice(open + 2);
      if (open < 0 || end !== field.selectionEnd || !name.trim() || /[\n\]|#]/.test(name)) return null;
      return { from: end - name.length, end, name: name.trim() };
    };
    const choose = next => {
      at = shown.length ? (next + shown.length) % shown.length : -1;
      [...list.children].forEach((option, index) => option.setAttribute("aria-selected", String(index === at)));
      list.children[at]?.scrollIntoView({ block: "nearest" });
      if (at < 0) field.removeAttribute("aria-activedescendant");
      else field.setAttribute("aria-activedescendant", `link-${at}`);
    };
    const offer = paths => {
      shown = paths;
      list.replaceChildren(...paths.map((path, index) => {
        const [option, name] = [document.createElement("li"), document.createElement("bdi")];
        option.id = `link-${index}`;
        option.setAttribute("role", "option");
        name.textContent = path;
        option.append(name);
        return option;
      }));
      list.hidden = !paths.length;
      told.textContent = paths.length > 1 ? list.dataset.many.replace("{}", paths.length) : paths.length ? list.dataset.one : "";
      choose(0);
    };
    const nameOf = path => path.split("/").pop().replace(/\.md$/i, "");
    const take = path => {
      const link = begunLink();
      offer([]);
      if (!link) return;
      const end = field.value.startsWith("]]", link.end) ? link.end + 2 : link.end;
      field.setRangeText(`${nameOf(path)}]]`, link.from, end, "end");
      field.dispatchEvent(new Event("input", { bubbles: true }));
    };
    const look = () => {
      clearTimeout(wait);
      const link = begunLink();
      if (link?.from !== left) left = -1;
      if (!link || link.from === left) return offer([]);
      wait = setTimeout(() => {
        const address = `${list.dataset.names}?${new URLSearchParams({ kind: "file", q: link.name })}`;
        const show = part => {
          const now = begunLink();
          if (now?.from !== link.from || now.name !== link.name || link.from === left || document.activeElement !== field) return;
          // Wiki links cannot contain these characters.
          offer([...part?.querySelectorAll("a") ?? []].map(one => one.textContent).filter(path => !/[[\]|#]/.test(nameOf(path))));
        };
        document.dispatchEvent(new CustomEvent("cairn:fetch", { detail: { selector: "#found", address, take: show } }));
      }, 120);
    };
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-controls", list.id);
    field.addEventListener("input", look);
    field.addEventListener("blur", () => offer([]));
    document.addEventListener("selectionchange", () => { if (shown.length && !begunLink()) offer([]); });
    list.addEventListener("mousedown", event => event.preventDefault());
    list.addEventListener("click", event => {
      const index = [...list.children].indexOf(event.target.closest("[role=option]"));
      if (index >= 0) take(shown[index]);
    });
    field.addEventListener("keydown", event => {
      const steps = { ArrowDown: 1, ArrowUp: -1 };
      if (!shown.length || event.isComposing || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      if (event.key in steps) choose(at + steps[event.key]);
      else if (event.key === "Enter") take(shown[at]);
      else if (event.key === "Escape") {
        left = begunLink()?.from ?? -1;
        offer([]);
      } else return;
      event.preventDefault();
      // Enter must not continue a list, too.
      event.stopImmediatePropagation();
    });
  }

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
