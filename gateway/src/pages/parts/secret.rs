//! What is to be copied: texts, and secrets that are shown once.

use maud::{Markup, html};

/// A text that is put somewhere else, with its button. The button works by a script, and is shown by it.
pub(crate) fn snippet(id: &str, text: &str) -> Markup {
    html! {
        div.snippet {
            pre { code id=(id) { (text) } }
            (copy(id))
        }
    }
}

/// A secret, this once.
pub(crate) fn secret(id: &str, label: &str, text: &str) -> Markup {
    html! {
        div.field {
            label for=(id) { (label) }
            input id=(id) type="text" readonly value=(text) autocomplete="off" spellcheck="false" autocapitalize="off";
            (copy(id))
        }
    }
}

/// Copies the address of what is looked at, with its lines; `y` presses it.
pub(crate) fn copy_link() -> Markup {
    html! { button.copy type="button" hidden data-copy="" data-done="Copied" data-key="y" { "Copy link" } }
}

/// Copies what the element of that id holds.
pub(crate) fn copy(id: &str) -> Markup {
    html! { button.copy type="button" hidden data-copy={ "#" (id) } data-done="Copied" { "Copy" } }
}
