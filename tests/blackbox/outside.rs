//! External documents wherever documents appear: search, scripts, memories, the overview (spec 2.7, 4.4, 4.5).

use cairn_proto::ingest::v1::ingest_service_client::IngestServiceClient;
use cairn_proto::ingest::v1::{DeleteIngestedDocumentRequest, IngestDocumentRequest, IngestDraft};

use crate::grpc::{as_caller, connect, exchange};
use crate::support::browse::{exec, output};
use crate::support::http::{items, text};
use crate::support::prelude::*;

scenarios![
    an_ingested_document_is_found_with_the_token_of_the_answer,
    an_ingested_document_is_read_by_scripts,
    a_token_of_some_folders_meets_nothing_from_outside,
    a_source_that_is_not_connected_finds_nothing_and_says_so,
];

const TEXT: &str = "# Pangolins\n\nA pangolin rolls into a ball.\n";

/// The id of a new document and the change token of its write.
async fn ingested(
    deployment: &Deployment,
    workspace: &Workspace,
    key: &str,
    url: Option<&str>,
) -> (String, String) {
    let identity = exchange(deployment, &workspace.token).await;
    let draft = IngestDraft {
        idempotency_key: key.to_owned(),
        title: format!("About {key}"),
        url: url.map(ToOwned::to_owned),
        ..IngestDraft::default()
    };
    let request = IngestDocumentRequest { draft: Some(draft), content: TEXT.to_owned(), content_type: 0 };
    let mut ingest = IngestServiceClient::new(connect(deployment, "ingest").await);
    let taken = ingest.ingest_document(as_caller(&identity, request)).await.unwrap().into_inner();
    (taken.document.unwrap().id, token_of(taken.position))
}

/// A change token as clients carry it, for a position of svc-ingest's feed.
fn token_of(position: u64) -> String {
    use cairn_chassis::feed::{ChangeToken, Source};
    ChangeToken { source: Source::Ingest, position }.to_string()
}

async fn an_ingested_document_is_found_with_the_token_of_the_answer(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file_id("zoo.md", None, "The zoo has a pangolin.\n").await;
    let (id, change) = ingested(deployment, &workspace, "pangolins", Some("https://zoo.example/p")).await;
    let query = json!({"query": "pangolin ball", "kinds": ["ingested"]});
    let answer = workspace.search_after(&change, query.clone()).await;
    let [result] = items(&answer["results"]) else { panic!("{answer}") };
    let citation = &result["citation"];
    assert_eq!((&citation["kind"], &citation["id"]), (&json!("ingested"), &json!(id)), "{answer}");
    assert_eq!(citation["url"], "https://zoo.example/p");
    let permalink = text(citation, "permalink");
    let lines = format!("/documents/{id}?lines={}-{}&hash=", citation["startLine"], citation["endLine"]);
    assert!(
        permalink.contains(&lines) && permalink.ends_with(&format!("#L{}", citation["startLine"])),
        "{answer}"
    );
    assert_eq!((&citation["syncMode"], &result["source"]), (&json!("indexed"), &Value::Null), "{answer}");
    assert_eq!(citation["path"], "/sources/ingested/About pangolins.md");
    let own = workspace.search_after(&change, json!({"query": "pangolin", "kinds": ["file"]})).await;
    assert_eq!(items(&own["results"]).len(), 1, "{own}");

    let overview =
        crate::support::mcp::call_json(&workspace.token, "get_workspace_overview", json!({})).await;
    assert_eq!(overview["ingestedDocuments"], 1, "{overview}");

    let identity = exchange(deployment, &workspace.token).await;
    let mut ingest = IngestServiceClient::new(connect(deployment, "ingest").await);
    let request = DeleteIngestedDocumentRequest { document_id: id };
    ingest.delete_ingested_document(as_caller(&identity, request)).await.unwrap();
    // At once: its owner no longer confirms it.
    let answer = workspace.search_after(&change, query).await;
    assert_eq!(answer["results"], json!([]), "{answer}");
    assert_eq!(output(&workspace.token, "find /sources -name '*.md'").await, "/sources/README.md\n");
}

async fn an_ingested_document_is_read_by_scripts(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (id, _) = ingested(deployment, &workspace, "one", None).await;
    let answer = exec(&workspace.token, "cat '/sources/ingested/About one.md'").await;
    assert_eq!(answer["output"], TEXT, "{answer}");
    let citation = &answer["citations"][0];
    assert_eq!((&citation["kind"], &citation["id"]), (&json!("ingested"), &json!(id)), "{answer}");
    assert!(text(citation, "url").ends_with(&format!("/documents/{id}")), "{answer}");
    let found = exec(&workspace.token, "grep -rl pangolin /sources").await;
    assert_eq!(found["output"], "/sources/ingested/About one.md\n", "{found}");
    let told = output(&workspace.token, "cat /sources/README.md").await;
    assert!(told.contains("- ingested/ (1 document)"), "{told}");
}

async fn a_token_of_some_folders_meets_nothing_from_outside(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("a", None).await;
    let (_, change) = ingested(deployment, &workspace, "one", None).await;
    let scoped = workspace.token_for(&[&folder]).await;
    let search = scoped.post("/api/v1/search_context").after(&change).json(json!({"query": "pangolin"}));
    assert_eq!(search.await.expect(200).json()["results"], json!([]));
    assert_eq!(output(&scoped, "find /sources").await, "/sources\n/sources/README.md\n");
    let overview = crate::support::mcp::call_json(&scoped, "get_workspace_overview", json!({})).await;
    assert_eq!(overview["ingestedDocuments"], Value::Null, "{overview}");
}

async fn a_source_that_is_not_connected_finds_nothing_and_says_so(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (_, change) = ingested(deployment, &workspace, "one", None).await;
    let unknown = uuid::Uuid::from_u128(7).to_string();
    let answer = workspace.search_after(&change, json!({"query": "pangolin", "sourceIds": [unknown]})).await;
    assert_eq!(answer["results"], json!([]), "{answer}");
    let [note] = items(&answer["coverage"]) else { panic!("{answer}") };
    assert_eq!((&note["code"], &note["sourceId"]), (&json!("source_excluded"), &json!(unknown)), "{answer}");
}
