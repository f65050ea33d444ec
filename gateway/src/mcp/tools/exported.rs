//! The tool list as sent to clients.

use serde_json::{Map, Value, json};

use super::Tool;

/// Schema keywords that are useless to a program that reads a result.
const COMMENTS: [&str; 6] = ["description", "examples", "format", "minimum", "maximum", "default"];

/// How many levels of a result its output schema describes; deeper ones only have their type.
const MAX_RESULT_DEPTH: usize = 0;

/// A tool's entry in the list.
pub(super) fn described(tool: &Tool) -> Value {
    let mut description = json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": input_schema(tool),
        "annotations": {
            "readOnlyHint": tool.hints.read_only,
            "destructiveHint": tool.hints.destructive,
            "idempotentHint": tool.hints.idempotent,
            "openWorldHint": tool.hints.open_world,
        },
    });
    if let (Some(output), Some(fields)) = (tool.output, description.as_object_mut()) {
        fields.insert("outputSchema".to_owned(), output_schema(output()));
    }
    description
}

/// Without the type's own description, which repeats the tool's.
fn input_schema(tool: &Tool) -> Value {
    let mut schema = (tool.input)().portable();
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("description");
        // Some clients require it even of a tool without arguments.
        let properties = fields.entry("properties").or_insert_with(|| json!({}));
        for (_, argument) in properties.as_object_mut().into_iter().flatten() {
            without_the_obvious(argument);
            plain_inside(argument, 0);
        }
    }
    schema
}

/// Drops what every description already says: that an id is a UUID, and that a text is not empty.
fn without_the_obvious(argument: &mut Value) {
    if let Some(fields) = argument.as_object_mut() {
        fields.retain(|name, value| name != "format" && (name != "minLength" || *value != 1));
    }
}

/// Drops the descriptions of nested fields, which the argument's own covers.
fn plain_inside(argument: &mut Value, depth: usize) {
    let Some(fields) = argument.as_object_mut() else { return };
    if depth > 0 {
        fields.retain(|name, _| name == "type" || name == "enum");
    }
    for (name, part) in fields.iter_mut() {
        match (name.as_str(), part) {
            ("properties", Value::Object(parts)) => {
                parts.values_mut().for_each(|part| plain(part, depth + 1))
            }
            ("items", part) => plain(part, depth),
            _ => {}
        }
    }
}

fn plain(part: &mut Value, depth: usize) {
    if let Some(fields) = part.as_object_mut() {
        for detail in ["description", "format", "additionalProperties", "minLength", "maxLength"] {
            fields.remove(detail);
        }
    }
    plain_inside(part, depth);
}

/// The structure alone: readers of a result see its contents, and the list stays small. Fields omitted when empty
/// are not required.
pub(super) fn output_schema(mut schema: Value) -> Value {
    bare(&mut schema, 0);
    schema
}

fn bare(schema: &mut Value, depth: usize) {
    let Some(fields) = schema.as_object_mut() else { return };
    for comment in COMMENTS {
        fields.remove(comment);
    }
    if depth > MAX_RESULT_DEPTH {
        fields.retain(|name, _| name == "type");
    }
    if let Some(items) = fields.get_mut("items") {
        bare(items, depth);
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(|property| bare(property, depth + 1));
    }
    let optional = optional_of(fields);
    if let Some(Value::Array(required)) = fields.get_mut("required") {
        required.retain(|name| name.as_str().is_none_or(|name| !optional.iter().any(|one| one == name)));
    }
    if fields.get("required").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        fields.remove("required");
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(without_null);
    }
}

/// Properties that a result may lack: nullable ones, and lists and texts, which are omitted when empty.
fn optional_of(fields: &Map<String, Value>) -> Vec<String> {
    let properties = fields.get("properties").and_then(Value::as_object);
    let may_be_missing = |schema: &Value| match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "null"),
        Some(kind) => kind == "array" || kind == "string",
        None => true,
    };
    let optional = properties.into_iter().flatten().filter(|(_, schema)| may_be_missing(schema));
    optional.map(|(name, _)| name.clone()).collect()
}

fn without_null(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    if let Some(kinds) = fields.get("type").and_then(Value::as_array) {
        let kept: Vec<Value> = kinds.iter().filter(|kind| *kind != "null").cloned().collect();
        if let [only] = kept.as_slice() {
            fields.insert("type".to_owned(), only.clone());
        }
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::mcp::tools::list;

    /// If set, the snapshot test rewrites the snapshots.
    const RENEW: &str = "CAIRN_UPDATE_SNAPSHOTS";
    /// The share of an agent's context window that the whole list may take.
    const MAX_TOKENS: usize = 9_000;
    /// Compact JSON of English prose and short keys has more bytes per token with every tokenizer in use (4.1 to
    /// 4.5); the difference is a safety margin.
    const BYTES_OF_A_TOKEN: usize = 4;

    fn tools() -> impl Iterator<Item = (&'static str, &'static Value)> {
        list().as_array().into_iter().flatten().map(|tool| (tool["name"].as_str().unwrap(), tool))
    }

    /// Changes of the tool list must be reviewed: renew the files with `CAIRN_UPDATE_SNAPSHOTS=1 cargo test -p
    /// cairn-gateway snapshots` and read the diff.
    #[test]
    fn the_list_is_as_its_snapshots() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/mcp/tools/snapshots");
        let renews = std::env::var_os(RENEW).is_some();
        let mut expected: Vec<String> = Vec::new();
        for (name, tool) in tools() {
            let file = format!("{name}.json");
            let text = serde_json::to_string_pretty(tool).unwrap() + "\n";
            if renews {
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join(&file), &text).unwrap();
            }
            let kept = fs::read_to_string(folder.join(&file)).unwrap_or_default();
            assert!(
                kept == text,
                "{name} is not as snapshots/{file} has it; {RENEW}=1 renews it. Now:\n{text}"
            );
            expected.push(file);
        }
        for entry in fs::read_dir(&folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(expected.contains(&name), "snapshots/{name} is of no tool; delete it");
        }
    }

    #[test]
    fn the_whole_list_fits_into_an_agents_window() {
        let bytes = list().to_string().len();
        let sizes: Vec<String> =
            tools().map(|(name, tool)| format!("{name} {}", tool.to_string().len())).collect();
        let tokens = bytes.div_ceil(BYTES_OF_A_TOKEN);
        assert!(tokens <= MAX_TOKENS, "{bytes} bytes are about {tokens} tokens: {}", sizes.join(", "));
    }

    #[test]
    fn what_may_be_left_out_is_not_required() {
        let schema = json!({
            "type": "object", "description": "x", "required": ["id", "size", "tags", "folderId"],
            "properties": {
                "id": {"type": "string", "format": "uuid"}, "size": {"type": "integer", "minimum": 0},
                "tags": {"type": "array", "items": {"type": "string", "description": "x"}},
                "folderId": {"type": ["string", "null"]},
            },
        });
        let expected = json!({
            "type": "object", "required": ["size"],
            "properties": {
                "id": {"type": "string"}, "size": {"type": "integer"},
                "tags": {"type": "array"}, "folderId": {"type": "string"},
            },
        });
        assert_eq!(output_schema(schema), expected);
    }
}
