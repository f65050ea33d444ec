//! A source whose provider rate-limits, refuses, and echoes credentials (outside.md: "Rate limits", "Credentials").

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::support::github::{GitHub, TOKEN};
use crate::support::http::{each, items, text};
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::{Scratch, files_below};
use crate::support::scripted;
use crate::support::single::SingleProcess;
use crate::support::sources::{connect, counters};

scenarios![
    issues_are_found_with_their_own_addresses,
    a_limit_is_waited_for_as_the_same_run,
    a_run_that_waits_can_be_cancelled,
    a_check_answers_whatever_the_provider_does,
    wrong_credentials_are_asked_for,
];

const WRONG: &str = "github_pat_zqwrongtokenx9876";

async fn issues_are_found_with_their_own_addresses(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let github = GitHub::start();
    github.open_issue(1, "Basket forgets", "The basket forgets a marmot.");
    github.open_issue(2, "Colours", "All is grey.");
    let check = format!("/api/workspaces/{}/sources/check", workspace.id);
    let checked = workspace.session.post(&check).json(github.draft("Shop", TOKEN)).await.expect(200).json();
    assert_eq!((&checked["ok"], &checked["account"]), (&json!(true), &json!("reader")), "{checked}");
    let refused = workspace.session.post(&check).json(github.draft("Shop", WRONG)).await.expect(200);
    assert!(refused.json()["ok"] == false && !refused.text().contains(WRONG), "{}", refused.text());

    let before = github.requests();
    let source = connect(&workspace, github.draft("Shop", TOKEN)).await;
    let run = source.run().await;
    assert_eq!((text(&run, "status"), counters(&run)), ("completed".into(), [2, 2, 0, 2, 0, 0, 0]), "{run}");
    assert_eq!(run["counters"]["operations"].as_u64(), Some(github.requests() - before), "{run}");
    let shown = source.get().await;
    assert_eq!((&shown["account"], &shown["credentialHint"]), (&json!("reader"), &json!("1234")), "{shown}");
    let results = eventually("the issue is found", async || {
        let body = json!({"query": "marmot basket", "sourceIds": [source.id], "mode": "fast"});
        let answer = workspace.token.post("/api/v1/search_context").json(body).await.expect(200).json();
        items(&answer["results"]).first().cloned()
    });
    let citation = &results.await["citation"];
    assert_eq!(text(citation, "url"), "https://github.example/acme/shop/issues/1", "{citation}");
    github.open_issue(3, "Later", "Something new.");
    let run = source.sync().await;
    assert_eq!((text(&run, "kind"), counters(&run)[3]), ("changes".into(), 1), "{run}");
    assert!(!format!("{shown}{run}").contains(TOKEN));
}

async fn a_limit_is_waited_for_as_the_same_run(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let github = GitHub::start();
    github.open_issue(1, "One", "One.");
    github.rate_limit_next(8);
    let source = connect(&workspace, github.draft("Limited", TOKEN)).await;
    let waiting = source.wait_for_status("waiting").await;
    let run = &waiting["run"];
    assert_eq!((text(run, "status"), run["waitingUntil"].is_string()), ("waiting".into(), true), "{waiting}");
    let asked = github.requests();
    // No second run starts meanwhile.
    source.session.post(&source.path("/sync")).json(json!({})).await.expect_error(409, "RUN_BUSY");
    assert_eq!(github.requests(), asked);
    let over = source.run().await;
    assert_eq!((&over["id"], text(&over, "status")), (&run["id"], "completed".into()), "{over}");
    source.wait_for_status("ready").await;
}

async fn a_run_that_waits_can_be_cancelled(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let github = GitHub::start();
    github.open_issue(1, "One", "One.");
    github.rate_limit_next(600);
    let source = connect(&workspace, github.draft("Limited", TOKEN)).await;
    let waiting = source.wait_for_status("waiting").await;
    let (run, asked) = (text(&waiting["run"], "id"), github.requests());
    let cancel = source.path(&format!("/runs/{run}/cancel"));
    source.session.post(&cancel).await.expect(202);
    assert_eq!(text(&source.finished(&run).await, "status"), "cancelled");
    source.session.post(&cancel).await.expect(409);
    assert_eq!(github.requests(), asked, "nobody asked meanwhile");
    let next = source.session.post(&source.path("/sync")).json(json!({})).await.expect(202).json();
    assert_ne!(text(&next, "id"), run);
}

async fn a_check_answers_whatever_the_provider_does(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let check = format!("/api/workspaces/{}/sources/check", workspace.id);
    let mut draft = GitHub::start().draft("Silent", TOKEN);
    draft["settings"]["baseUrl"] = json!(format!("http://{}", scripted::silent()));
    let checked = workspace.session.post(&check).json(&draft).await.expect(200);
    let (message, answer) = (checked.text(), checked.json());
    assert!(
        answer["ok"] == false && !text(&answer, "message").is_empty() && !message.contains(TOKEN),
        "{message}"
    );
    draft["provider"] = "gopher".into();
    let refused = workspace.session.post(&check).json(draft).await.expect_error(400, "VALIDATION_ERROR");
    assert!(each(&refused["errors"], "path").contains(&"provider"), "{refused}");
    let list = format!("/api/workspaces/{}/sources", workspace.id);
    assert_eq!(workspace.session.get(&list).await.expect(200).json(), json!([]), "nothing is stored");
}

async fn wrong_credentials_are_asked_for(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let github = GitHub::start();
    github.open_issue(1, "One", "One.");
    let source = connect(&workspace, github.draft("Locked", WRONG)).await;
    let run = source.run().await;
    assert_eq!(text(&run, "status"), "failed", "{run}");
    let shown = source.wait_for_status("needs_credentials").await;
    assert!(github.requests() <= 6 && !text(&shown, "error").is_empty(), "{shown}");
    let listed = workspace.token.get("/api/v1/sources").await.expect(200);
    for message in [shown.to_string(), run.to_string(), listed.text()] {
        assert!(!message.contains("zqwrongtokenx"), "{message}");
    }
    let changed = source.change(json!({"credentials": {"token": TOKEN}})).await.expect(200);
    assert!(!changed.text().contains(TOKEN));
    assert_eq!(text(&source.run().await, "status"), "completed");
    source.wait_for_status("ready").await;
}

/// Credentials are not in the log, nor in the data folder, whatever the provider echoes, even at debug level.
#[test]
fn credentials_are_nowhere_in_the_clear() {
    run_alone(async {
        let (data, github) = (Scratch::new(), GitHub::start());
        github.open_issue(1, "One", "One.");
        let environment = [("CAIRN_LOG", "debug"), ("CAIRN_OUTBOUND_ALLOW", "127.0.0.1/32")];
        let mut up = SingleProcess::start_on(data.path(), &environment).await;
        let session = crate::sources::owner_of(&up).await;
        let workspaces = session.get("/api/workspaces").await.expect(200).json();
        let workspace = each(&workspaces, "id")[0].to_owned();
        for (token, status) in [(TOKEN, "completed"), (WRONG, "failed")] {
            let source =
                crate::support::sources::connect_as(&session, &workspace, github.draft(status, token)).await;
            assert_eq!(text(&source.run().await, "status"), status);
        }
        assert!(up.stop().await.success());
        let mut message = files_below(data.path());
        message.push(("the log".to_owned(), up.process().output().into_bytes()));
        for secret in [TOKEN, WRONG] {
            let forms = [secret.to_owned(), STANDARD.encode(secret)];
            for (place, bytes) in &message {
                for form in &forms {
                    let is_there = bytes.windows(form.len()).any(|part| part == form.as_bytes());
                    assert!(!is_there, "{form} is in {place}");
                }
            }
        }
    });
}
