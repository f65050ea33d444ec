//! Scores (spec 2.6): they depend only on the searched content. A score that changed with content out of reach would
//! reveal its words.

use crate::support::callers::ApiToken;
use crate::support::http::items;
use crate::support::prelude::*;

scenarios![another_workspace_moves_no_score, what_a_scoped_token_cannot_see_moves_no_score];

const FOUND: &str = "# Plans\n\nThe wombat acquisition is planned for autumn.\n";

/// The raw scores of all results: BM25 before it is normalized to the best.
async fn raw_scores(token: &ApiToken, change: &str, query: &str) -> Vec<Value> {
    let body = json!({"query": query, "strategy": "keyword", "explain": true});
    let answer = token
        .post("/api/v1/search_context")
        .after(change)
        .header("x-cairn-wait-ms", "10000")
        .json(body)
        .await
        .expect(200)
        .json();
    assert!(!items(&answer["results"]).is_empty(), "{answer}");
    assert_eq!(answer["coverage"], json!([]), "{answer}");
    let result = |result: &Value| result["trace"]["subqueries"][0]["rawScore"].clone();
    items(&answer["results"]).iter().map(result).collect()
}

async fn another_workspace_moves_no_score(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let change = workspace.file("plans.md", None, FOUND).await.change();
    let before = raw_scores(&workspace.token, &change, "wombat acquisition").await;
    let other = deployment.workspace().await;
    for number in 0..4 {
        let text = format!("# Secret {number}\n\nThe wombat is long sold, and nobody knows of the wombat.\n");
        let change = other.file(&format!("secret{number}.md"), None, &text).await.change();
        raw_scores(&other.token, &change, "wombat").await;
    }
    assert_eq!(raw_scores(&workspace.token, &change, "wombat acquisition").await, before);
}

async fn what_a_scoped_token_cannot_see_moves_no_score(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let open = workspace.folder("open", None).await;
    let vault = workspace.folder("vault", None).await;
    let scoped = workspace.token_for(&[&open]).await;
    let change = workspace.file("plans.md", Some(&open), FOUND).await.change();
    let before = raw_scores(&scoped, &change, "wombat acquisition").await;
    let text = "# Secret\n\nThe acquisition is off: acquisition, acquisition and no wombat.\n";
    let change = workspace.file("secret.md", Some(&vault), text).await.change();
    assert_eq!(raw_scores(&scoped, &change, "wombat acquisition").await, before);
    assert_eq!(raw_scores(&workspace.token, &change, "wombat acquisition").await.len(), 2);
}
