//! `get_related_files` and `GET /api/v1/files/{id}/related` (spec 4.12): related files, and why they are related.

use crate::support::callers::Caller;
use crate::support::http::{each, id, items, text};
use crate::support::mcp;
use crate::support::prelude::*;
use crate::support::workspace::read_file;

scenarios![
    the_nearest_files_come_first_and_say_why,
    a_scope_finds_its_own_only,
    what_is_gone_is_not_related,
    the_tool_tells_the_same,
    a_file_without_text_has_no_neighbours,
];

const DEPLOY: &str = "# Deploying\n\nA deployment rolls out to one server after the other. When a health check fails, the \
    deployment rolls back to the release before.\n";
const ROLLBACK: &str = "# Rolling back\n\nEvery release can be rolled back. The deployment waits until health checks of \
    each server pass again.\n";
const BREAD: &str =
    "# Bread\n\nKnead flour, water and yeast for ten minutes, then let the dough rest overnight.\n";

fn path(file: &str) -> String {
    format!("/api/v1/files/{file}/related")
}

async fn related(caller: &impl Caller, file: &str, change: &str) -> Value {
    caller.get(&path(file)).after(change).await.expect(200).json()
}

/// Each passage is exactly the lines of its citation.
async fn check_passages(caller: &impl Caller, answer: &Value) {
    for file in items(&answer["files"]) {
        let why = &file["why"];
        for citation in [&why["from"], &why["to"]] {
            let stored = read_file(caller, &text(citation, "id")).await;
            assert_eq!(citation["contentHash"], stored["contentHash"], "{file}");
            let place = |name: &str| usize::try_from(citation[name].as_u64().unwrap()).unwrap();
            let content = text(&stored, "content");
            let lines: Vec<&str> = content.lines().collect();
            let cited = lines[place("startLine") - 1..place("endLine")].join("\n");
            if citation == &why["to"] {
                assert_eq!(text(why, "content"), cited, "{file}");
                assert_eq!(citation["id"], file["id"], "{file}");
            }
        }
        let score = |of: &Value, name: &str| of[name].as_f64().unwrap();
        let mean = f64::midpoint(score(why, "wholeScore"), score(why, "passageScore"));
        assert!((score(file, "score") - mean).abs() < 1e-6, "{file}");
    }
}

async fn the_nearest_files_come_first_and_say_why(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let deploy = workspace.file_id("deploy.md", None, DEPLOY).await;
    let rollback = workspace.file_id("rollback.md", None, ROLLBACK).await;
    let last = workspace.file("bread.md", None, BREAD).await;
    let answer = related(&workspace.token, &deploy, &last.change()).await;
    let found = each(&answer["files"], "id");
    assert_eq!(found.first(), Some(&rollback.as_str()), "{answer}");
    assert!(!found.contains(&deploy.as_str()), "a file is not its own neighbour: {answer}");
    let scores: Vec<f64> = items(&answer["files"]).iter().filter_map(|file| file["score"].as_f64()).collect();
    assert!(
        scores.is_sorted_by(|one, next| one >= next) && scores.iter().all(|score| *score <= 1.0),
        "{scores:?}"
    );
    let shared = items(&answer["files"][0]["why"]["sharedWords"]);
    assert!(shared.contains(&json!("deployment")) && shared.contains(&json!("health")), "{answer}");
    assert_eq!(answer["coverage"], json!([]), "{answer}");
    check_passages(&workspace.token, &answer).await;
    let one = workspace.token.get(&format!("{}?limit=1", path(&deploy))).await.expect(200).json();
    assert_eq!(each(&one["files"], "id"), [rollback.as_str()], "{one}");
}

async fn a_scope_finds_its_own_only(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let inside = workspace.folder("inside", None).await;
    let below = workspace.folder("below", Some(&inside)).await;
    let deploy = workspace.file_id("deploy.md", Some(&inside), DEPLOY).await;
    let bread = workspace.file_id("bread.md", Some(&below), BREAD).await;
    let outside = workspace.file_id("rollback.md", None, ROLLBACK).await;
    let last = workspace.file("copy.md", None, DEPLOY).await;
    let scoped = workspace.token_for(&[&inside]).await;
    let answer = related(&scoped, &deploy, &last.change()).await;
    let found = each(&answer["files"], "id");
    assert!(found.iter().all(|file| *file == bread), "{answer}");
    assert!(!answer.to_string().contains("rolled back"), "{answer}");
    check_passages(&scoped, &answer).await;
    scoped.get(&path(&outside)).await.expect_error(403, "OUT_OF_SCOPE");
    let other = deployment.workspace().await;
    other.token.get(&path(&deploy)).await.expect_error(404, "NOT_FOUND");
    let all = related(&workspace.token, &deploy, &last.change()).await;
    assert_eq!(
        each(&all["files"], "id").first(),
        Some(&id(&last.json()).as_str()),
        "a copy is nearest: {all}"
    );
}

async fn what_is_gone_is_not_related(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let deploy = workspace.file_id("deploy.md", None, DEPLOY).await;
    let last = workspace.file("rollback.md", None, ROLLBACK).await;
    let rollback = id(&last.json());
    assert_eq!(
        each(&related(&workspace.token, &deploy, &last.change()).await["files"], "id"),
        [rollback.as_str()]
    );
    // At once, however far the index lags.
    workspace.token.delete(&format!("/api/v1/files/{rollback}")).await.expect(204);
    let answer = workspace.token.get(&path(&deploy)).await.expect(200).json();
    assert_eq!(answer["files"], json!([]), "{answer}");
    workspace.token.get(&path(&rollback)).await.expect_error(404, "NOT_FOUND");
}

async fn the_tool_tells_the_same(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let deploy = workspace.file_id("deploy.md", None, DEPLOY).await;
    workspace.file("rollback.md", None, ROLLBACK).await;
    let last = workspace.file("bread.md", None, BREAD).await;
    let over_rest = related(&workspace.token, &deploy, &last.change()).await;
    let answer = mcp::call(&workspace.token, "get_related_files", json!({"id": deploy})).await;
    assert_eq!(answer["structuredContent"], over_rest);
    let message = mcp::text_of(&answer);
    assert!(
        message.contains("/rollback.md") && message.contains("both say: ") && message.contains("deployment"),
        "{message}"
    );
    assert!(message.contains("lines 1-3"), "{message}");
}

async fn a_file_without_text_has_no_neighbours(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("deploy.md", None, DEPLOY).await;
    let blank = workspace.file("blank.md", None, "\n\n").await;
    let answer = related(&workspace.token, &id(&blank.json()), &blank.change()).await;
    assert_eq!(answer["files"], json!([]), "{answer}");
}
