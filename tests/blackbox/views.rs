//! Viewing the console as a token, the reach of a token, its name, and the sessions of a person (docs/API.md).

use crate::support::callers::Session;
use crate::support::http::{Reply, each, id, items, text};
use crate::support::oauth::encoded;
use crate::support::people::{self, PASSWORD};
use crate::support::prelude::*;
use crate::support::workspace::make_token;

scenarios![
    a_view_sees_what_the_token_sees,
    single_pages_are_seen_as_a_token_sees_them,
    a_reach_counts_what_is_below_the_folders,
    folders_of_a_token_are_named_by_their_paths,
    nobody_looks_through_tokens_of_others,
    a_token_is_renamed,
    the_last_client_of_a_token_is_told,
    sessions_are_listed_and_ended_one_by_one,
    freshness_is_for_owners_and_admins,
];

const FORM: &str = "application/x-www-form-urlencoded";

async fn send(session: &Session, path: &str, fields: &[(&str, &str)]) -> Reply {
    session
        .post(path)
        .header("sec-fetch-site", "same-origin")
        .body(FORM, encoded(fields.iter().copied()))
        .await
}

/// The path of the workspace's tokens in the Console API.
fn tokens(workspace: &Workspace) -> String {
    format!("/api/workspaces/{}/tokens", workspace.id)
}

/// The id of a new token.
async fn token(workspace: &Workspace, name: &str, permissions: &[&str], folder: Option<&str>) -> String {
    let mut body = json!({"name": name, "permissions": permissions});
    if let Some(folder) = folder {
        body["scope"] = json!({"type": "folders", "folderIds": [folder]});
    }
    id(&workspace.session.post(&tokens(workspace)).json(body).await.expect(201).json())
}

async fn a_view_sees_what_the_token_sees(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (plans, finance) = (workspace.folder("Plans", None).await, workspace.folder("Finance", None).await);
    workspace.file("seen.md", Some(&plans), "the walrus council meets").await.expect(201);
    let made = workspace.file("unseen.md", Some(&finance), "the walrus budget").await.expect(201);
    let reader = token(&workspace, "Reader <of> plans", &["read"], Some(&plans)).await;
    let search = format!("{}/{reader}/search", tokens(&workspace));
    let found = workspace.session.post(&search).after(&made.change()).json(json!({"query": "walrus"}));
    let found = found.await.expect(200).json();
    let paths: Vec<_> = items(&found["results"]).iter().map(|one| text(&one["citation"], "path")).collect();
    assert_eq!(paths, ["/Plans/seen.md"], "{found}");

    let base = format!("/w/{}", workspace.id);
    let page = workspace.session.get(&format!("{base}/search?q=walrus&as={reader}")).await.expect(200).text();
    assert!(page.contains("seen.md") && !page.contains("unseen.md") && !page.contains("Finance"), "{page}");
    assert!(page.contains("Reader &lt;of&gt; plans") && page.contains("See as yourself"), "{page}");
    let files = workspace.session.get(&format!("{base}/files?as={reader}")).await.expect(200).text();
    assert!(files.contains("Plans") && !files.contains("Finance"), "{files}");
    assert!(
        !files.contains("New file") && files.contains(&format!("folder={plans}&amp;as={reader}")),
        "{files}"
    );
    let own = workspace.session.get(&format!("{base}/files")).await.expect(200).text();
    assert!(own.contains("Finance") && own.contains("New file"), "{own}");
    for odd in ["nonsense", "0199c0de-0000-7000-8000-00000000ffff"] {
        workspace.session.get(&format!("{base}/files?as={odd}")).await.expect(404);
        workspace.session.get(&format!("{base}/search?q=x&as={odd}")).await.expect(404);
    }
    let writer = token(&workspace, "writes only", &["write"], None).await;
    let refused = workspace.session.post(&format!("{}/{writer}/search", tokens(&workspace)));
    refused.json(json!({"query": "walrus"})).await.expect_error(403, "FORBIDDEN");
}

/// The id of a new item.
async fn made(workspace: &Workspace, path: &str, body: serde_json::Value) -> String {
    id(&workspace.token.post(path).json(body).await.expect(201).json())
}

async fn single_pages_are_seen_as_a_token_sees_them(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (plans, finance) = (workspace.folder("Plans", None).await, workspace.folder("Finance", None).await);
    let reader = token(&workspace, "Reader <of> plans", &["read", "write"], Some(&plans)).await;
    let mut seen = Vec::new();
    let mut hidden = Vec::new();
    for (folder, pages) in [(&plans, &mut seen), (&finance, &mut hidden)] {
        let name = if *folder == plans { "mine" } else { "theirs" };
        let file = id(&workspace.file(&format!("{name}.md"), Some(folder), "text").await.expect(201).json());
        let body = json!({"name": name, "folderId": folder});
        let database = made(&workspace, "/api/v1/databases", body).await;
        let read = workspace.token.get(&format!("/api/v1/databases/{database}")).await.expect(200).json();
        let values = json!({"values": {text(&read["properties"][0], "id"): name}});
        let record = made(&workspace, &format!("/api/v1/databases/{database}/records"), values).await;
        pages.extend([
            format!("/file/{file}?"),
            format!("/file/{file}?view=changes&"),
            format!("/databases/{database}?"),
            format!("/databases/{database}?record={record}&"),
        ]);
    }
    let memory = made(&workspace, "/api/v1/memories", json!({"name": "Of both", "slug": "of-both"})).await;
    seen.push(format!("/memories/{memory}?"));
    let session = &workspace.session;
    for path in &seen {
        let own = session.get(path).await.expect(200).text();
        assert!(!own.contains("See as yourself") && own.contains("Move to trash"), "{path}: {own}");
        let as_token = session.get(&format!("{path}as={reader}")).await.expect(200).text();
        for part in ["Reader &lt;of&gt; plans", "See as yourself", &format!("as={reader}")] {
            assert!(as_token.contains(part), "{part} on {path}: {as_token}");
        }
        assert!(
            !as_token.contains("Move to trash") && !as_token.contains("method=\"post\" action=\"/databases"),
            "{path}"
        );
        session.get(&format!("{path}as=nonsense")).await.expect(404);
    }
    for path in &hidden {
        session.get(path).await.expect(200);
        let refused = session.get(&format!("{path}as={reader}")).await.expect(403).text();
        assert!(
            refused.contains("Reader &lt;of&gt; plans") && refused.contains("See as yourself"),
            "{refused}"
        );
    }
    let base = format!("/w/{}", workspace.id);
    let databases = session.get(&format!("{base}/databases?as={reader}")).await.expect(200).text();
    assert!(databases.contains("<bdi>mine</bdi>") && !databases.contains("theirs"), "{databases}");
    assert!(
        databases.contains(&format!("?as={reader}\"")) && !databases.contains("New database"),
        "{databases}"
    );
    let memories = session.get(&format!("{base}/memories?as={reader}")).await.expect(200).text();
    assert!(memories.contains("Of both") && !memories.contains("New memory"), "{memories}");
    for list in ["databases", "memories"] {
        session.get(&format!("{base}/{list}?as=nonsense")).await.expect(404);
        let own = session.get(&format!("{base}/{list}")).await.expect(200).text();
        assert!(own.contains("Reader &lt;of&gt; plans") && !own.contains("See as yourself"), "{own}");
    }
    let member = people::join(&workspace, "editor").await.session;
    member.get(&format!("{}as={reader}", seen[0])).await.expect(404);
}

async fn a_reach_counts_what_is_below_the_folders(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let plans = workspace.folder("Plans", None).await;
    let below = workspace.folder("Below", Some(&plans)).await;
    workspace.folder("Finance", None).await;
    workspace.file("one.md", Some(&plans), "x").await.expect(201);
    workspace.file("two.md", Some(&below), "x").await.expect(201);
    workspace.file("root.md", None, "x").await.expect(201);
    let wished = json!({"permissions": ["read"], "scope": {"type": "folders", "folderIds": [plans]}});
    let path = format!("{}/reach", tokens(&workspace));
    let reach = workspace.session.post(&path).json(wished).await.expect(200).json();
    assert_eq!((&reach["files"], &reach["wholeWorkspace"]), (&json!(2), &json!(false)), "{reach}");
    assert_eq!((&reach["hiddenFolders"], &reach["folderPaths"]), (&json!(["Finance"]), &json!(["/Plans"])));
    let whole =
        workspace.session.post(&path).json(json!({"permissions": ["write"]})).await.expect(200).json();
    assert_eq!(
        (&whole["files"], &whole["permissions"]),
        (&json!(0), &json!(["write"])),
        "it reads nothing: {whole}"
    );
    for wrong in [
        json!({}),
        json!({"permissions": ["fly"]}),
        json!({"permissions": ["read"], "scope": {"type": "folders"}}),
    ] {
        workspace.session.post(&path).json(wrong).await.expect_error(400, "VALIDATION_ERROR");
    }
    let made = token(&workspace, "of plans", &["read", "write"], Some(&plans)).await;
    let one = workspace.session.get(&format!("/w/{}/tokens/{made}", workspace.id)).await.expect(200).text();
    assert!(one.contains("2 files in 2 folders") && one.contains("<bdi>Finance</bdi>"), "{one}");
    assert!(one.contains(&format!("search?as={made}")) && one.contains("It can write in"), "{one}");
}

async fn folders_of_a_token_are_named_by_their_paths(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let plans = workspace.folder("Plans", None).await;
    let below = workspace.folder("<b>2027", Some(&plans)).await;
    workspace.folder("Finance", None).await;
    workspace.file("in.md", Some(&below), "x").await.expect(201);
    workspace.file("out.md", Some(&plans), "x").await.expect(201);
    let page = format!("/w/{}/tokens", workspace.id);
    let typed = |paths: &str| {
        [("name", "of paths"), ("permissions", "read"), ("paths", paths)]
            .map(|(name, text)| (name, text.to_owned()))
    };
    let send_paths = async |to: &str, paths: &str| {
        let fields = typed(paths);
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, text)| (*name, text.as_str())).collect();
        send(&workspace.session, to, &fields).await
    };
    let shown = send_paths(&format!("{page}/preview"), "/Plans/<b>2027/").await.expect(200).text();
    assert!(
        shown.contains("1 file in 1 folder") && shown.contains("<bdi>/Plans/&lt;b&gt;2027</bdi>"),
        "{shown}"
    );
    let wrong = send_paths(&format!("{page}/preview"), "/Nowhere").await.expect(200).text();
    assert!(wrong.contains("name no folder here: /Nowhere"), "{wrong}");
    for odd in ["/Plans\n/Nowhere", "/", &"/x\n/y".repeat(200), "/plans"] {
        let refused = send_paths(&page, odd).await.expect(400).text();
        assert!(refused.contains("href=\"#f-paths\"") && refused.contains("value=\"of paths\""), "{refused}");
    }
    let listed = workspace.session.get(&tokens(&workspace)).await.expect(200).json();
    assert!(!each(&listed, "name").contains(&"of paths"), "{listed}");
    send_paths(&page, "Plans/<b>2027\r\n/Finance").await.expect(200);
    let listed = workspace.session.get(&tokens(&workspace)).await.expect(200).json();
    let made = items(&listed).iter().find(|one| one["name"] == "of paths").unwrap();
    assert_eq!(made["scope"]["folderIds"][0], json!(below), "{made}");
    let shown = workspace.session.get(&page).await.expect(200).text();
    assert!(
        shown.contains("<bdi>/Plans/&lt;b&gt;2027</bdi>") && shown.contains("<bdi>/Finance</bdi>"),
        "{shown}"
    );
}

async fn nobody_looks_through_tokens_of_others(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let owners = token(&workspace, "the owner's", &["read"], None).await;
    let editor = people::join(&workspace, "editor").await;
    let seat = editor.seat(&workspace);
    for path in [
        format!("{}/{owners}/reach", tokens(&workspace)),
        format!("/w/{}/files?as={owners}", workspace.id),
        format!("/w/{}/tokens/{owners}", workspace.id),
    ] {
        seat.session.get(&path).await.expect(404);
    }
    let search = format!("{}/{owners}/search", tokens(&workspace));
    seat.session.post(&search).json(json!({"query": "x"})).await.expect_error(404, "NOT_FOUND");
    let theirs = token(&seat, "the editor's", &["read", "write", "delete"], None).await;
    workspace.session.get(&format!("{}/{theirs}/reach", tokens(&workspace))).await.expect(200);
    // A permission that the role had when the token was created, and has lost since.
    let lower = json!({"role": "viewer"});
    workspace.session.patch(&editor.path(&workspace)).json(lower).await.expect(200);
    let reach =
        workspace.session.get(&format!("{}/{theirs}/reach", tokens(&workspace))).await.expect(200).json();
    assert_eq!(reach["permissions"], json!(["read"]), "{reach}");
    let stranger = people::join(&deployment.workspace().await, "owner").await.session;
    stranger.get(&format!("{}/{owners}/reach", tokens(&workspace))).await.expect_error(404, "NOT_FOUND");
}

async fn a_token_is_renamed(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let body = json!({"name": "old name", "permissions": ["read"]});
    let caller = make_token(&workspace.session, &workspace.id, body).await;
    let listed = workspace.session.get(&tokens(&workspace)).await.expect(200).json();
    let made = items(&listed).iter().find(|one| one["name"] == "old name").map(id).unwrap();
    let path = format!("{}/{made}", tokens(&workspace));
    let renamed = workspace.session.patch(&path).json(json!({"name": " new name "})).await.expect(200).json();
    assert_eq!((text(&renamed, "name"), &renamed["active"]), ("new name".to_owned(), &json!(true)));
    caller.get("/api/v1/files").await.expect(200);
    for wrong in [
        json!({}),
        json!({"name": ""}),
        json!({"name": "x".repeat(101)}),
        json!({"name": null}),
        json!({"owner": "x"}),
    ] {
        workspace.session.patch(&path).json(wrong).await.expect_error(400, "VALIDATION_ERROR");
    }
    let page = format!("/w/{}/tokens/{made}", workspace.id);
    send(&workspace.session, &format!("{page}/rename"), &[("name", "<b>by a form")]).await.expect(303);
    let shown = workspace.session.get(&page).await.expect(200).text();
    assert!(shown.contains("&lt;b&gt;by a form"), "{shown}");
    let long = "y".repeat(300);
    let refused =
        send(&workspace.session, &format!("{page}/rename"), &[("name", &long)]).await.expect(400).text();
    assert!(refused.contains(&long), "what was typed is kept");
}

async fn the_last_client_of_a_token_is_told(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let body = json!({"name": "of an agent", "permissions": ["read"]});
    let caller = make_token(&workspace.session, &workspace.id, body).await;
    let listed = async || {
        let listed = workspace.session.get(&tokens(&workspace)).await.expect(200).json();
        items(&listed).iter().find(|one| one["name"] == "of an agent").unwrap().clone()
    };
    let unused = listed().await;
    assert_eq!((&unused["lastClient"], &unused["lastChannel"]), (&json!(null), &json!(null)), "{unused}");
    let agent = format!("<b>agent</b>/1.0 {}", "x".repeat(300));
    caller.get("/api/v1/files").header("user-agent", &agent).await.expect(200);
    let used = listed().await;
    assert_eq!(used["lastClient"], json!(agent[..100]), "{used}");
    assert_eq!(used["lastChannel"], json!("rest"), "{used}");
    let page = format!("/w/{}/tokens", workspace.id);
    for path in [page.clone(), format!("{page}/{}", id(&used))] {
        let shown = workspace.session.get(&path).await.expect(200).text();
        assert!(shown.contains("&lt;b&gt;agent") && shown.contains("over the API"), "{shown}");
        assert!(!shown.contains("<b>agent"), "{shown}");
    }
}

async fn sessions_are_listed_and_ended_one_by_one(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let person = people::join(&workspace, "editor").await;
    let form = json!({"email": person.email, "password": PASSWORD});
    let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0";
    let opened = deployment.anonymous().post("/api/session").header("user-agent", agent).json(form).await;
    let other = Session { http: deployment.http(), cookie: people::session_cookie(&opened.expect(200)) };
    other.get("/api/session").await.expect(200);
    let listed = person.session.get("/api/account/sessions").await.expect(200).json();
    assert_eq!(items(&listed).len(), 2, "{listed}");
    assert!(!listed.to_string().contains(other.cookie.split('=').nth(1).unwrap()), "no secret");
    let named = items(&listed).iter().find(|one| one["agent"] == agent).unwrap();
    assert_eq!((&named["current"], text(named, "place").is_empty()), (&json!(false), false), "{named}");
    let current: Vec<_> = items(&listed).iter().filter(|one| one["current"] == true).collect();
    assert_eq!(current.len(), 1, "{listed}");

    let stranger = people::join(&deployment.workspace().await, "owner").await.session;
    let path = format!("/api/account/sessions/{}", id(named));
    stranger.delete(&path).await.expect_error(404, "NOT_FOUND");
    let page = person.session.get("/account").await.expect(200).text();
    assert!(page.contains("Firefox on Linux") && page.contains("This one"), "{page}");
    let end = format!("/account/sessions/{}/end", id(named));
    assert!(page.contains(&end), "{page}");
    send(&person.session, &end, &[]).await.expect(303);
    let ended = async || (other.get("/api/session").await.status == 401).then_some(());
    eventually("the other session has ended", ended).await;
    person.session.delete(&path).await.expect_error(404, "NOT_FOUND");
    person.session.get("/api/session").await.expect(200);
    let left = person.session.get("/api/account/sessions").await.expect(200).json();
    assert_eq!(each(&left, "id").len(), 1, "{left}");
    deployment.anonymous().get("/api/account/sessions").await.expect_error(401, "UNAUTHORIZED");
}

async fn freshness_is_for_owners_and_admins(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("Used", None).await;
    let made = workspace.file("found.md", Some(&folder), "the narwhal rules").await.expect(201);
    let search = workspace.token.post("/api/v1/search_context").after(&made.change());
    search.json(json!({"query": "narwhal rules"})).await.expect(200);
    let path = format!("/api/analytics/freshness?workspaceId={}&days=7", workspace.id);
    let known = async || {
        let told = workspace.session.get(&path).await.expect(200).json();
        (!items(&told["documents"]).is_empty()).then_some(told)
    };
    let told = eventually("the search is counted", known).await;
    assert_eq!(told["documents"][0]["path"], "/Used/found.md", "{told}");
    assert_eq!(
        (&told["folders"][0]["path"], &told["folders"][0]["ageDays"]),
        (&json!("/Used"), &json!(0)),
        "{told}"
    );
    let page = format!("/w/{}/freshness", workspace.id);
    let shown = workspace.session.get(&page).await.expect(200).text();
    assert!(shown.contains("<bdi>/Used</bdi>") && shown.contains("role=\"img\""), "{shown}");
    for (role, status) in [("admin", 200), ("editor", 403), ("viewer", 403)] {
        let member = people::join(&workspace, role).await.session;
        member.get(&page).await.expect(status);
        member.get(&path).await.expect(status);
    }
    for odd in ["days=0", "days=91", "days=x"] {
        let odd = format!("/api/analytics/freshness?workspaceId={}&{odd}", workspace.id);
        workspace.session.get(&odd).await.expect_error(400, "VALIDATION_ERROR");
    }
}
