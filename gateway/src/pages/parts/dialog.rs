//! Confirmation dialogs for irreversible actions, opened and closed by the browser without scripts.

use maud::{Markup, html};

/// The button that opens the dialog; `about` completes its accessible name without the row around it.
pub(crate) fn opens(id: &str, label: &str, about: &str) -> Markup {
    html! {
        button type="button" command="show-modal" commandfor=(id) {
            span { (label) @if !about.is_empty() { span.sr { " " bdi { (about) } } } "…" }
        }
    }
}

/// A question with its consequences: `deed` is the form that confirms, after the button that closes the dialog.
pub(crate) fn dialog(
    id: &str,
    title: &str,
    told: &Markup,
    address: &str,
    deed: &str,
    fields: &Markup,
) -> Markup {
    html! {
        dialog id=(id) aria-labelledby={ (id) "-title" } closedby="any" {
            h2 id={ (id) "-title" } { (title) }
            (told)
            form method="post" action=(address) {
                (fields)
                div.buttons {
                    button type="button" command="close" commandfor=(id) { "Cancel" }
                    button.danger type="submit" { (deed) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_safe_button_comes_first_and_no_script_is_needed() {
        let html = dialog("d", "Delete?", &html! {}, "/x", "Delete", &html! {}).into_string();
        assert!(html.find("Cancel").unwrap() < html.find("type=\"submit\"").unwrap());
        assert!(opens("d", "Delete", "x").into_string().contains("command=\"show-modal\" commandfor=\"d\""));
    }
}
