//! Quotas per person (contract, "Accounts and membership"), and who may change plans.

use std::process::Command;

use crate::support::callers::Session;
use crate::support::http::{Http, id, items, text};
use crate::support::people;
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

scenarios![a_member_has_so_many_live_tokens];

async fn a_member_has_so_many_live_tokens(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let person = people::join(&workspace, "editor").await;
    let path = format!("/api/workspaces/{}/tokens", workspace.id);
    let body = json!({"name": "one of many", "permissions": ["read"]});
    let first = person.session.post(&path).json(&body).await.expect(201).json();
    for _ in 1..100 {
        person.session.post(&path).json(&body).await.expect(201);
    }
    let one = format!("{path}/{}", id(&first));
    person.session.patch(&one).json(json!({"active": false})).await.expect(200);
    let full = person.session.post(&path).json(&body).await.expect_error(403, "LIMIT_EXCEEDED");
    assert!(text(&full, "message").contains("100 of at most 100"), "{full}");
    assert_eq!(
        (&full["errors"][0]["path"], &full["errors"][0]["message"]),
        (&json!("tokens"), &json!("100 of 100 are used"))
    );
    workspace.session.post(&path).json(&body).await.expect(201);
    person.session.delete(&one).await.expect(204);
    person.session.post(&path).json(&body).await.expect(201);
}

async fn owner_of(up: &SingleProcess) -> Session {
    let http = Http::new(up.base_url());
    let body = json!({"email": up.owner().email, "password": up.owner().password});
    let opened = http.request(reqwest::Method::POST, "/api/session").json(body).await.expect(200);
    Session { http, cookie: people::session_cookie(&opened) }
}

#[test]
fn a_person_owns_so_many_workspaces_and_deleted_ones_do_not_count() {
    run_alone(async {
        let data = Scratch::new();
        let up = SingleProcess::start_on(data.path(), &[("CAIRN_WORKSPACES_PER_PERSON", "3")]).await;
        let owner = owner_of(&up).await;
        let body = json!({"name": "w"});
        let mut made = String::new();
        for _ in 0..2 {
            made = id(&owner.post("/api/workspaces").json(&body).await.expect(201).json());
        }
        let full = owner.post("/api/workspaces").json(&body).await.expect_error(403, "LIMIT_EXCEEDED");
        assert!(text(&full, "message").contains("3 of at most 3"), "{full}");
        owner.delete(&format!("/api/workspaces/{made}")).await.expect(204);
        owner.post("/api/workspaces").json(&body).await.expect(201);
    });
}

fn plan(arguments: &[&str], data: &std::path::Path) -> (bool, String) {
    let ran = Command::new(env!("CARGO_BIN_EXE_cairn"))
        .arg("plan")
        .args(arguments)
        .env("CAIRN_DATA", data)
        .env_remove("CAIRN_DATABASE_URL")
        .output()
        .unwrap();
    let output = [ran.stdout, ran.stderr].map(|output| String::from_utf8(output).unwrap()).concat();
    (ran.status.success(), output)
}

#[test]
fn an_operator_may_keep_plans_to_themselves() {
    run_alone(async {
        let data = Scratch::new();
        let up = SingleProcess::start_on(data.path(), &[("CAIRN_PLAN_CHANGES", "operator")]).await;
        let owner = owner_of(&up).await;
        let who = owner.get("/api/session").await.expect(200).json();
        let path = format!("/api/workspaces/{}", id(&items(&who["workspaces"])[0]));
        let refused = owner.patch(&path).json(json!({"plan": "pro"})).await.expect_error(403, "FORBIDDEN");
        assert!(text(&refused, "message").contains("operator"), "{refused}");
        owner
            .patch(&path)
            .json(json!({"name": "renamed", "plan": "pro"}))
            .await
            .expect_error(403, "FORBIDDEN");
        owner.patch(&path).json(json!({"name": "renamed"})).await.expect(200);

        let workspace = path.rsplit('/').next().unwrap();
        let (_, listed) = plan(&["list"], data.path());
        assert!(
            listed.contains(workspace) && listed.contains("selfhosted") && listed.contains("renamed"),
            "{listed}"
        );
        let (is_done, output) = plan(&["set", workspace, "free"], data.path());
        assert!(is_done && output.contains("free"), "{output}");
        assert_eq!(text(&owner.get(&path).await.expect(200).json(), "plan"), "free");
        let window = async || {
            let told = up.token().get("/api/v1/workspace").await.expect(200);
            (told.header("x-ratelimit-limit") == Some("600")).then_some(())
        };
        eventually("requests are limited as the plan says", window).await;

        let unknown = "0199c0de-0000-7000-8000-000000000009";
        for (arguments, said_so) in [
            (vec!["set", unknown, "free"], "there is no workspace"),
            (vec!["set", workspace, "gold"], "possible values"),
            (vec!["set", "x", "free"], "invalid value"),
        ] {
            let (is_done, output) = plan(&arguments, data.path());
            assert!(!is_done && output.contains(said_so), "{output}");
        }
        let (is_done, help) = plan(&["set", "--help"], data.path());
        assert!(is_done && help.contains("Examples:") && help.contains("CAIRN_PLAN_CHANGES"), "{help}");
        let nowhere = Scratch::new();
        let (is_done, output) = plan(&["list"], nowhere.path());
        assert!(!is_done && output.contains("no Cairn data here"), "{output}");
    });
}
