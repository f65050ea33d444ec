//! A tool's arguments, as agents really send them.

use cairn_chassis::status::Problem;
use serde_json::{Map, Value};

use crate::change;
use crate::operations::search::Freshness;
use crate::schema::{Contract, Input};
use crate::validate;

/// Names that agents use for an argument, besides its own in snake_case. A name counts only where the tool has no
/// argument of that name, and has the other.
const ALIASES: &[(&str, &[&str])] = &[
    ("id", &["fileId", "folderId", "memoryId", "memory", "uuid"]),
    ("slug", &["id", "idOrSlug", "memoryId", "memory", "name"]),
    ("query", &["q", "search", "text", "name"]),
    ("content", &["text", "body", "newContent"]),
    ("fileType", &["type", "format"]),
    ("name", &["title", "fileName", "filename", "folderName"]),
    ("folderId", &["parentId", "folder"]),
    ("parentId", &["folderId", "parent", "parentFolderId"]),
    ("limit", &["maxResults", "pageSize", "count"]),
];

/// Arguments with their names and numbers put right, not yet checked.
pub(super) struct Arguments {
    fields: Map<String, Value>,
    change: Option<String>,
}

impl Arguments {
    /// `meta` is the call's; agents that cannot set it may put the same into the arguments.
    pub(super) fn prepare(mut fields: Map<String, Value>, meta: Option<&Value>, contract: &Contract) -> Self {
        let own_meta = fields.remove("_meta");
        let change_in = |meta: Option<&Value>| meta?.get(change::META)?.as_str().map(ToOwned::to_owned);
        let change = change_in(meta).or_else(|| change_in(own_meta.as_ref()));
        rename(&mut fields, contract);
        validate::coerce(&mut fields, contract);
        Self { fields, change }
    }

    /// The typed arguments, or every problem with them.
    pub(super) fn read<T: Input>(self) -> Result<T, Problem> {
        validate::read(Value::Object(self.fields), "arguments")
    }

    /// The write that the call must see.
    pub(super) fn freshness(&self) -> Result<Freshness, Problem> {
        Freshness::read(self.change.as_deref(), None, ("_meta[\"cairn/change\"]", ""))
    }
}

fn rename(fields: &mut Map<String, Value>, contract: &Contract) {
    let Some(known) = contract.schema().get("properties").and_then(Value::as_object) else {
        return;
    };
    let strange: Vec<String> = fields.keys().filter(|name| !known.contains_key(*name)).cloned().collect();
    for name in strange {
        let target = meanings(&name)
            .into_iter()
            .find(|target| known.contains_key(target) && !fields.contains_key(target));
        if let Some(target) = target
            && let Some(value) = fields.remove(&name)
        {
            fields.insert(target, value);
        }
    }
}

/// What a name may stand for, the likeliest first.
fn meanings(name: &str) -> Vec<String> {
    let own = validate::camel_case(name);
    let targets = ALIASES.iter().filter(|(_, aliases)| aliases.contains(&own.as_str()));
    let aliased: Vec<String> = targets.map(|(target, _)| (*target).to_owned()).collect();
    [own].into_iter().chain(aliased).collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;
    use utoipa::ToSchema;

    use super::*;
    use crate::schema::inputs;

    #[derive(Debug, Deserialize, ToSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Sample {
        id: String,
        from_line: Option<u32>,
    }

    inputs!(Sample);

    fn prepared(value: Value, meta: Option<&Value>) -> Arguments {
        Arguments::prepare(value.as_object().cloned().unwrap(), meta, Sample::contract())
    }

    #[test]
    fn near_names_and_texts_for_numbers_are_understood() {
        for given in [json!({"file_id": "a", "from_line": "3"}), json!({"fileId": "a", "fromLine": 3.0})] {
            let sample: Sample = prepared(given, None).read().unwrap();
            assert_eq!((sample.id.as_str(), sample.from_line), ("a", Some(3)));
        }
    }

    #[test]
    fn a_right_name_is_never_overwritten_and_others_stay_wrong() {
        let problem = prepared(json!({"id": "a", "fileId": "b"}), None).read::<Sample>().unwrap_err();
        assert_eq!(problem.violations[0].path, "fileId");
        assert!(prepared(json!({"id": "a", "nonsense": 1}), None).read::<Sample>().is_err());
    }

    #[test]
    fn the_change_token_comes_in_either_meta() {
        let token = change::of_content(9);
        let meta = json!({"cairn/change": token});
        let position =
            |arguments: Arguments| arguments.freshness().unwrap().after.map(|after| after.position);
        assert_eq!(position(prepared(json!({"id": "a"}), Some(&meta))), Some(9));
        let inner = prepared(json!({"id": "a", "_meta": meta}), None);
        assert_eq!(position(prepared(json!({"id": "a"}), None)), None);
        assert!(inner.fields.get("_meta").is_none());
        assert_eq!(position(inner), Some(9));
    }
}
