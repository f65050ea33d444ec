//! Grouped records: counts per value of a property, with sums of numbers and date ranges.

use cairn_chassis::status::Problem;
use cairn_proto::domain::{DateUnit, PropertyType};
use cairn_proto::ids::DatabaseId;
use maud::{Markup, html};
use serde_json::Value;

use super::model::{as_text, kind_of};
use super::rows::columns;
use super::view_state::{Condition, Group, ViewState, property};
use crate::answers::{Database, Property, RecordGroup, RecordGroups, RecordSummary};
use crate::operations::Context;
use crate::operations::records::{self, Grouping};
use crate::pages::words;

/// Limit of summary columns.
const MAX_SUMMED: usize = 4;

/// The groups in the URL; `None` for an unknown property.
pub(super) async fn of(
    context: &Context,
    id: DatabaseId,
    database: &Database,
    view_state: &ViewState,
) -> Result<Option<RecordGroups>, Problem> {
    let Some(group) = view_state.group.as_ref() else { return Ok(None) };
    if property(&database.properties, &group.field).is_none() {
        return Ok(None);
    }
    let grouping = Grouping {
        group_by: group.field.clone(),
        date_unit: group.unit,
        order: None,
        summarize: summed(database, view_state, group).into_iter().map(|one| one.id.clone()).collect(),
    };
    records::groups(context, id, view_state.selection(database), grouping).await.map(Some)
}

/// The visible numeric and date properties.
fn summed<'a>(database: &'a Database, view_state: &ViewState, group: &Group) -> Vec<&'a Property> {
    let shown = columns(database, view_state).into_iter();
    let summed = shown.filter(|one| matches!(kind_of(one), PropertyType::Number | PropertyType::Date));
    summed.filter(|one| one.id != group.field).take(MAX_SUMMED).collect()
}

/// The grouping selector of the filter bar.
pub(super) fn choice(database: &Database, view_state: &ViewState) -> Markup {
    let chosen = view_state.group.as_ref();
    let is_chosen = |property: &Property, unit: Option<DateUnit>| {
        chosen.is_some_and(|group| {
            group.field == property.id && group.unit.unwrap_or_default() == unit.unwrap_or_default()
        })
    };
    html! {
        div.field {
            label for="f-group" { "Group by" }
            select #f-group name="group" {
                option value="" { "–" }
                @for one in &database.properties {
                    @if kind_of(one) == PropertyType::Date {
                        @for unit in DateUnit::ALL {
                            option value={ (one.id) ":" (unit.as_str()) } dir="auto" selected[is_chosen(one, Some(unit))] {
                                (one.name) " by " (unit.as_str())
                            }
                        }
                    } @else {
                        option value=(one.id) dir="auto" selected[is_chosen(one, None)] { (one.name) }
                    }
                }
            }
        }
    }
}

/// The groups as a table. Each value links to its records.
pub(super) fn table(database: &Database, view_state: &ViewState, grouped: &RecordGroups) -> Markup {
    let Some(by) = property(&database.properties, &grouped.field_id) else { return html! {} };
    let summed: Vec<&Property> = grouped
        .total
        .summaries
        .iter()
        .filter_map(|summary| property(&database.properties, &summary.field_id))
        .collect();
    html! {
        div.frame role="region" tabindex="0" aria-label="Groups" {
            table {
                caption.sr { "Records by " bdi { (by.name) } }
                thead {
                    tr {
                        th scope="col" { bdi { (by.name) } }
                        th.number scope="col" { "Records" }
                        @for one in &summed { th.number scope="col" { bdi { (one.name) } } }
                    }
                }
                tbody {
                    @for group in &grouped.groups { (row(database, view_state, by, group)) }
                    @if grouped.others.groups > 0 {
                        tr {
                            th scope="row" { (words::count(grouped.others.groups, "more group", "more groups")) }
                            td.number { (words::grouped(grouped.others.count)) }
                            @for _ in &summed { td {} }
                        }
                    }
                }
                tfoot {
                    tr {
                        th scope="row" { "All" }
                        td.number { (words::grouped(grouped.total.count)) }
                        @for summary in &grouped.total.summaries { td.number { (summary_cell(summary)) } }
                    }
                }
            }
        }
    }
}

fn row(database: &Database, view_state: &ViewState, by: &Property, group: &RecordGroup) -> Markup {
    let unit = view_state.group.as_ref().and_then(|group| group.unit).unwrap_or_default();
    let conditions = conditions(by, group, unit);
    html! {
        tr {
            th scope="row" {
                @match conditions {
                    Some(conditions) => a href=(view_state.only(conditions).address(&database.id)) { (name(by, group)) },
                    None => { (name(by, group)) "…" }
                }
            }
            td.number { (words::grouped(group.count)) }
            @for summary in &group.summaries { td.number { (summary_cell(summary)) } }
        }
    }
}

fn name(by: &Property, group: &RecordGroup) -> Markup {
    let label = match (&group.value, kind_of(by)) {
        (None, _) => return html! { "No value" },
        (Some(value), PropertyType::Boolean) => as_text(Some(value)),
        // A deleted or trashed target has no name.
        (Some(value), _) if group.label.is_empty() => as_text(Some(value)),
        (Some(_), _) => group.label.clone(),
    };
    html! { bdi { (label) } }
}

/// The filter that selects a group's records; `None` if it cannot be expressed.
fn conditions(by: &Property, group: &RecordGroup, unit: DateUnit) -> Option<Vec<Condition>> {
    let condition = |operator: &str, value: String| Condition {
        field: by.id.clone(),
        operator: operator.to_owned(),
        value,
    };
    let Some(value) = &group.value else { return Some(vec![condition("is_empty", String::new())]) };
    if group.is_beginning {
        return None;
    }
    let text = as_text(Some(value));
    let (from, to) = match (kind_of(by), unit) {
        (PropertyType::Date, DateUnit::Month) => (format!("{text}-01"), last_of_month(&text)?),
        (PropertyType::Date, DateUnit::Year) => (format!("{text}-01-01"), format!("{text}-12-31")),
        _ => return Some(vec![condition("equals", text)]),
    };
    Some(vec![condition("gte", from), condition("lte", to)])
}

/// The last day of a month such as `2026-11`.
fn last_of_month(text: &str) -> Option<String> {
    let (year, month) = text.split_once('-')?;
    let year: u32 = year.parse().ok()?;
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let last = match month {
        "02" if is_leap => 29,
        "02" => 28,
        "04" | "06" | "09" | "11" => 30,
        _ => 31,
    };
    Some(format!("{text}-{last}"))
}

/// The summary of a property, in a cell.
fn summary_cell(summary: &RecordSummary) -> Markup {
    let bounds = |value: &Option<Value>| as_text(value.as_ref());
    let (min, max) = (bounds(&summary.min), bounds(&summary.max));
    html! {
        @if summary.count > 0 {
            @if let Some(sum) = &summary.sum { (sum.to_string()) " " }
            span.quiet {
                @if let Some(average) = &summary.average { "average " (average.to_string()) ", " }
                @if min == max { (min) } @else { (min) " to " (max) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conditions_of(kind: PropertyType, value: Value, unit: DateUnit) -> String {
        let by = Property { id: "p".into(), r#type: kind.number(), ..Property::default() };
        let group = RecordGroup {
            value: Some(value).filter(|value| !value.is_null()),
            label: String::new(),
            is_beginning: false,
            count: 1,
            summaries: Vec::new(),
        };
        let conditions = conditions(&by, &group, unit).unwrap();
        ViewState { filters: conditions, ..ViewState::default() }.query()
    }

    #[test]
    fn a_group_leads_to_its_records() {
        let day = DateUnit::Day;
        for (kind, value, unit, query) in [
            (PropertyType::Text, json!(null), day, "filter=p%3Ais_empty%3A"),
            (PropertyType::Text, json!("a:b"), day, "filter=p%3Aequals%3Aa%3Ab"),
            (PropertyType::Number, json!(1.5), day, "filter=p%3Aequals%3A1.5"),
            (PropertyType::Boolean, json!(true), day, "filter=p%3Aequals%3Ayes"),
            (PropertyType::Date, json!("2026-11-20"), day, "filter=p%3Aequals%3A2026-11-20"),
            (
                PropertyType::Date,
                json!("2028-02"),
                DateUnit::Month,
                "filter=p%3Agte%3A2028-02-01&filter=p%3Alte%3A2028-02-29",
            ),
            (
                PropertyType::Date,
                json!("2026"),
                DateUnit::Year,
                "filter=p%3Agte%3A2026-01-01&filter=p%3Alte%3A2026-12-31",
            ),
        ] {
            assert_eq!(conditions_of(kind, value, unit), query);
        }
        assert_eq!(last_of_month("2100-02").as_deref(), Some("2100-02-28"));
        assert_eq!(last_of_month("9999-12").as_deref(), Some("9999-12-31"));
    }
}
