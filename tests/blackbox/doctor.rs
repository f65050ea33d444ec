//! `cairn doctor`: reports OK or what is wrong; repairs it when asked, and reports what is lost.

use std::path::{Path, PathBuf};

use crate::assets::{entry, messages, noise, send};
use crate::support::callers::ApiToken;
use crate::support::commands::{run_err, run_ok};
use crate::support::http::id;
use crate::support::mesh::Mesh;
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::runner::{announce_skip, run_alone};
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

/// Whether the command succeeded, its stdout and its stderr.
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
        assert!(
            is_sound && stdout.starts_with("OK: auth, content, ingest, retrieval, sync"),
            "{stdout}{stderr}"
        );
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
        assert!(is_helped && stdout.contains("--mend") && stdout.contains("Examples"), "{stdout}");
    });
}

const PAGE: usize = 4096;
/// The type byte of a table b-tree leaf page (SQLite, "Database File Format").
const ROWS: u8 = 13;

/// The report on a damaged data folder.
async fn found(data: &Path) -> String {
    run_err(&["doctor", "--quiet", "--data", &data.display().to_string()], &[]).await
}

/// Repairs a data folder and checks that it is sound afterwards; returns the report. A second repair changes nothing.
async fn mend(data: &Path, further: &[&str]) -> String {
    let folder = data.display().to_string();
    let command = [&["doctor", "--quiet", "--mend", "--yes", "--data", folder.as_str()], further].concat();
    let output = run_ok(&command, &[]).await;
    assert_sound(data).await;
    let again = run_ok(&command, &[]).await;
    assert!(again.starts_with("OK: ") && again.lines().count() == 1, "{again}");
    output
}

async fn file(token: &ApiToken, number: usize) -> String {
    let content = format!("The text of number {number:03} is about an okapi.\n{}", "- and more\n".repeat(8));
    let body = json!({"name": format!("n{number}.md"), "content": content, "fileType": "markdown"});
    id(&token.post("/api/v1/files").json(body).await.expect(201).json())
}

async fn files(token: &ApiToken, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..count {
        ids.push(file(token, number).await);
    }
    ids
}

async fn is_found(token: &ApiToken, words: &str) {
    eventually("it is found", async || {
        let query = json!({"query": words, "strategy": "keyword"});
        let found = token.post("/api/v1/search_context").json(query).await.expect(200).json();
        found["results"].as_array().filter(|results| !results.is_empty()).map(|_| ())
    })
    .await;
}

/// Every file below a folder, largest first.
fn files_by_size(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort_by_key(|path| std::cmp::Reverse(std::fs::metadata(path).unwrap().len()));
    found
}

/// Starts on the folder again, where a search finds what is left.
async fn serves(data: &Path) -> SingleProcess {
    let up = SingleProcess::start_on(data, &[]).await;
    is_found(&up.token(), "okapi").await;
    up
}

#[test]
fn a_damaged_index_is_removed_and_built_again() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        files(&up.token(), 3).await;
        is_found(&up.token(), "okapi").await;
        let running = refused_mend(data.path()).await;
        assert!(running.contains("another cairn process"), "{running}");
        assert!(up.stop().await.success());
        let flip = |bytes: &mut Vec<u8>| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        };
        let halve = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2);
        type Damage<'a> = (&'a str, &'a dyn Fn(&mut Vec<u8>));
        // Positions are read only by the first phrase query.
        let damages: [Damage<'_>; 3] = [("store", &flip), ("store", &halve), ("pos", &flip)];
        for (kind, damage) in damages {
            let one = files_by_size(&data.path().join("index"))
                .into_iter()
                .find(|path| {
                    path.parent().is_some_and(|folder| folder.ends_with("segments"))
                        && path.extension().is_some_and(|ending| ending == kind)
                })
                .unwrap();
            let mut bytes = std::fs::read(&one).unwrap();
            damage(&mut bytes);
            std::fs::write(&one, bytes).unwrap();
            let output = found(data.path()).await;
            assert!(output.contains("index: broken: "), "{output}");
            let output = mend(data.path(), &[]).await;
            assert!(output.contains("index: mended: ") && !output.contains(": lost: "), "{output}");
            assert!(!data.path().join("index").exists());
            assert!(serves(data.path()).await.stop().await.success());
        }
        // A missing index is no damage: it is rebuilt.
        std::fs::remove_dir_all(data.path().join("index")).unwrap();
        assert_sound(data.path()).await;
    });
}

/// The report of a repair that must be refused.
async fn refused_mend(data: &Path) -> String {
    run_err(&["doctor", "--quiet", "--mend", "--yes", "--data", &data.display().to_string()], &[]).await
}

#[test]
fn a_damaged_page_costs_the_rows_on_it_and_no_other() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let ids = files(&up.token(), 120).await;
        assert!(up.stop().await.success());
        let path = data.path().join("content.db");
        let mut bytes = std::fs::read(&path).unwrap();
        let marker = b"number 060 is about";
        let is_wanted =
            |page: &[u8]| page[0] == ROWS && page.windows(marker.len()).any(|window| window == marker);
        let page = bytes.chunks(PAGE).position(is_wanted).expect("the text stands on a page of its table");
        bytes[page * PAGE..(page + 1) * PAGE].fill(0xa5);
        std::fs::write(&path, bytes).unwrap();

        let output = found(data.path()).await;
        assert!(output.contains("content: broken: the file of the database can be read"), "{output}");
        let output = mend(data.path(), &[]).await;
        assert!(output.contains("content: lost: ") && output.contains("a row of bodies: "), "{output}");
        assert!(output.contains(&format!("file {} version 1: its text is lost", ids[60])), "{output}");
        let kept = std::fs::read_dir(data.path()).unwrap().flatten();
        let kept = kept.filter(|entry| entry.file_name().to_string_lossy().contains("content.db.damaged-"));
        assert!(kept.count() >= 1, "the damaged file is kept");

        let mut up = serves(data.path()).await;
        let token = up.token();
        let lost = token.get(&format!("/api/v1/files/{}", ids[60])).await.expect(200).text();
        assert!(lost.contains("cairn doctor"), "{lost}");
        let other = token.get(&format!("/api/v1/files/{}", ids[0])).await.expect(200).text();
        assert!(other.contains("number 000"), "{other}");
        file(&token, 500).await;
        assert!(up.stop().await.success());
        assert_sound(data.path()).await;
    });
}

#[test]
fn a_log_that_was_cut_is_found_by_the_index() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        files(&up.token(), 3).await;
        is_found(&up.token(), "okapi").await;
        assert!(up.stop().await.success());
        let documents = || Some(cairn_index::contents(&data.path().join("index")).ok()??.documents.len());
        let before = documents().unwrap();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let token = up.token();
        let body = json!({"name": "late.md", "content": "A late quokka.\n", "fileType": "markdown"});
        token.post("/api/v1/files").json(body).await.expect(201);
        is_found(&token, "quokka").await;
        // The index is flushed a moment after the file becomes searchable.
        eventually("the index has written it", async || {
            let log = std::fs::metadata(data.path().join("content.db-wal")).ok()?;
            (log.len() > 0 && documents()? > before).then_some(())
        })
        .await;
        up.kill();
        std::fs::write(data.path().join("content.db-wal"), "").unwrap();
        let output = found(data.path()).await;
        assert!(output.contains("what was written in between is lost"), "{output}");
        let output = mend(data.path(), &[]).await;
        assert!(output.contains("index: lost: ") && output.contains("index: mended: "), "{output}");
        let mut up = serves(data.path()).await;
        assert!(up.stop().await.success());
    });
}

#[test]
fn texts_and_assets_come_from_a_backup_or_are_told_as_lost() {
    run_alone(async {
        let (data, kept) = (Scratch::new(), Scratch::new());
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let ids = files(&up.token(), 2).await;
        let (channel, identity) = entry(&up).await;
        send(channel, &identity, messages("plan.png", "image/png", &noise(40_000))).await.unwrap();
        assert!(up.stop().await.success());
        let to = kept.path().display().to_string();
        run_ok(&["backup", "--quiet", "--data", &data.path().display().to_string(), "--to", &to], &[]).await;
        let asset = files_by_size(&data.path().join("assets")).remove(0);
        let whole = std::fs::read(&asset).unwrap();
        let damage = async |asset_bytes: Option<&[u8]>| {
            match asset_bytes {
                Some(bytes) => std::fs::write(&asset, bytes).unwrap(),
                None => std::fs::remove_file(&asset).unwrap(),
            }
            let url = format!("sqlite:{}", data.path().join("content.db").display());
            let mut store = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.unwrap();
            let sql =
                "UPDATE bodies SET data = X'00' WHERE hash = (SELECT content_hash FROM files WHERE id = $1)";
            sqlx::query(sql).bind(&ids[0]).execute(&mut store).await.unwrap();
            sqlx::Connection::close(store).await.unwrap();
        };
        for bytes in [None, whole.get(..100), Some(&[7_u8; 40_000][..])] {
            damage(bytes).await;
            let output = found(data.path()).await;
            assert!(
                output.contains("the bytes of an asset") && output.contains("every body can be read"),
                "{output}"
            );
            let output = mend(data.path(), &["--from", &to]).await;
            assert!(
                output.contains("those of the backup") && output.contains("that of the backup"),
                "{output}"
            );
            assert!(!output.contains(": lost: "), "{output}");
            assert_eq!(std::fs::read(&asset).unwrap(), whole);
        }
        damage(Some(b"other")).await;
        let output = mend(data.path(), &[]).await;
        assert!(output.contains("content: lost: ") && output.contains("plan.png"), "{output}");
        assert!(output.contains(&format!("file {} version 1: its text is lost", ids[0])), "{output}");
        assert!(!asset.exists() && data.path().join("assets/damaged").is_dir(), "it was set aside");
        let mut up = serves(data.path()).await;
        let assets = up.token().get("/api/v1/assets").await.expect(200).text();
        assert!(!assets.contains("plan.png"), "{assets}");
        assert!(up.stop().await.success());
    });
}

#[test]
fn a_volume_of_assets_that_is_not_mounted_costs_none_of_them() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let (channel, identity) = entry(&up).await;
        for number in 0..11 {
            let name = format!("plan-{number}.png");
            let bytes = noise(1_000 + number);
            send(channel.clone(), &identity, messages(&name, "image/png", &bytes)).await.unwrap();
        }
        assert!(up.stop().await.success());
        let (assets, away) = (data.path().join("assets"), data.path().join("assets-of-the-volume"));
        let is_refused = async |missing: &str| {
            let output = refused_mend(data.path()).await;
            assert!(
                output.contains(missing) && output.contains("mount") && output.contains("--give-up-assets"),
                "{output}"
            );
            assert!(!output.contains(": lost: "), "{output}");
        };
        // No folder, an empty one, and one with only what was written since.
        std::fs::rename(&assets, &away).unwrap();
        is_refused("11 of 11 assets").await;
        assert!(!assets.exists());
        std::fs::create_dir(&assets).unwrap();
        is_refused("11 of 11 assets").await;
        std::fs::remove_dir(&assets).unwrap();
        std::fs::rename(&away, &assets).unwrap();
        let objects = files_by_size(&assets);
        let bytes: Vec<_> = objects.iter().map(|object| std::fs::read(object).unwrap()).collect();
        for object in &objects[1..] {
            std::fs::remove_file(object).unwrap();
        }
        is_refused("10 of 11 assets").await;
        for (object, bytes) in objects.iter().zip(bytes).skip(2) {
            std::fs::write(object, bytes).unwrap();
        }
        // A single missing asset is reported as missing.
        let output = mend(data.path(), &[]).await;
        assert_eq!(output.matches(": lost: ").count(), 1, "{output}");

        std::fs::remove_dir_all(&assets).unwrap();
        is_refused("10 of 10 assets").await;
        let output = mend(data.path(), &["--give-up-assets"]).await;
        assert!(output.matches("content: lost: ").count() == 10 && output.contains("plan-"), "{output}");
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let left = up.token().get("/api/v1/assets").await.expect(200).text();
        assert!(!left.contains("plan-"), "{left}");
        assert!(up.stop().await.success());
    });
}

#[test]
fn rows_leftovers_and_a_lost_key() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        files(&up.token(), 2).await;
        assert!(up.stop().await.success());
        for (service, sql) in [
            ("content", "UPDATE workspace_usage SET files = 77"),
            ("content", "UPDATE files SET folder_id = NULL, size_bytes = 1"),
            ("content", "DELETE FROM feed_changes WHERE position = 1"),
            ("content", "DELETE FROM file_versions"),
            ("auth", "DELETE FROM signing_keys"),
            ("auth", "UPDATE signing_keys SET state = 'retired'"),
        ] {
            let url = format!("sqlite:{}", data.path().join(format!("{service}.db")).display());
            let mut store = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.unwrap();
            sqlx::query(sql).execute(&mut store).await.unwrap();
            sqlx::Connection::close(store).await.unwrap();
            mend(data.path(), &[]).await;
            assert!(serves(data.path()).await.stop().await.success(), "{sql}");
        }
        std::fs::write(data.path().join("content.db.mending"), "half").unwrap();
        let output = found(data.path()).await;
        assert!(output.contains("content.db.mending: it was never finished"), "{output}");
        mend(data.path(), &[]).await;
        // A repair that was interrupted right before its end is resumed, and nothing starts before that.
        std::fs::copy(data.path().join("content.db"), data.path().join("content.db.mended-T")).unwrap();
        let output = run_err(&["up", "--data", &data.path().display().to_string()], &[]).await;
        assert!(output.contains("cairn doctor --mend"), "{output}");
        mend(data.path(), &[]).await;
        assert!(data.path().join("content.db.damaged-T").exists());
        // Without --yes the command prompts, and nobody is there to answer.
        std::fs::write(data.path().join("content.db.mending"), "half").unwrap();
        let output = run_err(&["doctor", "--mend", "--data", &data.path().display().to_string()], &[]).await;
        assert!(output.contains("--yes") && data.path().join("content.db.mending").exists(), "{output}");
        mend(data.path(), &[]).await;

        let key = data.path().join("secret.key");
        std::fs::rename(&key, data.path().join("elsewhere")).unwrap();
        let output = refused_mend(data.path()).await;
        assert!(output.contains("put secret.key back"), "nothing is made up: {output}");
        std::fs::rename(data.path().join("elsewhere"), &key).unwrap();
        assert_sound(data.path()).await;
        let folder = data.path().display().to_string();
        let output = run_ok(&["doctor", "--json", "--data", &folder], &[]).await;
        let output: Value = serde_json::from_str(&output).unwrap();
        assert_eq!((&output["isSound"], &output["findings"]), (&json!(true), &json!([])));
    });
}
