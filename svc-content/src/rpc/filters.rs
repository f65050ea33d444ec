//! Filters and sorts in the form of the contract.

use cairn_chassis::json;
use cairn_proto::content::v1 as proto;
use cairn_proto::content::v1::filter::Tree;
use cairn_proto::domain::{Condition, Filter, Operator, SortOrder};
use serde_json::Value;

use crate::databases::views::SortDraft;
use crate::model::Sort;

pub(super) fn decode_filter(filter: proto::Filter) -> Filter {
    let branches = |branches: proto::Filters| branches.filters.into_iter().map(decode_filter).collect();
    match filter.tree {
        Some(Tree::All(filters)) => Filter::All(branches(filters)),
        Some(Tree::Any(filters)) => Filter::Any(branches(filters)),
        Some(Tree::Condition(condition)) => Filter::Is(decode_condition(condition)),
        // The rules report what is missing.
        None => Filter::Is(Condition::default()),
    }
}

pub(super) fn decode_condition(condition: proto::Condition) -> Condition {
    // A value that is no JSON is taken as an unquoted text.
    let read = |text: String| json::read(text.as_bytes()).unwrap_or(Value::String(text));
    Condition {
        field_id: condition.field_id,
        operator: Operator::from_number(condition.operator),
        value: condition.value_json.map(read),
    }
}

pub(super) fn decode_sort(sort: proto::Sort) -> SortDraft {
    SortDraft { field_id: sort.field_id, order: SortOrder::from_number(sort.order).unwrap_or_default() }
}

pub(super) fn encode_sort(sort: Sort) -> proto::Sort {
    let order = if sort.is_descending { SortOrder::Desc } else { SortOrder::Asc };
    proto::Sort { field_id: sort.field_id.to_string(), order: order.number() }
}
