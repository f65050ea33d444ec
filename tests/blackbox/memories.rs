//! `/api/v1/memories` (spec 2.3, 4.3) and the tools for memories (spec 4.12).

use std::collections::BTreeSet;

use crate::support::callers::ApiToken;
use crate::support::http::{each, id, items, text};
use crate::support::mcp::{call, call_error, call_json, text_of};
use crate::support::prelude::*;
use crate::support::workspace::read_file;

scenarios![
    a_memory_has_every_field_of_the_contract,
    a_memory_is_changed_and_removed,
    a_slug_is_derived_and_unique,
    members_come_and_go,
    a_memory_is_read_whole,
    a_database_member_stands_for_its_records,
    a_database_without_records_tells_its_fields,
    every_omission_is_told,
    what_is_wrong_is_named_at_once,
    a_foreign_target_looks_like_none,
    an_export_needs_no_token_for_a_public_memory,
    a_folder_scope_sees_its_part,
    permissions_are_needed,
    guidance_is_found_by_search,
    agents_use_memories,
    concurrent_writers_leave_exact_versions,
];

async fn memory(workspace: &Workspace, body: Value) -> Value {
    workspace.token.post("/api/v1/memories").json(body).await.expect(201).json()
}

async fn read(caller: &impl Caller, named: &str) -> Value {
    caller.get(&format!("/api/v1/memories/{named}")).await.expect(200).json()
}

fn of_file(file: &str) -> Value {
    json!({"kind": "file", "fileId": file})
}

fn of_folder(folder: &str) -> Value {
    json!({"kind": "folder", "folderId": folder})
}

async fn a_memory_has_every_field_of_the_contract(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "x").await;
    let body = json!({
        "name": "Release process", "description": "How we release", "useWhen": "preparing a release",
        "isPublic": false, "members": [of_file(&file)],
    });
    let created = workspace.token.post("/api/v1/memories").json(body).await.expect(201);
    assert!(!created.change().is_empty());
    let memory = created.json();
    assert_eq!(memory["workspaceId"], json!(workspace.id));
    assert_eq!(
        (text(&memory, "slug"), text(&memory, "name")),
        ("release-process".into(), "Release process".into())
    );
    assert_eq!(text(&memory, "description"), "How we release");
    assert_eq!(text(&memory, "useWhen"), "preparing a release");
    assert_eq!((&memory["isPublic"], &memory["version"]), (&json!(false), &json!(1)));
    assert!(text(&memory, "createdAt").ends_with('Z') && text(&memory, "updatedAt").ends_with('Z'));
    let member = &items(&memory["members"])[0];
    assert_eq!((&member["kind"], &member["fileId"]), (&json!("file"), &json!(file)));
    assert_eq!((&member["position"], &member["title"]), (&json!(0), &json!("a.md")));
    assert!(!id(member).is_empty() && text(member, "addedAt").ends_with('Z'));
    let list = workspace.token.get("/api/v1/memories").await.expect(200);
    assert_eq!((list.header("x-total-count"), list.json()), (Some("1"), json!([memory])));
    let plain = self::memory(&workspace, json!({"name": "Plain"})).await;
    assert_eq!((&plain["description"], &plain["members"]), (&Value::Null, &json!([])));
}

async fn a_memory_is_changed_and_removed(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "x").await;
    let made = memory(&workspace, json!({"name": "M", "useWhen": "ever", "members": [of_file(&file)]})).await;
    let path = format!("/api/v1/memories/{}", id(&made));
    let patch = json!({"name": "N", "slug": "other", "useWhen": null, "isPublic": true});
    let changed = workspace.token.patch(&path).json(patch).await.expect(200);
    assert!(!changed.change().is_empty());
    let changed = changed.json();
    assert_eq!((text(&changed, "slug"), &changed["useWhen"]), ("other".into(), &Value::Null));
    assert_eq!((&changed["version"], &changed["members"]), (&json!(2), &made["members"]));
    let same = workspace.token.patch(&path).json(json!({"name": "N"})).await.expect(200).json();
    assert_eq!(same, changed, "nothing changed");
    workspace
        .token
        .patch("/api/v1/memories/other")
        .json(json!({"name": "x"}))
        .await
        .expect_error(404, "NOT_FOUND");
    workspace.token.delete("/api/v1/memories/other").await.expect_error(404, "NOT_FOUND");
    let deleted = workspace.token.delete(&path).await.expect(204);
    assert!(deleted.body.is_empty() && !deleted.change().is_empty());
    for named in ["other", &id(&made)] {
        workspace.token.get(&format!("/api/v1/memories/{named}")).await.expect_error(404, "NOT_FOUND");
    }
    workspace.token.delete(&path).await.expect_error(404, "NOT_FOUND");
    assert_eq!(text(&read_file(&workspace.token, &file).await, "content"), "x");
}

async fn a_slug_is_derived_and_unique(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let slug = async |body: Value| text(&memory(&workspace, body).await, "slug");
    assert_eq!(slug(json!({"name": "Über CI/CD!"})).await, "uber-ci-cd");
    assert_eq!(slug(json!({"name": "über ci cd"})).await, "uber-ci-cd-2");
    assert_eq!(slug(json!({"name": "any", "slug": "mine"})).await, "mine");
    let taken = workspace.token.post("/api/v1/memories").json(json!({"name": "any", "slug": "mine"})).await;
    taken.expect_error(409, "SLUG_TAKEN");
    let other = memory(&workspace, json!({"name": "Other"})).await;
    let path = format!("/api/v1/memories/{}", id(&other));
    workspace.token.patch(&path).json(json!({"slug": "mine"})).await.expect_error(409, "SLUG_TAKEN");
    let elsewhere = deployment.workspace().await;
    memory(&elsewhere, json!({"name": "any", "slug": "mine"})).await;
    let made = (0..8).map(|_| {
        let token = workspace.token.clone();
        tokio::spawn(async move { token.post("/api/v1/memories").json(json!({"name": "Race"})).await })
    });
    let mut slugs = BTreeSet::new();
    for reply in made.collect::<Vec<_>>() {
        slugs.insert(text(&reply.await.unwrap().expect(201).json(), "slug"));
    }
    let expected = (2..=8).map(|number| format!("race-{number}")).chain(["race".to_owned()]);
    assert_eq!(slugs, expected.collect());
}

async fn members_come_and_go(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("f", None).await;
    let mut files = Vec::new();
    for name in ["a", "b", "c"] {
        files.push(workspace.file_id(name, None, name).await);
    }
    let made = memory(&workspace, json!({"name": "M", "members": [of_file(&files[0])]})).await;
    let path = format!("/api/v1/memories/{}/members", id(&made));
    let body = json!({"members": [of_folder(&folder), of_file(&files[1]), of_file(&files[2])]});
    let added = workspace.token.post(&path).json(body).await.expect(201);
    assert!(!added.change().is_empty());
    let added = added.json();
    assert_eq!(each(&added, "title"), ["f", "b", "c"]);
    assert_eq!(items(&added).iter().map(|one| &one["position"]).collect::<Vec<_>>(), [1, 2, 3]);
    let first_added = id(&items(&added)[0]);
    let removed = workspace.token.delete(&format!("{path}/{first_added}")).await.expect(204);
    assert!(removed.body.is_empty() && !removed.change().is_empty());
    workspace.token.delete(&format!("{path}/{first_added}")).await.expect_error(404, "NOT_FOUND");
    let now = read(&workspace.token, "m").await;
    assert_eq!((each(&now["members"], "title"), &now["version"]), (vec!["a", "b", "c"], &json!(3)));
    assert_eq!(items(&now["members"]).iter().map(|one| &one["position"]).collect::<Vec<_>>(), [0, 1, 2]);
    for (count, status) in [(0, 400), (1, 201), (100, 201), (101, 400)] {
        let body = json!({"members": vec![of_file(&files[0]); count]});
        workspace.token.post(&path).json(body).await.expect(status);
    }
    let slug =
        workspace.token.post("/api/v1/memories/m/members").json(json!({"members": [of_file(&files[0])]}));
    slug.await.expect_error(404, "NOT_FOUND");
}

async fn a_memory_is_read_whole(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let top = workspace.folder("top", None).await;
    let inner = workspace.folder("inner", Some(&top)).await;
    let one = workspace.file("one.md", None, "# One\n").await.json();
    workspace.file_id("two.md", Some(&top), "two").await;
    workspace.typed_file("three.json", "json", Some(&inner), "{}").await;
    let members = json!([of_folder(&top), of_file(&id(&one))]);
    let made = memory(&workspace, json!({"name": "M", "members": members})).await;
    let changed = json!({"content": "# One, newer\n"});
    workspace.token.patch(&format!("/api/v1/files/{}", id(&one))).json(changed).await.expect(200);
    let whole = read(&workspace.token, "m").await;
    assert_eq!(whole, read(&workspace.token, &id(&made)).await);
    assert_eq!(whole["coverage"], json!([]));
    let [folder, file] = items(&whole["members"]) else { panic!("{whole}") };
    assert_eq!(each(&folder["entries"], "path"), ["/top/inner/three.json", "/top/two.md"]);
    assert_eq!(each(&folder["entries"], "fileType"), ["json", "markdown"]);
    let entry = &items(&file["entries"])[0];
    let stored = read_file(&workspace.token, &id(&one)).await;
    assert_eq!((text(entry, "content"), &entry["fileId"]), ("# One, newer\n".into(), &stored["id"]));
    assert_eq!((text(entry, "title"), text(entry, "path")), ("one.md".into(), "/one.md".into()));
    let citation = &entry["citation"];
    assert_eq!((&citation["kind"], &citation["id"]), (&json!("file"), &stored["id"]));
    assert_eq!(citation["contentHash"], stored["contentHash"]);
    assert!(text(citation, "url").ends_with(&format!("/file/{}", id(&one))), "{citation}");
    let exported = workspace.token.get("/api/v1/memories/m/export").await.expect(200).json();
    assert_eq!(exported, whole);
}

async fn a_database_member_stands_for_its_records(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let database = token.post("/api/v1/databases").json(json!({"name": "Tasks"})).await.expect(201).json();
    let name = id(&items(&database["properties"])[0]);
    let path = format!("/api/v1/databases/{}/records", id(&database));
    let mut records = Vec::new();
    for title in ["one", "two", "three"] {
        let body = json!({"values": {name.as_str(): title}});
        records.push(id(&token.post(&path).json(body).await.expect(201).json()));
    }
    let query = json!({"search": "t", "sortFieldId": name, "sortDirection": "desc", "limit": 1});
    let member = json!({"kind": "database", "databaseId": id(&database), "databaseQuery": query});
    let body = json!({"name": "M", "isPublic": true, "members": [member]});
    let made = memory(&workspace, body).await;
    assert_eq!(items(&made["members"])[0]["databaseQuery"], query);
    let whole = read(token, "m").await;
    let entry = &items(&items(&whole["members"])[0]["entries"])[0];
    assert_eq!((&entry["recordId"], text(entry, "title")), (&json!(records[1]), "two".into()), "{whole}");
    assert!(text(entry, "content").contains("Name: two"), "{entry}");
    assert_eq!(items(&whole["members"])[0]["fields"], database["properties"]);
    let url = format!("/databases/{}?record={}", id(&database), records[1]);
    assert!(text(&entry["citation"], "url").ends_with(&url), "{entry}");
    assert_eq!(each(&whole["coverage"], "code"), ["budget_exhausted"]);
    let anonymous = deployment.anonymous();
    let exported = anonymous.get(&format!("/api/v1/memories/{}/export", id(&made))).await.expect(200).json();
    assert_eq!(each(&exported["coverage"], "code"), ["database_excluded"]);
    assert_eq!(items(&exported["members"])[0]["entries"], json!([]));
    assert_eq!(items(&exported["members"])[0].get("fields"), None);
}

async fn a_database_without_records_tells_its_fields(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let database = token.post("/api/v1/databases").json(json!({"name": "Empty"})).await.expect(201).json();
    let path = format!("/api/v1/databases/{}", id(&database));
    let due = json!({"name": "Due", "type": "date"});
    token.post(&format!("{path}/fields")).json(due).await.expect(201);
    let member = json!({"kind": "database", "databaseId": id(&database)});
    memory(&workspace, json!({"name": "M", "members": [member]})).await;
    for place in ["m", "m/export"] {
        let whole = read(token, place).await;
        let resolved = &items(&whole["members"])[0];
        assert_eq!(resolved["entries"], json!([]), "{whole}");
        assert_eq!(each(&resolved["fields"], "name"), ["Name", "Due"]);
        assert_eq!(each(&resolved["fields"], "type"), ["text", "date"]);
        assert_eq!(whole["coverage"], json!([]));
    }
}

async fn every_omission_is_told(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let full = workspace.folder("full", None).await;
    let last = workspace.folder("last", Some(&full)).await;
    for number in 0..51 {
        let folder = if number < 40 { &full } else { &last };
        workspace.file_id(&format!("{number:02}.md"), Some(folder), "x").await;
    }
    let gone_folder = workspace.folder("gone", None).await;
    let gone = workspace.file_id("gone.md", None, "secret of the trash").await;
    let members = json!([of_folder(&full), of_file(&gone), of_folder(&gone_folder)]);
    let made = memory(&workspace, json!({"name": "M", "members": members})).await;
    workspace.token.delete(&format!("/api/v1/files/{gone}")).await.expect(204);
    workspace.token.delete(&format!("/api/v1/folders/{gone_folder}")).await.expect(204);
    let whole = read(&workspace.token, "m").await;
    assert_eq!(each(&whole["coverage"], "code"), ["folder_truncated", "target_deleted", "target_deleted"]);
    assert_eq!(each(&whole["coverage"], "memberId"), each(&made["members"], "id"));
    assert_eq!(each(&whole["coverage"], "targetId"), [full, gone, gone_folder]);
    let counts: Vec<usize> =
        items(&whole["members"]).iter().map(|member| items(&member["entries"]).len()).collect();
    assert_eq!(counts, [50, 0, 0]);
    assert!(!whole.to_string().contains("secret of the trash"));
    assert_eq!(items(&whole["members"])[1]["title"], Value::Null);
}

async fn what_is_wrong_is_named_at_once(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a", None, "x").await;
    let folder = workspace.folder("f", None).await;
    let errors = async |body: Value| {
        let reply = workspace.token.post("/api/v1/memories").json(body).await;
        let error = reply.expect_error(400, "VALIDATION_ERROR");
        let paths: BTreeSet<String> = each(&error["errors"], "path").into_iter().map(str::to_owned).collect();
        paths.into_iter().collect::<Vec<_>>()
    };
    let shape =
        json!({"slug": 1, "usewhen": "x", "members": [{"kind": "fil"}, {"kind": "file", "fileId": "x"}]});
    assert_eq!(errors(shape).await, ["members[0].kind", "members[1].fileId", "name", "slug", "usewhen"]);
    let both = json!({"kind": "file", "fileId": file, "folderId": folder});
    let rules = json!({
        "name": " ", "slug": "No Slug", "useWhen": "a\u{0}b",
        "members": [{"kind": "file"}, both, {"kind": "folder", "fileId": file}],
    });
    let expected = [
        "members[0].fileId",
        "members[1].folderId",
        "members[2].fileId",
        "members[2].folderId",
        "name",
        "slug",
        "useWhen",
    ];
    assert_eq!(errors(rules).await, expected);
    assert_eq!(errors(json!({"name": "x".repeat(256)})).await, ["name"]);
    memory(&workspace, json!({"name": "ä".repeat(255), "slug": "a".repeat(100)})).await;
    assert_eq!(errors(json!({"name": "x", "slug": "a".repeat(101)})).await, ["slug"]);
}

async fn a_foreign_target_looks_like_none(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let elsewhere = deployment.workspace().await;
    let foreign = elsewhere.file_id("theirs", None, "x").await;
    let theirs = memory(&elsewhere, json!({"name": "Theirs"})).await;
    let unknown = uuid::Uuid::from_u128(7).to_string();
    let own = workspace.file_id("own", None, "x").await;
    let document = json!({"kind": "source_document", "sourceDocumentId": unknown});
    let members = json!([of_file(&own), of_file(&foreign), of_file(&unknown), of_folder(&unknown), document]);
    let made = workspace.token.post("/api/v1/memories").json(json!({"name": "M", "members": members})).await;
    let error = made.expect_error(404, "NOT_FOUND");
    let expected =
        ["members[1].fileId", "members[2].fileId", "members[3].folderId", "members[4].sourceDocumentId"];
    assert_eq!(each(&error["errors"], "path"), expected);
    assert_eq!(error["errors"][0]["message"], error["errors"][1]["message"]);
    for named in ["theirs", &id(&theirs)] {
        workspace.token.get(&format!("/api/v1/memories/{named}")).await.expect_error(404, "NOT_FOUND");
    }
    let path = format!("/api/v1/memories/{}", id(&theirs));
    workspace.token.patch(&path).json(json!({"name": "x"})).await.expect_error(404, "NOT_FOUND");
    workspace.token.delete(&path).await.expect_error(404, "NOT_FOUND");
    assert_eq!(workspace.token.get("/api/v1/memories").await.expect(200).json(), json!([]));
}

async fn an_export_needs_no_token_for_a_public_memory(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "open to all").await;
    let gone = workspace.file_id("b.md", None, "x").await;
    let members = json!([of_file(&file), of_file(&gone)]);
    let made = memory(&workspace, json!({"name": "Open", "members": members})).await;
    workspace.token.delete(&format!("/api/v1/files/{gone}")).await.expect(204);
    let anonymous = deployment.anonymous();
    let by_id = format!("/api/v1/memories/{}/export", id(&made));
    let by_slug = format!("/api/v1/memories/open/export?workspaceId={}", workspace.id);
    for path in [&by_id, &by_slug] {
        anonymous.get(path).await.expect_error(404, "NOT_FOUND");
    }
    let path = format!("/api/v1/memories/{}", id(&made));
    workspace.token.patch(&path).json(json!({"isPublic": true})).await.expect(200);
    for path in [&by_id, &by_slug] {
        let exported = anonymous.get(path).await.expect(200).json();
        assert_eq!(text(&items(&items(&exported["members"])[0]["entries"])[0], "content"), "open to all");
        assert_eq!(each(&exported["coverage"], "code"), ["target_deleted"]);
    }
    let elsewhere = deployment.workspace().await;
    let path_elsewhere = format!("/api/v1/memories/open/export?workspaceId={}", elsewhere.id);
    anonymous.get(&path_elsewhere).await.expect_error(404, "NOT_FOUND");
    elsewhere.token.get(&by_id).await.expect_error(404, "NOT_FOUND");
    anonymous.get("/api/v1/memories/open/export").await.expect_error(401, "UNAUTHORIZED");
    anonymous.get(&path).await.expect_error(401, "UNAUTHORIZED");
    let wrong = ApiToken { secret: "cairn_nonsense".into(), ..workspace.token.clone() };
    wrong.get(&by_id).await.expect_error(401, "UNAUTHORIZED");
    workspace.token.patch(&path).json(json!({"isPublic": false})).await.expect(200);
    anonymous.get(&by_id).await.expect_error(404, "NOT_FOUND");
}

async fn a_folder_scope_sees_its_part(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let inside = workspace.folder("inside", None).await;
    let outside = workspace.folder("classified", None).await;
    let mine = workspace.file_id("mine.md", Some(&inside), "mine").await;
    let other = workspace.file_id("hidden-name.md", Some(&outside), "hidden-text").await;
    let members = json!([of_file(&mine), of_file(&other), of_folder(&outside), of_folder(&inside)]);
    let made = memory(&workspace, json!({"name": "M", "members": members})).await;
    let token = workspace.token_for(&[&inside]).await;
    for path in ["/api/v1/memories/m", "/api/v1/memories/m/export"] {
        let seen = token.get(path).await.expect(200).json();
        assert_eq!(each(&seen["coverage"], "code"), ["out_of_scope", "out_of_scope"]);
        let counts: Vec<usize> =
            items(&seen["members"]).iter().map(|member| items(&member["entries"]).len()).collect();
        assert_eq!(counts, [1, 0, 0, 1]);
        let whole = seen.to_string();
        for hidden in ["hidden-name", "hidden-text", "classified"] {
            assert!(!whole.contains(hidden), "{hidden} in {whole}");
        }
    }
    let listed = token.get("/api/v1/memories").await.expect(200).json();
    assert!(!listed.to_string().contains("hidden-name"), "{listed}");
    let path = format!("/api/v1/memories/{}", id(&made));
    let members = format!("{path}/members");
    for member in [of_file(&other), of_folder(&outside)] {
        let body = json!({"members": [of_file(&mine), member]});
        token.post(&members).json(&body).await.expect_error(403, "OUT_OF_SCOPE");
    }
    token.post(&members).json(json!({"members": [of_file(&mine)]})).await.expect(201);
    token.patch(&path).json(json!({"isPublic": true})).await.expect_error(403, "OUT_OF_SCOPE");
    let hidden_member = id(&items(&made["members"])[1]);
    token.delete(&format!("{members}/{hidden_member}")).await.expect_error(403, "OUT_OF_SCOPE");
    token.delete(&path).await.expect_error(403, "OUT_OF_SCOPE");
    assert_eq!(read(&workspace.token, "m").await["version"], json!(2));
}

async fn permissions_are_needed(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a", None, "x").await;
    let made = memory(&workspace, json!({"name": "M", "members": [of_file(&file)]})).await;
    let path = format!("/api/v1/memories/{}", id(&made));
    let member = format!("{path}/members/{}", id(&items(&made["members"])[0]));
    let reader = workspace.token_with(&["read"]).await;
    let writer = workspace.token_with(&["write"]).await;
    let members = json!({"members": [of_file(&file)]});
    reader.get(&path).await.expect(200);
    for refused in [
        reader.post("/api/v1/memories").json(json!({"name": "x"})).await,
        reader.patch(&path).json(json!({"name": "x"})).await,
        reader.post(&format!("{path}/members")).json(&members).await,
        reader.delete(&member).await,
        reader.delete(&path).await,
        writer.delete(&member).await,
        writer.delete(&path).await,
        writer.get(&path).await,
        writer.get(&format!("{path}/export")).await,
        writer.get("/api/v1/memories").await,
    ] {
        refused.expect_error(403, "FORBIDDEN");
    }
    let removal = json!({"id": "m", "name": "N", "removeMemberIds": [id(&items(&made["members"])[0])]});
    let message = call_error(&writer, "update_memory", removal).await;
    assert!(message.contains("Forbidden") && message.contains("delete"), "{message}");
    writer.post(&format!("{path}/members")).json(&members).await.expect(201);
    workspace.token_with(&["delete"]).await.delete(&member).await.expect(204);
}

async fn guidance_is_found_by_search(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("f", None).await;
    let body = json!({"name": "Marsupials", "useWhen": "somebody asks about the thylacine"});
    let created = workspace.token.post("/api/v1/memories").json(body).await.expect(201);
    let made = created.json();
    let query = json!({"query": "thylacine", "strategy": "keyword"});
    let answer = workspace.search_after(&created.change(), query.clone()).await;
    let citation = &items(&answer["results"])[0]["citation"];
    assert_eq!((&citation["kind"], &citation["id"]), (&json!("memory"), &made["id"]), "{answer}");
    assert!(text(citation, "url").ends_with(&format!("/memories/{}", id(&made))), "{citation}");
    assert_eq!(text(citation, "path"), "/memories/marsupials");
    let scoped = workspace.token_for(&[&folder]).await;
    for strategy in ["keyword", "semantic", "hybrid"] {
        let query = json!({"query": "thylacine", "strategy": strategy});
        let found = scoped.post("/api/v1/search_context").after(&created.change()).json(query).await;
        assert_eq!(found.expect(200).json()["results"], json!([]), "{strategy}");
    }
    let path = format!("/api/v1/memories/{}", id(&made));
    let changed = workspace.token.patch(&path).json(json!({"useWhen": "never"})).await.expect(200);
    let answer = workspace.search_after(&changed.change(), query).await;
    assert_eq!(answer["results"], json!([]));
    let deleted = workspace.token.delete(&path).await.expect(204);
    let answer = workspace.search_after(&deleted.change(), json!({"query": "marsupials"})).await;
    assert_eq!(answer["results"], json!([]));
}

async fn agents_use_memories(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let file = workspace.file_id("a.md", None, "the text").await;
    let folder = workspace.folder("f", None).await;
    let arguments = json!({"name": "For agents", "useWhen": "always", "members": [of_file(&file)]});
    let made = call_json(token, "create_memory", arguments).await;
    assert_eq!((text(&made, "slug"), &made["version"]), ("for-agents".into(), &json!(1)));
    let listed = call_json(token, "list_memories", json!({})).await;
    assert_eq!(each(&listed, "useWhen"), ["always"]);
    assert_eq!(each(&items(&listed)[0]["members"], "title"), ["a.md"]);
    for named in ["for-agents", &id(&made)] {
        let whole = text_of(&call(token, "get_memory", json!({"slug": named})).await);
        assert!(whole.starts_with("# For agents\n") && whole.contains("Use when: always"), "{whole}");
        assert!(
            whole.contains(&format!("/a.md (file {file})")) && whole.contains("<hit>\nthe text\n</hit>"),
            "{whole}"
        );
    }
    let changes = json!({
        "id": "for-agents", "name": "Renamed", "useWhen": "sometimes", "addMembers": [of_folder(&folder)],
        "removeMemberIds": [id(&items(&made["members"])[0])],
    });
    let answer = call(token, "update_memory", changes).await;
    let changed = &answer["structuredContent"];
    assert_eq!((&changed["version"], text(changed, "useWhen")), (&json!(2), "sometimes".into()));
    assert_eq!(each(&changed["members"], "title"), ["f"]);
    assert!(answer["_meta"]["cairn/change"].is_string(), "{answer}");
    let message = call_error(token, "get_memory", json!({"slug": "nothing"})).await;
    assert!(message.contains("Not found") && message.contains("list_memories"), "{message}");
    let message = call_error(token, "get_memory", json!({"slug": "for-agent"})).await;
    assert!(message.contains("Next: call get_memory with {\"slug\":\"for-agents\"}"), "{message}");
    let unknown = uuid::Uuid::from_u128(9).to_string();
    let message =
        call_error(token, "update_memory", json!({"id": "for-agents", "addMembers": [of_file(&unknown)]}));
    let message = message.await;
    assert!(message.contains("Not found") && message.contains("addMembers[0].fileId"), "{message}");
    let scoped = workspace.token_for(&[&folder]).await;
    let seen = text_of(&call(&scoped, "get_memory", json!({"slug": "for-agents"})).await);
    assert!(!seen.contains("Coverage"), "{seen}");
    let message =
        call_error(&scoped, "update_memory", json!({"id": "for-agents", "addMembers": [of_file(&file)]}))
            .await;
    assert!(message.contains("Forbidden"), "{message}");
}

async fn concurrent_writers_leave_exact_versions(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a", None, "x").await;
    let made = memory(&workspace, json!({"name": "M", "members": vec![of_file(&file); 8]})).await;
    let path = format!("/api/v1/memories/{}", id(&made));
    let mut tasks = Vec::new();
    for member in items(&made["members"]) {
        let (token, path, file, member) = (workspace.token.clone(), path.clone(), file.clone(), id(member));
        tasks.push(tokio::spawn(async move {
            let body = json!({"members": [of_file(&file), of_file(&file)]});
            token.post(&format!("{path}/members")).json(body).await.expect(201);
            token.delete(&format!("{path}/members/{member}")).await.expect(204);
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let now = read(&workspace.token, "m").await;
    let positions: Vec<u64> =
        items(&now["members"]).iter().map(|member| member["position"].as_u64().unwrap()).collect();
    assert_eq!((&now["version"], positions), (&json!(17), (0..16).collect::<Vec<u64>>()));
}
