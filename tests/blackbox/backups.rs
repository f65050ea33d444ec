//! Backups of `cairn up`: made under load, restored, restored to a point in time, encrypted, in a bucket; interrupted
//! by `kill -9`.

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
use crate::support::commands::{run_err, run_ok, start};
use crate::support::http::{id, items, text};
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::{Scratch, files_below};
use crate::support::single::SingleProcess;

const WRITERS: usize = 3;
const KEY: &str = "CAIRN_BACKUP_KEY";

/// The key of stored secrets, which only encrypted backups contain.
pub(crate) fn secret_key(data: &Path) -> String {
    data.join("secret.key").display().to_string()
}

/// The output of `cairn backup --json`.
async fn backup(arguments: &[&str], environment: &[(&str, &str)]) -> Value {
    let all = [&["backup", "--json"], arguments].concat();
    serde_json::from_str(&run_ok(&all, environment).await).unwrap()
}

pub(crate) async fn write(token: &ApiToken, name: &str) -> String {
    let body = json!({"name": name, "content": format!("The okapi wrote {name}.\n"), "fileType": "markdown"});
    id(&token.post("/api/v1/files").json(body).await.expect(201).json())
}

/// At least one item of each kind that a backup must restore.
async fn write_everything(up: &SingleProcess, bytes: &[u8]) {
    let token = up.token();
    let (channel, identity) = entry(up).await;
    send(channel, &identity, messages("plan.png", "image/png", bytes)).await.unwrap();
    let file = write(&token, "before.md").await;
    let body =
        json!({"name": "Release", "useWhen": "releasing", "members": [{"kind": "file", "fileId": file}]});
    token.post("/api/v1/memories").json(body).await.expect(201);
    let database =
        id(&token.post("/api/v1/databases").json(json!({"name": "Tasks"})).await.expect(201).json());
    let path = format!("/api/v1/databases/{database}");
    let field = json!({"name": "Points", "type": "number"});
    token.post(&format!("{path}/fields")).json(field).await.expect(201);
    let read = token.get(&path).await.expect(200).json();
    let points =
        items(&read["properties"]).iter().find(|field| text(field, "name") == "Points").map(id).unwrap();
    let record = json!({"values": {points: 7}});
    token.post(&format!("{path}/records")).json(record).await.expect(201);
}

/// Everything that REST returns of a workspace, including the bytes of files and assets.
async fn everything(up: &SingleProcess, token: &ApiToken) -> Vec<(String, String)> {
    // The base URL appears in the responses, and is not data.
    let told = |text: String| text.replace(up.base_url(), "");
    let mut all = Vec::new();
    for list in ["files", "folders", "memories", "databases", "assets"] {
        let path = format!("/api/v1/{list}");
        let read = token.get(&path).await.expect(200).json();
        let ids: Vec<String> = items(&read).iter().map(id).collect();
        all.push((path.clone(), told(read.to_string())));
        for id in ids {
            let further = match list {
                "files" | "memories" => format!("{path}/{id}"),
                "databases" => format!("{path}/{id}/records"),
                "assets" => format!("{path}/{id}/content"),
                _ => continue,
            };
            let reply = token.get(&further).await.expect(200);
            let read = match list {
                "assets" => blake3::hash(&reply.body).to_hex().to_string(),
                _ => told(reply.text()),
            };
            all.push((further, read));
        }
    }
    all
}

async fn assert_found(token: &ApiToken, query: &str, file: &str) {
    eventually("the index is built of what was put back", async || {
        let query = json!({"query": query, "strategy": "keyword"});
        let answer = token.post("/api/v1/search_context").json(query).await;
        let is_found = answer.status == 200
            && items(&answer.json()["results"]).iter().any(|found| found["fileId"] == *file);
        is_found.then_some(())
    })
    .await;
}

/// Writes files, and creates and deletes assets, until the flag stops it.
async fn write_continuously(up: &SingleProcess, writer: usize, stop: Arc<AtomicBool>) {
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

/// Copies into a restored folder what no backup contains: the key of stored secrets, and the tests' credentials.
pub(crate) fn copy_secrets(from: &Path, to: &Path) {
    for name in ["secret.key", "bootstrap.json"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// The same token, at another process on the same data.
pub(crate) fn at(up: &SingleProcess, owner: &SingleProcess) -> ApiToken {
    ApiToken { secret: owner.owner().token.clone(), ..up.token() }
}

#[test]
fn a_backup_that_is_made_under_writes_is_put_back_whole() {
    run_alone(async {
        let (data, kept, other) = (Scratch::new(), Scratch::new(), Scratch::new());
        let (from, to) = (data.path().display().to_string(), kept.path().join("b").display().to_string());
        let secret_key = secret_key(data.path());
        let open = [("CAIRN_SECRET_KEY_FILE", secret_key.as_str())];
        let up = SingleProcess::start_on(data.path(), &[]).await;
        write_everything(&up, &noise(3 * 1024 * 1024 + 17)).await;

        let stop = Arc::new(AtomicBool::new(false));
        let writing = join_all((0..WRITERS).map(|writer| write_continuously(&up, writer, Arc::clone(&stop))));
        let backing_up = async {
            let mut made = Vec::new();
            for number in 0..3 {
                let acknowledged = write(&up.token(), &format!("acknowledged-{number}.md")).await;
                made.push((backup(&["--data", &from, "--to", &to], &[]).await, acknowledged));
                run_ok(&["verify", "--quiet", "--from", &to], &open).await;
            }
            stop.store(true, Ordering::Release);
            made
        };
        let (_, made) = tokio::join!(writing, backing_up);
        assert!(made.iter().all(|(output, _)| output["isEncrypted"] == false), "{made:?}");
        let before = everything(&up, &up.token()).await;
        let last = backup(&["--data", &from, "--to", &to], &[]).await;
        let again = backup(&["--data", &from, "--to", &to], &[]).await;
        let new = |output: &Value| output["newBytes"].as_u64().unwrap();
        assert!(
            new(&made[0].0) > 1024 && new(&again) < new(&made[0].0) / 2,
            "only what is new: {made:?} {again}"
        );

        // The oldest is unchanged, and found by its name and by its time.
        let names = run_ok(&["restore", "--from", &to, "--list"], &[]).await;
        let names: Vec<_> = names.lines().collect();
        assert_eq!((names.len(), names[0]), (5, made[0].0["name"].as_str().unwrap()));
        run_ok(&["verify", "--quiet", "--from", &to, "--snapshot", names[0]], &open).await;
        let first = other.path().join("first");
        let target = first.display().to_string();
        let moment = made[0].0["createdAt"].as_str().unwrap();
        run_ok(&["restore", "--from", &to, "--at", moment, "--data", &target], &[]).await;
        copy_secrets(data.path(), &first);
        let mut earlier = SingleProcess::start_on(&first, &[]).await;
        let token = at(&earlier, &up);
        token.get(&format!("/api/v1/files/{}", made[0].1)).await.expect(200);
        token.get(&format!("/api/v1/files/{}", made[1].1)).await.expect_error(404, "NOT_FOUND");
        assert!(earlier.stop().await.success());
        let too_early = ["restore", "--from", &to, "--at", "2020-01-01T00:00:00Z", "--data", &target];
        let output = run_err(&too_early, &[]).await;
        assert!(output.contains("no such backup"), "{output}");

        let restored = other.path().join("data");
        let target = restored.display().to_string();
        let told = run_ok(&["restore", "--from", &to, "--data", &target], &[]).await;
        assert!(told.contains("secret.key") && last["isEncrypted"] == false, "{told}");
        copy_secrets(data.path(), &restored);
        assert_sound(&restored).await;
        let again = SingleProcess::start_on(&restored, &[]).await;
        let token = at(&again, &up);
        assert_eq!(everything(&again, &token).await, before);
        assert_found(&token, "acknowledged-2", &made[2].1).await;
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
        let (key, wrong) = ("ab".repeat(32), "cd".repeat(32));
        let key = [(KEY, key.as_str())];
        run_ok(&["backup", "--data", &from, "--to", &to, "--keep", "1"], &key).await;
        run_ok(&["backup", "--data", &from, "--to", &to, "--keep", "1"], &key).await;
        assert_eq!(run_ok(&["restore", "--from", &to, "--list"], &key).await.lines().count(), 1);
        for (name, bytes) in files_below(kept.path()) {
            let shown = bytes.windows(5).any(|window| window == b"zebra" || window == b"SQLit");
            assert!(!shown, "{name} can be read");
        }
        let target = other.path().join("data").display().to_string();
        let output = run_err(&["restore", "--from", &to, "--data", &target], &[]).await;
        assert!(output.contains(KEY), "{output}");
        let output = run_err(&["verify", "--from", &to], &[(KEY, &wrong)]).await;
        assert!(
            output.contains("does not open with this CAIRN_BACKUP_KEY") && !output.contains(&wrong),
            "{output}"
        );
        assert!(!Path::new(&target).exists(), "nothing was touched");
        run_ok(&["verify", "--from", &to], &key).await;
        run_ok(&["restore", "--from", &to, "--data", &target], &key).await;
        let brought = std::fs::read(Path::new(&target).join("secret.key")).unwrap();
        assert_eq!(brought, std::fs::read(data.path().join("secret.key")).unwrap());
        copy_secrets(data.path(), Path::new(&target));
        let again = SingleProcess::start_on(Path::new(&target), &[]).await;
        let files = at(&again, &up).get("/api/v1/files").await.expect(200).text();
        assert!(files.contains("zebra-unmistakable.md"), "{files}");

        // Without the key anybody could have put one there, so it is not accepted as encrypted with the key.
        run_ok(&["backup", "--data", &from, "--to", &to], &[]).await;
        let output = run_err(&["verify", "--from", &to], &key).await;
        assert!(output.contains("not encrypted"), "{output}");
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
        run_ok(&["backup", "--data", &from, "--to", &to], &[]).await;

        let mut killed = 0;
        for round in 0..12 {
            write(&up.token(), &format!("round-{round}.md")).await;
            let before = run_ok(&["restore", "--from", &to, "--list"], &[]).await;
            let mut process = start(&["backup", "--data", &from, "--to", &to, "--keep", "2", "--full"], &[]);
            sleep(Duration::from_millis(30 * round)).await;
            let is_over = process.ended().is_some();
            process.kill();
            process.exit().await;
            let after = run_ok(&["restore", "--from", &to, "--list"], &[]).await;
            killed += usize::from(!is_over && after == before);
            run_ok(&["verify", "--quiet", "--from", &to], &open).await;
        }
        assert!(killed > 0, "none was cut");
        run_ok(&["backup", "--data", &from, "--to", &to, "--keep", "1"], &[]).await;
        run_ok(&["verify", "--quiet", "--from", &to], &open).await;
        let cut: Vec<_> =
            files_below(kept.path()).into_iter().filter(|(name, _)| name.contains('#')).collect();
        assert!(cut.is_empty(), "nothing is left of those that were cut");

        let mut restored = None;
        for round in 0..20 {
            let folder = other.path().join(format!("data-{round}"));
            let target = folder.display().to_string();
            let mut process = start(&["restore", "--from", &to, "--data", &target], &[]);
            let mark = folder.join("restore.unfinished");
            while !mark.exists() && process.ended().is_none() {
                sleep(Duration::from_millis(1)).await;
            }
            sleep(Duration::from_millis(20)).await;
            process.kill();
            process.exit().await;
            if mark.exists() {
                restored = Some(folder);
                break;
            }
        }
        let restored = restored.unwrap();
        let target = restored.display().to_string();
        let mut too_early = SingleProcess::launch(&restored, &[]);
        assert!(!too_early.exit().await.success());
        assert!(too_early.output().contains("cairn restore"), "{}", too_early.output());
        run_ok(&["restore", "--from", &to, "--data", &target], &[]).await;
        copy_secrets(data.path(), &restored);
        assert_sound(&restored).await;
        up.kill();
        let again = SingleProcess::start_on(&restored, &[]).await;
        let files = at(&again, &up).get("/api/v1/files").await.expect(200).text();
        assert!(files.contains("one.md") && files.contains("round-11.md"), "{files}");
    });
}

#[test]
fn what_cannot_be_done_is_told() {
    run_alone(async {
        let (data, kept, other) = (Scratch::new(), Scratch::new(), Scratch::new());
        let (from, to) = (data.path().display().to_string(), kept.path().display().to_string());
        let nothing = other.path().display().to_string();
        let output = run_err(&["backup", "--data", &nothing, "--to", &to], &[]).await;
        assert!(output.contains("--data"), "{output}");
        let output = run_err(&["restore", "--from", "/nowhere/at/all", "--data", &nothing], &[]).await;
        assert!(output.contains("--from"), "{output}");
        let output = run_err(&["verify", "--from", &to], &[]).await;
        assert!(output.contains("no such backup"), "{output}");
        let output = run_err(&["verify"], &[]).await;
        assert!(output.contains("--from"), "{output}");

        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        write(&up.token(), "a.md").await;
        run_ok(&["backup", "--quiet", "--data", &from, "--to", &to], &[]).await;
        let output = run_err(&["restore", "--from", &to, "--at", "yesterday", "--data", &nothing], &[]).await;
        assert!(output.contains("--at takes"), "{output}");
        let output = run_err(&["restore", "--from", &to, "--data", &from, "--replace"], &[]).await;
        assert!(output.contains("another cairn process"), "{output}");
        write(&up.token(), "later.md").await;
        assert!(up.stop().await.success());
        let output = run_err(&["restore", "--from", &to, "--data", &from], &[]).await;
        assert!(output.contains("not empty"), "{output}");
        assert_sound(data.path()).await;

        let pieces = files_below(&kept.path().join("pieces"));
        let (piece, bytes) = pieces.first().unwrap();
        let name = Path::new(piece).file_name().unwrap().to_str().unwrap();
        std::fs::write(piece, "damaged").unwrap();
        let output = run_err(&["verify", "--from", &to], &[]).await;
        assert!(output.contains("damaged") && output.contains(name), "{output}");
        std::fs::remove_file(piece).unwrap();
        let output = run_err(&["restore", "--from", &to, "--data", &nothing], &[]).await;
        assert!(output.contains("lacks") && output.contains(name), "{output}");
        let mut too_early = SingleProcess::launch(other.path(), &[]);
        assert!(!too_early.exit().await.success(), "what is not whole is not started on");

        // A full backup does not rely on existing objects.
        let first = run_ok(&["restore", "--from", &to, "--list"], &[]).await;
        run_ok(&["backup", "--quiet", "--full", "--data", &from, "--to", &to], &[]).await;
        let secret_key_file = secret_key(data.path());
        let open = [("CAIRN_SECRET_KEY_FILE", secret_key_file.as_str())];
        run_ok(&["verify", "--quiet", "--from", &to], &open).await;
        std::fs::write(piece, bytes).unwrap();
        let aside = kept.path().join("aside");
        std::fs::create_dir(&aside).unwrap();
        copy_secrets(data.path(), &aside);
        run_ok(&["restore", "--from", &to, "--snapshot", first.trim(), "--data", &from, "--replace"], &[])
            .await;
        copy_secrets(&aside, data.path());
        let again = SingleProcess::start_on(data.path(), &[]).await;
        let files = at(&again, &up).get("/api/v1/files").await.expect(200).text();
        assert!(files.contains("a.md") && !files.contains("later.md"), "{files}");
    });
}

#[cfg(feature = "s3")]
#[test]
fn backups_and_assets_may_be_in_a_bucket() {
    use crate::support::bucket::BucketServer;

    run_alone(async {
        let (data, other) = (Scratch::new(), Scratch::new());
        let from = data.path().display().to_string();
        let server = BucketServer::start().await;
        let (live, kept, back) = (server.place("live"), server.place("kept"), server.place("back"));
        let key = "ab".repeat(32);
        let [id, secret] = BucketServer::CREDENTIALS;
        let environment = [id, secret, (KEY, key.as_str()), ("CAIRN_BACKUP", kept.as_str())];
        let up = SingleProcess::start_on(data.path(), &[id, secret, ("CAIRN_ASSETS", &live)]).await;
        write_everything(&up, &noise(700_000)).await;
        let before = everything(&up, &up.token()).await;
        let first = backup(&["--data", &from, "--assets", &live], &environment).await;
        let second = backup(&["--data", &from, "--assets", &live, "--keep", "1"], &environment).await;
        let new = |output: &Value| output["newBytes"].as_u64().unwrap();
        assert!(new(&second) < new(&first) / 2 && second["removed"] == 1, "{first} {second}");
        assert_eq!(server.names("kept/snapshots/").len(), 1);
        let verified = run_ok(&["verify", "--json"], &environment).await;
        let verified: Value = serde_json::from_str(&verified).unwrap();
        assert_eq!((&verified["isSound"], &verified["backup"]["name"]), (&json!(true), &second["name"]));

        let restored = other.path().join("data");
        let target = restored.display().to_string();
        let told = run_ok(&["restore", "--json", "--data", &target, "--assets", &back], &environment).await;
        assert!(told.contains("\"needsSecretKey\": false"), "{told}");
        assert_eq!(server.names("back/").len(), server.names("live/").len());
        assert!(!restored.join("assets").exists());
        copy_secrets(data.path(), &restored);
        let again = SingleProcess::start_on(&restored, &[id, secret, ("CAIRN_ASSETS", &back)]).await;
        assert_eq!(everything(&again, &at(&again, &up)).await, before);
    });
}
