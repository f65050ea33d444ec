//! The views of a database as tabs, and the forms that save, change and delete them.

use cairn_proto::domain::Permission;
use maud::{Markup, html};

use super::view_state::ViewState;
use super::{address, filters};
use crate::answers::{Database, View};
use crate::pages::parts as part;
use crate::pages::popover::{FormValues, Popovers, Refused};
use crate::pages::visitor::Visitor;

/// The form that saves the current filters as a view.
pub(super) const SAVE: &str = "save-view";
/// The form that changes the current view.
pub(super) const CHANGE: &str = "change-view";

/// The tabs, and the actions on the current view.
pub(super) fn tabs(
    visitor: &Visitor,
    database: &Database,
    view_state: &ViewState,
    refused: Option<Refused<'_>>,
) -> Markup {
    let current = view_state.view_of(database);
    let is_current = |view: &View| current.is_some_and(|current| current.id == view.id);
    let mut forms = Popovers::new(refused);
    forms.add(SAVE, "Save as view", None, |filled| save(database, view_state, filled));
    if let Some(view) = current {
        forms.add(CHANGE, "Change view", None, |filled| change(database, view_state, view, filled));
    }
    html! {
        nav.tabs aria-label="Views" {
            @for view in &database.views {
                a href=(view_state.in_view(view).address(&database.id)) aria-current=[is_current(view).then_some("page")] { bdi { (view.name) } }
            }
        }
        // Hidden while a record is open beside the grid, to keep one form and unique field names.
        @if visitor.may(Permission::Write) && view_state.record.is_none() {
            (forms.open())
            div.buttons.views {
                (forms.buttons())
                @if let Some(view) = current {
                    @if filters::differs(view_state, view) { (update(database, view_state, view)) }
                    @if database.views.len() > 1 {
                        (part::opens("delete-view", "Delete view", &view.name))
                        (delete(database, view))
                    }
                }
            }
        }
    }
}

fn back(view_state: &ViewState) -> Markup {
    html! { input type="hidden" name="back" value=(view_state.anew().query()); }
}

fn save(database: &Database, view_state: &ViewState, filled: FormValues<'_>) -> Markup {
    let name = part::Field::text("name", "Name").hint("With the filters and the order that you see.");
    html! {
        form method="post" action={ (address(&database.id)) "/views" } {
            (back(view_state))
            (filled.field(name, "").render())
            button.primary type="submit" { "Save view" }
        }
    }
}

fn update(database: &Database, view_state: &ViewState, view: &View) -> Markup {
    html! {
        form.inline method="post" action={ (address(&database.id)) "/views/" (view.id) } {
            (back(view_state))
            button type="submit" name="what" value="filters" { "Save to this view" span.sr { " " (view.name) } }
        }
    }
}

/// Its name and hidden columns.
fn change(database: &Database, view_state: &ViewState, view: &View, filled: FormValues<'_>) -> Markup {
    let is_hidden = |id: &String| match filled.form() {
        Some(form) => form.all("hide").any(|hidden| hidden == id),
        None => view.hidden_field_ids.contains(id),
    };
    html! {
        form method="post" action={ (address(&database.id)) "/views/" (view.id) } {
            (back(view_state))
            (filled.field(part::Field::text("name", "Name"), &view.name).render())
            fieldset {
                legend { "Hidden fields" }
                @for property in database.properties.iter().filter(|property| !property.is_primary) {
                    @let id = format!("hide-{}", property.id);
                    div.option {
                        input id=(id) type="checkbox" name="hide" value=(property.id) checked[is_hidden(&property.id)];
                        label for=(id) { "Hide " bdi { (property.name) } }
                    }
                }
            }
            button type="submit" name="what" value="name" { "Rename and save" }
        }
    }
}

fn delete(database: &Database, view: &View) -> Markup {
    let told = html! {
        p { "The view " bdi { (view.name) } " goes, with its filters. The records stay." }
    };
    let path = format!("{}/views/{}/delete", address(&database.id), view.id);
    part::dialog("delete-view", "Delete the view?", &told, &path, "Delete view", &html! {})
}
