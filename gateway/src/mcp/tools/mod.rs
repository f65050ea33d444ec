//! The tool registry: names and descriptions, and the common path of every call.

mod arguments;
mod browse;
mod databases;
mod exported;
mod feedback;
mod files;
mod folders;
mod get_files;
mod guide;
mod memories;
mod outcome;
mod overview;
mod refusal;
mod related;
mod search;
mod sources;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cairn_chassis::identity::Permission;
use cairn_chassis::status::{Problem, Reason};
use futures::future::BoxFuture;
use serde_json::{Map, Value};

use self::arguments::Arguments;
pub(super) use self::memories::as_text as memory_text;
use self::outcome::Outcome;
use super::envelope::Request;
use super::failure::Failure;
use crate::class::{FILE_BYTES, ORDINARY_BYTES};
use crate::cost::Cost;
use crate::events;
use crate::operations::Context;
use crate::schema::Contract;
use crate::validate;

/// Default page size of lists; the rest is a call away.
const DEFAULT_ITEMS: u32 = 100;

/// A tool.
struct Tool {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    hints: Hints,
    terms: Terms,
    input: fn() -> &'static Contract,
    /// The schema of the structured content; `None` for tools that return text only.
    output: Option<fn() -> Value>,
    /// The call to suggest when the tool reports something missing or out of reach; `{name}` is replaced by the name
    /// given instead of an id.
    recovery: &'static str,
    run: for<'a> fn(&'a Context, Arguments) -> BoxFuture<'a, Result<Outcome, Problem>>,
}

/// What a call requires of its caller, checked before its arguments are interpreted.
#[derive(Clone, Copy)]
struct Terms {
    /// `None` if no permission is required.
    permission: Option<Permission>,
    /// Limit of the arguments.
    max_bytes: usize,
    /// What it costs of this process's capacity.
    cost: Cost,
}

impl Terms {
    const ORDINARY: Self = Self { permission: None, max_bytes: ORDINARY_BYTES, cost: Cost::POINT };
    const READ: Self = Self { permission: Some(Permission::Read), ..Self::ORDINARY };
    const WRITE: Self = Self { permission: Some(Permission::Write), cost: Cost::WRITE, ..Self::ORDINARY };
    const DELETE: Self = Self { permission: Some(Permission::Delete), ..Self::WRITE };
    /// With the text of a file.
    const WRITE_FILE: Self = Self { max_bytes: FILE_BYTES, ..Self::WRITE };
    /// Several items at once.
    const LIST: Self = Self::READ.costing(Cost::LIST);

    const fn costing(self, cost: Cost) -> Self {
        Self { cost, ..self }
    }
}

/// Tool annotations: what a client may assume of a tool before it asks its user.
#[derive(Clone, Copy)]
struct Hints {
    read_only: bool,
    destructive: bool,
    idempotent: bool,
    open_world: bool,
}

impl Hints {
    const READ: Self = Self { read_only: true, destructive: false, idempotent: true, open_world: false };
    /// May call live providers.
    const SEARCH: Self = Self { open_world: true, ..Self::READ };
    const CREATE: Self = Self { read_only: false, destructive: false, idempotent: false, open_world: false };
    /// Reaches people outside of the workspace's content; repeating it is pointless.
    const REPORT: Self = Self { open_world: true, ..Self::CREATE };
    const OVERWRITE: Self = Self { read_only: false, destructive: true, idempotent: true, open_world: false };
}

/// Every tool, in the order of the list. The order is fixed, which keeps prompt caches warm.
static TOOLS: &[&Tool] = &[
    &guide::GET_USAGE_GUIDE,
    &overview::GET_WORKSPACE_OVERVIEW,
    &search::SEARCH_CONTEXT,
    &browse::BROWSE_CONTEXT,
    &related::GET_RELATED_FILES,
    &files::SEARCH_FILES,
    &files::LIST_FILES,
    &get_files::GET_FILE,
    &get_files::GET_FILES,
    &files::CREATE_FILE,
    &files::UPDATE_FILE,
    &files::DELETE_FILE,
    &folders::LIST_FOLDERS,
    &folders::CREATE_FOLDER,
    &memories::LIST_MEMORIES,
    &memories::GET_MEMORY,
    &memories::CREATE_MEMORY,
    &memories::UPDATE_MEMORY,
    &databases::LIST_DATABASES,
    &databases::GET_DATABASE,
    &databases::QUERY_DATABASE,
    &databases::CREATE_DATABASE_RECORD,
    &databases::UPDATE_DATABASE_RECORD,
    &databases::DELETE_DATABASE_RECORD,
    &sources::LIST_SOURCE_DOCUMENTS,
    &sources::QUERY_SOURCE,
    &sources::FETCH_SOURCE_DOCUMENT,
    &feedback::SUBMIT_FEEDBACK,
];

/// The list as sent to clients, built once.
pub(super) fn list() -> &'static Value {
    static LIST: OnceLock<Value> = OnceLock::new();
    LIST.get_or_init(|| TOOLS.iter().map(|tool| exported::described(tool)).collect())
}

/// The same for clients of the legacy era, the oldest of which expect the title among the annotations.
pub(super) fn legacy_list() -> &'static Value {
    static LIST: OnceLock<Value> = OnceLock::new();
    LIST.get_or_init(|| {
        let mut list = list().clone();
        for (tool, entry) in TOOLS.iter().zip(list.as_array_mut().into_iter().flatten()) {
            if let Some(annotations) = entry.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.insert("title".to_owned(), Value::from(tool.title));
            }
        }
        list
    })
}

/// The admission cost of a tool.
pub(super) fn cost(name: Option<&str>) -> Cost {
    let tool = TOOLS.iter().find(|tool| Some(tool.name) == name);
    tool.map_or(Cost::POINT, |tool| tool.terms.cost)
}

/// Calls a tool, and records its write for the caller's next search. An invalid call is a JSON-RPC error; a refusal
/// by the tool is a result.
pub(super) async fn call(context: &Context, mut request: Request) -> Result<Map<String, Value>, Failure> {
    let arguments = request.params.remove("arguments");
    let Some(name) = request.text("name") else {
        return Err(Failure::invalid_params("tools/call: `name` must be a string"));
    };
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
        return Err(unknown(name));
    };
    let given = match arguments {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(given)) => given,
        Some(_) => return Err(Failure::invalid_params("tools/call: `arguments` must be an object")),
    };
    let started = Instant::now();
    let sketch = refusal::sketch(&given);
    let refused = |problem: &Problem, next: Option<&str>| {
        refusal::refused(tool, &sketch, problem, next, context.step_up.as_deref())
    };
    if let Err(problem) = permit(context, tool, &given) {
        let result = refused(&problem, None);
        note(context, tool, &result, started.elapsed());
        return Ok(result);
    }
    let arguments = Arguments::prepare(given, request.params.get("_meta"), (tool.input)());
    let result = match (tool.run)(context, arguments).await {
        Ok(Outcome { refusal: Some((problem, next)), .. }) => refused(&problem, Some(&next)),
        Ok(outcome) => {
            if let (Some(change), Some(writer)) = (outcome.change, &context.writer) {
                context.own_writes.record(writer, change);
                outcome.left().for_each(|document| context.wrote(document));
                context.show(outcome.left_with_content().as_slice());
            }
            outcome.into_result()
        }
        Err(problem) => refused(&problem, None),
    };
    note(context, tool, &result, started.elapsed());
    Ok(result)
}

/// Reports the call to the workspace's live view.
fn note(context: &Context, tool: &Tool, result: &Map<String, Value>, took: Duration) {
    let Some(events) = &context.events else { return };
    let lists = result.get("structuredContent").and_then(Value::as_object);
    let call = events::CompletedCall {
        channel: context.call.channel(),
        tool: tool.name.to_owned(),
        results: lists.and_then(listed).map(Vec::len),
        has_failed: result.get("isError") == Some(&Value::Bool(true)),
        took,
    };
    events.note(&context.identity.claims, call);
}

/// The list in a result, if it has one.
fn listed(fields: &Map<String, Value>) -> Option<&Vec<Value>> {
    let results = fields.get("results").and_then(Value::as_array);
    results.or_else(|| fields.values().find_map(Value::as_array))
}

/// Checks permission and size before the tool runs.
fn permit(context: &Context, tool: &Tool, given: &Map<String, Value>) -> Result<(), Problem> {
    let terms = tool.terms;
    if let Some(permission) = terms.permission {
        context.identity.claims.require(permission)?;
    }
    if given.values().map(length).sum::<usize>() > terms.max_bytes {
        let message = format!("the arguments of {} are larger than {} bytes", tool.name, terms.max_bytes);
        return Err(Problem::new(Reason::PayloadTooLarge, message));
    }
    Ok(())
}

/// An upper bound of the JSON size of a value, close to it.
fn length(value: &Value) -> usize {
    1 + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(length).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + length(value)).sum(),
    }
}

/// The named thing most similar to the given name, with its identifier.
fn nearby<'a>(given: &str, known: impl Iterator<Item = (&'a str, &'a str)>) -> Option<(&'a str, &'a str)> {
    let known: Vec<(&str, &str)> = known.collect();
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let near = validate::nearest(given, &names)?;
    known.into_iter().find(|(name, _)| *name == near)
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    let shown: String = name.chars().take(64).collect();
    let advice =
        validate::nearest(name, &names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Failure::invalid_params(format!("Unknown tool: {shown}{advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_says_all_that_a_client_needs() {
        for tool in list().as_array().unwrap() {
            let name = tool["name"].as_str().unwrap();
            assert!(!tool["title"].as_str().unwrap().is_empty(), "{name}");
            let length = tool["description"].as_str().unwrap().len();
            assert!((80..=700).contains(&length), "{name}: {length}");
            for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
                assert!(tool["annotations"][hint].is_boolean(), "{name}: {hint}");
            }
            let old = legacy_list().as_array().unwrap().iter().find(|old| old["name"] == name).unwrap();
            assert_eq!(
                (&old["title"], &old["annotations"]["title"]),
                (&tool["title"], &tool["title"]),
                "{name}"
            );
            let hints = &tool["annotations"];
            assert!(!(hints["readOnlyHint"] == true && hints["destructiveHint"] == true), "{name}");
        }
    }

    #[test]
    fn schemas_are_plain_objects_that_every_client_reads() {
        for tool in list().as_array().unwrap() {
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object", "{tool}");
            assert_eq!(schema["additionalProperties"], false, "{tool}");
            for banned in ["oneOf", "anyOf", "allOf", "$ref"] {
                assert!(!schema.to_string().contains(&format!("\"{banned}\"")), "{tool}");
            }
            for (argument, described) in schema["properties"].as_object().unwrap() {
                assert!(described["description"].is_string(), "{}: {argument}", tool["name"]);
                assert!(described["type"].is_string(), "{}: {argument}", tool["name"]);
            }
            if let Some(output) = tool.get("outputSchema") {
                assert_eq!(output["type"], "object", "{tool}");
                assert!(!output.to_string().contains("$ref"), "{tool}");
            }
        }
    }

    #[test]
    fn every_schema_compiles() {
        for tool in TOOLS {
            assert!((tool.input)().validator().is_some(), "{}", tool.name);
            if let Some(output) = tool.output {
                let published = exported::output_schema(output());
                assert!(jsonschema::validator_for(&published).is_ok(), "{}", tool.name);
            }
        }
    }
}
