//! Backups of `cairn up`: made while it is used, put back, looked over; cut by `kill -9` in the middle of each.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cairn_proto::content::v1::DeleteAssetRequest;
use cairn_proto::content::v1::asset_service_client::AssetServiceClient;
use futures::future::join_all;
use tokio::time::{Duration, sleep};

use crate::assets::{entry, messages, noise, send};
use crate::doctor::assert_sound;
use crate::grpc::as_caller;
use crate::support::callers::ApiToken;
use crate::support::http::{each, id, items};
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::runner::run_alone;
use crate::support::scratch::{Scratch, files_below};
use crate::support::single::SingleProcess;
use crate::support::wait::eventually;

const WRITERS: usize = 3;
const KEY: &str = "CAIRN_BACKUP_KEY";

fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Process {
    let all: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
    Process::start("cairn", &all, environment)
}

/// The key of stored secrets, which is in no backup that is not encrypted.
fn secret_key(data: &Path) -> String {
    data.join("secret.key").display().to_string()
}

/// Whether the command was content, and what it said.
async fn cairn(arguments: &[&str], environment: &[(&str, &str)]) -> (bool, String) {
    let mut process = start(arguments, environment);
    let is_content = process.exit().await.success();
    (is_content, format!("{}{}", process.stdout(), process.stderr()))
}

async fn done(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let (is_content, said) = cairn(arguments, environment).await;
    assert!(is_content, "{arguments:?}: {said}");
    said
}

async fn refused(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let (is_content, said) = cairn(arguments, environment).await;
    assert!(!is_content, "{arguments:?}: {said}");
    said
}

/// How many bytes a backup has stored, as it says.
fn new_bytes(said: &str) -> u64 {
    let words: Vec<_> = said.split_whitespace().collect();
    let at = words.windows(2).position(|pair| pair == ["are", "new"]).unwrap();
    words[at - 1].parse().unwrap()
}

async fn write(token: &ApiToken, name: &str) -> String {
    let body = json!({"name": name, "content": format!("The okapi wrote {name}.\n"), "fileType": "markdown"});
    id(&token.post("/api/v1/files").json(body).await.expect(201).json())
}

/// Writes files, and makes and deletes assets, until it is told to stop.
async fn use_it(up: &SingleProcess, writer: usize, stop: Arc<AtomicBool>) {
    let (token, (channel, identity)) = (up.token(), entry(up).await);
    for number in 0.. {
        if stop.load(Ordering::Acquire) {
            return;
        }
        let name = format!("meanwhile-{writer}-{number}.md");
        write(&token, &name).await;
        let bytes = format!("{name} and more of it").into_bytes();
        let asset = send(channel.clone(), &identity, messages(&name, "", &bytes)).await.unwrap();
        if number % 2 == 0 {
            let delete = DeleteAssetRequest { asset_id: asset.id };
            AssetServiceClient::new(channel.clone())
                .delete_asset(as_caller(&identity, delete))
                .await
                .unwrap();
        }
    }
}

#[test]
fn a_backup_that_is_made_under_writes_is_put_back_whole() {
    run_alone(async {
        let (data, kept, other) = (Scratch::new(), Scratch::new(), Scratch::new());
        let (from, to) = (data.path().display().to_string(), kept.path().join("b").display().to_string());
        let secret_key = secret_key(data.path());
        let open = [("CAIRN_SECRET_KEY_FILE", secret_key.as_str())];
        let up = SingleProcess::start_on(data.path(), &[]).await;
        let (channel, identity) = entry(&up).await;
        let bytes = noise(3 * 1024 * 1024 + 17);
        send(channel, &identity, messages("plan.png", "image/png", &bytes)).await.unwrap();
        let before = write(&up.token(), "before.md").await;

        let stop = Arc::new(AtomicBool::new(false));
        let writing = join_all((0..WRITERS).map(|writer| use_it(&up, writer, Arc::clone(&stop))));
        let backing_up = async {
            let mut said = Vec::new();
            for number in 0..3 {
                let acknowledged = write(&up.token(), &format!("acknowledged-{number}.md")).await;
                said.push((done(&["backup", "--data", &from, "--to", &to], &[]).await, acknowledged));
                done(&["verify", "--quiet", "--from", &to], &open).await;
            }
            stop.store(true, Ordering::Release);
            said
        };
        let (_, said) = tokio::join!(writing, backing_up);
        assert!(new_bytes(&said[1].0) < new_bytes(&said[0].0) / 2, "only what is new is stored: {said:?}");
        assert!(said[0].0.contains("not encrypted") && said[0].0.contains("secret.key"), "{said:?}");

        // The oldest is still what it was.
        let names = done(&["restore", "--from", &to, "--list"], &[]).await;
        let oldest = names.lines().next().unwrap();
        done(&["verify", "--quiet", "--from", &to, "--snapshot", oldest], &open).await;

        let restored = other.path().join("data");
        let target = restored.display().to_string();
        let told = done(&["restore", "--from", &to, "--data", &target], &[]).await;
        assert!(told.contains("secret.key"), "{told}");
        std::fs::copy(data.path().join("secret.key"), restored.join("secret.key")).unwrap();
        assert_sound(&restored).await;
        let again = SingleProcess::start_on(&restored, &[]).await;
        let token = ApiToken { secret: up.owner().token.clone(), ..again.token() };
        for file in said.iter().map(|(_, file)| file).chain([&before]) {
            token.get(&format!("/api/v1/files/{file}")).await.expect(200);
        }
        eventually("the index is built of what was put back", async || {
            let query = json!({"query": "acknowledged-2", "strategy": "keyword"});
            let answer = token.post("/api/v1/search_context").json(query).await;
            let is_found = answer.status == 200
                && items(&answer.json()["results"]).iter().any(|found| found["fileId"] == *said[2].1);
            is_found.then_some(())
        })
        .await;
        let assets = token.get("/api/v1/assets").await.expect(200).json();
        let hash = format!("blake3:{}", blake3::hash(&bytes).to_hex());
        assert!(each(&assets, "contentHash").contains(&hash.as_str()), "{assets}");
    });
}

#[test]
fn an_encrypted_one_tells_nothing_without_its_key() {
    run_alone(async {
        let (data, kept, other) = (Scratch::new(), Scratch::new(), Scratch::new());
        let (from, to) = (data.path().display().to_string(), kept.path().display().to_string());
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        write(&up.token(), "zebra-unmistakable.md").await;
        assert!(up.stop().await.success());
        let key = [(KEY, "ab".repeat(32))];
        let key: Vec<_> = key.iter().map(|(name, value)| (*name, value.as_str())).collect();
        done(&["backup", "--data", &from, "--to", &to, "--keep", "1"], &key).await;
        done(&["backup", "--data", &from, "--to", &to, "--keep", "1"], &key).await;
        assert_eq!(done(&["restore", "--from", &to, "--list"], &key).await.lines().count(), 1);
        for (name, bytes) in files_below(kept.path()) {
            let shown = bytes.windows(5).any(|window| window == b"zebra" || window == b"SQLit");
            assert!(!shown, "{name} can be read");
        }
        let target = other.path().join("data").display().to_string();
        let said = refused(&["restore", "--from", &to, "--data", &target], &[]).await;
        assert!(said.contains(KEY), "{said}");
        let wrong = "cd".repeat(32);
        let said = refused(&["verify", "--from", &to], &[(KEY, &wrong)]).await;
        assert!(said.contains("does not open") && !said.contains(&wrong), "{said}");
        done(&["verify", "--from", &to], &key).await;
        done(&["restore", "--from", &to, "--data", &target], &key).await;
        let again = SingleProcess::start_on(Path::new(&target), &[]).await;
        let token = ApiToken { secret: up.owner().token.clone(), ..again.token() };
        let files = token.get("/api/v1/files").await.expect(200).text();
        assert!(files.contains("zebra-unmistakable.md"), "{files}");
    });
}

#[test]
fn one_that_was_killed_is_none_and_a_restore_that_was_killed_is_begun_anew() {
    run_alone(async {
        let (data, kept, other) = (Scratch::new(), Scratch::new(), Scratch::new());
        let (from, to) = (data.path().display().to_string(), kept.path().display().to_string());
        let secret_key = secret_key(data.path());
        let open = [("CAIRN_SECRET_KEY_FILE", secret_key.as_str())];
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let (channel, identity) = entry(&up).await;
        send(channel, &identity, messages("large", "", &noise(8 * 1024 * 1024))).await.unwrap();
        write(&up.token(), "one.md").await;
        done(&["backup", "--data", &from, "--to", &to], &[]).await;

        let mut killed = 0;
        for round in 0..12 {
            write(&up.token(), &format!("round-{round}.md")).await;
            let before = done(&["restore", "--from", &to, "--list"], &[]).await;
            let mut process = start(&["backup", "--data", &from, "--to", &to, "--keep", "2"], &[]);
            sleep(Duration::from_millis(40 * round)).await;
            let is_over = process.ended().is_some();
            process.kill();
            process.exit().await;
            let after = done(&["restore", "--from", &to, "--list"], &[]).await;
            killed += usize::from(!is_over && after == before);
            done(&["verify", "--quiet", "--from", &to], &open).await;
        }
        assert!(killed > 0, "none was cut");
        done(&["backup", "--data", &from, "--to", &to, "--keep", "1"], &[]).await;
        done(&["verify", "--quiet", "--from", &to], &open).await;
        let cut: Vec<_> =
            files_below(kept.path()).into_iter().filter(|(name, _)| name.contains('#')).collect();
        assert!(cut.is_empty(), "nothing is left of those that were cut");

        let restored = other.path().join("data");
        let target = restored.display().to_string();
        let mut process = start(&["restore", "--from", &to, "--data", &target], &[]);
        let mark = restored.join("restore.unfinished");
        eventually("it has begun", async || {
            (mark.exists() && restored.join("auth.db").exists()).then_some(())
        })
        .await;
        process.kill();
        process.exit().await;
        assert!(mark.exists(), "it was cut");
        let mut too_early = SingleProcess::launch(&restored, &[]);
        assert!(!too_early.exit().await.success());
        assert!(too_early.said().contains("cairn restore"), "{}", too_early.said());
        done(&["restore", "--from", &to, "--data", &target], &[]).await;
        std::fs::copy(data.path().join("secret.key"), restored.join("secret.key")).unwrap();
        assert_sound(&restored).await;
        up.kill();
        let again = SingleProcess::start_on(&restored, &[]).await;
        let token = ApiToken { secret: up.owner().token.clone(), ..again.token() };
        let files = token.get("/api/v1/files").await.expect(200).text();
        assert!(files.contains("one.md") && files.contains("round-11.md"), "{files}");
    });
}

#[test]
fn what_cannot_be_done_is_told() {
    run_alone(async {
        let (data, kept, other) = (Scratch::new(), Scratch::new(), Scratch::new());
        let (from, to) = (data.path().display().to_string(), kept.path().display().to_string());
        let nothing = other.path().display().to_string();
        let said = refused(&["backup", "--data", &nothing, "--to", &to], &[]).await;
        assert!(said.contains("--data"), "{said}");
        let said = refused(&["restore", "--from", "/nowhere/at/all", "--data", &nothing], &[]).await;
        assert!(said.contains("--from"), "{said}");
        let said = refused(&["verify", "--from", &to], &[]).await;
        assert!(said.contains("no such backup"), "{said}");

        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        write(&up.token(), "a.md").await;
        done(&["backup", "--quiet", "--data", &from, "--to", &to], &[]).await;
        let said = refused(&["restore", "--from", &to, "--data", &from], &[]).await;
        assert!(said.contains("another cairn process"), "{said}");
        assert!(up.stop().await.success());
        let said = refused(&["restore", "--from", &to, "--data", &from], &[]).await;
        assert!(said.contains("not empty"), "{said}");
        assert_sound(data.path()).await;

        let pieces = files_below(&kept.path().join("pieces"));
        let (piece, _) = pieces.first().unwrap();
        std::fs::write(piece, "damaged").unwrap();
        let said = refused(&["verify", "--from", &to], &[]).await;
        assert!(said.contains("damaged"), "{said}");
        std::fs::remove_file(piece).unwrap();
        let said = refused(&["restore", "--from", &to, "--data", &nothing], &[]).await;
        assert!(said.contains("lacks"), "{said}");
    });
}
