//! Starting `cairn` (contract, "Starting it"), successfully and not.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::token_format;

use crate::support::callers::{Anonymous, Caller as _};
use crate::support::http::{Http, each, items, text};
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::runner::{announce_skip, run_alone};
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

#[test]
fn the_first_start_says_how_to_begin() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let owner = up.owner().clone();
        let base_url = up.base_url().to_owned();
        let printed = up.process_mut().stdout();
        let kept_in = data.path().join("bootstrap.json").display().to_string();
        for part in [&base_url, &kept_in] {
            assert!(printed.contains(part.as_str()), "{part} is not in: {printed}");
        }
        // Secrets are not written to a pipe: it may be a log.
        for secret in [&owner.password, &owner.token] {
            assert!(!up.process().output().contains(secret.as_str()), "a secret is in: {printed}");
        }
        assert!(token_format::is_well_formed(&owner.token));
        let files = up.token().get("/api/v1/files").await.expect(200).json();
        assert!(!items(&files).is_empty(), "the first workspace holds a starter guide");
        let guide = eventually("the starter guide is found", async || {
            let body = json!({"query": "How do I add my first file?"});
            let answer = up.token().post("/api/v1/search_context").json(body).await.expect(200).json();
            items(&answer["results"]).first().cloned()
        })
        .await;
        assert!(each(&files, "id").contains(&text(&guide, "fileId").as_str()));
    });
}

#[test]
fn a_terminal_is_told_the_first_password_and_token() {
    run_alone(async {
        let data = Scratch::new();
        let Some(mut up) = SingleProcess::launch_on_terminal(data.path()) else {
            return announce_skip("`script`, which makes a terminal, is not installed");
        };
        let printed = eventually("it says how to begin", async || {
            Some(up.stdout()).filter(|printed| printed.contains("Ctrl-C stops it."))
        })
        .await;
        let owner = bootstrap(data.path());
        let secrets = [text(&owner, "email"), text(&owner, "password"), text(&owner, "token")];
        for part in secrets.iter().map(String::as_str).chain(["curl", "mcpServers", "/mcp"]) {
            assert!(printed.contains(part), "{part} is not in: {printed}");
        }
        up.ask_to_stop();
        up.exit().await;
    });
}

#[test]
fn what_a_data_folder_holds_is_its_owners() {
    run_alone(async {
        let data = Scratch::new();
        let mut first = SingleProcess::start_on(data.path(), &[]).await;
        assert!(first.stop().await.success());
        make_world_readable(data.path());
        let second = SingleProcess::start_on(data.path(), &[]).await;
        second.token().get("/api/v1/files").await.expect(200);
        assert_eq!(readable_by_others(data.path()), Vec::<String>::new());
    });
}

/// Permissions as an earlier release, or a manual copy, leaves them.
fn make_world_readable(path: &Path) {
    let is_folder = path.is_dir();
    let mode = if is_folder { 0o755 } else { 0o644 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    if is_folder {
        std::fs::read_dir(path).unwrap().for_each(|entry| make_world_readable(&entry.unwrap().path()));
    }
}

fn readable_by_others(path: &Path) -> Vec<String> {
    // A database's temporary files may disappear.
    let Ok(found) = std::fs::symlink_metadata(path) else { return Vec::new() };
    let mut open = Vec::new();
    if found.permissions().mode() & 0o077 != 0 {
        open.push(format!("{} {:o}", path.display(), found.permissions().mode()));
    }
    if found.is_dir() {
        open.extend(
            std::fs::read_dir(path).unwrap().flat_map(|entry| readable_by_others(&entry.unwrap().path())),
        );
    }
    open
}

#[test]
fn a_mesh_beyond_this_machine_wants_tls() {
    run_alone(async {
        let secret = ("CAIRN_MESH_SECRET", "a secret of the mesh, long enough");
        let data = Scratch::new();
        let folder = data.path().display().to_string();
        let anywhere = ["--listen", "0.0.0.0:0"];
        let elsewhere = ["--auth-url", "http://10.255.255.1:8711"];
        let start = |service: &str, options: &[&str], environment: &[(&str, &str)]| {
            let common = ["serve", service, "--data", &folder, "--admin-listen", "127.0.0.1:0"];
            let arguments: Vec<String> = common.iter().chain(options).map(ToString::to_string).collect();
            Process::start(&format!("cairn serve {service}"), &arguments, environment)
        };
        for (service, options) in [("content", anywhere), ("content", elsewhere), ("gateway", elsewhere)] {
            let output = failure_output(start(service, &options, &[secret])).await;
            for part in ["TLS", "--insecure-mesh", "--tls-cert", "https://"] {
                assert!(output.contains(part), "{part} is not in: {output}");
            }
        }
        let allowed = [secret, ("CAIRN_INSECURE_MESH", "true")];
        let mut content = start("content", &anywhere, &allowed);
        eventually("it listens", async || content.stdout().contains("listening on").then_some(())).await;
        content.ask_to_stop();
        assert!(content.exit().await.success());
    });
}

#[test]
fn the_admin_address_is_this_machine_only() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::launch_without_admin(data.path(), "127.0.0.2:0");
        let admin =
            eventually("it says where its admin address is", async || up.printed_address("dmin ")).await;
        assert!(admin.starts_with("http://127.0.0.1:"), "{admin}");
        up.ask_to_stop();
        up.exit().await;
    });
}

#[test]
fn a_first_start_that_cannot_keep_its_secrets_makes_no_account() {
    run_alone(async {
        let data = Scratch::new();
        let obstacle = data.path().join("bootstrap.json.new");
        std::fs::create_dir(&obstacle).unwrap();
        let mut failed = SingleProcess::launch(data.path(), &[]);
        assert!(!failed.exit().await.success());
        assert!(
            failed.output().contains("the first account's secrets cannot be kept"),
            "{}",
            failed.output()
        );

        std::fs::remove_dir(&obstacle).unwrap();
        let up = SingleProcess::start_on(data.path(), &[]).await;
        let files = up.token().get("/api/v1/files").await.expect(200).json();
        assert_eq!(items(&files).len(), 1, "the next start makes the account and its guide");
    });
}

#[test]
fn the_environment_fixes_the_first_account() {
    run_alone(async {
        let data = Scratch::new();
        let token = token_format::generate(&OsEntropy);
        let environment = [
            ("CAIRN_BOOTSTRAP_EMAIL", "someone@example.org"),
            ("CAIRN_BOOTSTRAP_PASSWORD", "a password of several words"),
            ("CAIRN_BOOTSTRAP_TOKEN", token.as_str()),
        ];
        let up = SingleProcess::start_on(data.path(), &environment).await;
        let owner = up.owner();
        assert_eq!((owner.email.as_str(), owner.token.as_str()), ("someone@example.org", token.as_str()));
        up.token().get("/api/v1/files").await.expect(200);
        let anonymous = Anonymous { http: Http::new(up.base_url()) };
        let form = json!({"email": "someone@example.org", "password": "a password of several words"});
        let signed_in = anonymous.post("/api/session").json(form).await;
        assert_eq!(signed_in.status / 100, 2, "{}", signed_in.text());
    });
}

#[test]
fn a_restart_keeps_everything_but_the_address() {
    run_alone(async {
        let data = Scratch::new();
        let mut first = SingleProcess::start_on(data.path(), &[]).await;
        let body = json!({"name": "kept.md", "content": "kept", "fileType": "markdown"});
        let made = first.token().post("/api/v1/files").json(body).await.expect(201).json();
        let before = bootstrap(data.path());
        assert!(first.stop().await.success(), "SIGTERM ends it well");
        assert!(!first.process_mut().stderr().contains("panicked"));

        let second = SingleProcess::start_on(data.path(), &[]).await;
        let after = bootstrap(data.path());
        for kept in ["email", "password", "workspaceId", "token"] {
            assert_eq!(before[kept], after[kept], "{kept}");
        }
        assert_eq!(after["baseUrl"], json!(second.base_url()));
        let path = format!("/api/v1/files/{}", text(&made, "id"));
        assert_eq!(second.token().get(&path).await.expect(200).json()["content"], "kept");
        let listed = second.token().get("/api/v1/files").await.expect(200).json();
        let mut names = each(&listed, "name");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), items(&listed).len(), "the starter guide is written once: {listed}");
    });
}

#[test]
fn secrets_on_disk_are_for_their_owner() {
    run_alone(async {
        let data = Scratch::new();
        for _ in 0..2 {
            let mut up = SingleProcess::start_on(data.path(), &[]).await;
            let mode = std::fs::metadata(data.path().join("bootstrap.json")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            assert!(up.stop().await.success());
        }
    });
}

#[test]
fn a_port_in_use_is_named() {
    run_alone(async {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let data = Scratch::new();
        let output = failure_output(SingleProcess::launch_at(data.path(), &address)).await;
        assert!(output.contains(&address) && output.contains("port"), "{output}");
        SingleProcess::start_on(data.path(), &[]).await.token().get("/api/v1/files").await.expect(200);
    });
}

#[test]
fn a_data_folder_has_one_process() {
    run_alone(async {
        let data = Scratch::new();
        let first = SingleProcess::start_on(data.path(), &[]).await;
        let output = failure_output(SingleProcess::launch(data.path(), &[])).await;
        assert!(output.contains(&data.path().display().to_string()), "{output}");
        let body = json!({"name": "a", "content": "x", "fileType": "text"});
        first.token().post("/api/v1/files").json(body).await.expect(201);
        assert_eq!(
            bootstrap(data.path())["baseUrl"],
            json!(first.base_url()),
            "the second start changed nothing"
        );
    });
}

#[test]
fn a_data_folder_that_is_none_is_named() {
    run_alone(async {
        let folder = Scratch::new();
        let file = folder.path().join("a-file");
        std::fs::write(&file, b"mine").unwrap();
        for path in [file.clone(), file.join("below")] {
            let output = failure_output(SingleProcess::launch(&path, &[])).await;
            assert!(output.contains(&path.display().to_string()), "{output}");
        }
        assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    });
}

#[test]
fn a_read_only_data_folder_is_named() {
    let folder = Scratch::new();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::write(folder.path().join("probe"), b"x").is_ok() {
        return announce_skip("this user may write into a read-only folder (root does)");
    }
    run_alone(async {
        let output = failure_output(SingleProcess::launch(folder.path(), &[])).await;
        assert!(output.contains(&folder.path().display().to_string()), "{output}");
    });
}

#[test]
fn a_bootstrap_token_that_is_none_is_refused() {
    run_alone(async {
        let data = Scratch::new();
        let good = token_format::generate(&OsEntropy);
        let typo: String = good.chars().rev().collect();
        for odd in ["nonsense", typo.as_str(), "cairn_"] {
            let output =
                failure_output(SingleProcess::launch(data.path(), &[("CAIRN_BOOTSTRAP_TOKEN", odd)])).await;
            assert!(output.to_lowercase().contains("token"), "{output}");
            assert!(odd.len() < 10 || !output.contains(odd), "it may be a real secret with a typo: {output}");
        }
        let up = SingleProcess::start_on(data.path(), &[("CAIRN_BOOTSTRAP_TOKEN", &good)]).await;
        assert_eq!(up.owner().token, good, "the refused starts left no account behind");
        up.token().get("/api/v1/files").await.expect(200);
    });
}

#[test]
fn a_damaged_database_is_named() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        assert!(up.stop().await.success());
        let database = data.path().join("content.db");
        assert!(database.is_file(), "there is a database to damage");
        for beside in ["content.db-wal", "content.db-shm"] {
            // SQLite would recover the damaged pages from its WAL.
            let _ = std::fs::remove_file(data.path().join(beside));
        }
        std::fs::write(&database, b"this is no database, and nobody should write over it").unwrap();
        let output = failure_output(SingleProcess::launch(data.path(), &[])).await;
        assert!(output.contains("content"), "{output}");
        assert!(std::fs::read(&database).unwrap().starts_with(b"this is no database"));
    });
}

#[test]
fn a_service_wants_the_mesh_secret() {
    run_alone(async {
        let data = Scratch::new();
        let path = data.path().display().to_string();
        // Every service notices a missing secret; only the service that verifies it notices a weak one.
        for (service, environment) in [
            ("content", &[][..]),
            ("auth", &[]),
            ("auth", &[("CAIRN_MESH_SECRET", "")]),
            ("auth", &[("CAIRN_MESH_SECRET", "short")]),
        ] {
            let any = "127.0.0.1:0";
            let arguments = ["serve", service, "--listen", any, "--admin-listen", any, "--data", &path];
            let process =
                Process::start(&format!("cairn serve {service}"), &arguments.map(str::to_owned), environment);
            let output = failure_output(process).await;
            assert!(
                ["mesh secret", "mesh-secret", "MESH_SECRET"].iter().any(|name| output.contains(name)),
                "{output}"
            );
        }
    });
}

/// The output of a start that must fail: an error for a person, and no panic.
async fn failure_output(mut process: Process) -> String {
    let status = process.exit().await;
    let output = process.stderr();
    assert!(!status.success(), "it started: {output}");
    assert!(status.code().is_some(), "it was ended by a signal: {status}: {output}");
    assert!(!output.contains("panicked"), "{output}");
    output
}

fn bootstrap(data: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(data.join("bootstrap.json")).unwrap()).unwrap()
}

#[test]
fn a_service_of_the_mesh_keeps_its_data_folder_to_itself() {
    run_alone(async {
        let data = Scratch::new();
        let folder = data.path().display().to_string();
        let arguments = ["serve", "content", "--data", &folder, "--listen", "127.0.0.1:0"].map(str::to_owned);
        let environment = [("CAIRN_MESH_SECRET", "a secret of the mesh, long enough")];
        let mut first = Process::start("cairn serve content", &arguments, &environment);
        eventually("the first one listens", async || first.stdout().contains("listening on").then_some(()))
            .await;
        let mut second = Process::start("a second cairn serve content", &arguments, &environment);
        assert!(!second.exit().await.success());
        assert!(
            second.output().contains("another cairn process uses the data folder"),
            "{}",
            second.output()
        );
        first.ask_to_stop();
        assert!(first.exit().await.success());
    });
}
