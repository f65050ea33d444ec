//! The conflict page of a record that was changed concurrently: both versions, and the three resolutions.

use http::StatusCode;
use maud::{Markup, html};

use super::at::LocatedDatabase;
use super::model::{field_name, title_of, value_of};
use super::values::{as_typed, changed, typed};
use super::view_state::ViewState;
use super::{address, list};
use crate::answers::{Database, Property, Record};
use crate::pages::Answer;
use crate::pages::form::Form;
use crate::pages::frame::Page;
use crate::pages::parts as part;

pub(super) async fn show(
    at: &LocatedDatabase,
    database: &Database,
    view_state: &ViewState,
    now: &Record,
    form: &Form,
) -> Answer {
    let held = |property: &&Property| form.all("field").any(|id| id == property.id);
    let held: Vec<&Property> = database.properties.iter().filter(held).collect();
    let path = format!("{}/records/{}", address(&database.id), now.id);
    let back = view_state.address(&database.id);
    let body = html! {
        div.problem role="alert" {
            p { "Somebody else changed this record meanwhile. Nothing of yours is stored yet, and nothing is lost." }
        }
        div.buttons {
            form.inline method="post" action=(path) {
                (carried(view_state, now, form, &held))
                button type="submit" { "Keep mine" }
                button type="submit" name="then" value="merge" { "Edit both" }
            }
            a.button href=(back) { "Keep theirs" }
        }
        h2 { "Theirs and yours" }
        (differences(now, form, &held))
    };
    let above = vec![
        ("Databases".to_owned(), list::address(at.visitor.here()?.id)),
        (database.name.clone(), address(&database.id)),
    ];
    let title = title_of(now);
    let page = Page::new(title).heading(html! { bdi { (title) } }).crumbs(above);
    Ok(page.with_error(StatusCode::CONFLICT).show(&at.visitor, &body))
}

/// The submitted form, rebased on the current version.
fn carried(view_state: &ViewState, now: &Record, form: &Form, held: &[&Property]) -> Markup {
    html! {
        input type="hidden" name="version" value=(now.version);
        input type="hidden" name="back" value=(view_state.query());
        @for property in held {
            @let name = field_name(property);
            input type="hidden" name="field" value=(property.id);
            @for value in form.all(&name) { input type="hidden" name=(name) value=(value); }
        }
    }
}

fn differences(now: &Record, form: &Form, held: &[&Property]) -> Markup {
    let rows = html! {
        @for property in held.iter().filter(|property| changed(property, form, value_of(now, property)).is_some()) {
            tr {
                th scope="row" { bdi { (property.name) } }
                td { del { "− " bdi { (as_typed(property, value_of(now, property)).join(", ")) } } }
                td { ins { "+ " bdi { (typed(property, form).join(", ")) } } }
            }
        }
    };
    part::table("Theirs and yours", &["Field", "Theirs", "Yours"], &rows)
}
