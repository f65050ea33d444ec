// Ctrl or ⌘ K: links and actions of this page at once, items by name from /go. Recent targets come first;
// they are kept for the lifetime of the tab.
const dialog = document.getElementById("palette");
if (dialog) {
  const form = dialog.querySelector("form");
  const [field, list] = [form.elements.q, dialog.querySelector("[role=listbox]")];
  const kept = `cairn-gone:${form.getAttribute("action")}`;
  let [found, shown, at, timer] = [[], [], -1, 0];

  const gone = () => {
    try {
      return JSON.parse(sessionStorage.getItem(kept)) ?? [];
    } catch {
      return [];
    }
  };
  const here = () => {
    const all = document.querySelectorAll("#menu a[href], main .top .buttons :is(a[href], button)");
    const usable = [...all].filter(one => !one.closest("[popover]:not(#menu)"));
    return usable.map(element => ({ name: element.textContent.trim(), href: element.href, element }));
  };
  const choose = next => {
    at = shown.length ? (next + shown.length) % shown.length : -1;
    [...list.children].forEach((option, index) => option.setAttribute("aria-selected", String(index === at)));
    list.children[at]?.scrollIntoView({ block: "nearest" });
    if (at < 0) field.removeAttribute("aria-activedescendant");
    else field.setAttribute("aria-activedescendant", `palette-${at}`);
  };
  const draw = () => {
    const typed = field.value.trim().toLowerCase();
    const fitting = [...gone(), ...here()].filter(one => one.name.toLowerCase().includes(typed));
    const seen = new Set();
    shown = [...fitting, ...(typed ? found : [])].filter(one => {
      const key = one.href ?? one.name;
      return !seen.has(key) && seen.add(key);
    });
    list.replaceChildren(...shown.map((one, index) => {
      const [option, name] = [document.createElement("li"), document.createElement("bdi")];
      option.id = `palette-${index}`;
      option.setAttribute("role", "option");
      name.textContent = one.name;
      option.append(name);
      if (one.kind) option.append(` ${one.kind}`);
      return option;
    }));
    list.hidden = !shown.length;
    field.setAttribute("aria-expanded", String(shown.length > 0));
    choose(0);
  };
  const go = (one, isElsewhere) => {
    if (one.href) {
      const last = [{ name: one.name, href: one.href, kind: one.kind }, ...gone().filter(other => other.href !== one.href)];
      sessionStorage.setItem(kept, JSON.stringify(last.slice(0, 5)));
    }
    if (one.href && isElsewhere) return window.open(one.href, "_blank", "noopener");
    dialog.close();
    if (one.element?.isConnected && !one.href) one.element.click();
    else location.assign(one.href);
  };
  const ask = () => {
    clearTimeout(timer);
    const typed = field.value.trim();
    if (!typed) found = [];
    draw();
    if (!typed) return;
    timer = setTimeout(() => {
      const address = `${form.action}?${new URLSearchParams({ q: typed })}`;
      const take = part => {
        if (!part || field.value.trim() !== typed) return;
        found = [...part.querySelectorAll("li")].map(item => {
          const [link, kind] = [item.querySelector("a"), item.querySelector("span")];
          return { name: link.textContent, href: new URL(link.getAttribute("href"), location.href).href, kind: kind?.textContent };
        });
        const before = at;
        draw();
        choose(before > 0 ? before : 0);
      };
      document.dispatchEvent(new CustomEvent("cairn:fetch", { detail: { selector: "#found", address, take } }));
    }, 120);
  };

  document.addEventListener("keydown", event => {
    if (event.key !== "k" || event.altKey || event.shiftKey || event.ctrlKey === event.metaKey) return;
    event.preventDefault();
    if (!document.querySelector("dialog[open]")) dialog.showModal();
  });
  dialog.addEventListener("toggle", event => {
    if (event.newState !== "open") return;
    field.select();
    ask();
  });
  field.addEventListener("input", ask);
  field.addEventListener("keydown", event => {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) choose(at + steps[event.key]);
    else if (event.key === "Enter" && shown[at] && !event.isComposing) go(shown[at], event.ctrlKey || event.metaKey);
    else return;
    event.preventDefault();
  });
  list.addEventListener("click", event => {
    const index = [...list.children].indexOf(event.target.closest("[role=option]"));
    if (index >= 0) go(shown[index], event.ctrlKey || event.metaKey);
  });
}
