//! Permissions on connected sources, and refused requests (outside.md: "Rights", "Bad request").

use crate::support::browse::output;
use crate::support::http::{each, id, items, text};
use crate::support::people;
use crate::support::prelude::*;
use crate::support::sources::{SourceFolder, connect};

scenarios![
    sources_are_for_owners_and_admins_of_their_workspace,
    a_token_of_some_folders_meets_no_source,
    bad_requests_name_every_field,
    a_run_can_be_cancelled_once,
    a_document_is_tried_again_by_those_who_may_write,
];

async fn sources_are_for_owners_and_admins_of_their_workspace(deployment: &Deployment) {
    let (workspace, other) = (deployment.workspace().await, deployment.workspace().await);
    let source_folder = SourceFolder::new(deployment);
    source_folder.put("a.md", "a");
    let source = connect(&workspace, source_folder.draft("Mine")).await;
    let run = text(&source.run().await, "id");
    let list = format!("/api/workspaces/{}/sources", workspace.id);
    for role in ["viewer", "editor"] {
        let member = people::join(&workspace, role).await.session;
        for path in [list.clone(), source.path(""), source.path("/runs"), source.path("/documents")] {
            member.get(&path).await.expect(200);
        }
        member.post(&list).json(source_folder.draft("Theirs")).await.expect_error(403, "FORBIDDEN");
        member
            .post(&format!("{list}/check"))
            .json(source_folder.draft("x"))
            .await
            .expect_error(403, "FORBIDDEN");
        member.patch(&source.path("")).json(json!({"paused": true})).await.expect_error(403, "FORBIDDEN");
        member.post(&source.path("/sync")).json(json!({})).await.expect_error(403, "FORBIDDEN");
        member.post(&source.path(&format!("/runs/{run}/cancel"))).await.expect_error(403, "FORBIDDEN");
        member.delete(&source.path("")).await.expect_error(403, "FORBIDDEN");
    }
    let admin = people::join(&workspace, "admin").await.session;
    admin.patch(&source.path("")).json(json!({"every": "6h"})).await.expect(200);
    let stranger = people::join(&other, "admin").await.session;
    stranger.get(&source.path("")).await.expect_error(404, "NOT_FOUND");
    // A source of another workspace does not exist, even for a member of both.
    let elsewhere = format!("/api/workspaces/{}/sources/{}", other.id, source.id);
    other.session.get(&elsewhere).await.expect_error(404, "NOT_FOUND");
    other.session.delete(&elsewhere).await.expect_error(404, "NOT_FOUND");
    let document = format!("/api/v1/sources/{}/documents/a.md", source.id);
    workspace.token.get(&document).await.expect(200);
    other.token.get(&document).await.expect_error(404, "NOT_FOUND");
    assert_eq!(other.token.get("/api/v1/sources").await.expect(200).json(), json!([]));
    let body = json!({"query": "a", "sourceIds": [source.id]});
    let answer = other.token.post("/api/v1/search_context").json(body).await.expect(200).json();
    assert_eq!(
        (&answer["results"], each(&answer["coverage"], "code")),
        (&json!([]), vec!["source_excluded"])
    );
}

async fn a_token_of_some_folders_meets_no_source(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("inside", None).await;
    let bound = workspace.token_for(&[&folder]).await;
    let source_folder = SourceFolder::new(deployment);
    source_folder.put("a.md", "A capybara bathes.");
    let source = connect(&workspace, source_folder.draft("Baths")).await;
    source.run().await;
    let body = json!({"query": "capybara", "mode": "fast"});
    eventually("it is found", async || {
        let answer = workspace.token.post("/api/v1/search_context").json(&body).await.expect(200).json();
        (answer["results"] != json!([])).then_some(())
    })
    .await;
    for path in ["/api/v1/sources".to_owned(), format!("/api/v1/sources/{}/documents/a.md", source.id)] {
        bound.get(&path).await.expect_error(403, "OUT_OF_SCOPE");
    }
    let query = format!("/api/v1/sources/{}/query", source.id);
    bound.post(&query).json(json!({"query": "capybara"})).await.expect_error(403, "OUT_OF_SCOPE");
    let answer = bound.post("/api/v1/search_context").json(&body).await.expect(200).json();
    assert_eq!(answer["results"], json!([]));
    assert!(!output(&bound, "find /sources").await.contains("Baths"));
}

async fn bad_requests_name_every_field(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = format!("/api/workspaces/{}/sources", workspace.id);
    let source_folder = SourceFolder::new(deployment);
    let with = |field: &str, value: Value| {
        let mut draft = source_folder.draft("Mine");
        draft[field] = value;
        draft
    };
    let of = |provider: &str, settings: Value, credentials: Value| json!({"name": "x", "provider": provider, "settings": settings, "credentials": credentials});
    for (draft, wanted) in [
        (with("name", "".into()), vec!["name"]),
        (with("provider", "gopher".into()), vec!["provider"]),
        (with("mode", "live".into()), vec!["mode"]),
        (with("mode", "often".into()), vec!["mode"]),
        (with("every", "1m".into()), vec!["every"]),
        (with("every", "soon".into()), vec!["every"]),
        (with("dailyBudget", 1_000_001.into()), vec!["dailyBudget"]),
        (with("colour", "red".into()), vec!["colour"]),
        (with("settings", json!({})), vec!["settings.path"]),
        (with("settings", json!({"path": "/etc"})), vec!["settings.path"]),
        (
            with("settings", json!({"path": format!("{}/../..", source_folder.path().display())})),
            vec!["settings.path"],
        ),
        (with("settings", json!({"path": source_folder.path(), "depth": 2})), vec!["settings.depth"]),
        (with("credentials", json!({"token": "zqnobodysecretx"})), vec!["credentials.token"]),
        (
            of("github", json!({"repo": "a/b"}), json!({})),
            vec!["settings.owner", "settings.repo", "credentials.token"],
        ),
        (of("git", json!({"url": "ssh://git@example.com/a"}), Value::Null), vec!["settings.url"]),
        (
            of("git", json!({"url": "https://me:zqnobodysecretx@example.com/a"}), Value::Null),
            vec!["settings.url"],
        ),
        (
            of("git", json!({"url": "https://example.com/a", "ref": "--upload-pack=x"}), Value::Null),
            vec!["settings.ref"],
        ),
        (
            of("notion", json!({"baseUrl": "http://10.0.0.1/"}), json!({"token": "zqnobodysecretx"})),
            vec!["settings.baseUrl"],
        ),
        (
            of("s3", json!({}), json!({})),
            vec!["settings.bucket", "credentials.accessKeyId", "credentials.secretAccessKey"],
        ),
    ] {
        let shown = draft.to_string();
        let refused = workspace.session.post(&path).json(draft).await.expect_error(400, "VALIDATION_ERROR");
        let paths = each(&refused["errors"], "path");
        assert!(wanted.iter().all(|wanted| paths.contains(wanted)), "{shown}: {refused}");
        assert!(!refused.to_string().contains("zqnobodysecretx"), "{refused}");
    }
    assert_eq!(workspace.session.get(&path).await.expect(200).json(), json!([]));
    let checked = workspace.session.post(&format!("{path}/check")).json(with("mode", Value::Null)).await;
    assert_eq!(checked.expect(200).json()["ok"], true);
}

async fn a_run_can_be_cancelled_once(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let source_folder = SourceFolder::new(deployment);
    source_folder.put("a.md", "a");
    let source = connect(&workspace, source_folder.draft("Once")).await;
    let run = source.run().await;
    source.session.post(&source.path(&format!("/runs/{}/cancel", id(&run)))).await.expect(409);
    let unknown = uuid::Uuid::from_u128(7);
    source
        .session
        .post(&source.path(&format!("/runs/{unknown}/cancel")))
        .await
        .expect_error(404, "NOT_FOUND");
    source.session.get(&source.path("/documents?status=lost")).await.expect_error(400, "VALIDATION_ERROR");
}

async fn a_document_is_tried_again_by_those_who_may_write(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let source_folder = SourceFolder::new(deployment);
    source_folder.put("a.md", "a");
    source_folder.put("broken.pdf", "%PDF-1.7 and nothing that could be read");
    let source = connect(&workspace, source_folder.draft("Mixed")).await;
    source.run().await;
    let documents = source.documents().await;
    let retry_of = |name: &str| {
        let document = items(&documents).iter().find(|one| text(one, "externalId") == name).unwrap();
        format!("/api/workspaces/{}/source-documents/{}/retry", workspace.id, id(document))
    };
    let (broken, good) = (retry_of("broken.pdf"), retry_of("a.md"));
    let viewer = people::join(&workspace, "viewer").await.session;
    viewer.post(&broken).await.expect_error(403, "FORBIDDEN");
    let stranger = people::join(&deployment.workspace().await, "owner").await.session;
    stranger.post(&broken).await.expect_error(404, "NOT_FOUND");
    // A document that has not failed is not retried.
    workspace.session.post(&good).await.expect(202);
    let runs = async || items(&source.session.get(&source.path("/runs")).await.expect(200).json()).len();
    assert_eq!(runs().await, 1);
    let contributor = people::join(&workspace, "contributor").await.session;
    let tried = contributor.post(&broken).await.expect(202).json();
    assert_eq!(text(&tried, "indexStatus"), "failed");
    eventually("a run has tried it again", async || {
        let run = source.run().await;
        // A recently written file is also read by the scan.
        (runs().await == 2 && run["counters"]["failed"].as_u64() >= Some(1)).then_some(())
    })
    .await;
    source.change(json!({"paused": true})).await.expect(200);
    contributor.post(&broken).await.expect_error(409, "RUN_NOT_STARTABLE");
}
