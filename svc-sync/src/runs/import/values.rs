//! Converts properties and values to the form of svc-content.

use cairn_import::{Property, PropertyKind, Value};
use cairn_proto::domain::PropertyType;
use serde_json::{Map, Number, json};
use uuid::Uuid;

use crate::content::Property as Column;

/// 2^53: up to it, a double represents every whole number.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The properties of a database: the plain ones, with the primary one first, or its relations to databases that exist.
pub(super) fn schema(
    properties: &[Property],
    related: bool,
    id_of: impl Fn(usize) -> Option<Uuid>,
) -> Vec<Column> {
    let mut wanted = Vec::with_capacity(properties.len());
    for property in properties {
        let (kind, options, relation) = match &property.kind {
            PropertyKind::Text => (PropertyType::Text, &[][..], None),
            PropertyKind::Number => (PropertyType::Number, &[][..], None),
            PropertyKind::Boolean => (PropertyType::Boolean, &[][..], None),
            PropertyKind::Date => (PropertyType::Date, &[][..], None),
            PropertyKind::Select(options) => (PropertyType::Select, options.as_slice(), None),
            PropertyKind::MultiSelect(options) => (PropertyType::MultiSelect, options.as_slice(), None),
            PropertyKind::Url => (PropertyType::Url, &[][..], None),
            PropertyKind::Assets => (PropertyType::AssetReference, &[][..], None),
            PropertyKind::Relation(database) => {
                let Some(id) = id_of(*database) else { continue };
                (PropertyType::Relation, &[][..], Some(id))
            }
        };
        if (kind == PropertyType::Relation) == related {
            let (name, options) = (property.name.clone(), options.to_vec());
            wanted.push(Column { name, kind, options, relation });
        }
    }
    wanted
}

/// Which values of a record are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// For a new record: all but relations, whose targets may not exist yet.
    Plain,
    /// Relations alone.
    Relations,
    /// All; properties without a value in the archive are cleared.
    All,
}

/// Values as a JSON object keyed by the names of properties; `None` when there are none.
pub(super) fn values(
    properties: &[Property],
    values: &[(usize, Value)],
    which: Which,
    id_of: impl Fn(usize) -> Option<Uuid>,
) -> Option<String> {
    let mut object = Map::new();
    for (place, property) in properties.iter().enumerate() {
        let is_relation = matches!(property.kind, PropertyKind::Relation(_));
        let is_wanted = match which {
            Which::Plain => !is_relation,
            Which::Relations => is_relation,
            Which::All => true,
        };
        // The relation may have been left out of the schema.
        let is_there = if let PropertyKind::Relation(database) = &property.kind {
            id_of(*database).is_some()
        } else {
            true
        };
        if !is_wanted || !is_there {
            continue;
        }
        let value = values.iter().find(|(of, _)| *of == place).map(|(_, value)| value);
        match value.and_then(|value| written(property, value, &id_of)) {
            Some(value) => _ = object.insert(property.name.clone(), value),
            None if which == Which::All => _ = object.insert(property.name.clone(), json!(null)),
            None => {}
        }
    }
    (!object.is_empty()).then(|| serde_json::Value::Object(object).to_string())
}

fn written(
    property: &Property,
    value: &Value,
    id_of: &impl Fn(usize) -> Option<Uuid>,
) -> Option<serde_json::Value> {
    Some(match value {
        Value::Text(text) | Value::Date(text) => json!(text),
        Value::Boolean(value) => json!(value),
        Value::Number(number) => number_of(*number)?,
        Value::Options(names) if matches!(property.kind, PropertyKind::Select(_)) => json!(names.first()?),
        Value::Options(names) => json!(names),
        Value::Items(items) => {
            let ids: Vec<Uuid> = items.iter().filter_map(|item| id_of(*item)).collect();
            if ids.is_empty() {
                return None;
            }
            json!(ids)
        }
    })
}

/// Writes a whole number without a decimal point.
#[expect(clippy::cast_possible_truncation, reason = "only whole numbers that fit are cut")]
fn number_of(number: f64) -> Option<serde_json::Value> {
    if number.fract() == 0.0 && number.abs() < MAX_WHOLE {
        return Some(json!(number as i64));
    }
    Number::from_f64(number).map(serde_json::Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_wait_for_what_they_lead_to() {
        let property = |name: &str, kind| Property { name: name.to_owned(), kind };
        let properties = [
            property("Name", PropertyKind::Text),
            property("Points", PropertyKind::Number),
            property("State", PropertyKind::Select(vec!["Open".into()])),
            property("Of", PropertyKind::Relation(7)),
            property("To", PropertyKind::Relation(8)),
        ];
        let id_of = |place| (place != 8).then(|| Uuid::from_u128(place as u128));
        let names =
            |related| schema(&properties, related, id_of).into_iter().map(|one| one.name).collect::<Vec<_>>();
        assert_eq!(
            (names(false), names(true)),
            (vec!["Name".into(), "Points".into(), "State".into()], vec!["Of".to_owned()])
        );
        let record = [
            (0, Value::Text("r".into())),
            (1, Value::Number(3.0)),
            (2, Value::Options(vec!["Open".into()])),
            (3, Value::Items(vec![9, 8])),
            (4, Value::Items(vec![9])),
        ];
        let told = |which| values(&properties, &record, which, id_of).unwrap();
        assert_eq!(told(Which::Plain), r#"{"Name":"r","Points":3,"State":"Open"}"#);
        assert_eq!(told(Which::Relations), format!(r#"{{"Of":["{}"]}}"#, Uuid::from_u128(9)));
        assert_eq!(values(&properties, &record[..1], Which::Relations, id_of), None);
        let cleared = values(&properties, &record[..1], Which::All, id_of).unwrap();
        assert_eq!(cleared, r#"{"Name":"r","Of":null,"Points":null,"State":null}"#);
    }
}
