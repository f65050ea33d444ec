//! `cairn doctor`: says OK of what is sound, and what is wrong otherwise.

use std::path::Path;

use crate::support::mesh::Mesh;
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::runner::{announce_skip, run_alone};
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

/// What the command said, and whether it was content.
async fn examine(arguments: &[&str]) -> (bool, String, String) {
    let all: Vec<String> = ["doctor"].iter().chain(arguments).map(|text| (*text).to_owned()).collect();
    let mut process = Process::start("cairn doctor", &all, &[]);
    let status = process.exit().await;
    (status.success(), process.stdout(), process.stderr())
}

/// Fails unless the data of `cairn up` in this folder is sound.
pub(crate) async fn assert_sound(data: &Path) {
    let (is_sound, stdout, stderr) = examine(&["--quiet", "--data", &data.display().to_string()]).await;
    assert!(is_sound && stdout.starts_with("OK: auth, content, ingest, retrieval"), "{stdout}{stderr}");
}

async fn write_something(token: &impl Caller) {
    let folder = token.post("/api/v1/folders").json(json!({"name": "f"})).await.expect(201).json();
    let body = json!({"name": "a.md", "content": "x", "fileType": "markdown", "folderId": folder["id"]});
    let file = token.post("/api/v1/files").json(body).await.expect(201).json();
    let path = format!("/api/v1/files/{}", file["id"].as_str().unwrap());
    token.patch(&path).json(json!({"content": "y"})).await.expect(200);
    token.delete(&path).await.expect(204);
}

#[test]
fn sound_data_is_ok_running_killed_or_stopped() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        write_something(&up.token()).await;
        assert_sound(data.path()).await;
        up.kill();
        assert_sound(data.path()).await;
        let mut again = SingleProcess::start_on(data.path(), &[]).await;
        assert!(again.stop().await.success());
        let (is_sound, stdout, stderr) = examine(&["--data", &data.path().display().to_string()]).await;
        assert!(is_sound && stdout == "OK: auth, content, ingest, retrieval, sync\n", "{stdout}{stderr}");
        assert!(stderr.contains("content: the feed has no gap"), "progress goes to stderr: {stderr}");
    });
}

#[test]
fn a_mesh_is_examined_database_by_database() {
    run_alone(async {
        let mesh = match Mesh::start().await {
            Ok(mesh) => mesh,
            Err(why) => return announce_skip(&why),
        };
        for service in ["auth", "content", "ingest", "retrieval", "sync"] {
            let url = mesh.database(service);
            let (is_sound, stdout, stderr) = examine(&["--quiet", "--database", url]).await;
            assert!(is_sound && stdout == format!("OK: {service}\n"), "{stdout}{stderr}");
        }
    });
}

#[test]
fn damage_is_named_and_fails_the_command() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        write_something(&up.token()).await;
        assert!(up.stop().await.success());
        let url = format!("sqlite:{}", data.path().join("content.db").display());
        let mut store = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.unwrap();
        sqlx::query("UPDATE files SET size_bytes = 77").execute(&mut store).await.unwrap();
        sqlx::Connection::close(store).await.unwrap();
        let (is_sound, stdout, stderr) = examine(&["--data", &data.path().display().to_string()]).await;
        assert!(
            !is_sound && stdout.contains("content: broken: a file has a body of its size"),
            "{stdout}{stderr}"
        );
        assert!(!stdout.contains("OK"), "{stdout}");
    });
}

#[test]
fn a_folder_without_data_and_help() {
    run_alone(async {
        let empty = Scratch::new();
        let (is_sound, _, stderr) = examine(&["--data", &empty.path().display().to_string()]).await;
        assert!(!is_sound && stderr.contains("--data"), "{stderr}");
        assert!(std::fs::read_dir(empty.path()).unwrap().next().is_none(), "nothing was made");
        let (is_helped, stdout, _) = examine(&["--help"]).await;
        assert!(is_helped && stdout.contains("--database") && stdout.contains("Examples"), "{stdout}");
    });
}
