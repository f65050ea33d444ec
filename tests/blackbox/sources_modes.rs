//! What a search does about documents that are not retained (spec 4.4; outside.md: "Live and catalog", "Not retained").

use crate::support::http::each;
use crate::support::prelude::*;
use crate::support::sources::{Shelf, Source, connect};

scenarios![a_catalog_is_read_where_a_title_is_meant];

const PLAN: &str =
    "# Zanzibar\n\nThe rollout of zanzibar begins in May.\n\n# Money\n\nNobody knows the budget.\n";

async fn catalog(deployment: &Deployment, workspace: &Workspace) -> Source {
    let shelf = Shelf::new(deployment);
    shelf.put("plans/Zanzibar rollout.md", PLAN);
    shelf.put("plans/Mobile rollout.md", "Later.");
    shelf.put("notes/Heron.md", "A heron stands still.");
    let mut draft = shelf.draft("Shelf");
    draft["mode"] = "catalog".into();
    let source = connect(workspace, draft).await;
    source.run().await;
    source
}

async fn a_catalog_is_read_where_a_title_is_meant(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let source = catalog(deployment, &workspace).await;
    let token = &workspace.token;
    let search = async |query: &str, mode: &str| {
        let body = json!({"query": query, "mode": mode});
        token.post("/api/v1/search_context").json(body).await.expect(200).json()
    };
    eventually("the titles are indexed", async || {
        let answer = search("heron", "balanced").await;
        (answer["coverage"] != json!([])).then_some(())
    })
    .await;

    let answer = search("zanzibar rollout", "balanced").await;
    let citation = &answer["results"][0]["citation"];
    assert_eq!((&citation["syncMode"], &citation["kind"]), (&json!("live"), &json!("source_document")));
    assert_eq!(citation["externalId"], json!("plans/Zanzibar rollout.md"));
    assert_eq!(answer["results"][0]["source"]["id"], json!(source.id));
    let lines: Vec<&str> = PLAN.lines().collect();
    let place = |field: &str| usize::try_from(citation[field].as_u64().unwrap()).unwrap();
    let cited = lines[place("startLine") - 1..place("endLine")].join("\n");
    assert_eq!(answer["results"][0]["content"], json!(cited));
    assert_eq!(each(&answer["coverage"], "code"), ["live_fetch", "catalog_match_not_fetched"]);
    assert_eq!(each(&answer["coverage"], "sourceId"), [&source.id, &source.id]);

    for (query, mode) in [("zanzibar rollout", "fast"), ("budget", "balanced"), ("rollout", "balanced")] {
        assert_eq!(search(query, mode).await["results"], json!([]), "{query} in {mode}");
    }
    let query = format!("/api/v1/sources/{}/query", source.id);
    let answer = token.post(&query).json(json!({"query": "rollout", "limit": 20})).await.expect(200).json();
    let results = answer["results"].as_array().unwrap();
    for title in ["plans/Zanzibar rollout.md", "plans/Mobile rollout.md"] {
        assert!(results.iter().any(|result| result["citation"]["externalId"] == title), "{title}: {answer}");
    }
    assert_eq!(answer["providerOperations"], json!({"used": 0, "remainingToday": 500}));
    let unknown = json!({"query": "rollout", "colour": "red"});
    token.post(&query).json(unknown).await.expect_error(400, "VALIDATION_ERROR");
}
