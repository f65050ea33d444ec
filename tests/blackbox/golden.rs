//! Golden questions: pinned, run, and checked before an edit is saved.

use crate::support::http::{Reply, id, items, text};
use crate::support::oauth::encoded;
use crate::support::people;
use crate::support::prelude::*;

scenarios![
    what_is_pinned_is_asked_again,
    an_edit_is_checked_before_it_is_saved,
    a_record_is_checked_before_it_is_saved,
    roles_decide_who_pins,
    pages_pin_run_and_unpin,
    the_editor_keeps_the_text_that_it_checks,
];

const FORM: &str = "application/x-www-form-urlencoded";
const QUOLL: &str = "# Quolls\n\nThe quoll window of the burrow is open for seven days, and whoever keeps watch may use it.\n";
const PASSAGE: &str =
    "The quoll window of the burrow is open for seven days, and whoever keeps watch may use it.";

fn base(workspace: &Workspace) -> String {
    format!("/api/workspaces/{}/golden-questions", workspace.id)
}

async fn pinned(workspace: &Workspace, file: &str, query: &str) -> Value {
    let body = json!({"search": {"query": query}, "kind": "file", "documentId": file, "quote": PASSAGE});
    workspace.session.post(&base(workspace)).json(body).await.expect(201).json()
}

/// A workspace with a file that is indexed.
async fn with_file(deployment: &Deployment) -> (Workspace, String) {
    let workspace = deployment.workspace().await;
    let made = workspace.file("quolls.md", None, QUOLL).await;
    workspace.search_after(&made.change(), json!({"query": "quoll"})).await;
    (workspace, id(&made.json()))
}

async fn outcomes(workspace: &Workspace) -> Vec<String> {
    let run =
        workspace.session.post(&format!("{}/run", base(workspace))).json(json!({})).await.expect(200).json();
    items(&run["results"]).iter().map(|result| text(result, "outcome")).collect()
}

async fn what_is_pinned_is_asked_again(deployment: &Deployment) {
    let (workspace, file) = with_file(deployment).await;
    let question = pinned(&workspace, &file, "how long is the quoll window open").await;
    assert_eq!(question["document"]["path"], "/quolls.md", "{question}");
    let again = pinned(&workspace, &file, "how long is the quoll window open").await;
    assert_eq!(again["id"], question["id"]);
    let listed = workspace.session.get(&base(&workspace)).await.expect(200).json();
    assert_eq!(items(&listed).len(), 1, "{listed}");
    assert_eq!(outcomes(&workspace).await, ["passed"]);
    let path = format!("/api/v1/files/{file}");
    let changed = workspace.token.patch(&path).json(json!({"content": "# Wombats\n\nThey dig.\n"})).await;
    workspace.search_after(&changed.expect(200).change(), json!({"query": "wombats"})).await;
    let after = outcomes(&workspace).await;
    assert_ne!(after, ["passed"], "the passage is gone");
    let one = format!("{}/{}", base(&workspace), id(&question));
    workspace.session.delete(&one).await.expect(204);
    workspace.session.delete(&one).await.expect(404);
}

async fn an_edit_is_checked_before_it_is_saved(deployment: &Deployment) {
    let (workspace, file) = with_file(deployment).await;
    pinned(&workspace, &file, "how long is the quoll window open").await;
    let check = async |content: &str| {
        let body = json!({"fileId": file, "content": content});
        workspace.session.post(&format!("{}/check", base(&workspace))).json(body).await.expect(200).json()
    };
    let mended = check(&QUOLL.replace("seven", "eight")).await;
    assert_eq!(mended["broken"], 0, "{mended}");
    let broken = check("# Wombats\n\nThey dig.\n").await;
    assert_eq!(broken["broken"], 1, "{broken}");
    assert_eq!(broken["effects"][0]["before"]["outcome"], "passed", "{broken}");
    // Nothing was stored.
    let stored = workspace.token.get(&format!("/api/v1/files/{file}")).await.expect(200).json();
    assert_eq!(text(&stored, "content"), QUOLL);
    assert_eq!(outcomes(&workspace).await, ["passed"]);
}

async fn a_record_is_checked_before_it_is_saved(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let made =
        workspace.token.post("/api/v1/databases").json(json!({"name": "Burrows"})).await.expect(201).json();
    let (database, primary) = (id(&made), text(&made["properties"][0], "id"));
    let records = format!("/api/v1/databases/{database}/records");
    let record =
        workspace.token.post(&records).json(json!({"values": {&primary: PASSAGE}})).await.expect(201);
    workspace.search_after(&record.change(), json!({"query": "quoll"})).await;
    let record = id(&record.json());
    let pin = json!({
        "search": {"query": "how long is the quoll window open"},
        "kind": "record", "documentId": record, "quote": PASSAGE,
    });
    workspace.session.post(&base(&workspace)).json(pin).await.expect(201);
    assert_eq!(outcomes(&workspace).await, ["passed"]);
    let check = format!("{}/check", base(&workspace));
    let with = |value: &str| json!({"record": {"databaseId": database, "recordId": record, "values": {&primary: value}}});
    for (value, broken) in [(PASSAGE.replace("seven", "eight"), 0), ("Wombats dig".to_owned(), 1)] {
        let checked = workspace.session.post(&check).json(with(&value)).await.expect(200).json();
        assert_eq!(checked["broken"], broken, "{value}: {checked}");
    }
    let odd = json!({"record": {"databaseId": database, "recordId": record, "values": {"nothing": 1}}});
    workspace.session.post(&check).json(odd).await.expect_error(400, "VALIDATION_ERROR");
    for neither in [json!({}), json!({"fileId": record})] {
        workspace.session.post(&check).json(neither).await.expect_error(400, "VALIDATION_ERROR");
    }
    // Nothing was stored.
    assert_eq!(outcomes(&workspace).await, ["passed"]);

    let shown = workspace.session.get(&format!("/databases/{database}?record={record}")).await.expect(200);
    assert!(shown.text().contains("Check golden questions"), "{}", shown.text());
    let field = format!("v-{primary}");
    let fields =
        [("back", ""), ("version", "1"), ("field", primary.as_str()), (field.as_str(), "Wombats dig")];
    let path = format!("/databases/{database}/records/{record}/check");
    let checked = send(&workspace, &path, &fields).await.expect(200).text();
    assert!(checked.contains("1 of 1 golden question loses") && checked.contains("Wombats dig"), "{checked}");
    let viewer = people::join(&workspace, "viewer").await.session;
    viewer.post(&path).body(FORM, encoded(fields)).await.expect(403);
}

async fn roles_decide_who_pins(deployment: &Deployment) {
    let (workspace, file) = with_file(deployment).await;
    let question = pinned(&workspace, &file, "quoll window").await;
    let viewer = people::join(&workspace, "viewer").await.session;
    let stranger = people::join(&deployment.workspace().await, "owner").await.session;
    let body = json!({"search": {"query": "x"}, "kind": "file", "documentId": file});
    assert_eq!(items(&viewer.get(&base(&workspace)).await.expect(200).json()).len(), 1);
    viewer.post(&base(&workspace)).json(&body).await.expect(403);
    viewer.delete(&format!("{}/{}", base(&workspace), id(&question))).await.expect(403);
    stranger.get(&base(&workspace)).await.expect(404);
    let contributor = people::join(&workspace, "contributor").await.session;
    contributor.post(&base(&workspace)).json(&body).await.expect(201);
    let missing = json!({"search": {"query": "x"}, "kind": "file", "documentId": "0199c0de-0000-7000-8000-00000000ffff"});
    contributor.post(&base(&workspace)).json(&missing).await.expect(404);
    contributor.post(&base(&workspace)).json(json!({"search": {"query": ""}})).await.expect(400);
}

async fn send(workspace: &Workspace, path: &str, fields: &[(&str, &str)]) -> Reply {
    let body = encoded(fields.iter().copied());
    workspace.session.post(path).header("sec-fetch-site", "same-origin").body(FORM, body).await
}

async fn pages_pin_run_and_unpin(deployment: &Deployment) {
    let (workspace, file) = with_file(deployment).await;
    let page = format!("/w/{}/golden", workspace.id);
    let results = workspace.session.get(&format!("/w/{}/search?q=quoll+window", workspace.id)).await;
    assert!(results.expect(200).text().contains("Pin as golden question"));
    let fields = [("q", "quoll window"), ("kind", "file"), ("document", file.as_str()), ("quote", PASSAGE)];
    let pinned = send(&workspace, &format!("{page}/pin"), &fields).await;
    assert_eq!((pinned.status, pinned.header("location")), (303, Some(page.as_str())));
    let shown = workspace.session.get(&page).await.expect(200).text();
    for part in ["quoll window", "/quolls.md", "Found", "1 of 1 golden question"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let listed = workspace.session.get(&base(&workspace)).await.expect(200).json();
    let unpin = format!("{page}/{}/unpin", id(&items(&listed)[0]));
    assert_eq!(send(&workspace, &unpin, &[]).await.status, 303);
    assert!(workspace.session.get(&page).await.expect(200).text().contains("No question is pinned"));
}

async fn the_editor_keeps_the_text_that_it_checks(deployment: &Deployment) {
    let (workspace, file) = with_file(deployment).await;
    pinned(&workspace, &file, "how long is the quoll window open").await;
    let stored = workspace.token.get(&format!("/api/v1/files/{file}")).await.expect(200).json();
    let hash = text(&stored, "contentHash");
    let path = format!("/file/{file}/check");
    let checked = send(&workspace, &path, &[("content", "# Wombats kept\r\n"), ("hash", &hash)]).await;
    let shown = checked.expect(200).text();
    for part in ["Wombats kept", "1 of 1 golden question loses this passage", "quoll window"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let fine = send(&workspace, &path, &[("content", QUOLL), ("hash", &hash)]).await.expect(200).text();
    assert!(fine.contains("None of 1 golden question"), "{fine}");
    let after = workspace.token.get(&format!("/api/v1/files/{file}")).await.expect(200).json();
    assert_eq!(after["contentHash"], stored["contentHash"]);
}
