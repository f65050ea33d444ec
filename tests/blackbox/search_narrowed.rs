//! Filtered searches: by folder, by tags, by kind, by time (contract, "Reading and writing, completed").

use crate::support::http::{each, id, items, text};
use crate::support::mcp;
use crate::support::prelude::*;

scenarios![
    a_search_is_narrowed_to_what_meets_all,
    what_is_rare_is_found_behind_what_is_common,
    a_narrowing_stays_in_the_scope,
    files_are_listed_by_all_of_their_tags,
    backlinks_come_in_pages,
];

const SEARCH: &str = "/api/v1/search_context";

struct Fixture {
    workspace: Workspace,
    top: String,
    in_root: String,
    below: String,
    record: String,
    /// The change token of the last write.
    change: String,
}

async fn tagged(workspace: &Workspace, name: &str, folder: Option<&str>, tags: &[&str]) -> Value {
    let body = json!({"name": name, "content": "The quokka smiles.\n", "fileType": "markdown", "folderId": folder,
        "tags": tags});
    workspace.token.post("/api/v1/files").json(body).await.expect(201).json()
}

/// A file in the root, and a file and a record two folders deep, all about one word.
async fn fixture(deployment: &Deployment) -> Fixture {
    let workspace = deployment.workspace().await;
    let top = workspace.folder("top", None).await;
    let inner = workspace.folder("inner", Some(&top)).await;
    let in_root = id(&tagged(&workspace, "root.md", None, &["plan"]).await);
    let below = id(&tagged(&workspace, "below.md", Some(&inner), &["plan", "draft \"1\""]).await);
    let body = json!({"name": "Animals", "folderId": inner});
    let database = workspace.token.post("/api/v1/databases").json(body).await.expect(201).json();
    let primary = id(&items(&database["properties"])[0]);
    let records = format!("/api/v1/databases/{}/records", id(&database));
    let values = json!({"values": {primary: "Quokka"}});
    let made = workspace.token.post(&records).json(values).await.expect(201);
    let (record, change) = (id(&made.json()), made.change());
    Fixture { workspace, top, in_root, below, record, change }
}

impl Fixture {
    /// The ids that a search with these filters finds, the same over REST and over MCP.
    async fn found(&self, narrowing: Value) -> Vec<String> {
        let mut body = json!({"query": "quokka"});
        body.as_object_mut().unwrap().extend(narrowing.as_object().unwrap().clone());
        let answer = self.workspace.search_after(&self.change, body.clone()).await;
        let cited = |answer: &Value| -> Vec<String> {
            let results = items(&answer["results"]);
            let mut ids: Vec<String> = results.iter().map(|result| id(&result["citation"])).collect();
            ids.sort();
            ids
        };
        let over_mcp = mcp::call(&self.workspace.token, "search_context", body).await;
        assert_eq!(cited(&over_mcp["structuredContent"]), cited(&answer), "{narrowing}");
        cited(&answer)
    }
}

fn sorted(ids: &[&String]) -> Vec<String> {
    let mut ids: Vec<String> = ids.iter().map(|id| (*id).clone()).collect();
    ids.sort();
    ids
}

async fn a_search_is_narrowed_to_what_meets_all(deployment: &Deployment) {
    let fixture = fixture(deployment).await;
    let (root, below, record) = (&fixture.in_root, &fixture.below, &fixture.record);
    assert_eq!(fixture.found(json!({})).await, sorted(&[root, below, record]));
    assert_eq!(fixture.found(json!({"folderId": fixture.top})).await, sorted(&[below, record]));
    assert_eq!(fixture.found(json!({"tags": ["plan"]})).await, sorted(&[root, below]));
    assert_eq!(fixture.found(json!({"tags": ["draft \"1\"", "plan"]})).await, sorted(&[below]));
    assert_eq!(fixture.found(json!({"tags": ["Plan"]})).await, Vec::<String>::new());
    assert_eq!(fixture.found(json!({"kinds": ["record"]})).await, sorted(&[record]));
    assert_eq!(fixture.found(json!({"kinds": ["file", "memory"]})).await, sorted(&[root, below]));
    assert_eq!(fixture.found(json!({"kinds": ["ingested"]})).await, Vec::<String>::new());
    let narrow = json!({"folderId": fixture.top, "kinds": ["file"], "tags": ["plan"]});
    assert_eq!(fixture.found(narrow).await, sorted(&[below]));

    let path = format!("/api/v1/files/{root}");
    let before = fixture.workspace.token.get(&path).await.expect(200).json();
    let renamed = fixture.workspace.token.patch(&path).json(json!({"name": "new.md"})).await.expect(200);
    let fixture = Fixture { change: renamed.change(), ..fixture };
    let (then, now) = (text(&before, "updatedAt"), text(&renamed.json(), "updatedAt"));
    assert!(!fixture.found(json!({"updatedBefore": now})).await.contains(&fixture.in_root));
    let later = fixture.found(json!({"updatedAfter": then})).await;
    assert!(later.contains(&fixture.in_root), "{later:?}");
    assert_eq!(fixture.found(json!({"updatedAfter": "2999-01-01T00:00:00Z"})).await, Vec::<String>::new());

    for (odd, path) in [
        (json!({"updatedAfter": "yesterday"}), "updatedAfter"),
        (json!({"kinds": ["folder"]}), "kinds[0]"),
        (json!({"tags": [" "]}), "tags[0]"),
        (json!({"folderId": "x"}), "folderId"),
    ] {
        let mut body = json!({"query": "quokka"});
        body.as_object_mut().unwrap().extend(odd.as_object().unwrap().clone());
        let message =
            fixture.workspace.token.post(SEARCH).json(body).await.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(each(&message["errors"], "path"), [path], "{message}");
    }
}

/// More chunks match the query better than any candidate list holds: the filter applies to the search, not to its top
/// results.
async fn what_is_rare_is_found_behind_what_is_common(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let loud = "river river river\n";
    for number in 0..130 {
        workspace.file(&format!("river {number}.md"), None, &format!("{loud}\nNumber {number}.\n")).await;
    }
    let folder = workspace.folder("quiet", None).await;
    let filler = "Of rivers, hills and the weather there is much to say, and little of animals. ".repeat(8);
    let body = json!({"name": "long.md", "content": format!("{filler}A river. {filler}\n"), "fileType": "markdown",
        "folderId": folder, "tags": ["rare"]});
    let made = workspace.token.post("/api/v1/files").json(body).await.expect(201);
    let wanted = id(&made.json());
    for strategy in ["keyword", "semantic", "hybrid"] {
        for narrowing in [json!({"tags": ["rare"]}), json!({"folderId": folder})] {
            let mut body = json!({"query": "river", "strategy": strategy});
            body.as_object_mut().unwrap().extend(narrowing.as_object().unwrap().clone());
            let answer = workspace.search_after(&made.change(), body).await;
            let found: Vec<String> =
                items(&answer["results"]).iter().map(|result| text(result, "fileId")).collect();
            assert!(
                !found.is_empty() && found.iter().all(|id| *id == wanted),
                "{strategy} {narrowing}: {answer}"
            );
        }
    }
}

async fn a_narrowing_stays_in_the_scope(deployment: &Deployment) {
    let fixture = fixture(deployment).await;
    let other = fixture.workspace.folder("other", None).await;
    let scoped = fixture.workspace.token_for(&[&other]).await;
    let body = json!({"query": "quokka", "tags": ["plan"]});
    let answer = scoped.post(SEARCH).after(&fixture.change).json(body).await.expect(200).json();
    assert_eq!(answer["results"], json!([]));
    let named = json!({"query": "quokka", "folderId": fixture.top});
    scoped.post(SEARCH).json(named.clone()).await.expect_error(403, "OUT_OF_SCOPE");
    let stranger = deployment.workspace().await;
    stranger.token.post(SEARCH).json(named).await.expect_error(404, "NOT_FOUND");
}

async fn files_are_listed_by_all_of_their_tags(deployment: &Deployment) {
    let fixture = fixture(deployment).await;
    let token = &fixture.workspace.token;
    let names = async |query: &str| {
        let listed = token.get(&format!("/api/v1/files?{query}")).await.expect(200);
        let names = each(&listed.json(), "name").join(" ");
        assert_eq!(listed.header("x-total-count"), Some(items(&listed.json()).len().to_string().as_str()));
        names
    };
    assert_eq!(names("tag=plan").await, "below.md root.md");
    assert_eq!(names("tag=plan&tag=draft%20%221%22").await, "below.md");
    assert_eq!(names("tag=plan&tag=other").await, "");
    assert_eq!(names("tag=plan&folderId=root").await, "root.md");
    let first = token.get("/api/v1/files?tag=plan&limit=1").await.expect(200);
    assert_eq!((each(&first.json(), "name"), first.header("x-total-count")), (vec!["below.md"], Some("2")));
    assert!(
        first.header("link").is_some_and(|link| link.contains("tag=plan")),
        "the next page keeps the tag"
    );
    token.get("/api/v1/files?tag=%20").await.expect_error(400, "VALIDATION_ERROR");

    let found = async |arguments: Value| {
        let found = mcp::call(token, "search_files", arguments).await["structuredContent"].clone();
        each(&found["files"], "name").join(" ")
    };
    assert_eq!(found(json!({"query": ".md", "tag": "plan"})).await, "below.md root.md");
    assert_eq!(found(json!({"query": "root", "tag": "draft \"1\""})).await, "");
}

async fn backlinks_come_in_pages(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("body.md", None, "x").await;
    let made =
        workspace.token.post("/api/v1/databases").json(json!({"name": "Notes"})).await.expect(201).json();
    let primary = id(&items(&made["properties"])[0]);
    let records = format!("/api/v1/databases/{}/records", id(&made));
    for name in ["a", "b", "c"] {
        let body = json!({"values": {&primary: name}, "contentFileId": file});
        workspace.token.post(&records).json(body).await.expect(201);
    }
    let path = format!("/api/v1/files/{file}/database-backlinks");
    let (mut seen, mut next) = (Vec::new(), Some(format!("{path}?limit=2")));
    while let Some(path) = next {
        let page = workspace.token.get(&path).await.expect(200);
        assert_eq!(page.header("x-total-count"), Some("3"));
        seen.extend(each(&page.json(), "recordTitle").into_iter().map(str::to_owned));
        next = page.header("link").map(crate::files::next_page);
    }
    assert_eq!(seen, ["a", "b", "c"]);
    workspace.token.get(&format!("{path}?cursor=x")).await.expect_error(400, "VALIDATION_ERROR");
}
