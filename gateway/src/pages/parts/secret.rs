//! Copyable texts, and secrets that are shown once.

use maud::{Markup, html};

/// A text with a copy button, which needs a script and is shown by it.
pub(crate) fn snippet(id: &str, text: &str) -> Markup {
    html! {
        div.snippet {
            pre { code id=(id) { (text) } }
            (copy(id))
        }
    }
}

/// A secret, shown once.
pub(crate) fn secret(id: &str, label: &str, text: &str) -> Markup {
    html! {
        div.field {
            label for=(id) { (label) }
            input id=(id) type="text" readonly value=(text) autocomplete="off" spellcheck="false" autocapitalize="off";
            (copy(id))
        }
    }
}

/// Copies the URL of the current view with its lines; shortcut `y`.
pub(crate) fn copy_link() -> Markup {
    html! { button.copy type="button" hidden data-copy="" data-done="Copied" data-key="y" { "Copy link" } }
}

/// Copies the content of an element.
pub(crate) fn copy(id: &str) -> Markup {
    html! { button.copy type="button" hidden data-copy={ "#" (id) } data-done="Copied" { "Copy" } }
}
