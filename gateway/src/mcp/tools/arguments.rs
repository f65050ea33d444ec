//! Normalizes tool arguments as agents really send them.

use cairn_chassis::json;
use cairn_chassis::status::Problem;
use serde_json::{Map, Value};

use crate::change;
use crate::operations::search::Freshness;
use crate::schema::{Contract, Input};
use crate::validate;

/// Aliases that agents use for arguments, beside the snake_case of their own names. An alias only applies if the
/// tool has no argument of that name, but the target.
const ALIASES: &[(&str, &[&str])] = &[
    ("id", &["fileId", "folderId", "memoryId", "memory", "documentId", "uuid", "slug", "file"]),
    ("ids", &["fileIds", "files", "id"]),
    ("slug", &["id", "idOrSlug", "memoryId", "memory", "name", "memorySlug"]),
    ("query", &["q", "search", "text", "name", "question", "searchQuery", "prompt"]),
    ("content", &["text", "body", "newContent", "contents", "fileContent"]),
    ("fileType", &["type", "format", "mimeType", "kind"]),
    ("name", &["title", "fileName", "filename", "folderName", "path"]),
    ("folderId", &["parentId", "folder", "parentFolderId", "directory"]),
    ("parentId", &["folderId", "parent", "parentFolderId", "folder"]),
    ("limit", &["maxResults", "pageSize", "count", "topK", "k", "n", "perPage", "numResults", "max"]),
    ("cursor", &["pageToken", "nextCursor", "after"]),
    ("offset", &["skip", "start", "from"]),
    ("fromLine", &["startLine", "start", "offset", "line", "lineStart", "from"]),
    ("maxLines", &["limit", "lines", "lineCount", "count", "numLines"]),
    ("maxBytes", &["maxSize", "maxFileSize", "byteLimit"]),
    ("script", &["command", "cmd", "code", "bash", "shell", "query"]),
    ("cwd", &["path", "dir", "directory", "workingDirectory", "workdir"]),
    ("message", &["feedback", "text", "body", "content", "description"]),
    ("topic", &["name", "guide", "skill", "subject"]),
    ("file", &["path", "fileName"]),
    ("databaseId", &["id", "database", "dbId", "db"]),
    ("recordId", &["id", "record", "rowId"]),
    ("values", &["fields", "properties", "data", "record"]),
    ("contentFileId", &["fileId", "bodyFileId", "contentFile"]),
    ("sourceId", &["id", "source"]),
    ("sourceIds", &["sources", "sourceId", "source"]),
    ("externalId", &["documentId", "docId", "id", "document"]),
    ("searches", &["subqueries", "queries"]),
    ("minScore", &["threshold", "scoreThreshold", "minimumScore"]),
    ("tokenBudget", &["maxTokens", "budget", "tokens"]),
    ("sortFieldId", &["sortBy", "sort", "orderBy", "sortField"]),
    ("sortDirection", &["direction", "order", "sortOrder"]),
    ("filterFieldId", &["filterField"]),
    ("filterOperator", &["operator"]),
    ("filterValue", &["value"]),
    ("viewId", &["view"]),
    ("addMembers", &["members", "add"]),
    ("removeMemberIds", &["removeMembers", "remove"]),
    ("useWhen", &["when", "whenToUse"]),
    ("isPublic", &["public"]),
];

/// Aliases of file types.
const SYNONYMS: &[(&str, &str)] = &[
    ("md", "markdown"),
    ("text/markdown", "markdown"),
    ("yml", "yaml"),
    ("txt", "text"),
    ("plain", "text"),
    ("plaintext", "text"),
    ("text/plain", "text"),
    ("application/json", "json"),
    ("ascending", "asc"),
    ("descending", "desc"),
];

/// Normalized arguments, not yet validated.
pub(super) struct Arguments {
    fields: Map<String, Value>,
    change: Option<String>,
}

impl Arguments {
    /// `meta` is the call's `_meta`; agents that cannot set it may put the same fields into the arguments.
    pub(super) fn prepare(mut fields: Map<String, Value>, meta: Option<&Value>, contract: &Contract) -> Self {
        let own_meta = fields.remove("_meta");
        let change_in = |meta: Option<&Value>| meta?.get(change::META)?.as_str().map(ToOwned::to_owned);
        let change = change_in(meta).or_else(|| change_in(own_meta.as_ref()));
        rename(&mut fields, contract);
        validate::coerce(&mut fields, contract);
        for (name, value) in &mut fields {
            if let Some(meant) = contract.field(name).and_then(|wanted| reshaped(value, wanted)) {
                *value = meant;
            }
        }
        Self { fields, change }
    }

    /// Decodes the typed arguments, or returns all violations.
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

/// Converts a value to the type of the schema if that is unambiguous: a JSON-encoded list or object, a single value
/// for a list, an enum value in other case.
fn reshaped(value: &Value, wanted: &Value) -> Option<Value> {
    let allows = |kind: &str| match wanted.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        _ => false,
    };
    let text = value.as_str()?;
    if allows("array") || allows("object") {
        let parsed = json::read::<Value>(text.as_bytes()).ok();
        let fits = |parsed: &Value| {
            (parsed.is_array() && allows("array")) || (parsed.is_object() && allows("object"))
        };
        return parsed.filter(fits).or_else(|| allows("array").then(|| Value::from(vec![text])));
    }
    let choices = wanted.get("enum").and_then(Value::as_array)?;
    let plain = text.trim().to_lowercase();
    let meant =
        SYNONYMS.iter().find(|(synonym, _)| *synonym == plain).map_or(plain.as_str(), |(_, name)| name);
    choices.iter().find(|choice| *choice == meant).cloned()
}

/// Whether an agent that writes `name` means the argument `argument`.
pub(super) fn meant(name: &str, argument: &str) -> bool {
    name == argument || meanings(name).iter().any(|meaning| meaning == argument)
}

/// What a name may stand for, likeliest first.
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
        ids: Option<Vec<String>>,
        kind: Option<Kind>,
        #[schema(value_type = Option<Object>)]
        values: Option<serde_json::Map<String, Value>>,
        is_public: Option<bool>,
    }

    #[derive(Debug, PartialEq, Deserialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Markdown,
        Text,
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
    fn shapes_that_leave_no_doubt_are_understood() {
        let given = json!({
            "id": "a", "file_ids": "x", "kind": "MD", "fields": "{\"Name\": 5}", "public": "True",
        });
        let sample: Sample = prepared(given, None).read().unwrap();
        assert_eq!(sample.ids.as_deref(), Some(["x".to_owned()].as_slice()));
        assert_eq!((sample.kind, sample.is_public), (Some(Kind::Markdown), Some(true)));
        assert_eq!(sample.values.map(Value::Object), Some(json!({"Name": 5})));
        let listed: Sample =
            prepared(json!({"id": "a", "ids": "[\"x\", \"y\"]", "kind": "text"}), None).read().unwrap();
        assert_eq!((listed.ids.map(|ids| ids.len()), listed.kind), (Some(2), Some(Kind::Text)));
        assert!(prepared(json!({"id": "a", "values": "no JSON"}), None).read::<Sample>().is_err());
    }

    #[test]
    fn a_right_name_is_never_overwritten_and_others_stay_wrong() {
        let problem = prepared(json!({"id": "a", "fileId": "b"}), None).read::<Sample>().unwrap_err();
        assert_eq!(problem.violations[0].path, "fileId");
        assert!(prepared(json!({"id": "a", "nonsense": 1}), None).read::<Sample>().is_err());
    }

    #[test]
    fn the_change_token_comes_in_either_meta() {
        let token = change::of_content(9).to_string();
        let meta = json!({"cairn/change": token});
        let position =
            |arguments: Arguments| arguments.freshness().unwrap().after.first().map(|after| after.position);
        assert_eq!(position(prepared(json!({"id": "a"}), Some(&meta))), Some(9));
        let inner = prepared(json!({"id": "a", "_meta": meta}), None);
        assert_eq!(position(prepared(json!({"id": "a"}), None)), None);
        assert!(inner.fields.get("_meta").is_none());
        assert_eq!(position(inner), Some(9));
    }
}
