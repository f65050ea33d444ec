//! Prompts: one per memory visible to the caller, with the memory as a single message, as `get_memory` returns it.

use cairn_chassis::status::{Problem, Reason};
use serde_json::{Map, Value, json};

use super::envelope::Request;
use super::failure::Failure;
use super::reply::Cache;
use super::{resources, tools};
use crate::answers::Memory;
use crate::operations::{Context, Paging, memories};

/// Page size of the list.
const PAGE: u32 = 100;
/// How much of an unknown name is echoed.
const MAX_NAME_LENGTH: usize = 100;

/// `prompts/list`: empty without the permission to read.
pub(super) async fn list(context: &Context, request: &Request) -> Result<Map<String, Value>, Failure> {
    let paging = Paging { limit: Some(PAGE), cursor: request.cursor()?.map(str::to_owned) };
    let (prompts, next) = match memories::list(context, paging).await {
        Ok(page) => (page.items.iter().map(prompt).collect(), page.next),
        Err(problem) if problem.reason == Reason::Forbidden => (Vec::new(), None),
        Err(problem) if problem.reason == Reason::ValidationError => return Err(Failure::wrong_cursor()),
        Err(problem) => return Err(resources::failure_of(&problem)),
    };
    let mut result = json!({"prompts": prompts});
    if let (Some(cursor), Some(fields)) = (next, result.as_object_mut()) {
        fields.insert("nextCursor".to_owned(), Value::from(cursor));
    }
    Ok(Cache::PRIVATE.completed(result))
}

/// `prompts/get`, by slug or id.
pub(super) async fn get(context: &Context, request: &Request) -> Result<Map<String, Value>, Failure> {
    let name = request.required("name")?;
    match request.params.get("arguments") {
        None | Some(Value::Null | Value::Object(_)) => {}
        Some(_) => return Err(Failure::invalid_params("prompts/get: `arguments` must be an object")),
    }
    let memory = memories::get(context, name.to_owned(), None).await;
    let memory = memory.map_err(|problem| refused(name, &problem))?;
    let text = tools::memory_text(&memory);
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    let mut result = Map::new();
    result.insert("messages".to_owned(), Value::Array(vec![message]));
    if let Some(about) = memory.use_when {
        result.insert("description".to_owned(), Value::from(about));
    }
    Ok(result)
}

fn prompt(memory: &Memory) -> Value {
    let mut prompt = json!({"name": memory.slug, "title": memory.name});
    let about = memory.use_when.as_deref().or(memory.description.as_deref());
    if let (Some(about), Some(fields)) = (about, prompt.as_object_mut()) {
        fields.insert("description".to_owned(), Value::from(about));
    }
    prompt
}

/// An unreadable and a missing memory are indistinguishable.
fn refused(name: &str, problem: &Problem) -> Failure {
    if !matches!(problem.reason, Reason::NotFound | Reason::OutOfScope) {
        return resources::failure_of(problem);
    }
    let shown: String = name.chars().take(MAX_NAME_LENGTH).collect();
    Failure::invalid_params(format!("Unknown prompt: {shown}; prompts/list says which there are"))
}
