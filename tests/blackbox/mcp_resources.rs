//! Skills (SEP-2640) and resources of `/mcp`: guides that are the same for all, files and memories of the workspace.

use sha2::{Digest as _, Sha256};

use crate::support::callers::ApiToken;
use crate::support::http::{Reply, each, id, items, text};
use crate::support::mcp::{self, error_code, legacy, modern};
use crate::support::prelude::*;

scenarios![
    skills_are_declared_in_both_eras,
    every_file_of_every_skill_is_what_its_digest_says,
    skills_need_no_permission,
    a_skill_that_is_not_there_is_named,
    folders_of_skills_can_be_walked,
    files_are_resources,
    memories_are_resources,
    the_list_goes_on_page_by_page,
    what_is_out_of_reach_is_not_there,
    a_read_counts,
];

const INVALID_PARAMS: i64 = -32602;
const RESOURCE_NOT_FOUND: i64 = -32002;
const FORBIDDEN: i64 = 403;
const SKILLS: &str = "io.modelcontextprotocol/skills";

async fn skills_are_declared_in_both_eras(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let hello = json!({"protocolVersion": mcp::LEGACY[0], "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    for opened in [
        mcp::result(legacy(&token, "initialize", hello).await),
        mcp::result(modern(&token, "server/discover", json!({})).await),
    ] {
        let capabilities = &opened["capabilities"];
        assert_eq!(capabilities["extensions"][SKILLS], json!({"directoryRead": true}), "{opened}");
        assert!(capabilities["resources"].is_object(), "{opened}");
    }
}

async fn every_file_of_every_skill_is_what_its_digest_says(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let listed = mcp::result(modern(&token, "skills/list", json!({})).await);
    assert_eq!((&listed["resultType"], &listed["cacheScope"]), (&json!("complete"), &json!("public")));
    assert!(listed["ttlMs"].is_u64() && items(&listed["skills"]).len() >= 3, "{listed}");
    assert_eq!(mcp::result(legacy(&token, "skills/list", json!({})).await)["skills"], listed["skills"]);
    let entries = read_list(&token).await;
    for skill in items(&listed["skills"]) {
        let uri = text(skill, "uri");
        let name = text(&skill["frontmatter"], "name");
        assert_eq!(uri, format!("skill://cairn/{name}/SKILL.md"));
        assert!(!text(&skill["frontmatter"], "description").is_empty(), "{skill}");
        assert!(each(&skill["resources"], "uri").contains(&uri.as_str()), "{skill}");
        let got = mcp::result(modern(&token, "skills/get", json!({"uri": uri})).await);
        assert_eq!(&got["skill"], skill);
        let entry = items(&entries).iter().find(|entry| entry["uri"] == json!(uri));
        let entry = entry.unwrap_or_else(|| panic!("{uri} is missing from resources/list"));
        assert_eq!((&entry["mimeType"], text(entry, "name")), (&json!("text/markdown"), name));
        for file in items(&skill["resources"]) {
            let uri = text(file, "uri");
            for reply in [
                legacy(&token, "resources/read", json!({"uri": uri})).await,
                modern(&token, "resources/read", json!({"uri": uri})).await,
            ] {
                let read = mcp::result(reply);
                let content = text(&read["contents"][0], "text");
                let digest = hex::encode(Sha256::digest(content.as_bytes()));
                assert_eq!(text(file, "digest"), format!("sha256:{digest}"), "{uri}");
                assert_eq!(file["size"], json!(content.len()), "{uri}");
                assert_eq!(read["cacheScope"], "public", "{uri}");
            }
        }
    }
}

async fn skills_need_no_permission(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("a.md", None, "x").await;
    let weakest = workspace.token_with(&["delete"]).await;
    let listed = mcp::result(legacy(&weakest, "skills/list", json!({})).await);
    let uri = text(&listed["skills"][0], "uri");
    mcp::result(legacy(&weakest, "resources/read", json!({"uri": uri})).await);
    let entries = read_list(&weakest).await;
    assert!(each(&entries, "uri").iter().all(|uri| uri.starts_with("skill://cairn/")), "{entries}");
}

async fn a_skill_that_is_not_there_is_named(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for uri in ["skill://cairn/none/SKILL.md", "searching", "skill://other/searching/SKILL.md", ""] {
        for reply in [
            legacy(&token, "skills/get", json!({"uri": uri})).await,
            modern(&token, "skills/get", json!({"uri": uri})).await,
        ] {
            let body = reply.expect(200).json();
            assert_eq!((error_code(&body), &body["error"]["data"]["uri"]), (INVALID_PARAMS, &json!(uri)));
        }
    }
    for params in [json!({}), json!({"uri": 5}), json!({"name": "searching"})] {
        let body = legacy(&token, "skills/get", params).await.expect(200).json();
        assert_eq!(error_code(&body), INVALID_PARAMS);
    }
}

async fn folders_of_skills_can_be_walked(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let listed = mcp::result(modern(&token, "skills/list", json!({})).await);
    let mut wanted: Vec<String> = Vec::new();
    for skill in items(&listed["skills"]) {
        wanted.extend(items(&skill["resources"]).iter().map(|file| text(file, "uri")));
    }
    let mut found = Vec::new();
    let mut folders = vec!["skill://cairn".to_owned()];
    while let Some(folder) = folders.pop() {
        let inside = mcp::result(modern(&token, "resources/directory/read", json!({"uri": folder})).await);
        for entry in items(&inside["resources"]) {
            let uri = text(entry, "uri");
            if entry["mimeType"] == "inode/directory" { folders.push(uri) } else { found.push(uri) }
        }
    }
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
    let body = modern(&token, "resources/directory/read", json!({"uri": wanted[0]})).await.expect(200).json();
    assert_eq!(error_code(&body), INVALID_PARAMS, "a file is no folder");
}

async fn files_are_resources(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    for (name, kind, mime_type, content) in [
        ("a.md", "markdown", "text/markdown", "# One\r\n\u{1f980}\n"),
        ("b.json", "json", "application/json", "{\"a\": 1}"),
        ("c.yaml", "yaml", "text/yaml", "a: 1\n"),
        ("d.txt", "text", "text/plain", ""),
    ] {
        let made = workspace.typed_file(name, kind, None, content).await.json();
        let uri = format!("cairn://file/{}", id(&made));
        let entries = read_list(token).await;
        let entry = items(&entries).iter().find(|entry| entry["uri"] == json!(uri)).unwrap();
        assert_eq!((text(entry, "name"), text(entry, "mimeType")), (name.into(), mime_type.into()));
        assert_eq!(entry["size"], json!(content.len()));
        for reply in [
            legacy(token, "resources/read", json!({"uri": uri})).await,
            modern(token, "resources/read", json!({"uri": uri})).await,
        ] {
            let read = mcp::result(reply);
            let wanted = json!([{"uri": uri, "mimeType": mime_type, "text": content}]);
            assert_eq!((&read["contents"], &read["cacheScope"]), (&wanted, &json!("private")));
        }
    }
    let templates = mcp::result(modern(token, "resources/templates/list", json!({})).await);
    let templates = each(&templates["resourceTemplates"], "uriTemplate").join(" ");
    for template in ["cairn://file/{id}", "cairn://memory/{slug}", "skill://cairn/"] {
        assert!(templates.contains(template), "{templates}");
    }
}

async fn memories_are_resources(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("steps.md", None, "First the narwhal.\n").await;
    let body = json!({"name": "Releases", "useWhen": "preparing a release", "members": [{"kind": "file", "fileId": file}]});
    let memory = workspace.token.post("/api/v1/memories").json(body).await.expect(201).json();
    let entries = read_list(&workspace.token).await;
    let uri = format!("cairn://memory/{}", text(&memory, "slug"));
    let entry = items(&entries).iter().find(|entry| entry["uri"] == json!(uri)).unwrap();
    assert_eq!(
        (text(entry, "name"), text(entry, "description")),
        ("Releases".into(), "preparing a release".into())
    );
    for uri in [uri, format!("cairn://memory/{}", id(&memory))] {
        let read = mcp::result(modern(&workspace.token, "resources/read", json!({"uri": uri})).await);
        let message = text(&read["contents"][0], "text");
        assert_eq!(read["contents"][0]["mimeType"], "text/markdown");
        for part in ["# Releases", "preparing a release", "/steps.md", "First the narwhal."] {
            assert!(message.contains(part), "{part} is missing from {message}");
        }
    }
}

async fn the_list_goes_on_page_by_page(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let mut wanted = Vec::new();
    for number in 0..3 {
        let body = json!({"name": format!("m{number}")});
        let made = workspace.token.post("/api/v1/memories").json(body).await.expect(201).json();
        wanted.push(format!("cairn://memory/{}", text(&made, "slug")));
    }
    for number in 0..205 {
        wanted.push(format!("cairn://file/{}", workspace.file_id(&format!("f{number:03}"), None, "x").await));
    }
    let first = mcp::result(modern(&workspace.token, "resources/list", json!({})).await);
    assert_eq!(items(&first["resources"]).len(), 100, "a page is bounded");
    let entries = read_list(&workspace.token).await;
    let mut found: Vec<&str> = each(&entries, "uri");
    let count = found.len();
    found.retain(|uri| uri.starts_with("cairn://"));
    found.sort_unstable();
    found.dedup();
    wanted.sort();
    assert_eq!(found, wanted, "everything once");
    assert_eq!(count - wanted.len(), entries_of_skills(&workspace.token).await);
    for cursor in [json!("nonsense"), json!(""), json!(5), json!("m.!!"), json!("f.!!")] {
        let body =
            modern(&workspace.token, "resources/list", json!({"cursor": cursor})).await.expect(200).json();
        assert_eq!(error_code(&body), INVALID_PARAMS, "{cursor}");
    }
}

/// What does not exist, what belongs to another workspace and what is out of scope give the same error.
async fn what_is_out_of_reach_is_not_there(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let inside = workspace.folder("inside", None).await;
    let mine = workspace.file_id("in.md", Some(&inside), "mine").await;
    let other = workspace.file_id("out.md", None, "other").await;
    let trashed = workspace.file_id("gone.md", Some(&inside), "gone").await;
    workspace.token.delete(&format!("/api/v1/files/{trashed}")).await;
    let foreign = deployment.workspace().await.file_id("theirs.md", None, "theirs").await;
    let token = workspace.token_for(&[&inside]).await;
    mcp::result(modern(&token, "resources/read", json!({"uri": format!("cairn://file/{mine}")})).await);
    let entries = read_list(&token).await;
    let files: Vec<_> = each(&entries, "uri").into_iter().filter(|uri| uri.contains("/file/")).collect();
    assert_eq!(files, [format!("cairn://file/{mine}")]);

    let nobody = uuid::Uuid::from_u128(3).to_string();
    let mut message = Vec::new();
    for file in [nobody, other, trashed, foreign] {
        let uri = format!("cairn://file/{file}");
        for (reply, code) in [
            (legacy(&token, "resources/read", json!({"uri": uri})).await, RESOURCE_NOT_FOUND),
            (modern(&token, "resources/read", json!({"uri": uri})).await, INVALID_PARAMS),
        ] {
            message.push(refused(reply, code, &uri));
        }
    }
    message.dedup();
    assert_eq!(message.len(), 1, "which of them exists can be told: {message:?}");
    for uri in ["cairn://memory/none", "cairn://file/x", "cairn://folder/x", "file:///etc/passwd", "x", ""] {
        let reply = modern(&token, "resources/read", json!({"uri": uri})).await;
        assert_eq!(refused(reply, INVALID_PARAMS, uri), message[0]);
    }
    let writer = workspace.token_with(&["write"]).await;
    for file in [mine, uuid::Uuid::from_u128(4).to_string()] {
        let uri = format!("cairn://file/{file}");
        refused(modern(&writer, "resources/read", json!({"uri": uri})).await, FORBIDDEN, &uri);
    }
}

async fn a_read_counts(deployment: &Deployment) {
    use crate::support::windows::{in_one_window, window};
    let token = deployment.workspace().await.token;
    let uri = text(&mcp::result(legacy(&token, "skills/list", json!({})).await)["skills"][0], "uri");
    let used = in_one_window(async || {
        let first = window(&legacy(&token, "skills/list", json!({})).await);
        legacy(&token, "resources/read", json!({"uri": uri})).await.expect(200);
        legacy(&token, "resources/list", json!({})).await.expect(200);
        let last = window(&legacy(&token, "skills/get", json!({"uri": uri})).await);
        (first.clone(), last.clone(), first.remaining - last.remaining)
    });
    assert_eq!(used.await, 1, "a read counts one, lists and skills nothing");
}

/// Every entry of `resources/list`.
async fn read_list(token: &ApiToken) -> Value {
    let mut entries = Vec::new();
    let mut params = json!({});
    loop {
        let page = mcp::result(modern(token, "resources/list", params).await);
        assert_eq!(page["cacheScope"], "private");
        entries.extend_from_slice(items(&page["resources"]));
        match page["nextCursor"].as_str() {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return Value::Array(entries),
        }
    }
}

async fn entries_of_skills(token: &ApiToken) -> usize {
    items(&mcp::result(modern(token, "skills/list", json!({})).await)["skills"]).len()
}

/// The message of an error about that URI.
#[track_caller]
fn refused(reply: Reply, code: i64, uri: &str) -> String {
    let body = reply.expect(200).json();
    assert_eq!((error_code(&body), &body["error"]["data"]["uri"]), (code, &json!(uri)), "{body}");
    text(&body["error"], "message")
}
