//! Point-in-time reads of files: `asOf` and `hash` (docs/API.md, "Beyond the spec").

use crate::support::browse::exec_with;
use crate::support::http::{each, id, items, text};
use crate::support::mcp;
use crate::support::prelude::*;

scenarios![
    a_file_is_read_as_it_stood_after_each_write,
    several_files_are_read_as_they_stood,
    a_citation_opens_as_it_was_given,
    the_past_shows_no_more_than_the_present,
    moments_that_nobody_knows_are_refused,
    a_memory_is_read_as_it_stood,
    a_script_walks_the_workspace_as_it_was,
    a_script_sees_no_more_of_then_than_of_now,
    a_search_finds_what_was,
    a_search_of_then_is_narrowed_by_what_was,
    what_was_is_no_news_to_an_agent,
    a_search_of_then_asks_for_what_is_known_of_then,
];

async fn a_file_is_read_as_it_stood_after_each_write(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (token, folder) = (&workspace.token, workspace.folder("old", None).await);
    let made = workspace.file("a.md", Some(&folder), "one\n").await;
    let (file, first) = (id(&made.json()), made.change());
    let path = format!("/api/v1/files/{file}");
    let change = json!({"name": "b.md", "content": "two\n", "tags": ["new"]});
    let second = token.patch(&path).json(change).await.expect(200).change();
    let folder = format!("/api/v1/folders/{folder}");
    let third = token.patch(&folder).json(json!({"name": "renamed"})).await.expect(200).change();
    let now = token.get(&path).await.expect(200).json();
    for (change, place, content, tags, version) in [
        (&first, "/old/a.md", "one\n", json!([]), 1),
        (&second, "/old/b.md", "two\n", json!(["new"]), 2),
        (&third, "/renamed/b.md", "two\n", json!(["new"]), 2),
    ] {
        let reply = token.get(&format!("{path}?asOf={change}")).await.expect(200);
        let then = reply.json();
        assert_eq!((text(&then, "path"), text(&then, "content")), (place.to_owned(), content.to_owned()));
        assert_eq!((&then["tags"], &then["version"]), (&tags, &json!(version)), "{then}");
        let hash = format!("blake3:{}", blake3::hash(content.as_bytes()).to_hex());
        assert_eq!(text(&then, "contentHash"), hash, "{then}");
        assert_eq!(reply.header("etag"), Some(format!("\"{hash}\"").as_str()));
        let raw = token.get(&format!("{path}/raw?asOf={change}")).await.expect(200);
        assert_eq!(raw.text(), content);
        let read = mcp::call(token, "get_file", json!({"id": file, "asOf": change})).await;
        assert_eq!(mcp::text_of(&read), content);
    }
    // As of its last write it reads as it does now.
    let at = format!("{path}?asOf={}", text(&now, "updatedAt"));
    assert_eq!(text(&token.get(&at).await.expect(200).json(), "name"), "b.md");
    // Before its creation it did not exist; while in trash it did not exist either.
    let before = workspace.file("later.md", None, "x").await;
    token
        .get(&format!("/api/v1/files/{}?asOf={third}", id(&before.json())))
        .await
        .expect_error(404, "NOT_FOUND");
    token.delete(&path).await.expect(204);
    let trashed = workspace.file("while it is in trash.md", None, "x").await.change();
    token.post(&format!("{path}/restore")).await.expect(200);
    token.get(&format!("{path}?asOf={trashed}")).await.expect_error(404, "NOT_FOUND");
    token.get(&format!("{path}?asOf={third}")).await.expect(200);
}

async fn several_files_are_read_as_they_stood(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (token, folder) = (&workspace.token, workspace.folder("old", None).await);
    let edited = workspace.file_id("a.md", Some(&folder), "one\n").await;
    let trashed = workspace.file_id("trashed.md", None, "gone\n").await;
    let kept = workspace.file("kept.md", None, "kept\n").await;
    let (kept, then) = (id(&kept.json()), kept.change());
    let change = json!({"name": "b.md", "content": "a longer text\n", "tags": ["new"]});
    token.patch(&format!("/api/v1/files/{edited}")).json(change).await.expect(200);
    token.patch(&format!("/api/v1/folders/{folder}")).json(json!({"name": "renamed"})).await.expect(200);
    token.delete(&format!("/api/v1/files/{trashed}")).await.expect(204);
    let later = workspace.file("later.md", None, "later\n").await;
    let (later, last) = (id(&later.json()), later.change());

    let asked = json!({"ids": [edited, trashed, kept, later, "no id"], "asOf": then, "maxBytes": 5});
    let read = mcp::call(token, "get_files", asked).await;
    let files = read["structuredContent"]["files"].clone();
    assert_eq!(
        (text(&files[0], "path"), text(&files[0], "content"), text(&files[2], "content")),
        ("/old/a.md".to_owned(), "one\n".to_owned(), "kept\n".to_owned()),
        "{files}"
    );
    assert_eq!((&files[0]["tags"], &files[0]["version"]), (&Value::Null, &json!(1)), "{files}");
    for place in [1, 3, 4] {
        assert!(text(&files[place], "error").starts_with("Not found: "), "{files}");
    }
    let small = json!({"ids": [edited], "asOf": then, "maxBytes": 1});
    let small = mcp::call(token, "get_files", small).await;
    let skipped = text(&small["structuredContent"]["files"][0], "skipped");
    assert!(skipped.contains(&format!("\"asOf\":\"{then}\"")), "{skipped}");
    let now = mcp::call(token, "get_files", json!({"ids": [edited], "asOf": last})).await;
    assert_eq!(text(&now["structuredContent"]["files"][0], "path"), "/renamed/b.md");

    // The past reveals no more than the present.
    let scoped = workspace.token_for(&[&folder]).await;
    let seen = mcp::call(&scoped, "get_files", json!({"ids": [kept, edited], "asOf": then})).await;
    let seen = &seen["structuredContent"]["files"];
    assert!(text(&seen[0], "error").starts_with("Forbidden: "), "{seen}");
    assert_eq!(text(&seen[1], "content"), "one\n");
    for odd in ["nonsense", "c1-zzzzzz", "2999-01-01T00:00:00Z"] {
        let told = mcp::call_error(token, "get_files", json!({"ids": [edited], "asOf": odd})).await;
        assert!(told.starts_with("Validation error: ") && told.contains("asOf"), "{told}");
    }
    let old = json!({"ids": [edited], "asOf": "2020-01-01T00:00:00Z"});
    assert!(mcp::call_error(token, "get_files", old).await.contains("without asOf"));
}

async fn a_citation_opens_as_it_was_given(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let made = workspace.file("zorilla.md", None, "The zorilla is striped.\n").await;
    let path = format!("/api/v1/files/{}", id(&made.json()));
    let found = workspace.search_after(&made.change(), json!({"query": "zorilla"})).await;
    let hash = text(&found["results"][0]["citation"], "contentHash");
    token.patch(&path).json(json!({"content": "Rewritten.\n", "name": "other.md"})).await.expect(200);
    let cited = token.get(&format!("{path}?hash={hash}")).await.expect(200).json();
    assert_eq!(text(&cited, "content"), "The zorilla is striped.\n");
    assert_eq!((text(&cited, "contentHash"), &cited["version"]), (hash.clone(), &json!(1)));
    let read = mcp::call(token, "get_file", json!({"id": id(&cited), "hash": hash})).await;
    assert_eq!(mcp::text_of(&read), "The zorilla is striped.\n");
    for odd in ["blake3:00", "x", "%00", "'"] {
        token.get(&format!("{path}?hash={odd}")).await.expect_error(404, "NOT_FOUND");
    }
    token
        .get(&format!("{path}?hash={hash}&asOf={}", made.change()))
        .await
        .expect_error(400, "VALIDATION_ERROR");
}

async fn the_past_shows_no_more_than_the_present(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (inside, outside) = (workspace.folder("inside", None).await, workspace.folder("outside", None).await);
    let made = workspace.file("a.md", Some(&outside), "one\n").await;
    let (file, change) = (id(&made.json()), made.change());
    let path = format!("/api/v1/files/{file}");
    let into = json!({"folderId": inside});
    let moved = workspace.token.patch(&path).json(into).await.expect(200).change();
    let (of_inside, of_outside) =
        (workspace.token_for(&[&inside]).await, workspace.token_for(&[&outside]).await);
    of_inside.get(&format!("{path}?asOf={moved}")).await.expect(200);
    for (token, change) in [(&of_inside, &change), (&of_outside, &change), (&of_outside, &moved)] {
        let refused = token.get(&format!("{path}?asOf={change}")).await.expect_error(403, "OUT_OF_SCOPE");
        assert!(!refused.to_string().contains("/outside"), "{refused}");
    }
    let stranger = deployment.workspace().await.token;
    stranger.get(&format!("{path}?asOf={change}")).await.expect_error(404, "NOT_FOUND");
    let blind = workspace.token_with(&["write"]).await;
    blind.get(&format!("{path}?asOf={change}")).await.expect_error(403, "FORBIDDEN");
    workspace.token.delete(&path).await.expect(204);
    for query in [format!("asOf={change}"), format!("hash={}", text(&made.json(), "contentHash"))] {
        workspace.token.get(&format!("{path}?{query}")).await.expect_error(404, "NOT_FOUND");
    }
}

async fn moments_that_nobody_knows_are_refused(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = format!("/api/v1/files/{}", workspace.file_id("a.md", None, "x").await);
    for odd in ["nonsense", "", "i1-1", "2026-13-01T00:00:00Z", "c1-zzzzzz", "2999-01-01T00:00:00Z"] {
        workspace.token.get(&format!("{path}?asOf={odd}")).await.expect_error(400, "VALIDATION_ERROR");
    }
    let old =
        workspace.token.get(&format!("{path}?asOf=2020-01-01T00:00:00Z")).await.expect_error(410, "GONE");
    assert!(text(&old, "message").contains("is known from 20"), "{old}");
    let told = mcp::call_error(
        &workspace.token,
        "get_file",
        json!({"id": path.rsplit('/').next(), "asOf": "2020-01-01T00:00:00Z"}),
    )
    .await;
    assert!(told.contains("without asOf"), "{told}");
}

async fn a_memory_is_read_as_it_stood(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let before = workspace.file("before.md", None, "x").await.change();
    let folder = workspace.folder("plans", None).await;
    let inside = workspace.file_id("inside.md", Some(&folder), "plan one\n").await;
    let leaves = workspace.file_id("leaves.md", Some(&folder), "gone soon\n").await;
    let file = workspace.file_id("a.md", None, "one\n").await;
    let members = json!([{"kind": "file", "fileId": file}, {"kind": "folder", "folderId": folder}]);
    let body = json!({"name": "Guide", "useWhen": "then", "members": members});
    let made = token.post("/api/v1/memories").json(body).await.expect(201);
    let (memory, first) = (id(&made.json()), made.change());
    let path = format!("/api/v1/memories/{memory}");
    token.patch(&format!("/api/v1/files/{file}")).json(json!({"content": "two\n"})).await.expect(200);
    token.patch(&format!("/api/v1/files/{inside}")).json(json!({"content": "plan two\n"})).await.expect(200);
    token.patch(&format!("/api/v1/files/{leaves}")).json(json!({"folderId": null})).await.expect(200);
    workspace.file("new.md", Some(&folder), "plan three\n").await;
    let body = json!({"useWhen": "now", "name": "Handbook"});
    let second = token.patch(&path).json(body).await.expect(200).change();

    let contents = |resolved: &Value| -> Vec<String> {
        let members = items(&resolved["members"]).iter().flat_map(|member| items(&member["entries"]));
        members.map(|entry| text(entry, "content")).collect()
    };
    let then = token.get(&format!("{path}?asOf={first}")).await.expect(200).json();
    assert_eq!((text(&then, "name"), text(&then, "useWhen")), ("Guide".to_owned(), "then".to_owned()));
    assert_eq!(contents(&then), ["one\n", "plan one\n"], "{then}");
    assert_eq!(each(&then["coverage"], "code"), ["not_kept"], "{then}");
    let now = token.get(&format!("{path}?asOf={second}")).await.expect(200).json();
    assert_eq!(text(&now, "name"), "Handbook");
    assert_eq!(contents(&now), ["two\n", "plan two\n", "plan three\n"], "{now}");
    let read = mcp::call(token, "get_memory", json!({"slug": memory, "asOf": first})).await;
    let read = mcp::text_of(&read);
    assert!(read.contains("plan one") && !read.contains("plan two"), "{read}");
    let hash = format!("blake3:{}", blake3::hash(b"plan one\n").to_hex());
    assert!(read.contains(&format!("?hash={hash}")), "the link opens what was: {read}");

    token.get(&format!("{path}?asOf={before}")).await.expect_error(404, "NOT_FOUND");
    token.get(&format!("{path}?asOf=2020-01-01T00:00:00Z")).await.expect_error(410, "GONE");
    token.get(&format!("{path}?asOf=nonsense")).await.expect_error(400, "VALIDATION_ERROR");
    // The past reveals no more than the present.
    let scoped = workspace.token_for(&[&folder]).await;
    let seen = scoped.get(&format!("{path}?asOf={first}")).await.expect(200).json();
    assert_eq!(contents(&seen), ["plan one\n"], "{seen}");
    assert!(each(&seen["coverage"], "code").contains(&"out_of_scope"), "{seen}");
    token.delete(&format!("/api/v1/files/{inside}")).await.expect(204);
    let later = token.get(&format!("{path}?asOf={first}")).await.expect(200).json();
    assert_eq!(contents(&later), ["one\n"], "{later}");
}

async fn a_script_walks_the_workspace_as_it_was(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let folder = workspace.folder("plans", None).await;
    let file = workspace.file_id("a.md", Some(&folder), "one\nkept\n").await;
    let deleted = workspace.file_id("deleted.md", Some(&folder), "deleted\n").await;
    let members = json!([{"kind": "file", "fileId": file}]);
    let body = json!({"name": "Guide", "useWhen": "then", "members": members});
    let memory = id(&token.post("/api/v1/memories").json(body).await.expect(201).json());
    let first = workspace.file("b.md", None, "b\n").await.change();
    let change = json!({"name": "renamed.md", "content": "two\n"});
    token.patch(&format!("/api/v1/files/{file}")).json(change).await.expect(200);
    token.patch(&format!("/api/v1/folders/{folder}")).json(json!({"name": "ideas"})).await.expect(200);
    token.patch(&format!("/api/v1/memories/{memory}")).json(json!({"useWhen": "now"})).await.expect(200);
    token.delete(&format!("/api/v1/files/{deleted}")).await.expect(204);
    let last = workspace.file("later.md", Some(&folder), "later\n").await;

    let script = "find /files -type f; cat /files/plans/a.md; grep -h Use /memories/guide/README.md";
    let then = exec_with(token, json!({"script": script, "asOf": first})).await;
    let expected = "/files/b.md\n/files/plans/a.md\none\nkept\nUse when: then\n";
    assert_eq!((text(&then, "output").as_str(), &then["failed"]), (expected, &json!(false)), "{then}");
    let cited = &then["citations"][0];
    assert_eq!(text(cited, "path"), "/plans/a.md", "{then}");
    let hash = format!("blake3:{}", blake3::hash(b"one\nkept\n").to_hex());
    assert_eq!(text(cited, "contentHash"), hash, "{then}");
    assert_eq!(each(&then["coverage"], "code"), ["not_kept"], "{then}");
    let script = "find /files -type f; cat /files/ideas/renamed.md";
    let expected = "/files/b.md\n/files/ideas/later.md\n/files/ideas/renamed.md\ntwo\n";
    let now = exec_with(token, json!({"script": script})).await;
    assert_eq!((text(&now, "output").as_str(), &now["coverage"]), (expected, &Value::Null), "{now}");
    // As of the last write it reads as it does now.
    let at = text(&last.json(), "updatedAt");
    assert_eq!(text(&exec_with(token, json!({"script": script, "asOf": at})).await, "output"), expected);
    let write = json!({"script": "echo x > /files/b.md", "asOf": first});
    assert_eq!(exec_with(token, write).await["failed"], json!(true));
    let walked = json!({"script": "cat /files/plans/a.md", "asOf": first});
    let walked = mcp::text_of(&mcp::call(token, "browse_context", walked).await);
    assert!(walked.starts_with("one\nkept\n") && walked.contains("[note: "), "{walked}");

    for odd in ["nonsense", "c1-zzzzzz", "2999-01-01T00:00:00Z"] {
        let body = json!({"script": "ls", "asOf": odd});
        let refused = token.post("/api/v1/vfs/exec").json(body).await.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(each(&refused["errors"], "path"), ["asOf"], "{refused}");
    }
    let old = json!({"script": "ls", "asOf": "2020-01-01T00:00:00Z"});
    token.post("/api/v1/vfs/exec").json(old).await.expect_error(410, "GONE");
}

async fn a_script_sees_no_more_of_then_than_of_now(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (inside, outside) = (workspace.folder("inside", None).await, workspace.folder("outside", None).await);
    let stays = workspace.file_id("stays.md", Some(&inside), "as it was\n").await;
    let leaves = workspace.file_id("leaves.md", Some(&inside), "secret now\n").await;
    let comes = workspace.file_id("comes.md", Some(&outside), "secret then\n").await;
    let first = workspace.file("b.md", None, "b\n").await.change();
    let token = &workspace.token;
    for (file, change) in [
        (stays, json!({"content": "edited\n"})),
        (leaves, json!({"folderId": outside})),
        (comes, json!({"folderId": inside})),
    ] {
        token.patch(&format!("/api/v1/files/{file}")).json(change).await.expect(200);
    }
    let scoped = workspace.token_for(&[&inside]).await;
    let script = "find / -type f -path '/files/*'; grep -rh . /files";
    let then = exec_with(&scoped, json!({"script": script, "asOf": first})).await;
    assert_eq!(text(&then, "output"), "/files/inside/stays.md\nas it was\n", "{then}");
    let whole = exec_with(token, json!({"script": "find /files -type f", "asOf": first})).await;
    let expected = "/files/b.md\n/files/inside/leaves.md\n/files/inside/stays.md\n/files/outside/comes.md\n";
    assert_eq!(text(&whole, "output"), expected, "{whole}");
    let blind = workspace.token_with(&["write"]).await;
    let body = json!({"script": "ls", "asOf": first});
    blind.post("/api/v1/vfs/exec").json(body).await.expect_error(403, "FORBIDDEN");
}

/// The paths that a keyword search cites.
async fn found(workspace: &Workspace, change: &str, query: &str, moment: Option<&str>) -> Vec<String> {
    let body = json!({"query": query, "strategy": "keyword", "asOf": moment});
    let answer = workspace.search_after(change, body).await;
    assert_eq!(each(&answer["coverage"], "code").contains(&"not_kept"), moment.is_some(), "{answer}");
    items(&answer["results"]).iter().map(|result| text(&result["citation"], "path")).collect()
}

async fn a_search_finds_what_was(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let folder = workspace.folder("zoo", None).await;
    workspace.file("kept.md", Some(&folder), "The zorilla is striped.\n").await;
    let content = "# Horses\n\nThe quagga grazed on the veld.\n";
    let file = workspace.file_id("animals.md", Some(&folder), content).await;
    let deleted = workspace.file_id("deleted.md", None, "A quagga in a museum.\n").await;
    let body = json!({"name": "Animals", "folderId": folder});
    let database = token.post("/api/v1/databases").json(body).await.expect(201).json();
    let primary = id(&items(&database["properties"])[0]);
    let records = format!("/api/v1/databases/{}/records", id(&database));
    let mut made = Vec::new();
    for name in ["Vaquita", "Numbat"] {
        let values = json!({"values": {&primary: name}});
        made.push(id(&token.post(&records).json(values).await.expect(201).json()));
    }
    let then = workspace.file("other.md", None, "Nothing of note.\n").await.change();

    let change = json!({"content": "The okapi hides in the forest.\n", "name": "changed.md"});
    token.patch(&format!("/api/v1/files/{file}")).json(change).await.expect(200);
    token.patch(&format!("/api/v1/folders/{folder}")).json(json!({"name": "park"})).await.expect(200);
    token.delete(&format!("/api/v1/files/{deleted}")).await.expect(204);
    let values = json!({"values": {&primary: "Numbat, banded"}});
    token.patch(&format!("{records}/{}", made[1])).json(values).await.expect(200);
    let now = workspace.file("late.md", None, "A quagga was seen again.\n").await.change();

    assert_eq!(found(&workspace, &now, "quagga", None).await, ["/late.md"]);
    assert_eq!(found(&workspace, &now, "quagga", Some(&then)).await, ["/zoo/animals.md"]);
    assert_eq!(found(&workspace, &now, "okapi", None).await, ["/park/changed.md"]);
    assert_eq!(found(&workspace, &now, "okapi", Some(&then)).await, Vec::<String>::new());
    assert_eq!(found(&workspace, &now, "zorilla", Some(&then)).await, ["/zoo/kept.md"]);
    assert_eq!(found(&workspace, &now, "vaquita", Some(&then)).await, ["/zoo/Animals/Vaquita"]);
    assert_eq!(found(&workspace, &now, "numbat", Some(&then)).await, Vec::<String>::new());

    let body = json!({"query": "quagga", "strategy": "keyword", "asOf": then});
    let answer = workspace.search_after(&now, body.clone()).await;
    let cited = &answer["results"][0]["citation"];
    let hash = format!("blake3:{}", blake3::hash(content.as_bytes()).to_hex());
    assert_eq!((id(cited), text(cited, "contentHash")), (file.clone(), hash.clone()), "{answer}");
    let opened = token.get(&format!("/api/v1/files/{file}?hash={hash}")).await.expect(200).json();
    assert_eq!(text(&opened, "content"), content);
    let over_mcp = mcp::text_of(&mcp::call(token, "search_context", body).await);
    assert!(over_mcp.contains("The quagga grazed"), "{over_mcp}");

    // The past reveals no more than the present.
    let elsewhere = workspace.folder("elsewhere", None).await;
    let into = json!({"folderId": elsewhere});
    let moved = token.patch(&format!("/api/v1/files/{file}")).json(into).await.expect(200).change();
    for folder in [&folder, &elsewhere] {
        let scoped = workspace.token_for(&[folder]).await;
        let body = json!({"query": "quagga", "strategy": "keyword", "asOf": then});
        let answer = scoped.post("/api/v1/search_context").after(&moved).json(body).await.expect(200).json();
        assert!(items(&answer["results"]).is_empty(), "{answer}");
    }
}

async fn a_search_of_then_is_narrowed_by_what_was(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let (park, sea) = (workspace.folder("Savanna", None).await, workspace.folder("sea", None).await);
    let inner = workspace.folder("inner", Some(&park)).await;
    let make = async |name: &str, content: &str, folder: &str, tags: Value| {
        let body = json!({"name": name, "content": content, "fileType": "markdown", "folderId": folder, "tags": tags});
        id(&token.post("/api/v1/files").json(body).await.expect(201).json())
    };
    let tags = json!(["old", "both"]);
    let retagged = make("retagged.md", "The aardwolf eats termites at night.\n", &park, tags).await;
    make("kept.md", "A burrow of its own, dug by an aardwolf.\n", &inner, json!(["old"])).await;
    let moved = make("moved.md", "Nobody has seen this aardwolf swim.\n", &sea, json!(["other"])).await;
    let then = workspace.file("other.md", None, "Nothing of note.\n").await.change();

    let patch =
        async |path: String, change: Value| token.patch(&path).json(change).await.expect(200).change();
    patch(format!("/api/v1/files/{retagged}"), json!({"tags": ["new", "both"]})).await;
    patch(format!("/api/v1/files/{moved}"), json!({"folderId": park})).await;
    patch(format!("/api/v1/folders/{inner}"), json!({"parentId": sea})).await;
    patch(format!("/api/v1/folders/{park}"), json!({"name": "Tundra"})).await;
    let late = workspace.folder("late", None).await;
    let now = workspace.file("late.md", None, "Nothing of note.\n").await.change();

    let paths = async |narrowed: Value, moment: Option<&str>| -> Vec<String> {
        let mut body = json!({"query": "aardwolf", "strategy": "keyword", "asOf": moment});
        body.as_object_mut().unwrap().extend(narrowed.as_object().unwrap().clone());
        let answer = workspace.search_after(&now, body).await;
        let results = items(&answer["results"]).iter();
        let mut paths: Vec<String> = results.map(|result| text(&result["citation"], "path")).collect();
        paths.sort();
        paths
    };
    let (before, today) = (Some(then.as_str()), None);
    let cases: [(Value, Option<&str>, &[&str]); 13] = [
        (json!({"tags": ["old"]}), before, &["/Savanna/inner/kept.md", "/Savanna/retagged.md"]),
        (json!({"tags": ["old"]}), today, &["/sea/inner/kept.md"]),
        (json!({"tags": ["old", "both"]}), before, &["/Savanna/retagged.md"]),
        (json!({"tags": ["new"]}), before, &[]),
        (json!({"tags": ["new"]}), today, &["/Tundra/retagged.md"]),
        (json!({"folderId": park}), before, &["/Savanna/inner/kept.md", "/Savanna/retagged.md"]),
        (json!({"folderId": park}), today, &["/Tundra/moved.md", "/Tundra/retagged.md"]),
        (json!({"folderId": sea}), before, &["/sea/moved.md"]),
        (json!({"folderId": inner, "tags": ["old"]}), before, &["/Savanna/inner/kept.md"]),
        // By the names at that time.
        (json!({"query": "savanna"}), before, &["/Savanna/inner/kept.md", "/Savanna/retagged.md"]),
        (json!({"query": "savanna"}), today, &[]),
        (json!({"query": "tundra"}), before, &[]),
        (json!({"query": "tundra"}), today, &["/Tundra/moved.md", "/Tundra/retagged.md"]),
    ];
    for (narrowed, moment, expected) in cases {
        assert_eq!(paths(narrowed.clone(), moment).await, expected, "{narrowed} {moment:?}");
    }
    let search = async |body: Value| token.post("/api/v1/search_context").after(&now).json(body).await;
    let body = json!({"query": "aardwolf", "folderId": late, "asOf": then});
    search(body).await.expect_error(404, "NOT_FOUND");
    let body = json!({"query": "aardwolf", "folderId": "no id", "asOf": then});
    search(body).await.expect_error(400, "VALIDATION_ERROR");
    let scoped = workspace.token_for(&[&sea]).await;
    let body = json!({"query": "aardwolf", "folderId": park, "asOf": then});
    scoped.post("/api/v1/search_context").after(&now).json(body).await.expect_error(404, "NOT_FOUND");
}

async fn what_was_is_no_news_to_an_agent(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let made = workspace.file("a.md", None, "The kakapo cannot fly.\n").await;
    let (file, then) = (id(&made.json()), made.change());
    let change = json!({"content": "The kakapo climbs trees.\n"});
    let path = format!("/api/v1/files/{file}");
    let now = workspace.token.patch(&path).json(change).await.expect(200).change();
    let agent = workspace.token_with(&["read"]).await;
    let search = async |as_of: Option<&str>| {
        let mut body = json!({"query": "kakapo", "strategy": "keyword", "_meta": {"cairn/change": now}});
        if let Some(as_of) = as_of {
            body["asOf"] = json!(as_of);
        }
        let answer = mcp::call(&agent, "search_context", body).await;
        (answer["structuredContent"]["results"][0].clone(), mcp::text_of(&answer))
    };
    assert_eq!(search(None).await.0["_meta"], json!(null));
    let (result, told) = search(Some(then.as_str())).await;
    assert!(text(&result, "content").contains("cannot fly"), "{result}");
    assert_eq!(result["_meta"], json!(null), "it asked for what was");
    let hash = text(&result["citation"], "contentHash");
    let permalink = text(&result["citation"], "permalink");
    assert!(permalink.contains(&format!("hash={hash}")) && told.contains(&permalink), "{told}");
    assert!(told.contains(&format!("get_file with {}", json!({"id": file, "hash": hash}))), "{told}");
    mcp::call(&agent, "get_files", json!({"ids": [file], "asOf": then})).await;
    mcp::call(&agent, "browse_context", json!({"script": "cat /files/a.md", "asOf": then})).await;
    assert_eq!(search(None).await.0["_meta"], json!(null), "it was shown this before");
}

async fn a_search_of_then_asks_for_what_is_known_of_then(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let then = workspace.file("a.md", None, "x").await.change();
    let token = &workspace.token;
    let refused = async |path: &str, body: Value, expected: &str| {
        let error = token.post(path).json(body).await.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(each(&error["errors"], "path"), [expected], "{error}");
    };
    let search = "/api/v1/search_context";
    for odd in ["nonsense", "c1-zzzzzz", "2999-01-01T00:00:00Z"] {
        refused(search, json!({"query": "x", "asOf": odd}), "asOf").await;
    }
    for (name, value) in [
        ("updatedAfter", json!("2026-01-01T00:00:00Z")),
        ("sourceIds", json!(["x"])),
        ("kinds", json!(["ingested"])),
    ] {
        refused(search, json!({"query": "x", "asOf": then, name: value}), name).await;
    }
    let absence =
        json!({"query": "x", "asOf": then, "documentId": workspace.file_id("b.md", None, "x").await});
    refused("/api/v1/search_context/absence", absence, "asOf").await;
    let old = json!({"query": "x", "asOf": "2020-01-01T00:00:00Z"});
    token.post(search).json(old).await.expect_error(410, "GONE");
}
