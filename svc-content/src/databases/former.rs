//! What goes out of a database's schema, and what stays of it: records lose the values, each with a version of its own,
//! and the names stay for whoever reads the versions before.

use std::collections::HashSet;

use cairn_proto::ids::PropertyId;
use serde_json::Value;

use crate::Error;
use crate::change::Change;
use crate::context::Context;
use crate::model::{Author, Database, Property, PropertyOption, RecordVersion, Values};
use crate::store;

/// Which values of a property go.
enum Gone {
    All,
    /// Choices of these options.
    Options(HashSet<String>),
}

/// Takes a property out of every record that has a value of it. What goes needs no room, though a version stays of it.
pub(super) async fn let_property_go(
    change: &mut Change,
    database: &Database,
    property: &Property,
    author: &Author,
) -> Result<(), Error> {
    let now = change.now();
    store::former::insert_property(change.tx(), database, property, now).await?;
    rewrite(change, database, property.id, &Gone::All, author).await
}

/// Takes options out of every record that has chosen them. What goes needs no room, though a version stays of it.
pub(super) async fn let_options_go(
    change: &mut Change,
    database: &Database,
    property: PropertyId,
    options: Vec<PropertyOption>,
    author: &Author,
) -> Result<(), Error> {
    if options.is_empty() {
        return Ok(());
    }
    let now = change.now();
    store::former::insert_options(change.tx(), database, property, &options, now).await?;
    let ids = options.into_iter().map(|option| option.id).collect();
    rewrite(change, database, property, &Gone::Options(ids), author).await
}

/// A batch at a time, within the transaction: a database has no bound, memory has.
async fn rewrite(
    change: &mut Change,
    database: &Database,
    property: PropertyId,
    gone: &Gone,
    author: &Author,
) -> Result<(), Error> {
    let (key, now) = (property.to_string(), change.now());
    let mut after = None;
    loop {
        let holders = store::former::holders(change.tx(), database, property, after).await?;
        let Some((last, _)) = holders.last() else { return Ok(()) };
        after = Some(*last);
        let changed: Vec<_> = holders
            .into_iter()
            .filter_map(|(id, mut values)| take(&mut values, &key, gone).then_some((id, values)))
            .collect();
        let more = store::former::rewrite(change.tx(), database.workspace_id, &changed, author, now).await?;
        change.grow(more);
    }
}

/// Takes out what goes; whether there was any of it.
fn take(values: &mut Values, key: &str, gone: &Gone) -> bool {
    let Some(value) = values.get_mut(key) else { return false };
    let goes = |value: &Value| match gone {
        Gone::All => true,
        Gone::Options(ids) => value.as_str().is_some_and(|id| ids.contains(id)),
    };
    if let (Gone::Options(_), Value::Array(elements)) = (gone, &mut *value) {
        let before = elements.len();
        elements.retain(|element| !goes(element));
        let (is_changed, is_empty) = (elements.len() < before, elements.is_empty());
        if is_empty {
            values.remove(key);
        }
        return is_changed;
    }
    if !goes(value) {
        return false;
    }
    values.remove(key);
    true
}

/// A database with what these versions hold and it has no more: options where their properties are, and former
/// properties behind the others.
pub(crate) async fn recall(
    context: &Context,
    database: &Database,
    versions: &[RecordVersion],
) -> Result<Database, Error> {
    let mut known = database.clone();
    let mut lost: HashSet<PropertyId> = HashSet::new();
    for version in versions {
        let ids = version.values.keys().filter_map(|key| key.parse().ok());
        lost.extend(ids.filter(|id| database.property(*id).is_none()));
    }
    if !lost.is_empty() {
        let lost: Vec<PropertyId> = lost.into_iter().collect();
        known.properties.extend(store::former::properties(&context.db, database, &lost).await?);
    }
    let mut chosen: HashSet<String> = HashSet::new();
    for property in known.properties.iter().filter(|property| property.kind.has_options()) {
        let key = property.id.to_string();
        for value in versions.iter().filter_map(|version| version.values.get(&key)) {
            let elements = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
            let ids = elements.iter().filter_map(Value::as_str).filter(|id| property.option(id).is_none());
            chosen.extend(ids.map(str::to_owned));
        }
    }
    if !chosen.is_empty() {
        let chosen: Vec<String> = chosen.into_iter().collect();
        for (property, option) in store::former::options(&context.db, database, &chosen).await? {
            if let Some(found) = known.properties.iter_mut().find(|one| one.id == property) {
                found.config.options.push(option);
            }
        }
    }
    Ok(known)
}

/// Puts the values of former properties under the names that these had: their ids say nothing to anybody. A name that
/// stands already gets a number.
pub(crate) fn name_former(database: &Database, known: &Database, values: &mut Values) {
    let former = known.properties.iter().filter(|property| database.property(property.id).is_none());
    for property in former {
        let Some(value) = values.remove(&property.id.to_string()) else { continue };
        let numbered = (2_usize..).map(|number| format!("{} ({number})", property.name));
        let mut names = std::iter::once(property.name.clone()).chain(numbered);
        if let Some(free) = names.find(|name| !values.contains_key(name)) {
            values.insert(free, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn left(value: Value, gone: &Gone) -> Option<Value> {
        let mut values = Values::from_iter([("a".to_owned(), json!("x")), ("p".to_owned(), value)]);
        take(&mut values, "p", gone).then_some(Value::Object(values))
    }

    #[test]
    fn values_go_and_others_stay() {
        let options = Gone::Options(["x".to_owned(), "y".to_owned()].into());
        assert_eq!(left(json!("x"), &options), Some(json!({"a": "x"})));
        assert_eq!(left(json!("z"), &options), None);
        assert_eq!(left(json!(["x", "z", "y"]), &options), Some(json!({"a": "x", "p": ["z"]})));
        assert_eq!(left(json!(["x"]), &options), Some(json!({"a": "x"})));
        assert_eq!(left(json!(["z"]), &options), None);
        assert_eq!(left(json!(["z"]), &Gone::All), Some(json!({"a": "x"})));
        assert!(!take(&mut Values::new(), "p", &Gone::All));
    }
}
