//! The trash of a workspace (spec 3.1; contract, "Console API").

use crate::support::http::{Reply, each, id, items, text};
use crate::support::mcp;
use crate::support::people;
use crate::support::prelude::*;

scenarios![
    a_deleted_file_is_listed_and_comes_back,
    a_folder_comes_back_with_what_it_took_along,
    an_orphan_comes_back_into_the_root,
    what_is_removed_for_good_is_gone,
    a_restored_file_is_found_again,
    the_trash_needs_a_session_of_a_member,
    the_trash_is_listed_in_parts,
    databases_and_records_are_in_the_trash,
    memories_go_to_trash_and_come_back,
    a_token_brings_back_and_removes,
    a_folder_scope_holds_in_the_trash,
    what_went_along_names_what_it_went_with,
    the_trash_tells_who_deleted_and_where_an_item_is,
    the_trash_is_narrowed_to_who_deleted,
];

impl Workspace {
    fn trash(&self, rest: &str) -> String {
        format!("/api/workspaces/{}/trash{rest}", self.id)
    }

    async fn in_trash(&self) -> Value {
        self.session.get(&self.trash("")).await.expect(200).json()
    }

    async fn put_into_trash(&self, kind: &str, item: &str) {
        self.token.delete(&format!("/api/v1/{kind}/{item}")).await.expect(204);
    }

    async fn restore(&self, kind: &str, item: &str) -> Reply {
        self.session.post(&self.trash(&format!("/{kind}/{item}/restore"))).await
    }
}

async fn a_deleted_file_is_listed_and_comes_back(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("plans", None).await;
    let file = workspace.file_id("a.md", Some(&folder), "zqkept").await;
    assert_eq!(workspace.in_trash().await, json!([]));
    workspace.put_into_trash("files", &file).await;
    let listed = workspace.in_trash().await;
    let [item] = items(&listed) else { panic!("{listed}") };
    assert_eq!(
        (text(item, "kind"), id(item), text(item, "name")),
        ("file".into(), file.clone(), "a.md".into())
    );
    assert_eq!((text(item, "path"), text(item, "parentId")), ("/plans/a.md".into(), folder.clone()));
    assert_eq!((item["itemCount"].as_u64(), item.get("expiresAt")), (Some(1), None));
    assert!(text(item, "deletedAt").ends_with('Z'));

    let restored = workspace.restore("file", &file).await.expect(200);
    assert!(!restored.change().is_empty());
    assert_eq!(
        (text(&restored.json(), "path"), restored.json()["itemCount"].clone()),
        ("/plans/a.md".into(), json!(1))
    );
    let read = workspace.token.get(&format!("/api/v1/files/{file}")).await.expect(200).json();
    assert_eq!((text(&read, "content"), text(&read, "folderId")), ("zqkept".into(), folder));
    assert_eq!(workspace.in_trash().await, json!([]));
    workspace.restore("file", &file).await.expect_error(404, "NOT_FOUND");
}

async fn a_folder_comes_back_with_what_it_took_along(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let top = workspace.folder("top", None).await;
    let inner = workspace.folder("inner", Some(&top)).await;
    let kept = workspace.file_id("kept.md", Some(&inner), "x").await;
    let earlier = workspace.file_id("earlier.md", Some(&inner), "x").await;
    workspace.put_into_trash("files", &earlier).await;
    workspace.put_into_trash("folders", &top).await;
    let listed = workspace.in_trash().await;
    assert_eq!(each(&listed, "id"), [top.as_str(), earlier.as_str()], "what went along is not listed");
    assert_eq!(items(&listed)[0]["itemCount"], 3);
    workspace.restore("file", &kept).await.expect_error(404, "NOT_FOUND");
    workspace.restore("folder", &top).await.expect(200);
    let files = workspace.token.get("/api/v1/files").await.expect(200).json();
    assert_eq!(each(&files, "path"), ["/top/inner/kept.md"]);
    assert_eq!(each(&workspace.in_trash().await, "id"), [earlier.as_str()]);
}

async fn an_orphan_comes_back_into_the_root(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("gone", None).await;
    let file = workspace.file_id("a.md", Some(&folder), "x").await;
    workspace.put_into_trash("files", &file).await;
    workspace.put_into_trash("folders", &folder).await;
    workspace.session.delete(&workspace.trash(&format!("/folder/{folder}"))).await.expect(204);
    let restored = workspace.restore("file", &file).await.expect(200).json();
    assert_eq!((text(&restored, "path"), restored["parentId"].clone()), ("/a.md".into(), Value::Null));
}

async fn what_is_removed_for_good_is_gone(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "x").await;
    let path = workspace.trash(&format!("/file/{file}"));
    workspace.session.delete(&path).await.expect_error(404, "NOT_FOUND");
    workspace.put_into_trash("files", &file).await;
    assert!(!workspace.session.delete(&path).await.expect(204).change().is_empty());
    workspace.session.delete(&path).await.expect_error(404, "NOT_FOUND");
    workspace.restore("file", &file).await.expect_error(404, "NOT_FOUND");
    workspace.token.get(&format!("/api/v1/files/{file}")).await.expect_error(404, "NOT_FOUND");
    assert_eq!(workspace.in_trash().await, json!([]));
}

async fn a_restored_file_is_found_again(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "zqphoenix rises").await;
    let deleted = workspace.token.delete(&format!("/api/v1/files/{file}")).await.expect(204).change();
    let search = json!({"query": "zqphoenix", "strategy": "keyword"});
    assert_eq!(workspace.search_after(&deleted, search.clone()).await["results"], json!([]));
    let restored = workspace.restore("file", &file).await.expect(200).change();
    let found = workspace.search_after(&restored, search).await;
    assert_eq!(each(&found["results"], "fileId"), [file.as_str()]);
}

async fn the_trash_needs_a_session_of_a_member(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "x").await;
    workspace.put_into_trash("files", &file).await;
    let restore = workspace.trash(&format!("/file/{file}/restore"));
    deployment.anonymous().get(&workspace.trash("")).await.expect_error(401, "UNAUTHORIZED");
    deployment.anonymous().post(&restore).await.expect_error(401, "UNAUTHORIZED");
    workspace.token.get(&workspace.trash("")).await.expect_error(401, "UNAUTHORIZED");
    for other in ["0199c0de-0000-7000-8000-000000000001", "x"] {
        let path = format!("/api/workspaces/{other}/trash");
        workspace.session.get(&path).await.expect_error(404, "NOT_FOUND");
    }
    let elsewhere = deployment.workspace().await;
    let through = elsewhere.trash(&format!("/file/{file}/restore"));
    elsewhere.session.post(&through).await.expect_error(404, "NOT_FOUND");
    for odd in ["/memory/x/restore", &format!("/files/{file}/restore"), &format!("/folder/{file}/restore")] {
        workspace.session.post(&workspace.trash(odd)).await.expect_error(404, "NOT_FOUND");
    }
    let crossed = workspace.session.post(&restore).header("sec-fetch-site", "cross-site").await;
    crossed.expect_error(403, "ORIGIN_NOT_ALLOWED");
    assert_eq!(items(&workspace.in_trash().await).len(), 1);
}

async fn the_trash_is_listed_in_parts(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    for name in ["1", "2", "3"] {
        let file = workspace.file_id(name, None, "x").await;
        workspace.put_into_trash("files", &file).await;
    }
    let first = workspace.session.get(&workspace.trash("?limit=2")).await.expect(200);
    assert_eq!((each(&first.json(), "name"), first.header("x-total-count")), (vec!["3", "2"], Some("3")));
    let link = first.header("link").unwrap();
    let next = link.trim_start_matches('<').split('>').next().unwrap();
    let place = next.find("/api/").unwrap();
    let second = workspace.session.get(&next[place..]).await.expect(200);
    assert_eq!((each(&second.json(), "name"), second.header("link")), (vec!["1"], None));
    workspace.session.get(&workspace.trash("?limit=0")).await.expect_error(400, "VALIDATION_ERROR");
    workspace.session.get(&workspace.trash("?cursor=x")).await.expect_error(400, "VALIDATION_ERROR");
}

async fn databases_and_records_are_in_the_trash(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let folder = workspace.folder("plans", None).await;
    let body = json!({"name": "Tasks", "folderId": folder});
    let table = token.post("/api/v1/databases").json(body).await.expect(201).json();
    let path = format!("/api/v1/databases/{}", id(&table));
    let name = text(&table["properties"][0], "id");
    let mut records = Vec::new();
    for title in ["zqkept", "zqearlier"] {
        let body = json!({"values": {&name: title}});
        records.push(id(&token.post(&format!("{path}/records")).json(body).await.expect(201).json()));
    }
    let earlier = format!("{path}/records/{}", records[1]);
    token.delete(&earlier).await.expect(204);
    workspace.put_into_trash("databases", &id(&table)).await;
    let listed = workspace.in_trash().await;
    assert_eq!(each(&listed, "kind"), ["database", "record"]);
    assert_eq!(each(&listed, "path"), ["/plans/Tasks", "/plans/Tasks/zqearlier"]);
    assert_eq!(each(&listed, "parentId"), [folder, id(&table)]);

    let refused = workspace.restore("record", &records[1]).await;
    refused.expect_error(400, "VALIDATION_ERROR");
    let restored = workspace.restore("database", &id(&table)).await.expect(200);
    assert_eq!(text(&restored.json(), "path"), "/plans/Tasks");
    let found =
        workspace.search_after(&restored.change(), json!({"query": "zqkept", "strategy": "keyword"})).await;
    assert_eq!(each(&found["results"], "recordId"), [records[0].as_str()]);
    let page = token.get(&format!("{path}/records")).await.expect(200).json();
    assert_eq!((each(&page["records"], "title"), page["total"].clone()), (vec!["zqkept"], json!(1)));

    workspace.restore("record", &records[1]).await.expect(200);
    assert_eq!(workspace.in_trash().await, json!([]));
    // The trash reflects what their own endpoints do.
    token.delete(&earlier).await.expect(204);
    token.post(&format!("{earlier}/restore")).await.expect(200);
    token.delete(&earlier).await.expect(204);
    workspace.put_into_trash("databases", &id(&table)).await;
    token.delete(&format!("{path}/permanent")).await.expect(204);
    assert_eq!(workspace.in_trash().await, json!([]), "with what was deleted out of it before");
}

impl Workspace {
    async fn memory(&self, body: Value) -> Value {
        self.token.post("/api/v1/memories").json(body).await.expect(201).json()
    }

    /// The public export of a memory, without a token.
    async fn exported(&self, deployment: &Deployment, slug: &str) -> Reply {
        let path = format!("/api/v1/memories/{slug}/export?workspaceId={}", self.id);
        deployment.anonymous().get(&path).await
    }
}

async fn memories_go_to_trash_and_come_back(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "zqmemory").await;
    let members = json!([{"kind": "file", "fileId": file}]);
    let body = json!({"name": "Release", "isPublic": true, "members": members});
    let made = workspace.memory(body).await;
    let memory = id(&made);
    workspace.exported(deployment, "release").await.expect(200);
    workspace.put_into_trash("memories", &memory).await;

    // Nobody can read it there, through any endpoint.
    workspace.exported(deployment, "release").await.expect_error(404, "NOT_FOUND");
    workspace.exported(deployment, &memory).await.expect_error(404, "NOT_FOUND");
    let by_id = format!("/api/v1/memories/{memory}/export");
    deployment.anonymous().get(&by_id).await.expect_error(404, "NOT_FOUND");
    for named in ["release", memory.as_str()] {
        let path = format!("/api/v1/memories/{named}");
        workspace.token.get(&path).await.expect_error(404, "NOT_FOUND");
        let message = mcp::call_error(&workspace.token, "get_memory", json!({"slug": named})).await;
        assert!(message.contains(named), "{message}");
    }
    let path = format!("/api/v1/memories/{memory}");
    workspace.token.patch(&path).json(json!({"name": "x"})).await.expect_error(404, "NOT_FOUND");
    assert_eq!(workspace.token.get("/api/v1/memories").await.expect(200).json(), json!([]));

    let listed = workspace.in_trash().await;
    let [item] = items(&listed) else { panic!("{listed}") };
    assert_eq!((text(item, "kind"), id(item)), ("memory".into(), memory.clone()));
    assert_eq!((text(item, "name"), text(item, "path")), ("Release".into(), "/memories/release".into()));

    // Its slug is free for others meanwhile; when it is restored it gets another one.
    let other = workspace.memory(json!({"name": "Release"})).await;
    assert_eq!(text(&other, "slug"), "release");
    let back = workspace.restore("memory", &memory).await.expect(200).json();
    assert_eq!(text(&back, "path"), "/memories/release-2");
    let read = workspace.token.get(&path).await.expect(200).json();
    assert_eq!((text(&read, "slug"), items(&read["members"]).len()), ("release-2".into(), 1));
    workspace.exported(deployment, "release-2").await.expect(200);

    workspace.put_into_trash("memories", &memory).await;
    workspace.session.delete(&workspace.trash(&format!("/memory/{memory}"))).await.expect(204);
    assert_eq!(workspace.in_trash().await, json!([]));
    workspace.restore("memory", &memory).await.expect_error(404, "NOT_FOUND");
    workspace.token.get(&format!("/api/v1/files/{file}")).await.expect(200);
}

async fn a_token_brings_back_and_removes(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("plans", None).await;
    let file = workspace.file_id("a.md", Some(&folder), "x").await;
    let memory = id(&workspace.memory(json!({"name": "Release"})).await);
    let writer = workspace.token_with(&["read", "write"]).await;
    // Items of the folder before the folder itself: what is in trash already is not part of the folder's deletion.
    for (kind, item) in [("files", &file), ("folders", &folder), ("memories", &memory)] {
        let path = format!("/api/v1/{kind}/{item}");
        let restore = format!("{path}/restore");
        workspace.token.post(&restore).await.expect_error(404, "NOT_FOUND");
        workspace.put_into_trash(kind, item).await;
        writer.post(&restore).await.expect_error(403, "FORBIDDEN");
        writer.delete(&format!("{path}/permanent")).await.expect_error(403, "FORBIDDEN");
        let back = workspace.token.post(&restore).await.expect(200);
        assert!(!back.change().is_empty());
        assert_eq!(id(&back.json()), *item);
        workspace.token.get(&path).await.expect(200);

        workspace.token.delete(&format!("{path}/permanent")).await.expect_error(404, "NOT_FOUND");
        workspace.put_into_trash(kind, item).await;
        let gone = workspace.token.delete(&format!("{path}/permanent")).await.expect(204);
        assert!(!gone.change().is_empty());
        workspace.token.post(&restore).await.expect_error(404, "NOT_FOUND");
    }
    assert_eq!(workspace.in_trash().await, json!([]));
}

async fn a_folder_scope_holds_in_the_trash(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let mine = workspace.folder("mine", None).await;
    let below = workspace.folder("below", Some(&mine)).await;
    let other = workspace.folder("other", None).await;
    let scoped = workspace.token_for(&[&mine]).await;
    let restore = |kind: &str, item: &str| format!("/api/v1/{kind}/{item}/restore");

    let inside = workspace.file_id("in.md", Some(&below), "x").await;
    let outside = workspace.file_id("out.md", Some(&other), "x").await;
    let in_root = workspace.file_id("root.md", None, "x").await;
    for file in [&inside, &outside, &in_root] {
        workspace.put_into_trash("files", file).await;
    }
    scoped.post(&restore("files", &inside)).await.expect(200);
    for file in [&outside, &in_root] {
        scoped.post(&restore("files", file)).await.expect_error(403, "OUT_OF_SCOPE");
        let gone = format!("/api/v1/files/{file}/permanent");
        scoped.delete(&gone).await.expect_error(403, "OUT_OF_SCOPE");
    }
    // A token may not delete or restore the folders that define its scope.
    workspace.put_into_trash("folders", &below).await;
    scoped.post(&restore("folders", &below)).await.expect(200);
    workspace.put_into_trash("folders", &mine).await;
    scoped.post(&restore("folders", &mine)).await.expect_error(403, "OUT_OF_SCOPE");
    // Nor does it learn of items out of scope: the folder that its file was deleted with.
    let message = scoped.post(&restore("files", &inside)).await.expect_error(403, "OUT_OF_SCOPE");
    assert!(!text(&message, "message").contains("mine"), "{message}");
    workspace.token.post(&restore("folders", &mine)).await.expect(200);

    // Its folder is permanently deleted: whether it was in scope can no longer be decided.
    workspace.put_into_trash("files", &inside).await;
    workspace.put_into_trash("folders", &below).await;
    workspace.token.delete(&format!("/api/v1/folders/{below}/permanent")).await.expect(204);
    scoped.post(&restore("files", &inside)).await.expect_error(403, "OUT_OF_SCOPE");
    let back = workspace.token.post(&restore("files", &inside)).await.expect(200).json();
    assert_eq!(text(&back, "path"), "/in.md");
}

async fn what_went_along_names_what_it_went_with(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let top = workspace.folder("Old plans", None).await;
    let inner = workspace.folder("inner", Some(&top)).await;
    let file = workspace.file_id("kept.md", Some(&inner), "x").await;
    let body = json!({"name": "Tasks", "folderId": inner});
    let database = id(&workspace.token.post("/api/v1/databases").json(body).await.expect(201).json());
    workspace.put_into_trash("folders", &top).await;
    for (kind, item) in [("files", &file), ("folders", &inner)] {
        let path = format!("/api/v1/{kind}/{item}");
        for reply in [
            workspace.token.post(&format!("{path}/restore")).await,
            workspace.token.delete(&format!("{path}/permanent")).await,
        ] {
            let message = text(&reply.expect_error(404, "NOT_FOUND"), "message");
            assert!(message.contains("folder 'Old plans'") && message.contains(&top), "{message}");
        }
    }
    let message =
        text(&workspace.restore("database", &database).await.expect_error(404, "NOT_FOUND"), "message");
    assert!(message.contains("folder 'Old plans'") && message.contains(&top), "{message}");
    workspace.token.post(&format!("/api/v1/folders/{top}/restore")).await.expect(200);
    workspace.token.get(&format!("/api/v1/files/{file}")).await.expect(200);
}

async fn the_trash_tells_who_deleted_and_where_an_item_is(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let elsewhere = deployment.workspace().await;
    let folder = workspace.folder("plans", None).await;
    let file = workspace.file_id("a.md", Some(&folder), "x").await;
    let located = format!("/api/items/file/{file}");
    let found = workspace.session.get(&located).await.expect(200).json();
    assert_eq!(found, json!({"kind": "file", "id": file, "workspaceId": workspace.id}));
    let stranger = people::join(&elsewhere, "admin").await;
    stranger.session.get(&located).await.expect_error(404, "NOT_FOUND");
    deployment.anonymous().get(&located).await.expect_error(401, "UNAUTHORIZED");
    for odd in
        ["/api/items/file/x", "/api/items/star/0199c0de-0000-7000-8000-000000000001", "/api/items/file/%00"]
    {
        workspace.session.get(odd).await.expect_error(404, "NOT_FOUND");
    }
    let told = workspace.trash(&format!("/file/{file}"));
    workspace.session.get(&told).await.expect_error(404, "NOT_FOUND");

    workspace.put_into_trash("folders", &folder).await;
    assert_eq!(workspace.session.get(&located).await.expect(200).json(), found, "in trash too");
    let item = workspace.session.get(&told).await.expect(200).json();
    assert_eq!(
        (text(&item, "kind"), id(&item), text(&item, "name")),
        ("folder".into(), folder, "plans".into())
    );
    assert_eq!(item["deletedBy"]["kind"], "token");
    assert_eq!(items(&workspace.in_trash().await)[0]["deletedBy"], item["deletedBy"]);
    stranger.session.get(&told).await.expect_error(404, "NOT_FOUND");
}

async fn the_trash_is_narrowed_to_who_deleted(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let theirs = workspace.file_id("theirs.md", None, "x").await;
    let own = workspace.file_id("own.md", None, "x").await;
    let agent = people::join(&workspace, "editor").await;
    let token = agent.token(&workspace, &["read", "write", "delete"]).await;
    token.delete(&format!("/api/v1/files/{theirs}")).await.expect(204);
    workspace.put_into_trash("files", &own).await;

    let deleters = workspace.session.get(&workspace.trash("/deleters")).await.expect(200).json();
    let name = |one: &Value| text(one, "name");
    let mine = items(&deleters).iter().find(|one| name(one) == "mine");
    let mine = mine.unwrap_or_else(|| panic!("the agent's token is not in {deleters}"));
    assert_eq!((items(&deleters).len(), text(mine, "kind")), (2, "token".into()), "{deleters}");
    let narrowed = workspace.trash(&format!("?principal={}", id(mine)));
    let listed = workspace.session.get(&narrowed).await.expect(200);
    assert_eq!(listed.header("x-total-count"), Some("1"));
    assert_eq!(each(&listed.json(), "id"), [theirs.as_str()]);
    assert_eq!(workspace.session.get(&workspace.trash("?principal=x")).await.expect(200).json(), json!([]));

    let path = format!("/w/{}/trash?who={}", workspace.id, id(mine));
    let page = workspace.session.get(&path).await.expect(200).text();
    assert!(page.contains("theirs.md") && !page.contains("own.md"), "{page}");
    let nobody = workspace.session.get(&format!("/w/{}/trash?who=x", workspace.id)).await.expect(200).text();
    assert!(nobody.contains("Nothing of theirs is in trash."), "{nobody}");

    // A restored item is no longer listed under its deleter.
    workspace.restore("file", &theirs).await.expect(200);
    let deleters = workspace.session.get(&workspace.trash("/deleters")).await.expect(200).json();
    assert_eq!(items(&deleters).iter().filter(|one| name(one) == "mine").count(), 0, "{deleters}");
    let outsider = people::join(&deployment.workspace().await, "admin").await;
    outsider.session.get(&workspace.trash("/deleters")).await.expect_error(404, "NOT_FOUND");
    workspace.token.get(&workspace.trash("/deleters")).await.expect_error(401, "UNAUTHORIZED");
}
