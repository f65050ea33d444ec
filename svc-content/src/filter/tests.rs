//! Whatever a caller sends is judged, and never a panic.
#![expect(clippy::wildcard_enum_match_arm, reason = "whatever else there is means the same here")]

use cairn_chassis::clock::Timestamp;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::model::{PropertySettings, Values, cells, searched};
use crate::records::values::{ValueChanges, rendered, shown};

const KINDS: [PropertyType; 10] = [
    PropertyType::Text,
    PropertyType::Number,
    PropertyType::Boolean,
    PropertyType::Date,
    PropertyType::Select,
    PropertyType::MultiSelect,
    PropertyType::Url,
    PropertyType::Relation,
    PropertyType::FileReference,
    PropertyType::AssetReference,
];

fn database() -> Database {
    let property = |(number, kind): (usize, &PropertyType)| Property {
        id: PropertyId(Uuid::from_u128(number as u128 + 1)),
        name: kind.as_str().to_owned(),
        kind: *kind,
        is_primary: number == 0,
        config: PropertySettings::default(),
    };
    let at = Timestamp::from_micros(0);
    Database {
        id: Uuid::nil().into(),
        workspace_id: Uuid::nil().into(),
        folder_id: None,
        folders: Vec::new(),
        path: "/d".into(),
        name: "d".into(),
        description: None,
        icon: None,
        properties: KINDS.iter().enumerate().map(property).collect(),
        views: Vec::new(),
        record_count: 0,
        created_at: at,
        updated_at: at,
        deleted_at: None,
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        Just(json!("2026-03-01")),
        Just(json!("https://cairn.example")),
        Just(json!("00000000-0000-0000-0000-000000000007")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Value::from))
}

proptest! {
    #[test]
    fn any_filter_is_read_or_refused_with_a_reason(
        value in any_json(), operator in 0..13_usize, kind in 0..10_usize, depth in 0..10_usize,
    ) {
        let name = Operator::NAMES.get(operator).copied().unwrap_or("like");
        let mut tree = json!({"fieldId": KINDS[kind].as_str(), "operator": name, "value": value});
        for _ in 0..depth {
            tree = json!({"and": [tree]});
        }
        let mut checks = Checks::default();
        let Ok(tree) = domain::Filter::read(&tree, "filter") else {
            prop_assert!(depth >= FILTER_LEVELS);
            return Ok(());
        };
        let read = check(&mut checks, &database(), &tree, "filter", true);
        prop_assert_eq!(read.is_some(), checks.finish().is_ok());
    }

    #[test]
    fn what_is_kept_is_what_is_shown_and_kept_again(value in any_json(), kind in 0..10_usize) {
        let database = database();
        let mut checks = Checks::default();
        let text = json!({KINDS[kind].as_str(): value}).to_string();
        let changes = ValueChanges::read(&mut checks, &database, &text, true);
        let mut values = Values::new();
        changes.merge(&mut values);
        if checks.finish().is_ok() {
            let again = Value::Object(shown(&database, &values, |_, _| true)).to_string();
            let mut checks = Checks::default();
            let mut copy = Values::new();
            ValueChanges::read(&mut checks, &database, &again, false).merge(&mut copy);
            prop_assert!(checks.finish().is_ok());
            prop_assert_eq!(&copy, &values);
        }
        searched(&cells(&database, &values));
        rendered(&database, &values, Some("body"));
    }
}

/// Every operator on every type either works or is refused with the operators that would work.
#[test]
fn every_operator_of_every_type_is_judged() {
    let database = database();
    for kind in KINDS {
        let value = match kind {
            PropertyType::Number => json!(1),
            PropertyType::Boolean => json!(true),
            PropertyType::Date => json!("2026-01-01"),
            _ => json!("0199c0de-0000-7000-8000-000000000001"),
        };
        let found = database.properties.iter().find(|property| property.kind == kind);
        let id = found.unwrap().id.to_string();
        let known = operators_of(kind);
        for operator in Operator::ALL {
            let mut checks = Checks::default();
            let (field_id, value) = (id.clone(), Some(value.clone()));
            let tree = domain::Filter::Is(domain::Condition { field_id, operator: Some(operator), value });
            check(&mut checks, &database, &tree, "filter", false);
            let found = match checks.finish() {
                Err(crate::Error::Invalid(found)) => found,
                _ => Vec::new(),
            };
            // A select without options has none to name.
            let refused: Vec<_> = found.into_iter().filter(|one| one.path == "filter.operator").collect();
            assert_eq!(refused.is_empty(), known.contains(&operator), "{operator} {kind:?} {refused:?}");
            for one in refused {
                assert_eq!(one.code, "invalid_operator");
                assert!(known.iter().all(|name| one.message.contains(name.as_str())), "{}", one.message);
            }
        }
        for orders in [Operator::Gt, Operator::Gte, Operator::Lt, Operator::Lte] {
            let is_ordered = matches!(kind, PropertyType::Number | PropertyType::Date);
            assert_eq!(known.contains(&orders), is_ordered, "{kind:?}");
        }
        assert_eq!(known.contains(&Operator::Before), kind == PropertyType::Date);
    }
}
