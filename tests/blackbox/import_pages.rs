//! The console's pages about imports: an archive is uploaded, previewed, imported and rolled back by forms;
//! permissions.

use crate::imports::{archive, preview};
use crate::support::callers::Session;
use crate::support::http::{Reply, each, id, items};
use crate::support::people::join;
use crate::support::prelude::*;
use crate::support::tables::{FORM, location, page, send};
use crate::support::wait::eventually;

scenarios![
    an_archive_is_looked_at_started_and_taken_back_by_forms,
    archives_are_refused_in_words,
    names_in_archives_are_text,
    roles_import_as_far_as_they_may,
    a_report_is_read_in_pages_by_programs,
];

const NOTHING: &str = "0199c0de-0000-7000-8000-00000000ffff";

/// Submits the page's form as a browser does.
async fn upload(session: &Session, workspace: &str, provider: &str, name: &str, file: &[u8]) -> Reply {
    let mut body = Vec::new();
    for (field, value) in [("provider", provider), ("folderId", ""), ("conflictPolicy", "update")] {
        let part = format!("--b\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    let head =
        format!("--b\r\nContent-Disposition: form-data; name=\"archive\"; filename=\"{name}\"\r\n\r\n");
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(file);
    body.extend_from_slice(b"\r\n--b--\r\n");
    let request = session.post(&format!("/w/{workspace}/import")).header("sec-fetch-site", "same-origin");
    request.body("multipart/form-data; boundary=b", body).await
}

fn vault() -> Vec<u8> {
    archive(&[
        ("Vault/.obsidian/app.json", b"{}"),
        ("Vault/Note.md", b"see [[Other]] and ![[pic.png]]"),
        ("Vault/deep/Other.md", b"back to [[Note]], and [[Nowhere]]"),
        ("Vault/pic.png", b"\x89PNG bytes"),
    ])
}

/// The page of a run once it contains that text.
async fn wait_for_text(workspace: &Workspace, path: &str, told: &str) -> String {
    eventually(told, async || {
        let shown = page(workspace, path).await;
        shown.contains(told).then_some(shown)
    })
    .await
}

async fn an_archive_is_looked_at_started_and_taken_back_by_forms(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let list = format!("/w/{}/import", workspace.id);
    let empty = page(&workspace, &list).await;
    for part in [
        "enctype=\"multipart/form-data\"",
        "type=\"file\"",
        "Nothing was imported yet.",
        ">Upload and preview<",
    ] {
        assert!(empty.contains(part), "{part}: {empty}");
    }
    let taken =
        upload(&workspace.session, &workspace.id, "obsidian_zip", "Vault.zip", &vault()).await.expect(303);
    let path = location(&taken);
    let ready = page(&workspace, &path).await;
    for part in [
        "Nothing is written until it is started.",
        ">Start</button>",
        ">Cancel</button>",
        "What will become of it",
    ] {
        assert!(ready.contains(part), "{part}: {ready}");
    }
    assert!(ready.contains("3 of 4 lead to something in the archive"), "{ready}");
    assert!(page(&workspace, &format!("{path}?part=links")).await.contains("Nowhere"));
    assert!(page(&workspace, &format!("{path}?part=ignored")).await.contains(".obsidian/app.json"));
    let files = workspace.token.get("/api/v1/files").await.expect(200).json();
    assert_eq!(items(&files), Vec::<Value>::new());

    assert_eq!(location(&send(&workspace, &format!("{path}/start"), &[]).await.expect(303)), path);
    let done = wait_for_text(&workspace, &path, "All of it was done.").await;
    assert!(done.contains("What became of it") && done.contains(">Roll back</button>"), "{done}");
    assert!(!done.contains("data-poll"), "{done}");
    let files = workspace.token.get("/api/v1/files").await.expect(200).json();
    let note = items(&files).iter().find(|file| file["name"] == "Note.md").map(id).unwrap();
    assert!(done.contains(&format!("href=\"/file/{note}\"")), "{done}");
    let again = send(&workspace, &format!("{path}/start"), &[]).await.expect(409).text();
    assert!(again.contains("cannot be started") && again.contains("All of it was done."), "{again}");
    let listed = page(&workspace, &list).await;
    assert!(listed.contains(&path) && listed.contains("Completed"), "{listed}");

    send(&workspace, &format!("{path}/rollback"), &[]).await.expect(303);
    let back = wait_for_text(&workspace, &path, "What it did was taken back.").await;
    assert!(!back.contains(">Roll back</button>") && !back.contains(">Start</button>"), "{back}");
    let files = workspace.token.get("/api/v1/files").await.expect(200).json();
    assert_eq!(items(&files), Vec::<Value>::new());
    send(&workspace, &format!("{path}/rollback"), &[]).await.expect(409);
}

async fn archives_are_refused_in_words(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let refused = async |provider: &str, name: &str, file: &[u8]| {
        let reply = upload(&workspace.session, &workspace.id, provider, name, file).await.expect(400);
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
        reply.text()
    };
    let wrong = refused("notion_zip", "x.zip", b"no archive").await;
    assert!(wrong.contains("href=\"#f-archive\""), "{wrong}");
    assert!(wrong.contains("value=\"notion_zip\" selected"), "what was chosen stays: {wrong}");
    refused("obsidian_zip", "", b"").await;
    refused("evernote", "x.zip", &vault()).await;
    refused("obsidian_zip", "x.zip", &archive(&[(".git/config", b"x")])).await;
    let page_of_export = archive(&[("A 0123456789abcdef0123456789abcdef.md", b"# A")]);
    let parts = archive(&[("X-Part-1.zip", &page_of_export), ("X-Part-3.zip", &page_of_export)]);
    let taken = upload(&workspace.session, &workspace.id, "notion_zip", "X.zip", &parts).await.expect(303);
    let shown = page(&workspace, &format!("{}?part=warnings", location(&taken))).await;
    assert!(
        shown.contains("X-Part-2.zip") && shown.contains("This part of the export is missing."),
        "{shown}"
    );
    for odd in ["part=odd", "action=odd", "from=odd", "from=%00&part=%ff", "action=%00"] {
        let reply = workspace.session.get(&format!("{}?{odd}", location(&taken))).await;
        assert!(reply.status < 500, "{odd}: {}", reply.text());
    }
    for path in ["import/x".to_owned(), format!("import/{NOTHING}")] {
        workspace.session.get(&format!("/w/{}/{path}", workspace.id)).await.expect(404);
    }
}

async fn names_in_archives_are_text(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let hostile = "<script>alert(1)</script>{{\u{202e}\"' onload=x";
    let long = "n".repeat(250);
    let file = archive(&[
        (&format!("V/{hostile}.md"), b"[[<img src=x onerror=alert(2)>]]"),
        (&format!("V/{long}/{long}.md"), b"x"),
        ("../../evil.md", b"x"),
    ]);
    let taken =
        upload(&workspace.session, &workspace.id, "obsidian_zip", "<b>V.zip", &file).await.expect(303);
    let path = location(&taken);
    for query in ["", "?part=warnings", "?part=links", "?part=ignored"] {
        let shown = page(&workspace, &format!("{path}{query}")).await;
        for raw in ["<script>alert", "<img src=x", "<b>V"] {
            assert!(!shown.contains(raw), "{raw}: {shown}");
        }
    }
    assert!(page(&workspace, &path).await.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page(&workspace, &format!("{path}?part=warnings")).await.contains("leads out of the archive"));
    send(&workspace, &format!("{path}/start"), &[]).await.expect(303);
    wait_for_text(&workspace, &path, "Completed with warnings").await;
    let list = page(&workspace, &format!("/w/{}/import", workspace.id)).await;
    assert!(list.contains("&lt;b&gt;V.zip") && !list.contains("<b>V"), "{list}");
}

async fn roles_import_as_far_as_they_may(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let run =
        id(&preview(&workspace.session, &workspace.id, "obsidian_zip", &vault()).await.expect(201).json());
    let list = format!("/w/{}/import", workspace.id);
    let path = format!("{list}/{run}");
    let seat = async |role: &str| join(&workspace, role).await.seat(&workspace);
    let viewer = seat("viewer").await;
    let shown = page(&viewer, &list).await;
    assert!(!shown.contains("type=\"file\"") && shown.contains("Your role here is viewer"), "{shown}");
    let shown = page(&viewer, &path).await;
    assert!(!shown.contains(">Start</button>") && shown.contains("Download report"), "{shown}");
    upload(&viewer.session, &workspace.id, "obsidian_zip", "Vault.zip", &vault()).await.expect(403);
    for verb in ["start", "cancel", "rollback"] {
        send(&viewer, &format!("{path}/{verb}"), &[]).await.expect(403);
    }
    let contributor = seat("contributor").await;
    assert!(page(&contributor, &path).await.contains(">Start</button>"));
    send(&contributor, &format!("{path}/start"), &[]).await.expect(303);
    let done = wait_for_text(&contributor, &path, "All of it was done.").await;
    assert!(!done.contains(">Roll back</button>"), "{done}");
    send(&contributor, &format!("{path}/rollback"), &[]).await.expect(403);
    assert!(page(&seat("editor").await, &path).await.contains(">Roll back</button>"));
    let stranger = join(&deployment.workspace().await, "owner").await.session;
    stranger.get(&path).await.expect(404);
    stranger.post(&format!("{path}/rollback")).body(FORM, "").await.expect(404);
    upload(&stranger, &workspace.id, "obsidian_zip", "Vault.zip", &vault()).await.expect(404);
    let foreign = workspace.session.post(&format!("{path}/rollback")).header("sec-fetch-site", "cross-site");
    foreign.body(FORM, "").await.expect(403);
    // A run of another workspace is not visible in this one.
    let other = deployment.workspace().await;
    let theirs = preview(&other.session, &other.id, "obsidian_zip", &vault()).await.expect(201).json();
    workspace.session.get(&format!("{list}/{}", id(&theirs))).await.expect(404);
}

async fn a_report_is_read_in_pages_by_programs(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let session = &workspace.session;
    let run = id(&preview(session, &workspace.id, "obsidian_zip", &vault()).await.expect(201).json());
    let path = format!("/api/import/{run}/report/entries");
    let first = session.get(&format!("{path}?limit=2")).await.expect(200).json();
    assert_eq!((&first["phase"], &first["run"]["status"]), (&json!("dry_run"), &json!("ready")), "{first}");
    assert_eq!(first["actions"], json!([{"of": "created", "count": first["total"]}]), "{first}");
    assert_eq!((items(&first["entries"]).len(), &first["counts"]["files"]), (2, &json!(2)), "{first}");
    let next = first["nextCursor"].as_str().unwrap();
    let second = session.get(&format!("{path}?limit=1000&cursor={next}")).await.expect(200).json();
    assert_eq!(second["nextCursor"], Value::Null);
    let all = items(&first["entries"]).len() + items(&second["entries"]).len();
    assert_eq!(json!(all), first["total"], "{second}");
    let links = session.get(&format!("{path}?part=links")).await.expect(200).json();
    assert_eq!(
        (each(&links["entries"], "target"), each(&links["entries"], "code")),
        (vec!["Nowhere"], vec!["not_found"])
    );
    for odd in ["part=odd", "action=odd", "limit=0", "cursor=odd"] {
        session.get(&format!("{path}?{odd}")).await.expect_error(400, "VALIDATION_ERROR");
    }
    let stranger = join(&deployment.workspace().await, "owner").await.session;
    stranger.get(&path).await.expect_error(404, "NOT_FOUND");
    workspace.token.get(&path).await.expect_error(401, "UNAUTHORIZED");
    let told = session.get(&format!("/api/import/{run}")).await.expect(200).json();
    assert!(!told["by"]["name"].as_str().unwrap().is_empty(), "{told}");
}
