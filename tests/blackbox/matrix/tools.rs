//! The tools of `/mcp`.

use super::stage::{Call, Stage};
use super::{Entry, anything, named, shown, whole};
use crate::support::http::id;
use crate::support::prelude::*;

pub(super) const ENTRIES: &[Entry] = &[
    anything("get_usage_guide", None),
    shown("get_workspace_overview"),
    shown("search_context"),
    shown("browse_context"),
    named("get_related_files", "read"),
    shown("search_files"),
    shown("list_files"),
    named("get_file", "read"),
    shown("get_files"),
    named("create_file", "write"),
    named("update_file", "write"),
    named("delete_file", "delete"),
    shown("list_folders"),
    named("create_folder", "write"),
    shown("list_memories"),
    shown("get_memory"),
    named("create_memory", "write"),
    named("update_memory", "write"),
    shown("list_databases"),
    named("get_database", "read"),
    named("query_database", "read"),
    named("create_database_record", "write"),
    named("update_database_record", "write"),
    named("delete_database_record", "delete"),
    whole("list_source_documents"),
    whole("query_source"),
    whole("fetch_source_document"),
    anything("submit_feedback", Some("read")),
];

/// A source that is not connected.
const SOURCE: &str = "0199c0de-0000-7000-8000-000000000001";

/// The tool on a fresh item of that stage.
pub(super) async fn call(tool: &'static str, stage: &Stage<'_>) -> Call {
    let (arguments, after) = match tool {
        "get_usage_guide" => (json!({}), None),
        "submit_feedback" => (json!({"message": "all is well"}), None),
        "search_context" => {
            let (_, change) = stage.file_and_change().await;
            (json!({"query": stage.marker, "strategy": "keyword"}), Some(change))
        }
        "browse_context" => {
            stage.file().await;
            (json!({"script": format!("grep -rn {} /files || ls /", stage.marker)}), None)
        }
        "list_folders" => {
            stage.folder().await;
            (json!({}), None)
        }
        "create_folder" => (json!({"name": stage.marker, "parentId": stage.folder}), None),
        "list_source_documents" => (json!({}), None),
        "query_source" => (json!({"sourceId": SOURCE, "query": "x"}), None),
        "fetch_source_document" => (json!({"sourceId": SOURCE, "externalId": "page/1"}), None),
        "search_files" | "list_files" | "get_file" | "get_files" | "create_file" | "update_file"
        | "delete_file" | "get_related_files" => (files(tool, stage).await, None),
        "get_workspace_overview" => {
            stage.file().await;
            (json!({}), None)
        }
        "list_memories" | "get_memory" | "create_memory" | "update_memory" => {
            (memories(tool, stage).await, None)
        }
        _ => (databases(tool, stage).await, None),
    };
    Call::Tool { name: tool, arguments, after }
}

async fn files(tool: &str, stage: &Stage<'_>) -> Value {
    if tool == "create_file" {
        return stage.file_body();
    }
    let file = stage.file().await;
    match tool {
        "search_files" => json!({"query": stage.marker}),
        "list_files" => json!({}),
        "get_file" | "delete_file" | "get_related_files" => json!({"id": file}),
        "get_files" => json!({"ids": [file]}),
        "update_file" => json!({"id": file, "content": "new"}),
        _ => panic!("no way to call {tool}"),
    }
}

async fn memories(tool: &str, stage: &Stage<'_>) -> Value {
    if tool == "create_memory" {
        return json!({"name": "A memory", "members": [stage.file_member().await]});
    }
    let memory = stage.memory().await;
    match tool {
        "list_memories" => json!({}),
        "get_memory" => json!({"slug": memory["slug"]}),
        "update_memory" => json!({"id": id(&memory), "addMembers": [stage.file_member().await]}),
        _ => panic!("no way to call {tool}"),
    }
}

async fn databases(tool: &str, stage: &Stage<'_>) -> Value {
    let database = stage.database().await;
    let (_, record) = stage.record(&database).await;
    let values = stage.values(&database);
    match tool {
        "list_databases" => json!({}),
        "get_database" | "query_database" => json!({"databaseId": database.id}),
        "create_database_record" => json!({"databaseId": database.id, "values": values}),
        "update_database_record" => {
            json!({"databaseId": database.id, "recordId": record, "values": values})
        }
        "delete_database_record" => json!({"databaseId": database.id, "recordId": record}),
        _ => panic!("no way to call {tool}"),
    }
}
