//! Grouped records.

use cairn_chassis::status::Problem;
use cairn_proto::content::v1 as proto;
use serde::Serialize;
use serde_json::{Number, Value};
use utoipa::ToSchema;

/// What records have of one property.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordSummary {
    #[schema(format = "uuid")]
    pub(crate) field_id: String,
    /// How many of the records have a value of it.
    pub(crate) count: u64,
    /// Of numbers; left out where it is beyond what a double holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub(crate) sum: Option<Number>,
    /// Of numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub(crate) average: Option<Number>,
    /// A number, or a date or time in UTC; left out where no record has a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    pub(crate) min: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    pub(crate) max: Option<Value>,
}

/// The records that share a value.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordGroup {
    /// The name of an option, a number, true or false, a text, an id, or a date as `2026-11-20`, `2026-11` or `2026`; null for
    /// the records without a value.
    #[schema(value_type = Value, required = true)]
    pub(crate) value: Option<Value>,
    /// The value for people: of a reference what it names is called.
    pub(crate) label: String,
    /// The value is the beginning of a longer text; texts that begin alike, by 200 characters, are one group.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) is_beginning: bool,
    /// How many records.
    pub(crate) count: u64,
    /// Of each property that is summed up.
    pub(crate) summaries: Vec<RecordSummary>,
}

/// Groups that are not named.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct OtherGroups {
    pub(crate) groups: u64,
    /// Their records, each counted in each group that it is in.
    pub(crate) count: u64,
}

/// All records that are asked for.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct AllRecords {
    /// How many, each once.
    pub(crate) count: u64,
    pub(crate) summaries: Vec<RecordSummary>,
}

/// Records in groups.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordGroups {
    /// The property whose values make the groups.
    #[schema(format = "uuid")]
    pub(crate) field_id: String,
    /// The first 200 of them, and behind these the records without a value.
    pub(crate) groups: Vec<RecordGroup>,
    pub(crate) total: AllRecords,
    /// Beyond the first 200.
    pub(crate) others: OtherGroups,
}

impl TryFrom<proto::GroupRecordsResponse> for RecordGroups {
    type Error = Problem;

    fn try_from(grouped: proto::GroupRecordsResponse) -> Result<Self, Problem> {
        let group = |group: proto::Group| {
            Ok(RecordGroup {
                value: value(group.value_json)?,
                label: group.label,
                is_beginning: group.is_beginning,
                count: group.count,
                summaries: summaries(group.summaries)?,
            })
        };
        Ok(Self {
            field_id: grouped.property_id,
            groups: grouped.groups.into_iter().map(group).collect::<Result<_, Problem>>()?,
            total: AllRecords { count: grouped.total, summaries: summaries(grouped.summaries)? },
            others: OtherGroups { groups: grouped.other_groups, count: grouped.other_records },
        })
    }
}

fn summaries(all: Vec<proto::Summary>) -> Result<Vec<RecordSummary>, Problem> {
    let summary = |one: proto::Summary| {
        Ok(RecordSummary {
            field_id: one.property_id,
            count: one.count,
            sum: one.sum.and_then(number),
            average: one.average.and_then(number),
            min: value(one.min_json)?,
            max: value(one.max_json)?,
        })
    };
    all.into_iter().map(summary).collect()
}

fn value(json: Option<String>) -> Result<Option<Value>, Problem> {
    let read = json.map(|json| serde_json::from_str(&json)).transpose();
    read.map_err(|error| Problem::internal(format!("the value of a group cannot be read: {error}")))
}

/// A whole number without decimal point, up to the exact range of a double.
fn number(number: f64) -> Option<Number> {
    const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;
    let is_whole = number.fract() == 0.0 && number.abs() < MAX_WHOLE;
    if is_whole { Some(Number::from(number as i64)) } else { Number::from_f64(number) }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::status::Reason;
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_written_as_people_write_them() {
        let summary = |sum: f64| proto::Summary {
            property_id: "p".into(),
            count: 2,
            sum: Some(sum),
            average: Some(sum / 2.0),
            min_json: Some("\"2026-11-20\"".into()),
            max_json: None,
        };
        let grouped = proto::GroupRecordsResponse {
            property_id: "f".into(),
            groups: vec![proto::Group { count: 2, summaries: vec![summary(3.0)], ..proto::Group::default() }],
            total: 2,
            summaries: vec![summary(1e300)],
            ..proto::GroupRecordsResponse::default()
        };
        let read = serde_json::to_value(RecordGroups::try_from(grouped.clone()).unwrap()).unwrap();
        assert_eq!(
            read["groups"][0],
            json!({
                "value": null, "label": "", "count": 2,
                "summaries": [{"fieldId": "p", "count": 2, "sum": 3, "average": 1.5, "min": "2026-11-20"}],
            })
        );
        assert_eq!(read["total"]["summaries"][0]["sum"], json!(1e300));
        assert_eq!(read["others"], json!({"groups": 0, "count": 0}));
        let mut broken = grouped;
        broken.groups[0].value_json = Some("{".into());
        assert_eq!(RecordGroups::try_from(broken).unwrap_err().reason, Reason::Internal);
    }
}
