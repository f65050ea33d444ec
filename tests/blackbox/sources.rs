//! A connected folder, from the first run until it is disconnected (spec 2.4, 4.4, 4.5; contract, "Connected sources").

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::doctor::assert_sound;
use crate::support::browse::output;
use crate::support::callers::Session;
use crate::support::http::{Http, each, items, text};
use crate::support::people;
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;
use crate::support::sources::{SourceFolder, connect, connect_as, counters};

scenarios![
    a_folder_is_read_found_and_followed,
    a_folder_that_loses_most_of_its_files_keeps_them_for_now,
    a_source_is_paused_resumed_and_disconnected,
    hostile_files_harm_nobody,
    a_run_is_held_to_the_plan,
];

const NOTE: &str = "# Otters\n\nThey float.\n\n## Holding hands\n\nAn otter holds a paw while it sleeps.\n";

/// Waits for a result of a search in one source that contains the word.
async fn found(workspace: &Workspace, source: &str, word: &str) -> Value {
    eventually(&format!("{word} is found"), async || find_result(workspace, source, word).await).await
}

/// Waits until a search in one source no longer finds the word.
async fn gone(workspace: &Workspace, source: &str, word: &str) {
    eventually(&format!("{word} is gone"), async || {
        find_result(workspace, source, word).await.is_none().then_some(())
    })
    .await;
}

/// A semantic search always returns something; only a result that contains the word counts.
async fn find_result(workspace: &Workspace, source: &str, word: &str) -> Option<Value> {
    let body = json!({"query": word, "sourceIds": [source], "mode": "fast"});
    let answer = workspace.token.post("/api/v1/search_context").json(body).await.expect(200).json();
    let results = items(&answer["results"]).iter();
    results.clone().find(|result| text(result, "content").contains(word)).cloned()
}

async fn a_folder_is_read_found_and_followed(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = SourceFolder::new(deployment);
    folder.put("animals/otters.md", NOTE);
    folder.put("plants.txt", "Moss grows on the north side.\n");
    folder.put("old.md", "Dodos are gone.\n");
    folder.put(".hidden.md", "nobody reads this");
    folder.settle().await;
    let source = connect(&workspace, folder.draft("Field notes")).await;
    let run = source.run().await;
    assert_eq!((text(&run, "status"), text(&run, "kind")), ("completed".into(), "full".into()), "{run}");
    assert_eq!((counters(&run), &run["complete"]), ([3, 3, 0, 3, 0, 0, 0], &json!(true)), "{run}");
    assert_eq!(run["counters"]["operations"], 0);
    let shown = source.wait_for_status("ready").await;
    assert_eq!((&shown["documentCount"], &shown["every"]), (&json!(3), &json!("15m")), "{shown}");
    assert_eq!(shown["budget"], json!({"limit": 500, "used": 0, "remaining": 500}));

    let result = found(&workspace, &source.id, "otter holds a paw").await;
    let citation = &result["citation"];
    assert_eq!(
        (text(citation, "kind"), text(citation, "sourceId")),
        ("source_document".into(), source.id.clone())
    );
    assert_eq!(text(citation, "path"), "/sources/Field notes/animals/otters.md");
    assert_eq!(result["source"]["provider"], "folder");
    let lines = [&citation["startLine"], &citation["endLine"]].map(|line| line.as_u64().unwrap());
    assert!((1..=7).contains(&lines[0]) && lines[0] <= lines[1] && lines[1] >= 7, "{citation}");
    let permalink = text(citation, "permalink");
    assert!(permalink.contains(&format!("/documents/{}?lines=", text(citation, "id"))), "{permalink}");
    assert!(text(citation, "contentHash").starts_with("blake3:"), "{citation}");

    let cat = output(&workspace.token, "cat '/sources/Field notes/animals/otters.md'").await;
    assert_eq!(cat, NOTE);
    let listed = output(&workspace.token, "find '/sources/Field notes' -type f").await;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let path = format!("/api/v1/sources/{}/documents/animals%2Fotters.md", source.id);
    let fetched = workspace.token.get(&path).await.expect(200).json();
    assert_eq!((text(&fetched, "content"), text(&fetched, "origin")), (NOTE.into(), "indexed".into()));
    let cited = &fetched["citation"];
    assert!(text(cited, "url").ends_with(&format!("/documents/{}", text(cited, "id"))), "{cited}");

    assert_eq!(counters(&source.sync().await), [3, 0, 3, 0, 0, 0, 0], "nothing changed");
    folder.put("plants.txt", "Ferns unroll in spring.\n");
    folder.put("new.md", "Newts walk at night.\n");
    folder.remove("old.md");
    let run = source.sync().await;
    assert_eq!((counters(&run), text(&run, "status")), ([3, 2, 1, 1, 1, 1, 0], "completed".into()), "{run}");
    found(&workspace, &source.id, "Newts").await;
    found(&workspace, &source.id, "Ferns").await;
    gone(&workspace, &source.id, "Dodos").await;
    gone(&workspace, &source.id, "Moss").await;
    let documents = source.documents().await;
    assert_eq!(each(&documents, "externalId"), ["new.md", "animals/otters.md", "plants.txt"], "{documents}");
    let statuses = eventually("all are indexed", async || {
        let documents = source.documents().await;
        each(&documents, "indexStatus").iter().all(|status| *status == "indexed").then_some(())
    });
    statuses.await;
    let path = source.path("/runs?limit=2");
    let runs = source.session.get(&path).await.expect(200);
    assert_eq!((items(&runs.json()).len(), runs.header("x-total-count")), (2, Some("3")));
    assert_eq!(runs.json()[0]["id"], run["id"], "newest first");
}

async fn a_folder_that_loses_most_of_its_files_keeps_them_for_now(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = SourceFolder::new(deployment);
    for number in 0..30 {
        folder.put(&format!("{number}.md"), format!("Walrus number {number}."));
    }
    let source = connect(&workspace, folder.draft("Walruses")).await;
    assert_eq!(counters(&source.run().await)[3], 30);
    (0..25).for_each(|number| folder.remove(&format!("{number}.md")));
    let run = source.sync().await;
    assert_eq!((text(&run, "status"), counters(&run)[5]), ("completed_with_warnings".into(), 0), "{run}");
    assert_eq!(each(&run["warnings"], "code"), ["mass_removal"]);
    assert_eq!(items(&source.documents().await).len(), 30);
    // An unmounted disk looks like a folder that is empty or missing.
    (25..30).for_each(|number| folder.remove(&format!("{number}.md")));
    let run = source.sync().await;
    assert_eq!(
        (text(&run, "status"), &run["complete"]),
        ("completed_with_warnings".into(), &json!(false)),
        "{run}"
    );
    fs::remove_dir(folder.path()).unwrap();
    let run = source.sync().await;
    assert_ne!(run["status"], "completed", "{run}");
    assert_eq!((counters(&run)[5], items(&source.documents().await).len()), (0, 30));
    found(&workspace, &source.id, "Walrus").await;
}

async fn a_source_is_paused_resumed_and_disconnected(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = SourceFolder::new(deployment);
    folder.put("a.md", NOTE);
    let mut draft = folder.draft("Asleep");
    draft["paused"] = true.into();
    let source = connect(&workspace, draft).await;
    let shown = source.get().await;
    assert_eq!(
        (&shown["status"], &shown["run"], &shown["nextSyncAt"]),
        (&json!("paused"), &Value::Null, &Value::Null)
    );
    source.session.post(&source.path("/sync")).json(json!({})).await.expect(409);
    source.change(json!({"paused": false})).await.expect(200);
    assert_eq!(counters(&source.run().await)[3], 1);
    found(&workspace, &source.id, "otter").await;
    source.change(json!({"paused": true})).await.expect(200);
    found(&workspace, &source.id, "otter").await;

    source.session.delete(&source.path("")).await.expect(204);
    source.session.get(&source.path("")).await.expect_error(404, "NOT_FOUND");
    gone(&workspace, &source.id, "otter").await;
    eventually("scripts have it no more", async || {
        output(&workspace.token, "find /sources")
            .await
            .lines()
            .all(|line| !line.contains("Asleep"))
            .then_some(())
    })
    .await;
    assert_eq!(workspace.token.get("/api/v1/sources").await.expect(200).json(), json!([]));
    let usage = workspace.token.get("/api/v1/workspace").await.expect(200).json();
    assert_eq!(usage["documents"]["used"], 0, "{usage}");
}

async fn hostile_files_harm_nobody(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (folder, outside) = (SourceFolder::new(deployment), Scratch::new());
    fs::write(outside.path().join("secret.md"), "zqoutsidesecretx").unwrap();
    symlink(outside.path().join("secret.md"), folder.path().join("link.md")).unwrap();
    symlink(outside.path(), folder.path().join("folder")).unwrap();
    symlink(folder.path(), folder.path().join("circle")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.path().join("pipe.md")).status().unwrap().success());
    folder.put(
        "noise.pdf",
        (0..4_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>(),
    );
    folder.put("deep.html", format!("{}text", "<b>".repeat(20_000)));
    folder.put("cut.docx", b"PK\x03\x04\x14\0");
    folder.put("empty.md", "");
    folder.put("note.md", NOTE);
    folder.settle().await;
    let source = connect(&workspace, folder.draft("Trap")).await;
    let run = source.run().await;
    assert_eq!(text(&run, "status"), "completed_with_warnings", "{run}");
    found(&workspace, &source.id, "otter holds a paw").await;
    gone(&workspace, &source.id, "zqoutsidesecretx").await;
    let failed = source.session.get(&source.path("/documents?status=failed")).await.expect(200).json();
    let names = each(&failed, "externalId");
    assert!(names.contains(&"noise.pdf") && names.contains(&"cut.docx"), "{failed}");
    for document in items(&failed) {
        let why = text(document, "error");
        assert!(
            !why.is_empty() && !why.contains("panic") && !why.contains(folder.path().to_str().unwrap()),
            "{why}"
        );
    }
    assert!(!source.documents().await.to_string().contains("link.md"));
    let fetch = format!("/api/v1/sources/{}/documents", source.id);
    for path in ["link.md", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "folder%2fsecret.md"] {
        workspace.token.get(&format!("{fetch}/{path}")).await.expect_error(404, "NOT_FOUND");
    }
    // A failed file is not read again until it changes.
    let run = source.sync().await;
    assert_eq!((counters(&run)[1], counters(&run)[4]), (0, 0), "{run}");
}

async fn a_run_is_held_to_the_plan(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = format!("/api/workspaces/{}", workspace.id);
    workspace.session.patch(&path).json(json!({"plan": "starter"})).await.expect(200);
    let folder = SourceFolder::new(deployment);
    for name in ["a", "b", "c", "d", "e", "f"] {
        folder.put(&format!("{name}.md"), format!("Lemur {name}."));
    }
    let source = connect(&workspace, folder.draft("Lemurs")).await;
    let run = source.run().await;
    assert_eq!((text(&run, "status"), counters(&run)), ("failed".into(), [6, 6, 0, 4, 0, 0, 2]), "{run}");
    assert!(text(&run, "error").contains("documents: 4 of 4 are used"), "{run}");
    assert_eq!(source.wait_for_status("failed").await["documentCount"], 4);
    workspace.session.patch(&path).json(json!({"plan": "team"})).await.expect(200);
    let run = source.sync().await;
    assert_eq!((text(&run, "status"), counters(&run)[3]), ("completed".into(), 2), "{run}");
}

pub(crate) async fn owner_of(up: &SingleProcess) -> Session {
    let http = Http::new(up.base_url());
    let body = json!({"email": up.owner().email, "password": up.owner().password});
    let opened = http.request(reqwest::Method::POST, "/api/session").json(body).await.expect(200);
    Session { http, cookie: people::session_cookie(&opened) }
}

/// A run resumes after its process was killed, and ends as if nothing had happened.
#[test]
fn a_run_survives_kill_nine() {
    const FILES: u64 = 600;
    run_alone(async {
        let (data, root) = (Scratch::new(), Scratch::new());
        let environment = [("CAIRN_SOURCE_ROOTS", root.path().to_str().unwrap())];
        let folder = SourceFolder::below(root.path());
        for number in 0..FILES {
            folder.put(&format!("{number}.md"), format!("Gnu number {number}."));
        }
        let mut up = SingleProcess::start_on(data.path(), &environment).await;
        let bootstrap: Value =
            serde_json::from_slice(&fs::read(data.path().join("bootstrap.json")).unwrap()).unwrap();
        let workspace = text(&bootstrap, "workspaceId");
        let mut source = connect_as(&owner_of(&up).await, &workspace, folder.draft("Gnus")).await;
        let mut first = None;
        for round in 1..=3 {
            eventually("the run has come further", async || {
                let run = source.get().await["run"].clone();
                let created = run["counters"]["created"].as_u64()?;
                (created >= round * 60 || run["status"] != "running" && created > 0).then_some(())
            })
            .await;
            up.kill();
            drop(up);
            assert_sound(data.path()).await;
            up = SingleProcess::start_on(data.path(), &environment).await;
            source.session = owner_of(&up).await;
            let run = source.get().await["run"]["id"].clone();
            assert_eq!(first.get_or_insert_with(|| run.clone()), &run, "the same run goes on");
        }
        let run = source.run().await;
        assert_eq!((text(&run, "status"), text(&run, "kind")), ("completed".into(), "full".into()), "{run}");
        let [listed, fetched, unchanged, created, updated, removed, failed] = counters(&run);
        assert_eq!(
            (listed, unchanged, created, updated, removed, failed),
            (FILES, 0, FILES, 0, 0, 0),
            "{run}"
        );
        assert!(fetched <= FILES + 3 * 20, "at most twenty are read again after a crash: {run}");
        assert_eq!(source.wait_for_status("ready").await["documentCount"], FILES);
        assert_eq!(counters(&source.sync().await)[2], FILES);
        drop(up);
        assert_sound(data.path()).await;
    });
}
