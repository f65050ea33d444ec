//! Data folders of earlier versions: this version starts on each, and all their data is there.

use crate::doctor::assert_sound;
use crate::imports::archive;
use crate::ingest;
use crate::support::callers::{Anonymous, ApiToken};
use crate::support::commands::run_ok;
use crate::support::data_fixtures;
use crate::support::http::{Http, id, items, text};
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

/// Names the version whose data folder is to be dumped.
const KEEP: &str = "CAIRN_TEST_KEEP";
const PLAN: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n";
const HANDBOOK: &str = "The quokka keeps the handbook.\n";

/// Writes what [`reads_everything`] checks. Additions by a later version are missing from earlier fixtures.
async fn write_everything(up: &SingleProcess) {
    let token = up.token();
    let folder = id(&token.post("/api/v1/folders").json(json!({"name": "Plans"})).await.expect(201).json());
    let body = json!({
        "name": "okapi.md", "content": "# Okapi\n\nThe okapi sleeps until noon.\n", "fileType": "markdown",
        "folderId": folder, "tags": ["animals"],
    });
    let okapi = id(&token.post("/api/v1/files").json(body).await.expect(201).json());
    let body = json!({"content": "# Okapi\n\nThe okapi wakes at dawn.\n"});
    token.patch(&format!("/api/v1/files/{okapi}")).json(body).await.expect(200);
    let body = json!({"name": "gone.md", "content": "Gone.\n", "fileType": "markdown"});
    let gone = id(&token.post("/api/v1/files").json(body).await.expect(201).json());
    token.delete(&format!("/api/v1/files/{gone}")).await.expect(204);
    let body =
        json!({"name": "Release", "useWhen": "releasing", "members": [{"kind": "file", "fileId": okapi}]});
    token.post("/api/v1/memories").json(body).await.expect(201);
    write_database(&token).await;
    let body =
        json!({"idempotencyKey": "kept", "title": "Handbook", "content": HANDBOOK, "contentType": "text"});
    let document = id(&ingest::post(&token, body).await.expect(202).json());
    ingest::read(&token, &document).await;
    import_vault(up).await;
}

async fn write_database(token: &ApiToken) {
    let body = json!({"name": "Tasks"});
    let path = format!(
        "/api/v1/databases/{}",
        id(&token.post("/api/v1/databases").json(body).await.expect(201).json())
    );
    token.post(&format!("{path}/fields")).json(json!({"name": "Points", "type": "number"})).await.expect(201);
    let read = token.get(&path).await.expect(200).json();
    let points =
        items(&read["properties"]).iter().find(|field| text(field, "name") == "Points").map(id).unwrap();
    token.post(&format!("{path}/records")).json(json!({"values": {points: 7}})).await.expect(201);
}

/// Imports a note and an asset, by a run that is stored too.
async fn import_vault(up: &SingleProcess) {
    let vault = archive(&[
        ("Vault/.obsidian/app.json", b"{}"),
        ("Vault/Note.md", b"A note about the numbat: ![[plan.svg]]\n"),
        ("Vault/plan.svg", PLAN.as_bytes()),
    ]);
    let scratch = Scratch::new();
    let zip = scratch.path().join("vault.zip");
    std::fs::write(&zip, vault).unwrap();
    let owner = up.owner();
    let who = [
        ("CAIRN_URL", up.base_url()),
        ("CAIRN_EMAIL", owner.email.as_str()),
        ("CAIRN_PASSWORD", owner.password.as_str()),
    ];
    run_ok(&["import", &zip.display().to_string(), "--yes"], &who).await;
}

async fn listed(token: &ApiToken, list: &str) -> Vec<Value> {
    items(&token.get(&format!("/api/v1/{list}")).await.expect(200).json()).to_vec()
}

/// The id of the list entry with that name.
fn named(list: &[Value], name: &str) -> String {
    list.iter()
        .find(|one| text(one, "name") == name)
        .map(id)
        .unwrap_or_else(|| panic!("no {name} in {list:?}"))
}

async fn reads_everything(up: &SingleProcess) {
    let token = up.token();
    let files = listed(&token, "files").await;
    let path = format!("/api/v1/files/{}", named(&files, "okapi.md"));
    let okapi = token.get(&path).await.expect(200).text();
    assert!(okapi.contains("wakes at dawn") && okapi.contains("animals"), "{okapi}");
    let then = token.get(&format!("{path}/versions/1")).await.expect(200).text();
    assert!(then.contains("sleeps until noon"), "{then}");
    assert!(!files.iter().any(|file| text(file, "name") == "gone.md"), "{files:?}");
    named(&listed(&token, "folders").await, "Plans");
    let memory = named(&listed(&token, "memories").await, "Release");
    let memory = token.get(&format!("/api/v1/memories/{memory}")).await.expect(200).text();
    assert!(memory.contains("okapi.md"), "{memory}");
    let tasks = named(&listed(&token, "databases").await, "Tasks");
    let records = token.get(&format!("/api/v1/databases/{tasks}/records")).await.expect(200).json();
    let values = records["records"][0]["values"].as_object().unwrap();
    assert!(values.values().any(|value| *value == 7), "{records}");
    let plan = named(&listed(&token, "assets").await, "plan.svg");
    assert_eq!(token.get(&format!("/api/v1/assets/{plan}/content")).await.expect(200).text(), PLAN);
    for (word, passage) in [("okapi", "wakes at dawn"), ("quokka", "handbook"), ("numbat", "plan.svg")] {
        let query = json!({"query": word, "strategy": "keyword"});
        eventually("the index is built of what was kept", async || {
            let answer = token.post("/api/v1/search_context").json(query.clone()).await;
            (answer.status == 200 && answer.text().contains(passage)).then_some(())
        })
        .await;
    }
}

async fn signs_in(up: &SingleProcess) {
    let body = json!({"email": up.owner().email, "password": up.owner().password});
    let anonymous = Anonymous { http: Http::new(up.base_url()) };
    anonymous.post("/api/session").json(body).await.expect(200);
}

#[test]
fn every_kept_data_folder_is_served_by_this_version() {
    run_alone(async {
        let kept = data_fixtures::list();
        assert!(!kept.is_empty());
        for folder in kept {
            let data = Scratch::new();
            data_fixtures::restore(&folder, data.path()).await;
            let path = data.path().display().to_string();
            run_ok(&["upgrade", "check", "--data", &path], &[]).await;
            let mut up = SingleProcess::start_on(data.path(), &[]).await;
            reads_everything(&up).await;
            signs_in(&up).await;
            // Data written then and data written now coexist.
            let body = json!({"name": "now.md", "content": "A quoll of now.\n", "fileType": "markdown"});
            up.token().post("/api/v1/files").json(body).await.expect(201);
            assert!(up.stop().await.success(), "{}", folder.display());
            assert_sound(data.path()).await;
            let again = SingleProcess::start_on(data.path(), &[]).await;
            reads_everything(&again).await;
        }
    });
}

#[test]
fn what_this_version_writes_can_be_kept() {
    run_alone(async {
        let (data, kept, back) = (Scratch::new(), Scratch::new(), Scratch::new());
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        write_everything(&up).await;
        assert!(up.stop().await.success());
        data_fixtures::dump(data.path(), kept.path()).await;
        data_fixtures::restore(kept.path(), back.path()).await;
        let mut again = SingleProcess::start_on(back.path(), &[]).await;
        reads_everything(&again).await;
        signs_in(&again).await;
        assert!(again.stop().await.success());
        assert_sound(back.path()).await;
        if let Ok(version) = std::env::var(KEEP) {
            data_fixtures::dump(data.path(), &data_fixtures::path(&version)).await;
        }
    });
}
