//! The filter bar: search, active conditions with links to remove them, and one to add.

use cairn_proto::domain::Operator;
use maud::{Markup, html};

use super::groups;
use super::view_state::{Condition, ViewState, property};
use crate::answers::{Database, View};
use crate::pages::parts as part;
use crate::pages::words;

/// An operator in words, between a property and a value.
const fn word(operator: Operator) -> &'static str {
    match operator {
        Operator::Equals => "is",
        Operator::NotEquals => "is not",
        Operator::Contains => "contains",
        Operator::In => "is one of",
        Operator::Gt => "is greater than",
        Operator::Gte => "is at least",
        Operator::Lt => "is less than",
        Operator::Lte => "is at most",
        Operator::Before => "is before",
        Operator::After => "is after",
        Operator::IsEmpty => "is empty",
        Operator::IsNotEmpty => "is not empty",
    }
}

/// The bar above the grid, with the number of records.
pub(super) fn bar(database: &Database, view_state: &ViewState, total: Option<u64>) -> Markup {
    let address = super::address(&database.id);
    html! {
        form.filter role="search" method="get" action=(address) aria-label="Filter" {
            (hidden_fields(view_state))
            div.field {
                label for="f-q" { "Find" }
                input #f-q type="search" name="q" value=(view_state.search) maxlength="1000" autocomplete="off" data-key="/";
            }
            div.field {
                label for="f-filter" { "Filter by" }
                select #f-filter name="field" {
                    option value="" { "–" }
                    @for one in &database.properties { option value=(one.id) dir="auto" { (one.name) } }
                }
            }
            (part::choices("operator", "Condition", Operator::ALL.into_iter().map(|operator| part::Choice {
                value: operator.as_str(),
                label: word(operator),
                is_chosen: operator == Operator::Equals,
            })))
            div.field {
                label for="f-value" { "Value" }
                input #f-value type="text" name="value" autocomplete="off" dir="auto";
            }
            (groups::choice(database, view_state))
            button type="submit" { "Apply" }
        }
        (chips(database, view_state))
        @if let Some(total) = total {
            p.count role="status" { (words::count(total, "record", "records")) @if is_narrowed(view_state) { " found" } "." }
        }
    }
}

/// Hidden fields of the state to keep, since a GET form replaces the query.
fn hidden_fields(view_state: &ViewState) -> Markup {
    // Search and grouping have fields of their own, and a change starts at the first page.
    let kept = ViewState { search: String::new(), group: None, ..view_state.anew() };
    let query = kept.query();
    html! {
        @for (name, value) in form_urlencoded::parse(query.as_bytes()) { input type="hidden" name=(name) value=(value); }
    }
}

/// Whether there are filters beyond the view's.
pub(super) fn is_narrowed(view_state: &ViewState) -> bool {
    !view_state.search.is_empty() || !view_state.filters.is_empty()
}

fn chips(database: &Database, view_state: &ViewState) -> Markup {
    let of_view = view_state.view_of(database).map(|view| view.filters.as_slice()).unwrap_or_default();
    if of_view.is_empty() && !is_narrowed(view_state) {
        return html! {};
    }
    html! {
        ul.chips aria-label="Filters" {
            @for condition in of_view {
                @let value = super::model::as_text(condition.value.as_ref());
                @let operator = condition.operator.map_or("", Operator::as_str);
                li { span.chip { (condition_in_words(database, &condition.field_id, operator, &value)) span.quiet { " (of the view)" } } }
            }
            @for (place, Condition { field, operator, value }) in view_state.filters.iter().enumerate() {
                li {
                    a.chip href=(view_state.without_filter(place).address(&database.id)) {
                        span.sr { "Remove the filter " } (condition_in_words(database, field, operator, value)) span aria-hidden="true" { " ×" }
                    }
                }
            }
            @if is_narrowed(view_state) {
                @let cleared = ViewState { search: String::new(), filters: Vec::new(), ..view_state.anew() };
                li { a href=(cleared.address(&database.id)) { "Clear all" } }
            }
        }
    }
}

fn condition_in_words(database: &Database, field: &str, operator: &str, value: &str) -> Markup {
    let name =
        property(&database.properties, field).map_or("A field that is no more", |one| one.name.as_str());
    html! {
        bdi { (name) } " "
        @match operator.parse::<Operator>() {
            Ok(operator @ (Operator::IsEmpty | Operator::IsNotEmpty)) => { (word(operator)) }
            Ok(operator) => { (word(operator)) " “" bdi { (value) } "”" }
            Err(_) => { bdi { (operator) } " “" bdi { (value) } "”" }
        }
    }
}

/// Whether the URL differs from the saved view.
pub(super) fn differs(view_state: &ViewState, view: &View) -> bool {
    !view_state.filters.is_empty()
        || (!view_state.orders.is_empty()
            && view_state.orders.iter().map(|order| (order.field.as_str(), order.is_descending)).ne(view
                .sorts
                .iter()
                .map(|sort| {
                    (sort.field_id.as_str(), sort.direction == cairn_proto::domain::SortOrder::Desc)
                })))
}

#[cfg(test)]
mod tests {
    use cairn_proto::content::v1 as proto;

    use super::*;

    fn database() -> Database {
        let property =
            proto::Property { id: "p".into(), name: "<b>Points</b>".into(), ..proto::Property::default() };
        let view = proto::View { id: "v".into(), is_default: true, ..proto::View::default() };
        proto::Database {
            id: "d".into(),
            properties: vec![property],
            views: vec![view],
            ..proto::Database::default()
        }
        .into()
    }

    #[test]
    fn a_filter_is_a_link_that_takes_it_away() {
        let view_state = ViewState::read("filter=p%3Agte%3A%3Ci%3E&filter=p%3Ais_empty%3A&q=x&page=3");
        let html = bar(&database(), &view_state, Some(2)).into_string();
        assert!(
            html.contains("&lt;b&gt;Points&lt;/b&gt;</bdi> is at least “<bdi>&lt;i&gt;</bdi>”"),
            "{html}"
        );
        assert!(html.contains("href=\"/databases/d?q=x&amp;filter=p%3Ais_empty%3A\""), "{html}");
        assert!(html.contains("2 records found."), "{html}");
        assert!(html.contains("name=\"filter\" value=\"p:is_empty:\""), "the form carries them: {html}");
        assert!(!html.contains("name=\"page\""), "{html}");
    }

    #[test]
    fn a_view_differs_from_what_is_asked() {
        let database = database();
        let differs = |query: &str| differs(&ViewState::read(query), &database.views[0]);
        assert!(!differs("q=x") && differs("filter=p%3Ais_empty%3A") && differs("sort=p"));
    }
}
