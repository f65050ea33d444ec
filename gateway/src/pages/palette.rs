//! The command palette: a dialog on every page of a workspace. Its module lists the page's own links and actions at
//! once and loads the rest from `/w/{id}/go`; without scripts its form opens that page.

use maud::{Markup, html};

use super::parts::{Icon, icon};
use super::visitor::Here;

const DIALOG: &str = "palette";

/// The page that finds items by name.
pub(super) fn address(here: &Here) -> String {
    format!("/w/{}/go", here.id)
}

/// The button that opens it.
pub(super) fn button(here: Option<&Here>) -> Markup {
    html! {
        @if here.is_some() {
            button.go type="button" command="show-modal" commandfor=(DIALOG) aria-keyshortcuts="Control+K Meta+K" {
                (icon(Icon::Glass)) "Go to…" kbd aria-hidden="true" { "Ctrl K" }
            }
        }
    }
}

/// The dialog itself.
pub(super) fn dialog(here: Option<&Here>) -> Markup {
    let Some(here) = here else { return html! {} };
    html! {
        dialog id=(DIALOG) aria-labelledby="palette-label" closedby="any" {
            form method="get" action=(address(here)) {
                label #palette-label for="palette-q" { "Go to" }
                div.buttons {
                    input #palette-q type="text" name="q" role="combobox" aria-controls="palette-list" aria-expanded="false"
                        aria-autocomplete="list" autocomplete="off" spellcheck="false" maxlength="255"
                        placeholder="A page, file, folder, database, record or memory";
                    button type="submit" { "Find" }
                }
                ul #palette-list role="listbox" aria-label="Where to go" hidden {}
                button type="button" command="close" commandfor=(DIALOG) { "Close" }
            }
        }
    }
}
