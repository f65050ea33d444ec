//! The bar with the bulk actions on selected items.

use cairn_proto::domain::Permission;
use maud::{Markup, html};

use super::list_filters::ListFilters;
use crate::error::Error;
use crate::pages::parts as part;
use crate::pages::popover::FormValues;
use crate::pages::visitor::Visitor;
use crate::pages::{folders, words};

/// The id of the bulk form.
pub(super) const MANY: &str = "many";
/// The form's fields by the service's names.
pub(super) const FIELDS: [(&str, &str); 3] =
    [("add", "tag-selected"), ("remove", "tag-selected"), ("items", "item")];

/// The bar of the actions.
pub(super) fn bar(
    visitor: &Visitor,
    tree: &folders::Tree,
    narrowed: &ListFilters<'_>,
    total: u64,
    filled: FormValues<'_>,
) -> Result<Markup, Error> {
    let action = format!("{}/many", folders::address(visitor.here()?.id, None));
    Ok(html! {
        form #many .many method="post" action=(action) aria-label="With those that are selected" {
            @for (name, value) in narrowed.fields() { input type="hidden" name=(name) value=(value); }
            @if total > 1 {
                div.option {
                    input #f-all type="checkbox" name="all" value="yes" checked[filled.form().is_some_and(|form| form.has("all"))];
                    label for="f-all" { "All " (words::grouped(total)) " files that match" }
                }
            }
            @if visitor.may(Permission::Delete) { button type="submit" name="do" value="trash" data-key="#" { "Move selected to trash" } }
            @if visitor.may(Permission::Write) {
                (tree.choice_by_key("to", filled.choice("to", narrowed.folder()), None, Some("m")))
                button type="submit" name="do" value="move" { "Move selected" }
                (filled.field(part::Field::text("tag-selected", "Tag").optional(), "").id("f-tag-selected").render())
                button type="submit" name="do" value="tag" { "Tag selected" }
                button type="submit" name="do" value="untag" { "Remove tag" }
            }
        }
    })
}
