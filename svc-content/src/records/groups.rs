//! Group-by over records: counts per value of a property, with aggregates of other properties.

use std::collections::HashMap;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::Tx;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::limits::RECORD_SUMMARIES;
use cairn_proto::domain::{self, DateUnit, GroupOrder};
use cairn_proto::ids::{PropertyId, RecordId};
use serde_json::Value;

use super::list::select;
use super::{RecordListRequest, Records, listed};
use crate::Error;
use crate::checks::Checks;
use crate::columns::Columns;
use crate::model::{
    Database, Group, GroupBy, GroupKey, Grouped, Grouping, MAX_KEY_CHARS, MICROS_PER_DAY, Others, Property,
    PropertyType, Tally, day_of, text_of_units,
};
use crate::scope::Caller;
use crate::{databases, store};

/// A request for groups. It selects records like a request for a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordGroupsRequest {
    pub(crate) search: String,
    /// Combined by AND.
    pub(crate) filters: Vec<domain::Filter>,
    pub(crate) view_id: Option<String>,
    pub(crate) group_by: String,
    pub(crate) date_unit: DateUnit,
    /// Absent: by value if the values have a natural order, otherwise by count.
    pub(crate) order: Option<GroupOrder>,
    pub(crate) summarize: Vec<String>,
    pub(crate) allow_names: bool,
}

/// Groups as a caller sees them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordGroups {
    pub(crate) property: PropertyId,
    pub(crate) groups: Vec<RecordGroup>,
    pub(crate) total: u64,
    pub(crate) summaries: Vec<Summary>,
    pub(crate) others: Others,
}

/// A group as a caller sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordGroup {
    /// `None` for the records without a value.
    pub(crate) value: Option<Value>,
    pub(crate) label: String,
    /// Whether the value is a truncated text.
    pub(crate) is_beginning: bool,
    pub(crate) count: u64,
    pub(crate) summaries: Vec<Summary>,
}

/// Aggregates of one property.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Summary {
    pub(crate) property: PropertyId,
    pub(crate) count: u64,
    /// Only of numbers, like the average.
    pub(crate) sum: Option<f64>,
    pub(crate) average: Option<f64>,
    pub(crate) least: Option<Value>,
    pub(crate) greatest: Option<Value>,
}

/// Labels of groups by text or reference: texts in the spelling of an example record, and names of referenced items.
#[derive(Debug, Default)]
struct Labels {
    by_record: HashMap<RecordId, String>,
    by_id: HashMap<String, String>,
}

impl Records {
    /// Groups the records of a database.
    pub(crate) async fn groups(
        &self,
        caller: &Caller,
        database_id: &str,
        request: RecordGroupsRequest,
    ) -> Result<RecordGroups, Error> {
        let database = databases::readable(&self.context.db, caller, database_id).await?;
        let mut checks = Checks::default();
        let grouping = grouping(&mut checks, caller, &database, &request);
        let list = RecordListRequest {
            search: request.search,
            filters: request.filters,
            view_id: request.view_id,
            allow_names: request.allow_names,
            ..RecordListRequest::default()
        };
        let mut selection = select(&mut checks, &database, &list)?;
        let (property, grouping) = checks.passed(grouping)?;
        self.narrow(caller, &database, &mut selection).await?;
        selection.orders.clear();

        // An expensive query waits for a read permit, so that one workspace cannot starve the others.
        let _permit = self.context.db.read_permit(caller.workspace).await?;
        let (owned_selection, owned_grouping) = (selection.clone(), grouping.clone());
        let run = move |columns: &Columns| columns.groups(&owned_selection, &owned_grouping);
        let (mut tx, found) = self.query_columns(&database, run).await?;
        let grouped = match found {
            Some(grouped) => grouped,
            None => {
                let total = store::query::count(&mut tx, &selection).await?;
                store::query::groups(&mut tx, &selection, &grouping, total).await?
            }
        };
        let labels = labels(&mut tx, &database, property, &grouped).await?;
        tx.rollback().await?;
        Ok(shown(&database, property, &grouping, grouped, &labels))
    }
}

/// The property to group by, and the grouping; `None` if the request is invalid, in which case `checks` has the violation.
fn grouping<'a>(
    checks: &mut Checks,
    caller: &Caller,
    database: &'a Database,
    request: &RecordGroupsRequest,
) -> Option<(&'a Property, Grouping)> {
    let summed = summed(checks, database, request);
    if request.group_by.is_empty() {
        checks.violation("groupBy", "required", "name the property whose values make the groups");
        return None;
    }
    let property = database.find(checks, "groupBy", &request.group_by, request.allow_names)?;
    let by = match property.kind {
        PropertyType::Number | PropertyType::Boolean => GroupBy::Number,
        PropertyType::Date => GroupBy::Date(request.date_unit),
        PropertyType::Select | PropertyType::MultiSelect => GroupBy::Option,
        PropertyType::Text | PropertyType::Url => GroupBy::Text,
        kind @ (PropertyType::Relation | PropertyType::FileReference | PropertyType::AssetReference) => {
            match caller.listed() {
                None => GroupBy::Reference,
                Some(folders) => GroupBy::Visible { kind, folders: folders.to_vec() },
            }
        }
    };
    let default_order = match by {
        GroupBy::Number | GroupBy::Date(_) | GroupBy::Option => GroupOrder::Asc,
        GroupBy::Text | GroupBy::Reference | GroupBy::Visible { .. } => GroupOrder::Count,
    };
    let is_single = !property.kind.is_reference() && property.kind != PropertyType::MultiSelect;
    let order = request.order.unwrap_or(default_order);
    Some((property, Grouping { property: property.id, by, order, is_single, summed }))
}

/// The properties to aggregate: numbers and dates, each at most once.
fn summed(checks: &mut Checks, database: &Database, request: &RecordGroupsRequest) -> Vec<PropertyId> {
    if request.summarize.len() > RECORD_SUMMARIES {
        checks.violation("summarize", "too_many", wording::at_most(RECORD_SUMMARIES, Unit::Properties));
        return Vec::new();
    }
    let mut summed = Vec::with_capacity(request.summarize.len());
    for (place, text) in request.summarize.iter().enumerate() {
        let path = format!("summarize[{place}]");
        let Some(property) = database.find(checks, &path, text, request.allow_names) else { continue };
        if !matches!(property.kind, PropertyType::Number | PropertyType::Date) {
            let message = format!("is a {}: only numbers and dates are summed up", property.kind.as_str());
            checks.violation(&path, "wrong_type", message);
        }
        if summed.contains(&property.id) {
            checks.violation(&path, "duplicate", "the property is named twice");
        }
        summed.push(property.id);
    }
    summed
}

/// The labels of groups whose keys are not readable.
async fn labels(
    tx: &mut Tx,
    database: &Database,
    property: &Property,
    grouped: &Grouped,
) -> Result<Labels, Error> {
    let mut labels = Labels::default();
    if matches!(property.kind, PropertyType::Text | PropertyType::Url) {
        let examples: Vec<RecordId> = grouped
            .groups
            .iter()
            .filter(|group| group.key.is_some())
            .filter_map(|group| group.example)
            .collect();
        if examples.is_empty() {
            return Ok(labels);
        }
        let of = (database.workspace_id, database.id);
        let page = store::records::page(tx.engine(), of, &examples).await?;
        for record in page.records()? {
            labels.by_record.insert(record.id, listed::text_of(property, &record)?);
        }
    }
    if property.kind.is_reference() {
        let texts = grouped.groups.iter().filter_map(|group| match &group.key {
            Some(GroupKey::Text(id)) => Some(id.as_str()),
            Some(GroupKey::Number(_) | GroupKey::Option(..)) | None => None,
        });
        let ids: Vec<&str> = texts.collect();
        labels.by_id = store::titles::of(tx, database.workspace_id, property.kind, &ids).await?;
    }
    Ok(labels)
}

fn shown(
    database: &Database,
    property: &Property,
    grouping: &Grouping,
    grouped: Grouped,
    labels: &Labels,
) -> RecordGroups {
    let summaries = |tallies: &[Tally]| -> Vec<Summary> {
        let pairs = grouping.summed.iter().zip(tallies);
        pairs.filter_map(|(id, tally)| Some(summary(database.property(*id)?, tally))).collect()
    };
    let group = |group: Group| {
        let (value, label) = match &group.key {
            None => (None, String::new()),
            Some(key) => {
                // A deleted option has no group.
                let (value, label) = value_and_label(property, grouping, key, group.example, labels)?;
                (Some(value), label)
            }
        };
        Some(RecordGroup {
            value,
            label,
            is_beginning: is_beginning(property, group.key.as_ref()),
            count: group.count,
            summaries: summaries(&group.tallies),
        })
    };
    RecordGroups {
        property: property.id,
        groups: grouped.groups.into_iter().filter_map(group).collect(),
        total: grouped.total,
        summaries: summaries(&grouped.tallies),
        others: grouped.others,
    }
}

/// The value of a group, and its label.
fn value_and_label(
    property: &Property,
    grouping: &Grouping,
    key: &GroupKey,
    example: Option<RecordId>,
    labels: &Labels,
) -> Option<(Value, String)> {
    let same = |text: String| (Value::String(text.clone()), text);
    Some(match key {
        GroupKey::Option(_, id) => same(property.option(id)?.name.clone()),
        GroupKey::Number(key) => match (grouping.unit(), property.kind) {
            (Some(unit), _) => same(text_of_units(key.number() as i64, unit)),
            (None, PropertyType::Boolean) => {
                let is_true = key.number() > 0.0;
                (Value::Bool(is_true), is_true.to_string())
            }
            (None, _) => {
                let value = number(key.number());
                let label = value.to_string();
                (value, label)
            }
        },
        GroupKey::Text(id) if property.kind.is_reference() => {
            let label = labels.by_id.get(id).cloned().unwrap_or_default();
            (Value::String(id.clone()), label)
        }
        GroupKey::Text(key) => {
            let written = example.and_then(|example| labels.by_record.get(&example));
            same(written.map_or_else(|| key.clone(), |text| text.chars().take(MAX_KEY_CHARS).collect()))
        }
    })
}

/// Whether the key of a group is a truncated text.
fn is_beginning(property: &Property, key: Option<&GroupKey>) -> bool {
    match key {
        Some(GroupKey::Text(text)) => !property.kind.is_reference() && text.chars().count() >= MAX_KEY_CHARS,
        Some(GroupKey::Number(_) | GroupKey::Option(..)) | None => false,
    }
}

fn summary(property: &Property, tally: &Tally) -> Summary {
    let is_number = property.kind == PropertyType::Number;
    let value = |key: f64| if is_number { number(key) } else { Value::String(date(key)) };
    let (least, greatest) = tally.bounds().unzip();
    Summary {
        property: property.id,
        count: tally.count,
        sum: tally.sum().filter(|_| is_number),
        average: tally.average().filter(|_| is_number),
        least: least.map(value),
        greatest: greatest.map(value),
    }
}

/// A number as JSON, an integer if it has no fraction.
fn number(number: f64) -> Value {
    const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_992.0;
    let is_whole = number.fract() == 0.0 && number.abs() < MAX_SAFE_INTEGER;
    if is_whole { Value::from(number as i64) } else { Value::from(number) }
}

/// The date of a key: a day, or a time if it is not midnight.
fn date(key: f64) -> String {
    let (micros, day) = (key as i64, day_of(key));
    if micros == day.saturating_mul(MICROS_PER_DAY) {
        return text_of_units(day, DateUnit::Day);
    }
    Timestamp::from_micros(micros).to_rfc3339()
}
