//! Deleting properties and options: every record that has such a value gets a new version without it, and the deleted names
//! are kept to render earlier versions.

use std::collections::HashSet;

use cairn_proto::ids::PropertyId;
use serde_json::Value;

use crate::Error;
use crate::change::Change;
use crate::context::Context;
use crate::model::{Author, Database, Property, PropertyOption, RecordVersion, Values};
use crate::store;

/// Which values of a property are removed.
enum Removal {
    All,
    /// Only choices of these options.
    Options(HashSet<String>),
}

/// Removes the values of a property from all records. Not subject to plan limits, even if the versions that it keeps take
/// space.
pub(super) async fn remove_property_values(
    change: &mut Change,
    database: &Database,
    property: &Property,
    author: &Author,
) -> Result<(), Error> {
    let now = change.now();
    store::former::insert_property(change.tx(), database, property, now).await?;
    rewrite(change, database, property.id, &Removal::All, author).await
}

/// Removes options from all records that have chosen them. Not subject to plan limits either.
pub(super) async fn remove_option_values(
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
    rewrite(change, database, property, &Removal::Options(ids), author).await
}

/// Rewrites the records in batches within the transaction, to bound memory.
async fn rewrite(
    change: &mut Change,
    database: &Database,
    property: PropertyId,
    removal: &Removal,
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
            .filter_map(|(id, mut values)| remove_values(&mut values, &key, removal).then_some((id, values)))
            .collect();
        let more = store::former::rewrite(change.tx(), database.workspace_id, &changed, author, now).await?;
        change.grow(more);
    }
}

/// Removes the values; whether there were any.
fn remove_values(values: &mut Values, key: &str, removal: &Removal) -> bool {
    let Some(value) = values.get_mut(key) else { return false };
    let is_removed = |value: &Value| match removal {
        Removal::All => true,
        Removal::Options(ids) => value.as_str().is_some_and(|id| ids.contains(id)),
    };
    if let (Removal::Options(_), Value::Array(elements)) = (removal, &mut *value) {
        let before = elements.len();
        elements.retain(|element| !is_removed(element));
        let (is_changed, is_empty) = (elements.len() < before, elements.is_empty());
        if is_empty {
            values.remove(key);
        }
        return is_changed;
    }
    if !is_removed(value) {
        return false;
    }
    values.remove(key);
    true
}

/// The database extended by everything deleted that these versions refer to: options within their properties, and properties
/// after the live ones.
pub(crate) async fn with_former_properties(
    context: &Context,
    database: &Database,
    versions: &[RecordVersion],
) -> Result<Database, Error> {
    let mut extended = database.clone();
    let mut deleted: HashSet<PropertyId> = HashSet::new();
    for version in versions {
        let ids = version.values.keys().filter_map(|key| key.parse().ok());
        deleted.extend(ids.filter(|id| database.property(*id).is_none()));
    }
    if !deleted.is_empty() {
        let deleted: Vec<PropertyId> = deleted.into_iter().collect();
        extended.properties.extend(store::former::properties(&context.db, database, &deleted).await?);
    }
    let mut chosen: HashSet<String> = HashSet::new();
    for property in extended.properties.iter().filter(|property| property.kind.has_options()) {
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
            if let Some(found) = extended.properties.iter_mut().find(|one| one.id == property) {
                found.config.options.push(option);
            }
        }
    }
    Ok(extended)
}

/// Moves the values of deleted properties from ids to names, as nothing resolves their ids any more. A name that is taken gets
/// a numeric suffix.
pub(crate) fn name_former(database: &Database, extended: &Database, values: &mut Values) {
    let former = extended.properties.iter().filter(|property| database.property(property.id).is_none());
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

    fn left(value: Value, removal: &Removal) -> Option<Value> {
        let mut values = Values::from_iter([("a".to_owned(), json!("x")), ("p".to_owned(), value)]);
        remove_values(&mut values, "p", removal).then_some(Value::Object(values))
    }

    #[test]
    fn only_removed_values_disappear() {
        let options = Removal::Options(["x".to_owned(), "y".to_owned()].into());
        assert_eq!(left(json!("x"), &options), Some(json!({"a": "x"})));
        assert_eq!(left(json!("z"), &options), None);
        assert_eq!(left(json!(["x", "z", "y"]), &options), Some(json!({"a": "x", "p": ["z"]})));
        assert_eq!(left(json!(["x"]), &options), Some(json!({"a": "x"})));
        assert_eq!(left(json!(["z"]), &options), None);
        assert_eq!(left(json!(["z"]), &Removal::All), Some(json!({"a": "x"})));
        assert!(!remove_values(&mut Values::new(), "p", &Removal::All));
    }
}
