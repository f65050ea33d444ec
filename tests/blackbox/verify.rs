//! `cairn verify` of a data folder: passes when it is sound, and names each kind of planted damage.

use std::path::Path;

use cairn_embed::EmbedderIdentity;
use cairn_index::Batch;
use cairn_index::embedded::Index;
use sqlx::{Connection as _, SqliteConnection};
use uuid::Uuid;

use crate::assets::{entry, messages, noise, send};
use crate::support::commands::{run_err, run_ok};
use crate::support::http::{id, text};
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::{Scratch, files_below};
use crate::support::single::SingleProcess;

async fn store(data: &Path, service: &str) -> SqliteConnection {
    let url = format!("sqlite:{}", data.join(format!("{service}.db")).display());
    SqliteConnection::connect(&url).await.unwrap()
}

async fn plant(data: &Path, service: &str, sql: &'static str) {
    let mut store = store(data, service).await;
    let changed = sqlx::query(sql).execute(&mut store).await.unwrap().rows_affected();
    assert!(changed > 0, "{sql}");
    store.close().await.unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The index of a data folder that no process uses.
fn index(data: &Path) -> Index {
    let root = data.join("index");
    let current = std::fs::read(root.join("current.json")).unwrap();
    let identity: EmbedderIdentity = serde_json::from_slice(&current).unwrap();
    Index::open(&root.join(identity.slug()), &identity.embedder, identity.dimensions).unwrap()
}

/// Verifies a damaged data folder; this must be the only fault.
async fn assert_fault(data: &Path, about: &str) {
    let output = run_err(&["verify", "--quiet", "--data", &data.display().to_string()], &[]).await;
    assert!(
        output.contains("broken: ") && output.contains(about) && !output.contains("OK"),
        "{about}: {output}"
    );
    assert!(output.contains("1 fault"), "nothing else is told: {output}");
}

/// One item of each kind, all indexed; returns the ids of the workspace and of a file.
async fn fill(up: &SingleProcess) -> (Uuid, String) {
    let token = up.token();
    let (channel, identity) = entry(up).await;
    send(channel, &identity, messages("plan.png", "image/png", &noise(40_000))).await.unwrap();
    let body = json!({"name": "okapi.md", "content": "An okapi is no zebra.\n", "fileType": "markdown"});
    let file = id(&token.post("/api/v1/files").json(body).await.expect(201).json());
    let blank = json!({"name": "blank.md", "content": " \n\n", "fileType": "markdown"});
    token.post("/api/v1/files").json(blank).await.expect(201);
    let gone = json!({"name": "gone.md", "content": "Not for long.\n", "fileType": "markdown"});
    let gone = id(&token.post("/api/v1/files").json(gone).await.expect(201).json());
    token.delete(&format!("/api/v1/files/{gone}")).await.expect(204);
    let memory = json!({"name": "Release", "useWhen": "releasing"});
    let memory = token.post("/api/v1/memories").json(memory).await.expect(201).json();
    let database =
        id(&token.post("/api/v1/databases").json(json!({"name": "Tasks"})).await.expect(201).json());
    let record = json!({"values": {}});
    token.post(&format!("/api/v1/databases/{database}/records")).json(record).await.expect(201);
    let ingested = json!({"idempotencyKey": "a", "title": "From outside", "content": "A quokka.\n"});
    let ingested = token.post("/api/v1/ingest").json(ingested).await;
    assert!(ingested.status < 300, "{}", ingested.text());
    eventually("all of it is found", async || {
        for word in ["okapi", "quokka"] {
            let query = json!({"query": word, "strategy": "keyword"});
            let found = token.post("/api/v1/search_context").json(query).await.expect(200).json();
            if found["results"].as_array().is_none_or(Vec::is_empty) {
                return None;
            }
        }
        Some(())
    })
    .await;
    (Uuid::parse_str(&text(&memory, "workspaceId")).unwrap(), file)
}

#[test]
fn a_data_folder_is_sound_while_it_is_used_and_afterwards() {
    run_alone(async {
        let data = Scratch::new();
        let folder = data.path().display().to_string();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        fill(&up).await;
        for round in 0..5 {
            let name = format!("more-{round}.md");
            let body = json!({"name": name, "content": "More of it.\n", "fileType": "markdown"});
            up.token().post("/api/v1/files").json(body).await.expect(201);
            run_ok(&["verify", "--quiet", "--data", &folder], &[]).await;
        }
        assert!(up.stop().await.success());
        let output = run_ok(&["verify", "--data", &folder], &[]).await;
        assert_eq!(output, "OK: auth, content, ingest, retrieval, sync, index\n");
        let output = run_ok(&["verify", "--json", "--data", &folder], &[]).await;
        let output: Value = serde_json::from_str(&output).unwrap();
        assert_eq!(
            (&output["isSound"], &output["findings"], &output["backup"]),
            (&json!(true), &json!([]), &json!(null))
        );
        // What can be rebuilt does not count as missing.
        std::fs::remove_dir_all(data.path().join("index")).unwrap();
        let output = run_ok(&["verify", "--quiet", "--data", &folder], &[]).await;
        assert_eq!(output, "OK: auth, content, ingest, retrieval, sync\n");
    });
}

#[test]
fn each_kind_of_damage_is_named() {
    run_alone(async {
        let (data, copies, kept) = (Scratch::new(), Scratch::new(), Scratch::new());
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let (workspace, file) = fill(&up).await;
        assert!(up.stop().await.success());
        let planted = |name: &str| {
            let folder = copies.path().join(name);
            copy(data.path(), &folder);
            folder
        };

        let body = planted("body");
        let mut content = store(&body, "content").await;
        let sql = "SELECT f.content_hash, b.data FROM files f JOIN bodies b ON b.workspace_id = f.workspace_id \
                   AND b.hash = f.content_hash WHERE f.id = $1";
        let (hash, mut bytes): (String, Vec<u8>) =
            sqlx::query_as(sql).bind(&file).fetch_one(&mut content).await.unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        sqlx::query("UPDATE bodies SET data = $1 WHERE hash = $2")
            .bind(bytes)
            .bind(&hash)
            .execute(&mut content)
            .await
            .unwrap();
        content.close().await.unwrap();
        assert_fault(&body, &hash).await;
        // Verifying a backup of it reports the same.
        let (from, to) = (body.display().to_string(), kept.path().display().to_string());
        run_ok(&["backup", "--quiet", "--data", &from, "--to", &to], &[]).await;
        let secret_key = data.path().join("secret.key").display().to_string();
        let open = [("CAIRN_SECRET_KEY_FILE", secret_key.as_str())];
        let output = run_err(&["verify", "--quiet", "--from", &to], &open).await;
        assert!(output.contains("broken: ") && output.contains(&hash), "{output}");

        let feed = planted("feed");
        plant(&feed, "content", "DELETE FROM feed_changes WHERE position = 1").await;
        let output = run_err(&["verify", "--quiet", "--data", &feed.display().to_string()], &[]).await;
        assert!(output.contains("broken: the feed has no gap"), "{output}");

        let asset = planted("asset");
        let objects = files_below(&asset.join("assets"));
        std::fs::remove_file(&objects[0].0).unwrap();
        assert_fault(&asset, "it is not there").await;
        std::fs::write(&objects[0].0, vec![0; objects[0].1.len()]).unwrap();
        assert_fault(&asset, "it has the hash").await;

        let lacking = planted("lacking");
        let deletions = vec![(workspace, Uuid::parse_str(&file).unwrap())];
        index(&lacking).apply(Batch { deletions, ..Batch::default() }).unwrap();
        assert_fault(&lacking, &format!("document {file}: it is not in the index")).await;

        // As if the owner's database had been rolled back, as with an older database under a newer index.
        let older = planted("older");
        plant(
            &older,
            "content",
            "UPDATE feed_changes SET op = 2 WHERE item_id IN (SELECT id FROM files WHERE name = 'okapi.md')",
        )
        .await;
        let output = run_err(&["verify", "--quiet", "--data", &older.display().to_string()], &[]).await;
        assert!(output.contains(&format!("document {file}: the index holds it")), "{output}");
    });
}
