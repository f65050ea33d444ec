//! Resources: the files of the skills, which are public, and the contents of the caller's workspace.
//!
//! An unreadable and a missing resource are indistinguishable, so that no URI reveals what exists.

mod workspace;

use cairn_chassis::status::{Problem, Reason};
use http::StatusCode;
use serde_json::{Map, Value, json};

pub(super) use self::workspace::Named;
pub(super) use self::workspace::read as read_named;
use super::envelope::Request;
use super::era::Era;
use super::failure::Failure;
use super::reply::Cache;
use super::skills;
use crate::operations::Context;

/// Our own codes: outside of the range reserved by JSON-RPC and MCP, and equal to the HTTP status.
const FORBIDDEN: i64 = 403;
const UNAVAILABLE: i64 = 503;
const INTERNAL_ERROR: i64 = -32603;
const INVALID_PARAMS: i64 = -32602;

/// The media type of structured resources.
const JSON: &str = "application/json";
/// Page size of the list.
const PAGE: usize = 100;

/// `resources/list`: the skills first, then the memories and the files of the workspace.
pub(super) async fn list(context: &Context, request: &Request) -> Result<Map<String, Value>, Failure> {
    let place = match request.cursor()? {
        None => workspace::ListCursor::first(),
        Some(cursor) => workspace::ListCursor::read(cursor).ok_or_else(Failure::wrong_cursor)?,
    };
    let mut entries: Vec<Value> = if place.is_first() { skills::resources().collect() } else { Vec::new() };
    let next = workspace::append(context, place, &mut entries, PAGE).await?;
    let mut result = json!({"resources": entries});
    if let (Some(place), Some(fields)) = (next, result.as_object_mut()) {
        fields.insert("nextCursor".to_owned(), Value::from(place.to_string()));
    }
    Ok(Cache::PRIVATE.completed(result))
}

/// A URI template.
pub(super) struct Template {
    pub(super) uri: &'static str,
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// Absent if it depends on the resource.
    mime_type: Option<&'static str>,
}

pub(super) static TEMPLATES: [Template; 6] = [
    Template {
        uri: "cairn://file/{id}",
        name: "file",
        title: "A file of the workspace",
        description: "The whole text of a file by its id, as search results, search_files and list_files name it.",
        mime_type: None,
    },
    Template {
        uri: "cairn://memory/{slug}",
        name: "memory",
        title: "A memory of the workspace",
        description: "A curated set of documents with the whole current text of each, by its slug or id, as \
            list_memories names it.",
        mime_type: Some("text/markdown"),
    },
    Template {
        uri: "cairn://folder/{folderId}",
        name: "folder",
        title: "A folder of the workspace",
        description: "The folders and files that stand directly in a folder, by its id, as list_folders names it.",
        mime_type: Some(JSON),
    },
    Template {
        uri: "cairn://database/{databaseId}",
        name: "database",
        title: "A database of the workspace",
        description: "The properties and saved views of a database by its id, as list_databases names it; \
            query_database has its records.",
        mime_type: Some(JSON),
    },
    Template {
        uri: "cairn://source/{sourceId}",
        name: "source",
        title: "A connected source",
        description: "The first 200 documents of a connected source, without their texts, by the source's id, as \
            get_workspace_overview names it.",
        mime_type: Some(JSON),
    },
    Template {
        uri: "skill://cairn/{name}/{+path}",
        name: "skill",
        title: "A file of a usage guide",
        description: "How Cairn is used well; skills/list names the guides and their files.",
        mime_type: None,
    },
];

/// `resources/templates/list`.
pub(super) fn templates(request: &Request) -> Result<Map<String, Value>, Failure> {
    request.no_cursor()?;
    let described = |template: &Template| {
        let mut entry = json!({
            "uriTemplate": template.uri,
            "name": template.name,
            "title": template.title,
            "description": template.description,
        });
        if let (Some(mime_type), Some(fields)) = (template.mime_type, entry.as_object_mut()) {
            fields.insert("mimeType".to_owned(), Value::from(mime_type));
        }
        entry
    };
    let templates: Vec<Value> = TEMPLATES.iter().map(described).collect();
    Ok(Cache::PUBLIC.completed(json!({"resourceTemplates": templates})))
}

/// `resources/read`.
pub(super) async fn read(
    context: &Context,
    era: Era,
    request: &Request,
) -> Result<Map<String, Value>, Failure> {
    let uri = request.required("uri")?;
    if let Some(file) = skills::read(uri) {
        let contents = json!([{"uri": uri, "mimeType": skills::mime_type(file), "text": file.text}]);
        return Ok(Cache::PUBLIC.completed(json!({"contents": contents})));
    }
    let unknown = || Failure::unknown_resource(era.unknown_resource(), uri);
    let named = Named::parse(uri).ok_or_else(unknown)?;
    let (mime_type, text) = workspace::read(context, named).await.map_err(|problem| {
        if workspace::is_hidden(&problem) { unknown() } else { failure_of(&problem).about(uri) }
    })?;
    let contents = json!([{"uri": uri, "mimeType": mime_type, "text": text}]);
    Ok(Cache::PRIVATE.completed(json!({"contents": contents})))
}

/// The JSON-RPC error of a service's problem.
pub(super) fn failure_of(problem: &Problem) -> Failure {
    let code = match problem.reason {
        Reason::Forbidden | Reason::OutOfScope | Reason::LimitExceeded | Reason::Unauthorized => FORBIDDEN,
        Reason::Unavailable | Reason::DeadlineExceeded => UNAVAILABLE,
        Reason::ValidationError | Reason::NotFound | Reason::Gone | Reason::PayloadTooLarge => INVALID_PARAMS,
        Reason::VersionConflict
        | Reason::SlugTaken
        | Reason::IdempotencyConflict
        | Reason::RunBusy
        | Reason::RunNotStartable
        | Reason::RunNotRevertible
        | Reason::RunNotCancellable
        | Reason::AlreadyExists
        | Reason::RateLimited
        | Reason::DeliveryFailed
        | Reason::Unimplemented
        | Reason::Internal => INTERNAL_ERROR,
    };
    Failure::new(code, StatusCode::OK, problem.message.clone())
}
