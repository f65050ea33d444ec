//! The operations of `/api/v1`.

use super::stage::{Call, Stage};
use super::{Entry, absent, anything, named, shown, whole, whole_with};
use crate::support::http::{id, items};
use crate::support::prelude::*;

pub(super) const ENTRIES: &[Entry] = &[
    shown("listFiles"),
    named("createFile", "write"),
    named("getFile", "read"),
    named("updateFile", "write"),
    named("deleteFile", "delete"),
    named("restoreFile", "delete"),
    named("deleteFilePermanently", "delete"),
    named("getFileRaw", "read"),
    named("listFileVersions", "read"),
    named("getFileVersion", "read"),
    named("restoreFileVersion", "write"),
    named("getDatabaseBacklinks", "read"),
    shown("listFolders"),
    named("createFolder", "write"),
    named("getFolder", "read"),
    named("updateFolder", "write"),
    named("deleteFolder", "delete"),
    named("restoreFolder", "delete"),
    named("deleteFolderPermanently", "delete"),
    named("listFolderFiles", "read"),
    named("listSubfolders", "read"),
    named("moveItems", "write"),
    anything("tagItems", Some("write")),
    anything("trashItems", Some("delete")),
    anything("restoreItems", Some("delete")),
    // It returns no text; its own scenarios test what a scope hides of it.
    anything("listChanges", Some("read")),
    shown("listMemories"),
    named("createMemory", "write"),
    shown("getMemory"),
    named("updateMemory", "write"),
    named("deleteMemory", "delete"),
    named("restoreMemory", "delete"),
    named("deleteMemoryPermanently", "delete"),
    named("createMembers", "write"),
    named("updateMember", "write"),
    named("deleteMember", "delete"),
    shown("exportMemory"),
    anything("listMemoryVersions", Some("read")),
    shown("getMemoryVersion"),
    named("restoreMemoryVersion", "write"),
    shown("searchContext"),
    shown("explainAbsence"),
    absent("getDocumentStatus", "read"),
    shown("executeScript"),
    named("getRelatedFiles", "read"),
    shown("listDatabases"),
    named("createDatabase", "write"),
    named("createDatabaseOfTable", "write"),
    shown("listTrashedDatabases"),
    named("getDatabase", "read"),
    named("updateDatabase", "write"),
    named("deleteDatabase", "delete"),
    named("restoreDatabase", "delete"),
    named("deleteDatabasePermanently", "delete"),
    named("createField", "write"),
    named("updateField", "write"),
    named("deleteField", "write"),
    named("createView", "write"),
    named("updateView", "write"),
    named("deleteView", "write"),
    named("queryRecords", "read"),
    named("groupRecords", "read"),
    named("createRecord", "write"),
    named("createRecordsOfTable", "write"),
    named("getRecord", "read"),
    named("updateRecord", "write"),
    named("deleteRecord", "delete"),
    named("restoreRecord", "write"),
    named("deleteRecordPermanently", "delete"),
    named("listRecordVersions", "read"),
    named("restoreRecordVersion", "write"),
    whole("listAssets"),
    absent("downloadAsset", "read"),
    whole("listSources"),
    whole("querySource"),
    whole("fetchSourceDocument"),
    whole("listIngested"),
    whole_with("ingestDocument", "write"),
    whole("getIngested"),
    whole("getIngestedContent"),
    whole_with("deleteIngested", "delete"),
    whole_with("previewSync", "write"),
    whole("getSync"),
    whole_with("startSync", "write"),
    whole_with("deleteSync", "write"),
    anything("submitFeedback", Some("read")),
    anything("getWorkspace", None),
];

/// The one operation that accepts anonymous callers (spec 5.8): it answers them as if what is not public did not exist.
pub(super) const WITHOUT_TOKEN: [(&str, u16); 1] = [("exportMemory", 404)];

/// A source that is not connected.
const SOURCE: &str = "0199c0de-0000-7000-8000-000000000001";

/// The operation on a fresh item of that stage.
pub(super) async fn call(operation: &str, stage: &Stage<'_>) -> Call {
    match operation {
        "listFiles"
        | "createFile"
        | "getFile"
        | "updateFile"
        | "deleteFile"
        | "restoreFile"
        | "deleteFilePermanently"
        | "getFileRaw"
        | "listFileVersions"
        | "getFileVersion"
        | "restoreFileVersion"
        | "getRelatedFiles"
        | "getDatabaseBacklinks" => files(operation, stage).await,
        "listFolders"
        | "createFolder"
        | "getFolder"
        | "updateFolder"
        | "deleteFolder"
        | "restoreFolder"
        | "deleteFolderPermanently"
        | "listFolderFiles"
        | "listSubfolders" => folders(operation, stage).await,
        "listChanges" => {
            stage.file().await;
            Call::get("/api/v1/changes?after=c1-0.i1-0&limit=1000")
        }
        "moveItems" | "tagItems" | "trashItems" | "restoreItems" => bulk(operation, stage).await,
        "listMemories"
        | "createMemory"
        | "getMemory"
        | "updateMemory"
        | "deleteMemory"
        | "restoreMemory"
        | "deleteMemoryPermanently"
        | "createMembers"
        | "updateMember"
        | "deleteMember"
        | "exportMemory"
        | "listMemoryVersions"
        | "getMemoryVersion"
        | "restoreMemoryVersion" => memories(operation, stage).await,
        "queryRecords"
        | "groupRecords"
        | "createRecord"
        | "createRecordsOfTable"
        | "getRecord"
        | "updateRecord"
        | "deleteRecord"
        | "restoreRecord"
        | "deleteRecordPermanently"
        | "listRecordVersions"
        | "restoreRecordVersion" => records(operation, stage).await,
        "searchContext" => search(stage).await,
        "getDocumentStatus" => Call::get(format!("/api/v1/index/file/{}", stage.file().await)),
        "explainAbsence" => {
            let body = json!({"query": "anything", "documentId": stage.file().await});
            Call::post("/api/v1/search_context/absence", body)
        }
        "executeScript" => {
            stage.file().await;
            let script = format!("grep -rn {} /files || ls /", stage.marker);
            Call::post("/api/v1/vfs/exec", json!({"script": script}))
        }
        "listSources" => Call::get("/api/v1/sources"),
        "querySource" => Call::post(format!("/api/v1/sources/{SOURCE}/query"), json!({"query": "x"})),
        "listAssets" => Call::get("/api/v1/assets"),
        "downloadAsset" => Call::get(format!("/api/v1/assets/{SOURCE}/content")),
        "fetchSourceDocument" => Call::get(format!("/api/v1/sources/{SOURCE}/documents/page%2F1")),
        "listIngested" | "ingestDocument" | "getIngested" | "getIngestedContent" | "deleteIngested" => {
            ingested(operation, stage).await
        }
        "previewSync" | "getSync" | "startSync" | "deleteSync" => synced(operation, stage).await,
        "submitFeedback" => Call::post("/api/v1/feedback", json!({"message": "all is well"})),
        "getWorkspace" => Call::get("/api/v1/workspace"),
        _ => databases(operation, stage).await,
    }
}

async fn ingested(operation: &str, stage: &Stage<'_>) -> Call {
    let body = json!({"idempotencyKey": stage.marker, "title": stage.marker, "content": "text"});
    if operation == "ingestDocument" {
        return Call::post("/api/v1/ingest", body);
    }
    let sent = stage.workspace.token.post("/api/v1/ingest").json(&body).await.expect(202).json();
    let path = format!("/api/v1/ingest/{}", id(&sent));
    match operation {
        "listIngested" => Call::get("/api/v1/ingest"),
        "getIngested" => Call::get(path),
        "getIngestedContent" => Call::get(format!("{path}/content")),
        "deleteIngested" => Call::delete(path),
        _ => panic!("no way to call {operation}"),
    }
}

async fn synced(operation: &str, stage: &Stage<'_>) -> Call {
    let documents = json!([{"path": "a.md", "content": stage.marker}]);
    let body = json!({"manifest": {"name": stage.marker, "documents": documents}});
    if operation == "previewSync" {
        return Call::post("/api/v1/sync/preview", body);
    }
    let path = format!("/api/v1/sync/{}", id(&stage.post("/api/v1/sync/preview", body).await));
    match operation {
        "getSync" => Call::get(path),
        "startSync" => Call::act(format!("{path}/start")),
        "deleteSync" => Call::delete(path),
        _ => panic!("no way to call {operation}"),
    }
}

async fn files(operation: &str, stage: &Stage<'_>) -> Call {
    if operation == "createFile" {
        return Call::post("/api/v1/files", stage.file_body());
    }
    let path = format!("/api/v1/files/{}", stage.file().await);
    match operation {
        "listFiles" => Call::get("/api/v1/files"),
        "getFile" => Call::get(path),
        "updateFile" => Call::patch(path, json!({"content": "new"})),
        "deleteFile" => Call::delete(path),
        "restoreFile" => Call::act(format!("{}/restore", stage.trashed(path).await)),
        "deleteFilePermanently" => Call::delete(format!("{}/permanent", stage.trashed(path).await)),
        "getFileRaw" => Call::get(format!("{path}/raw")),
        "listFileVersions" => Call::get(format!("{path}/versions")),
        "getFileVersion" => Call::get(format!("{path}/versions/1")),
        "restoreFileVersion" => {
            stage.workspace.token.patch(&path).json(json!({"content": "newer"})).await.expect(200);
            Call::act(format!("{path}/versions/1/restore"))
        }
        "getRelatedFiles" => Call::get(format!("{path}/related")),
        "getDatabaseBacklinks" => Call::get(format!("{path}/database-backlinks")),
        _ => panic!("no way to call {operation}"),
    }
}

async fn folders(operation: &str, stage: &Stage<'_>) -> Call {
    if operation == "createFolder" {
        return Call::post("/api/v1/folders", json!({"name": stage.marker, "parentId": stage.folder}));
    }
    let path = format!("/api/v1/folders/{}", stage.folder().await);
    match operation {
        "listFolders" => Call::get("/api/v1/folders"),
        "getFolder" => Call::get(path),
        "updateFolder" => Call::patch(path, json!({"name": "renamed"})),
        "deleteFolder" => Call::delete(path),
        "restoreFolder" => Call::act(format!("{}/restore", stage.trashed(path).await)),
        "deleteFolderPermanently" => Call::delete(format!("{}/permanent", stage.trashed(path).await)),
        "listFolderFiles" => Call::get(format!("{path}/files")),
        "listSubfolders" => Call::get(format!("{path}/subfolders")),
        _ => panic!("no way to call {operation}"),
    }
}

/// For items out of scope each outcome says so; a destination folder is named by the call itself.
async fn bulk(operation: &str, stage: &Stage<'_>) -> Call {
    let file = stage.file().await;
    let items = json!([{"kind": "file", "id": file}]);
    match operation {
        "moveItems" => Call::post("/api/v1/bulk/move", json!({"items": items, "folderId": stage.folder})),
        "tagItems" => Call::post("/api/v1/bulk/tag", json!({"items": items, "add": ["t"]})),
        "trashItems" => Call::post("/api/v1/bulk/trash", json!({"items": items})),
        "restoreItems" => {
            stage.trashed(format!("/api/v1/files/{file}")).await;
            Call::post("/api/v1/bulk/restore", json!({"items": items}))
        }
        _ => panic!("no way to call {operation}"),
    }
}

async fn memories(operation: &str, stage: &Stage<'_>) -> Call {
    if operation == "createMemory" {
        let members = json!([stage.file_member().await]);
        return Call::post("/api/v1/memories", json!({"name": "A memory", "members": members}));
    }
    let memory = stage.memory().await;
    let path = format!("/api/v1/memories/{}", id(&memory));
    match operation {
        "listMemories" => Call::get("/api/v1/memories?limit=1000"),
        "getMemory" => Call::get(path),
        "updateMemory" => Call::patch(path, json!({"isPublic": true})),
        "deleteMemory" => Call::delete(path),
        "restoreMemory" => Call::act(format!("{}/restore", stage.trashed(path).await)),
        "deleteMemoryPermanently" => Call::delete(format!("{}/permanent", stage.trashed(path).await)),
        "createMembers" => {
            Call::post(format!("{path}/members"), json!({"members": [stage.file_member().await]}))
        }
        "updateMember" => {
            let member = id(&items(&memory["members"])[0]);
            Call::patch(format!("{path}/members/{member}"), json!({"position": 0}))
        }
        "deleteMember" => Call::delete(format!("{path}/members/{}", id(&items(&memory["members"])[0]))),
        "exportMemory" => Call::get(format!("{path}/export")),
        "listMemoryVersions" => Call::get(format!("{path}/versions")),
        "getMemoryVersion" => Call::get(format!("{path}/versions/1")),
        "restoreMemoryVersion" => {
            // Its only member is put back.
            let member = id(&items(&memory["members"])[0]);
            stage.workspace.token.delete(&format!("{path}/members/{member}")).await.expect(204);
            Call::act(format!("{path}/versions/1/restore"))
        }
        _ => panic!("no way to call {operation}"),
    }
}

async fn search(stage: &Stage<'_>) -> Call {
    let (_, change) = stage.file_and_change().await;
    let body = json!({"query": stage.marker, "strategy": "keyword"});
    match Call::post("/api/v1/search_context", body) {
        Call::Rest { method, path, body, .. } => Call::Rest { method, path, body, after: Some(change) },
        tool @ Call::Tool { .. } => tool,
    }
}

async fn databases(operation: &str, stage: &Stage<'_>) -> Call {
    let trashed = |id: String| format!("/api/v1/databases/{id}");
    match operation {
        "createDatabase" => {
            let body = json!({"name": stage.marker, "folderId": stage.folder});
            return Call::post("/api/v1/databases", body);
        }
        "createDatabaseOfTable" => {
            let body = json!({"name": stage.marker, "folderId": stage.folder, "csv": "Name\na"});
            return Call::post("/api/v1/databases/csv", body);
        }
        "listTrashedDatabases" => {
            stage.trashed_database().await;
            return Call::get("/api/v1/databases/trash");
        }
        "restoreDatabase" => {
            return Call::act(format!("{}/restore", trashed(stage.trashed_database().await)));
        }
        "deleteDatabasePermanently" => {
            return Call::delete(format!("{}/permanent", trashed(stage.trashed_database().await)));
        }
        _ => {}
    }
    let database = stage.database().await;
    let path = format!("/api/v1/databases/{}", database.id);
    match operation {
        "listDatabases" => Call::get("/api/v1/databases"),
        "getDatabase" => Call::get(path),
        "updateDatabase" => Call::patch(path, json!({"description": "d"})),
        "deleteDatabase" => Call::delete(path),
        "createField" => Call::post(format!("{path}/fields"), json!({"name": "more", "type": "number"})),
        "updateField" => Call::patch(format!("{path}/fields/{}", database.field), json!({"name": "other"})),
        "deleteField" => Call::delete(format!("{path}/fields/{}", database.field)),
        "createView" => Call::post(format!("{path}/views"), json!({"name": "more"})),
        "updateView" => Call::patch(format!("{path}/views/{}", database.view), json!({"name": "other"})),
        "deleteView" => {
            let views = format!("{path}/views");
            stage.workspace.token.post(&views).json(json!({"name": "more"})).await.expect(201);
            Call::delete(format!("{views}/{}", database.view))
        }
        _ => panic!("no way to call {operation}"),
    }
}

async fn records(operation: &str, stage: &Stage<'_>) -> Call {
    match operation {
        "restoreRecord" => return Call::act(format!("{}/restore", stage.trashed_record().await)),
        "deleteRecordPermanently" => {
            return Call::delete(format!("{}/permanent", stage.trashed_record().await));
        }
        _ => {}
    }
    let database = stage.database().await;
    let all = format!("/api/v1/databases/{}/records", database.id);
    if operation == "createRecord" {
        return Call::post(all, json!({"values": stage.values(&database)}));
    }
    if operation == "createRecordsOfTable" {
        let table = json!({"csv": "x\na", "columns": [{"index": 0, "fieldId": database.field}]});
        return Call::post(format!("{all}/csv"), table);
    }
    let (path, _) = stage.record(&database).await;
    let other = json!({"values": {database.field.clone(): "other"}});
    match operation {
        "queryRecords" => Call::get(all),
        "groupRecords" => Call::get(format!("{all}/groups?groupBy={}", database.field)),
        "getRecord" => Call::get(path),
        "updateRecord" => Call::patch(path, other),
        "deleteRecord" => Call::delete(path),
        "listRecordVersions" => Call::get(format!("{path}/versions")),
        "restoreRecordVersion" => {
            stage.workspace.token.patch(&path).json(other).await.expect(200);
            Call::act(format!("{path}/versions/1/restore"))
        }
        _ => panic!("no way to call {operation}"),
    }
}
