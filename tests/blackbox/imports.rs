//! Imports of vaults and exports (spec 3.4, 4.10; import.md, "Import runs").

use std::io::{Cursor, Write as _};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::callers::Session;
use crate::support::http::{Reply, each, id, text};
use crate::support::people::join;
use crate::support::prelude::*;
use crate::support::wait::eventually;
use crate::support::workspace::read_file;

scenarios![
    a_vault_is_previewed_imported_and_rolled_back,
    an_export_of_notion_becomes_pages_and_databases,
    what_was_edited_since_stays,
    hostile_archives_are_refused_and_leave_the_service_alone,
    rights_and_states_of_imports_are_told_apart,
];

const BOUNDARY: &str = "cairn-import";

pub(crate) fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn vault(note: &str) -> Vec<u8> {
    archive(&[
        ("Vault/.obsidian/app.json", b"{}"),
        ("Vault/Note.md", note.as_bytes()),
        ("Vault/deep/Other.md", b"back to [[Note]] #tagged, and [[Nowhere]]"),
        ("Vault/pic.png", b"\x89PNG bytes"),
    ])
}

/// The fields in order; the archive takes the place of its name.
fn form(fields: &[(&str, &str)], file: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in fields {
        body.extend_from_slice(
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"").as_bytes(),
        );
        if *name == "archive" {
            body.extend_from_slice(
                format!("; filename=\"{value}\"\r\nContent-Type: application/zip\r\n\r\n").as_bytes(),
            );
            body.extend_from_slice(file);
            body.extend_from_slice(b"\r\n");
        } else {
            body.extend_from_slice(format!("\r\n\r\n{value}\r\n").as_bytes());
        }
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}

async fn send(session: &Session, path: &str, fields: &[(&str, &str)], file: &[u8]) -> Reply {
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    session.post(path).body(&kind, form(fields, file)).await
}

pub(crate) async fn preview(session: &Session, workspace: &str, provider: &str, file: &[u8]) -> Reply {
    let fields = [("workspaceId", workspace), ("provider", provider), ("archive", "Vault.zip")];
    send(session, "/api/import/preview", &fields, file).await
}

async fn wait_until_finished(session: &Session, run: &str) -> Value {
    eventually("the import is over", async || {
        let run = session.get(&format!("/api/import/{run}")).await.expect(200).json();
        (!matches!(text(&run, "status").as_str(), "queued" | "running")).then_some(run)
    })
    .await
}

async fn import(session: &Session, workspace: &str, provider: &str, file: &[u8]) -> Value {
    let run = id(&preview(session, workspace, provider, file).await.expect(201).json());
    session.post(&format!("/api/import/{run}/start")).await.expect(202);
    wait_until_finished(session, &run).await
}

async fn report(session: &Session, run: &Value) -> Value {
    session.get(&format!("/api/import/{}/report", id(run))).await.expect(200).json()
}

async fn roll_back(session: &Session, run: &Value) -> Value {
    session.post(&format!("/api/import/{}/rollback", id(run))).await.expect(202);
    wait_until_finished(session, &id(run)).await
}

/// Path and content of every file.
async fn files(workspace: &Workspace) -> Vec<(String, String)> {
    let listed = workspace.token.get("/api/v1/files").await.expect(200).json();
    let mut files = Vec::new();
    for file in listed.as_array().unwrap() {
        let found = read_file(&workspace.token, &id(file)).await;
        files.push((text(&found, "path"), text(&found, "content")));
    }
    files.sort();
    files
}

async fn a_vault_is_previewed_imported_and_rolled_back(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let session = &workspace.session;
    let file = vault("see [[Other]] and ![[pic.png]]");
    // The archive may precede the fields that describe it.
    let fields =
        [("archive", "Vault.zip"), ("provider", "obsidian_zip"), ("workspaceId", workspace.id.as_str())];
    let run = send(session, "/api/migrations/preview", &fields, &file).await;
    assert_eq!(run.header("deprecation"), Some("@1785542400"));
    let run = run.expect(201).json();
    assert_eq!((text(&run, "status"), &run["wouldCreate"]), ("ready".into(), &json!(3)), "{run}");
    assert_eq!((&run["fileName"], &run["sizeBytes"]), (&json!("Vault.zip"), &json!(file.len())));
    assert_eq!(files(&workspace).await, vec![]);
    let dry = report(session, &run).await;
    assert_eq!((&dry["phase"], &dry["counts"]["files"]), (&json!("dry_run"), &json!(2)), "{dry}");
    assert_eq!(each(&dry["unresolvedLinks"], "target"), ["Nowhere"]);

    let path = format!("/api/import/{}", id(&run));
    session.post(&format!("{path}/start")).await.expect(202);
    let done = wait_until_finished(session, &id(&run)).await;
    assert_eq!((text(&done, "status"), &done["processed"]), ("completed".into(), &json!(3)), "{done}");
    let told = report(session, &run).await;
    let item = |path: &str| {
        let items = told["items"].as_array().unwrap().iter();
        items.clone().find(|item| item["path"] == path).unwrap_or_else(|| panic!("{path} in {told}")).clone()
    };
    let (other, picture) = (text(&item("deep/Other.md"), "id"), text(&item("pic.png"), "id"));
    let texts = files(&workspace).await;
    let note = texts.iter().find(|(path, _)| path == "/Vault/Note.md").unwrap();
    let expected = format!("see [Other](/file/{other}) and ![pic.png](/api/assets/{picture}/content)");
    assert_eq!(note.1, expected);
    assert_eq!(read_file(&workspace.token, &other).await["tags"], json!(["tagged"]));
    let bytes = session.get(&format!("/api/assets/{picture}/content")).await.expect(200);
    assert_eq!(bytes.header("content-type"), Some("image/png"));

    let listed = session.get(&format!("/api/import?workspaceId={}", workspace.id)).await.expect(200).json();
    assert_eq!(each(&listed, "status"), ["completed"]);
    let back = roll_back(session, &run).await;
    assert_eq!(text(&back, "status"), "rolled_back", "{back}");
    assert_eq!(files(&workspace).await, vec![]);
    session.get(&format!("/api/assets/{picture}/content")).await.expect_error(404, "NOT_FOUND");
    session.post(&format!("{path}/rollback")).await.expect_error(409, "RUN_NOT_REVERTIBLE");
    assert_eq!(report(session, &run).await["phase"], "rollback");
}

async fn an_export_of_notion_becomes_pages_and_databases(deployment: &Deployment) {
    const TASKS: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const ROW: &str = "cccccccccccccccccccccccccccccccc";
    let workspace = deployment.workspace().await;
    let part = archive(&[
        (
            &format!("Tasks {TASKS}_all.csv"),
            b"Task,State,Points\nWrite,Open,3\nRead,Open,5\nRest,Done,8\n".as_slice(),
        ),
        (&format!("Tasks {TASKS}/Write {ROW}.md"), b"# Write\n\nState: Open\nPoints: 3\n\nThe text of it.\n"),
    ]);
    let file = archive(&[("Export-1-Part-1.zip", &part)]);
    let done = import(&workspace.session, &workspace.id, "notion_zip", &file).await;
    assert!(text(&done, "status").starts_with("completed"), "{done}");
    let databases = workspace.token.get("/api/v1/databases").await.expect(200).json();
    assert_eq!(each(&databases, "name"), ["Tasks"]);
    let database = id(&databases[0]);
    let found = workspace.token.get(&format!("/api/v1/databases/{database}")).await.expect(200).json();
    let kinds: Vec<_> = each(&found["properties"], "type").into_iter().map(str::to_owned).collect();
    assert_eq!(kinds, ["text", "select", "number"], "{found}");
    let records =
        workspace.token.get(&format!("/api/v1/databases/{database}/records")).await.expect(200).json();
    assert_eq!(records["total"], 3);
    let again = import(&workspace.session, &workspace.id, "notion_zip", &file).await;
    assert_eq!(
        (&again["counters"]["created"], &again["counters"]["updated"]),
        (&json!(0), &json!(0)),
        "{again}"
    );
    assert_eq!(text(&roll_back(&workspace.session, &done).await, "status"), "rolled_back");
    let left = workspace.token.get("/api/v1/databases").await.expect(200).json();
    assert_eq!(each(&left, "name"), Vec::<&str>::new());
}

async fn what_was_edited_since_stays(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let session = &workspace.session;
    let first = import(session, &workspace.id, "obsidian_zip", &vault("one")).await;
    let told = report(session, &first).await;
    let items = told["items"].as_array().unwrap().clone();
    let note = id(items.iter().find(|item| item["path"] == "Note.md").unwrap());
    let path = format!("/api/v1/files/{note}");
    workspace.token.patch(&path).json(json!({"content": "mine"})).await.expect(200);
    let second = import(session, &workspace.id, "obsidian_zip", &vault("two")).await;
    let counters = &second["counters"];
    assert_eq!((&counters["conflicts"], &counters["skipped"]), (&json!(1), &json!(2)), "{second}");
    assert_eq!(text(&second, "status"), "completed_with_warnings");
    let back = roll_back(session, &first).await;
    assert!(each(&back["warnings"], "code").contains(&"edited_since_import"), "{back}");
    assert_eq!(files(&workspace).await, [("/Vault/Note.md".to_owned(), "mine".to_owned())]);
}

async fn hostile_archives_are_refused_and_leave_the_service_alone(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let refused = async |file: &[u8], code: &str| {
        let reply = preview(&workspace.session, &workspace.id, "obsidian_zip", file).await;
        let error = reply.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(
            (each(&error["errors"], "path"), each(&error["errors"], "code")),
            (vec!["archive"], vec![code])
        );
    };
    refused(b"not a zip file", "archive_invalid").await;
    let whole = vault("x");
    refused(&whole[..whole.len() / 2], "archive_invalid").await;
    refused(&archive(&[(".git/config", b"x")]), "nothing_to_import").await;
    let bomb = vec![0; 110 * 1024 * 1024];
    refused(&archive(&[("zeros.md", &bomb)]), "archive_bomb").await;
    // Entries that escape the archive are left out, and the rest is imported.
    let file = archive(&[("../../evil.md", b"x"), ("V/fine.md", b"fine")]);
    let done = import(&workspace.session, &workspace.id, "obsidian_zip", &file).await;
    assert_eq!(text(&done, "status"), "completed_with_warnings", "{done}");
    assert!(each(&done["warnings"], "code").contains(&"unsafe_path"), "{done}");
    let fields = [("workspaceId", workspace.id.as_str()), ("provider", "evernote"), ("archive", "x.zip")];
    let error = send(&workspace.session, "/api/import/preview", &fields, &whole).await;
    assert_eq!(each(&error.expect_error(400, "VALIDATION_ERROR")["errors"], "path"), ["provider"]);
    let fields = [("provider", "obsidian_zip"), ("archive", "x.zip")];
    let error = send(&workspace.session, "/api/import/preview", &fields, &whole).await;
    assert_eq!(each(&error.expect_error(400, "VALIDATION_ERROR")["errors"], "path"), ["workspaceId"]);
    for unreadable in ["", "?workspaceId=", "?workspaceId=x", "?workspaceId=%FF"] {
        let error = workspace.session.get(&format!("/api/import{unreadable}")).await;
        assert_eq!(each(&error.expect_error(400, "VALIDATION_ERROR")["errors"], "path"), ["workspaceId"]);
    }
}

async fn rights_and_states_of_imports_are_told_apart(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let session = &workspace.session;
    let run = preview(session, &workspace.id, "obsidian_zip", &vault("x")).await.expect(201).json();
    let path = format!("/api/import/{}", id(&run));
    let viewer = join(&workspace, "viewer").await;
    viewer.session.get(&path).await.expect(200);
    viewer.session.post(&format!("{path}/start")).await.expect_error(403, "FORBIDDEN");
    preview(&viewer.session, &workspace.id, "obsidian_zip", &vault("x")).await.expect_error(403, "FORBIDDEN");
    let elsewhere = deployment.workspace().await;
    let stranger = join(&elsewhere, "admin").await;
    stranger.session.get(&path).await.expect_error(404, "NOT_FOUND");
    stranger.session.post(&format!("{path}/start")).await.expect_error(404, "NOT_FOUND");
    workspace.token.get(&path).await.expect_error(401, "UNAUTHORIZED");
    session.post(&format!("{path}/rollback")).await.expect_error(409, "RUN_NOT_REVERTIBLE");
    let cancelled = session.post(&format!("{path}/cancel")).await.expect(202).json();
    assert_eq!(text(&cancelled, "status"), "cancelled");
    session.post(&format!("{path}/start")).await.expect(202);
    assert_eq!(text(&wait_until_finished(session, &id(&run)).await, "status"), "completed");
    session.post(&format!("{path}/start")).await.expect_error(409, "RUN_NOT_STARTABLE");
    session.post(&format!("{path}/cancel")).await.expect_error(409, "RUN_NOT_CANCELLABLE");
}
