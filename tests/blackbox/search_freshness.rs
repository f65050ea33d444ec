//! Read-your-writes of searches (contract, "Consistency token"; spec 3.1; design, "the owner disposes").

use crate::support::callers::Caller as _;
use crate::support::citations;
use crate::support::http::{each, id, items, text};
use crate::support::prelude::*;

scenarios![
    a_write_is_seen_with_its_token_every_time,
    a_new_file_is_seen_with_its_token_every_time,
    a_write_is_seen_soon_without_its_token,
    a_trashed_file_never_shows,
    a_trashed_folder_never_shows,
    a_rename_or_move_shows_at_once,
    a_token_of_nowhere_is_refused,
    a_wait_that_is_too_short_says_so,
];

const SEARCH: &str = "/api/v1/search_context";

async fn a_write_is_seen_with_its_token_every_time(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "The word is nothing yet.\n").await;
    for round in 0..40 {
        let word = word(round);
        let body = json!({"content": format!("# Round\n\nThe word is {word} now.\n")});
        let written = workspace.token.patch(&format!("/api/v1/files/{file}")).json(body).await.expect(200);
        let query = json!({"query": word, "strategy": "keyword"});
        let answer = workspace.search_after(&written.change(), query).await;
        assert_eq!(items(&answer["results"]).len(), 1, "round {round}: {answer}");
        citations::check_all(&workspace.token, &answer).await;
        assert!(!each(&answer["coverage"], "code").contains(&"index_behind"), "round {round}: {answer}");
        if let Some(before) = round.checked_sub(1) {
            let query = json!({"query": self::word(before), "strategy": "keyword"});
            let stale = workspace.search_after(&written.change(), query).await;
            assert_eq!(stale["results"], json!([]), "round {round}: the overwritten text is still found");
        }
    }
}

async fn a_new_file_is_seen_with_its_token_every_time(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    for round in 0..25 {
        let word = word(round);
        let created = workspace.file(&format!("{round}.md"), None, &format!("Here is {word}.\n")).await;
        for strategy in ["keyword", "hybrid"] {
            let answer =
                workspace.search_after(&created.change(), json!({"query": word, "strategy": strategy})).await;
            let best = items(&answer["results"]).first().unwrap_or_else(|| panic!("round {round}: {answer}"));
            assert_eq!(best["fileId"], created.json()["id"], "round {round}, {strategy}");
        }
    }
}

async fn a_write_is_seen_soon_without_its_token(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    for round in 0..5 {
        let word = word(round);
        let file = workspace.file_id(&format!("{round}.md"), None, &format!("Look, {word}.\n")).await;
        eventually("a search without a token finds the write", async || {
            let body = json!({"query": word, "strategy": "keyword"});
            let answer = workspace.token.post(SEARCH).json(body).await.expect(200).json();
            items(&answer["results"]).iter().any(|result| result["fileId"] == json!(file)).then_some(())
        })
        .await;
    }
}

async fn a_trashed_file_never_shows(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    for round in 0..10 {
        let created = workspace.file("a.md", None, &format!("The {} is here.\n", word(round))).await;
        let body = json!({"query": word(round)});
        let answer = workspace.search_after(&created.change(), body.clone()).await;
        assert!(!items(&answer["results"]).is_empty(), "round {round}");
        let file = id(&created.json());
        let deleted = workspace.token.delete(&format!("/api/v1/files/{file}")).await.expect(204);
        // Without the token: the index may lag, the answer must not.
        let at_once = workspace.token.post(SEARCH).json(body.clone()).await.expect(200).json();
        assert_eq!(at_once["results"], json!([]), "round {round}");
        let later = workspace.search_after(&deleted.change(), body).await;
        assert_eq!(later["results"], json!([]), "round {round}");
    }
}

async fn a_trashed_folder_never_shows(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let top = workspace.folder("top", None).await;
    let inner = workspace.folder("inner", Some(&top)).await;
    workspace.file("kept.md", None, "The heron stays.\n").await;
    let created = workspace.file("a.md", Some(&inner), "The heron goes.\n").await;
    let found =
        workspace.search_after(&created.change(), json!({"query": "heron", "strategy": "keyword"})).await;
    assert_eq!(items(&found["results"]).len(), 2);
    let deleted = workspace.token.delete(&format!("/api/v1/folders/{top}")).await.expect(204);
    let at_once = workspace.token.post(SEARCH).json(json!({"query": "heron"})).await.expect(200).json();
    let later = workspace.search_after(&deleted.change(), json!({"query": "heron"})).await;
    for answer in [at_once, later] {
        let paths: Vec<String> =
            items(&answer["results"]).iter().map(|result| text(&result["citation"], "path")).collect();
        assert_eq!(paths, ["/kept.md"], "{answer}");
    }
}

async fn a_rename_or_move_shows_at_once(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (one, two) = (workspace.folder("one", None).await, workspace.folder("two", None).await);
    let created = workspace.file("a.md", Some(&one), "The osprey dives.\n").await;
    workspace.search_after(&created.change(), json!({"query": "osprey"})).await;
    let file = format!("/api/v1/files/{}", id(&created.json()));
    let folder = format!("/api/v1/folders/{one}");
    let steps = [
        (&file, json!({"name": "b.md"}), "/one/b.md"),
        (&folder, json!({"name": "renamed"}), "/renamed/b.md"),
        (&folder, json!({"parentId": two}), "/two/renamed/b.md"),
        (&file, json!({"folderId": null}), "/b.md"),
    ];
    for (target, change, path) in steps {
        workspace.token.patch(target).json(change).await.expect(200);
        // Without the token: the path of a document comes from its owning service, not from the index.
        let body = json!({"query": "osprey", "strategy": "keyword"});
        let answer = workspace.token.post(SEARCH).json(body).await.expect(200).json();
        assert_eq!(items(&answer["results"]).len(), 1, "{path}: {answer}");
        assert_eq!(text(&answer["results"][0]["citation"], "path"), path);
        citations::check_all(&workspace.token, &answer).await;
    }
}

async fn a_token_of_nowhere_is_refused(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    for change in ["garbage", "", "!", "AAAA"] {
        let reply = workspace.token.post(SEARCH).after(change).json(json!({"query": "x"})).await;
        reply.expect_error(400, "VALIDATION_ERROR");
    }
    let created = workspace.file("a.md", None, "x\n").await;
    for wait in ["-1", "10001", "soon"] {
        let request = workspace.token.post(SEARCH).after(&created.change()).header("x-cairn-wait-ms", wait);
        request.json(json!({"query": "x"})).await.expect_error(400, "VALIDATION_ERROR");
    }
}

async fn a_wait_that_is_too_short_says_so(deployment: &Deployment) {
    let ahead = deployment.workspace().await;
    let mut change = String::new();
    for round in 0..30 {
        change = ahead.file(&format!("{round}.md"), None, "many writes\n").await.change();
    }
    // That workspace's feed is ahead of this one's, so this one never reaches the position.
    let behind = deployment.workspace().await;
    behind.file("a.md", None, "The ibis waits.\n").await;
    let reply = behind.token.post(SEARCH).after(&change).header("x-cairn-wait-ms", "50");
    let answer = reply.json(json!({"query": "ibis"})).await.expect(200).json();
    assert!(each(&answer["coverage"], "code").contains(&"index_behind"), "{answer}");
}

/// A unique word that stemming leaves unchanged.
fn word(round: usize) -> String {
    format!("zq{round}k7w")
}
