//! Older and newer versions on one storage: upgrading, and downgrading.

use cairn_chassis::sql::{Config, Db, Migration};

use crate::support::callers::ApiToken;
use crate::support::http::Http;
use crate::support::mesh::Mesh;
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::runner::{announce_skip, run_alone};
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

const FILES: &str = "/api/v1/files";
const EXPANDS: Migration = Migration {
    name: "9998_of_tomorrow",
    sqlite: "-- expand\nALTER TABLE files ADD COLUMN of_tomorrow TEXT",
    postgres: "-- expand\nALTER TABLE files ADD COLUMN of_tomorrow TEXT",
};
const CONTRACTS: Migration = Migration {
    name: "9999_after_tomorrow",
    sqlite: "-- contract\nALTER TABLE files DROP COLUMN of_tomorrow",
    postgres: "-- contract\nALTER TABLE files DROP COLUMN of_tomorrow",
};

/// Applies a newer version's migrations to content's storage.
async fn upgrade(storage: &Config, further: &[Migration]) {
    let all = [cairn_content::TABLES.migrations, further].concat();
    Db::open(storage, cairn_content::TABLES.service, &all).await.unwrap().close().await;
}

/// The output of `cairn upgrade check`, and whether it succeeded.
async fn check(arguments: &[&str]) -> (bool, String, String) {
    let all: Vec<String> = ["upgrade", "check"].iter().chain(arguments).map(ToString::to_string).collect();
    let mut process = Process::start("cairn upgrade check", &all, &[]);
    let status = process.exit().await;
    (status.success(), process.stdout(), process.stderr())
}

async fn write(token: &impl Caller, name: &str) {
    let body = json!({"name": name, "content": name, "fileType": "markdown"});
    token.post(FILES).json(body).await.expect(201);
}

#[test]
fn one_process_goes_on_after_what_expands_and_refuses_what_contracts() {
    run_alone(async {
        let data = Scratch::new();
        let folder = data.path().display().to_string();
        let storage = Config::sqlite(data.path().join("content.db"));
        let mut first = SingleProcess::start_on(data.path(), &[]).await;
        upgrade(&storage, &[EXPANDS]).await;
        write(&first.token(), "meanwhile.md").await;
        assert!(first.stop().await.success());

        let mut back = SingleProcess::start_on(data.path(), &[]).await;
        write(&back.token(), "way-back.md").await;
        let files = back.token().get(FILES).await.expect(200).text();
        assert!(files.contains("meanwhile.md") && files.contains("way-back.md"), "{files}");
        assert!(back.process_mut().stderr().contains(EXPANDS.name), "it says that a newer version was here");
        let (succeeded, output, _) = check(&["--data", &folder]).await;
        assert!(succeeded && output.contains(EXPANDS.name) && output.contains("goes on without"), "{output}");
        assert!(back.stop().await.success());

        upgrade(&storage, &[EXPANDS, CONTRACTS]).await;
        let mut refused = SingleProcess::launch(data.path(), &[]);
        assert!(!refused.exit().await.success());
        let output = refused.output();
        assert!(
            output.contains(CONTRACTS.name) && output.contains("newer") && output.contains("content"),
            "{output}"
        );
        let (succeeded, output, _) = check(&["--json", "--data", &folder]).await;
        let report: Value = serde_json::from_str(&output).unwrap();
        assert!(!succeeded && report["canStart"] == false, "{output}");
        let services = report["services"].as_array().unwrap();
        let content = services.iter().find(|service| service["service"] == "content").unwrap();
        assert_eq!(content["oldestThatMayWrite"], CONTRACTS.name, "{output}");
        assert_eq!(services.len(), 5, "{output}");
    });
}

#[test]
fn a_mesh_is_restarted_while_a_newer_version_is_on_its_database() {
    run_alone(async {
        let mut mesh = match Mesh::start().await {
            Ok(mesh) => mesh,
            Err(why) => return announce_skip(&why),
        };
        let url = mesh.database("content").to_owned();
        let storage = Config::from_url(&url).unwrap();
        let token = ApiToken { http: Http::new(&mesh.base_url()), secret: mesh.owner().token.clone() };
        eventually("the mesh answers", async || (token.get("/readyz").await.status == 200).then_some(()))
            .await;
        write(&token, "before.md").await;
        // The first process of the new version is up; one of the old version restarts, or is added.
        upgrade(&storage, &[EXPANDS]).await;
        write(&token, "beside.md").await;
        mesh.ask_to_stop("content");
        mesh.exit("content").await;
        mesh.restart("content").await;
        eventually("it answers again", async || (token.get(FILES).await.status == 200).then_some(())).await;
        write(&token, "after.md").await;
        let files = token.get(FILES).await.expect(200).text();
        for name in ["before.md", "beside.md", "after.md"] {
            assert!(files.contains(name), "{name}: {files}");
        }
        let (succeeded, output, _) = check(&["--database", &url]).await;
        assert!(succeeded && output.contains(EXPANDS.name), "{output}");
    });
}
