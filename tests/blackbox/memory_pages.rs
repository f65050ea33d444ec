//! The console's pages about memories, the public page of a public one, and a workspace's retrieval analytics.

use crate::support::http::{Reply, each, id, items, text};
use crate::support::oauth::encoded;
use crate::support::people;
use crate::support::prelude::*;

scenarios![
    a_memory_is_made_filled_ordered_and_taken_back,
    what_was_typed_is_kept,
    roles_see_what_they_may_do,
    a_public_memory_is_read_by_anybody,
    a_memory_in_trash_is_told_and_comes_back,
    what_people_wrote_is_shown_as_text,
    addresses_of_no_memory_are_pages,
    analytics_are_for_owners_and_admins,
];

const FORM: &str = "application/x-www-form-urlencoded";
const HOSTILE: &str = "<script>alert(1)</script>\"'";

async fn send(seat: &Workspace, path: &str, fields: &[(&str, &str)]) -> Reply {
    let body = encoded(fields.iter().copied());
    seat.session.post(path).header("sec-fetch-site", "same-origin").body(FORM, body).await
}

async fn page(seat: &Workspace, path: &str) -> String {
    seat.session.get(path).await.expect(200).text()
}

fn location(reply: &Reply) -> &str {
    reply.header("location").unwrap_or_default()
}

/// A memory of those files.
async fn memory(workspace: &Workspace, files: &[&str]) -> String {
    let members: Vec<_> = files.iter().map(|file| json!({"kind": "file", "fileId": file})).collect();
    let body = json!({"name": "How we release", "useWhen": "before a release", "members": members});
    id(&workspace.token.post("/api/v1/memories").json(body).await.expect(201).json())
}

async fn read(workspace: &Workspace, memory: &str) -> Value {
    workspace.token.get(&format!("/api/v1/memories/{memory}")).await.expect(200).json()
}

async fn a_memory_is_made_filled_ordered_and_taken_back(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("Release plans", None).await;
    workspace.file("inner.md", Some(&folder), "x").await.expect(201);
    let steps = workspace.file_id("release-steps.md", None, &"word".repeat(250)).await;
    let list = format!("/w/{}/memories", workspace.id);
    assert!(page(&workspace, &list).await.contains("New memory"));
    let typed = [("name", "How we release"), ("useWhen", "first line\r\nsecond line"), ("slug", "")];
    let made = send(&workspace, &format!("{list}/new"), &typed).await.expect(303);
    let path = location(&made).to_owned();
    let memory = path.strip_prefix("/memories/").unwrap().to_owned();
    let known = read(&workspace, &memory).await;
    assert_eq!(
        (text(&known, "slug"), text(&known, "useWhen")),
        ("how-we-release".into(), "first line\nsecond line".into())
    );

    let found = page(&workspace, &format!("{path}?q=ReLeAsE")).await;
    let (file_item, folder_item) = (format!("file:{steps}"), format!("folder:{folder}"));
    assert!(found.contains(&file_item) && found.contains(&folder_item), "{found}");
    let both = [("item", file_item.as_str()), ("item", folder_item.as_str())];
    assert_eq!(location(&send(&workspace, &format!("{path}/add"), &both).await.expect(303)), path);
    let shown = page(&workspace, &path).await;
    for part in ["release-steps.md", "Release plans", "Move down", "Move up", "/inner.md", "251 tokens"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let known = read(&workspace, &memory).await;
    assert_eq!(each(&known["members"], "kind"), ["file", "folder"]);
    let costs: Vec<_> = items(&known["members"]).iter().map(|member| member["tokens"].clone()).collect();
    assert_eq!((costs, &known["tokens"]), (vec![json!(250), json!(1)], &json!(251)));
    let first = id(&items(&known["members"])[0]);
    let moved = [("member", first.as_str()), ("position", "1")];
    send(&workspace, &format!("{path}/move"), &moved).await.expect(303);
    let known = read(&workspace, &memory).await;
    assert_eq!(each(&known["members"], "kind"), ["folder", "file"]);
    assert_eq!(id(&items(&known["members"])[1]), first, "a member keeps its id");
    // The API can reorder it, too.
    let place = format!("/api/v1/memories/{memory}/members/{first}");
    let moved = workspace.token.patch(&place).json(json!({"position": 0})).await.expect(200).json();
    assert_eq!(each(&moved["members"], "kind"), ["file", "folder"]);
    workspace.token.patch(&place).json(json!({"position": -1})).await.expect_error(400, "VALIDATION_ERROR");

    send(&workspace, &format!("{path}/remove"), &[("member", &first)]).await.expect(303);
    assert_eq!(each(&read(&workspace, &memory).await["members"], "kind"), ["folder"]);
    send(&workspace, &format!("{path}/remove"), &[("member", &first)]).await.expect(404);

    let gone = send(&workspace, &format!("{path}/delete"), &[]).await.expect(303);
    assert_eq!(location(&gone), list);
    let notice = gone.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let cookies = format!("{}; {notice}", workspace.session.cookie);
    let told = deployment.anonymous().get(&list).header("cookie", cookies).await.expect(200).text();
    let item = format!("memory:{memory}");
    assert!(told.contains("Undo") && told.contains(&item), "{told}");
    let undo = format!("/w/{}/trash/restore", workspace.id);
    send(&workspace, &undo, &[("item", &item)]).await.expect(303);
    assert!(page(&workspace, &path).await.contains("Release plans"));
}

async fn what_was_typed_is_kept(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let first = memory(&workspace, &[]).await;
    let new = format!("/w/{}/memories/new", workspace.id);
    let long = "w".repeat(10_001);
    for (path, fields) in [
        (new.clone(), [("name", ""), ("useWhen", "kept words"), ("slug", "")]),
        (new.clone(), [("name", "x"), ("useWhen", "kept words"), ("slug", "how-we-release")]),
        (new.clone(), [("name", "x"), ("useWhen", "kept words"), ("slug", "No Slug")]),
        (new, [("name", "kept words"), ("useWhen", long.as_str()), ("slug", "")]),
        (format!("/memories/{first}/edit"), [("name", "x"), ("useWhen", "kept words"), ("slug", "")]),
    ] {
        let again = send(&workspace, &path, &fields).await.expect(400).text();
        assert!(again.contains("kept words") && again.contains("<title>Error: "), "{path}: {again}");
    }
    let edit = format!("/memories/{first}/edit");
    assert!(page(&workspace, &edit).await.contains("before a release"));
    let fields =
        [("name", "Releasing"), ("useWhen", ""), ("description", "all of it"), ("slug", "releasing")];
    send(&workspace, &edit, &fields).await.expect(303);
    let known = read(&workspace, "releasing").await;
    assert_eq!((text(&known, "name"), &known["useWhen"]), ("Releasing".into(), &json!(null)));
}

async fn roles_see_what_they_may_do(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "x").await;
    let memory = memory(&workspace, &[&file]).await;
    let member = id(&items(&read(&workspace, &memory).await["members"])[0]);
    let (path, list) = (format!("/memories/{memory}"), format!("/w/{}/memories", workspace.id));
    for (role, writes, deletes, publishes) in [
        ("viewer", false, false, false),
        ("contributor", true, false, false),
        ("editor", true, true, false),
        ("admin", true, true, true),
    ] {
        let seat = people::join(&workspace, role).await.seat(&workspace);
        let shown = page(&seat, &path).await;
        assert_eq!(shown.contains(&format!("href=\"{path}/edit\"")), writes, "{role}");
        assert_eq!(shown.contains("role=\"search\""), writes, "{role}");
        assert_eq!(shown.contains(&format!("action=\"{path}/remove\"")), deletes, "{role}");
        assert_eq!(shown.contains(&format!("action=\"{path}/delete\"")), deletes, "{role}");
        assert_eq!(shown.contains(&format!("action=\"{path}/publish\"")), publishes, "{role}");
        assert_eq!(page(&seat, &list).await.contains("New memory"), writes, "{role}");
        let allowed = |may: bool| if may { 200 } else { 403 };
        seat.session.get(&format!("{path}/edit")).await.expect(allowed(writes));
        seat.session.get(&format!("{list}/new")).await.expect(allowed(writes));
        if !writes {
            send(&seat, &format!("{path}/add"), &[("item", &format!("file:{file}"))]).await.expect(403);
            let moved = [("member", member.as_str()), ("position", "0")];
            send(&seat, &format!("{path}/move"), &moved).await.expect(403);
            send(&seat, &format!("{path}/edit"), &[("name", "x"), ("slug", "x")]).await.expect(403);
        }
        if !deletes {
            send(&seat, &format!("{path}/remove"), &[("member", &member)]).await.expect(403);
            send(&seat, &format!("{path}/delete"), &[]).await.expect(403);
        }
        if !publishes {
            send(&seat, &format!("{path}/publish"), &[]).await.expect(403);
        }
    }
    let stranger = people::join(&deployment.workspace().await, "owner").await;
    let hidden = stranger.session.get(&path).await.expect(404).text();
    assert!(!hidden.contains("How we release"), "{hidden}");
    let signed_out = deployment.anonymous().get(&path).await.expect(303);
    assert!(location(&signed_out).starts_with("/sign-in?return_to="), "{}", location(&signed_out));
    let body = encoded([("item", format!("file:{file}").as_str())]);
    let foreign = workspace.session.post(&format!("{path}/add")).header("sec-fetch-site", "cross-site");
    foreign.body(FORM, body).await.expect(403);
    assert_eq!(items(&read(&workspace, &memory).await["members"]).len(), 1);
}

async fn a_public_memory_is_read_by_anybody(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("steps.md", None, "# Steps\n\nfirst *step*\n").await;
    let other = workspace.file_id("more.md", None, "# Steps\n\nsecond step\n").await;
    let memory = memory(&workspace, &[&file, &other]).await;
    let (path, public) = (format!("/memories/{memory}"), format!("/m/{memory}"));
    let anybody = deployment.anonymous();
    anybody.get(&public).await.expect(404);
    // Not even for its own people: the page shows what anybody sees.
    workspace.session.get(&public).await.expect(404);
    assert!(page(&workspace, &path).await.contains("without signing in"));
    send(&workspace, &format!("{path}/publish"), &[]).await.expect(303);
    assert!(page(&workspace, &path).await.contains(&public));
    let shown = anybody.get(&public).await.expect(200);
    assert_eq!(shown.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(shown.header("cache-control"), Some("public, max-age=60"));
    assert_eq!(shown.header("x-robots-tag"), Some("noindex"));
    assert_eq!(shown.header("x-frame-options"), Some("DENY"));
    assert_eq!(shown.header("set-cookie"), None);
    let shown = shown.text();
    for part in ["How we release", "before a release", "first <em>step</em>", "second step"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("<script") && !shown.contains("/w/"), "{shown}");
    let one = anybody.get(&format!("{public}?text=2")).await.expect(200).text();
    assert!(one.contains("second step") && !one.contains("first <em>"), "{one}");
    send(&workspace, &format!("{path}/list"), &[]).await.expect(303);
    assert_eq!(anybody.get(&public).await.expect(200).header("x-robots-tag"), None);
    assert!(page(&workspace, &path).await.contains("Hide from search engines"));
    send(&workspace, &format!("{path}/unlist"), &[]).await.expect(303);
    assert_eq!(anybody.get(&public).await.expect(200).header("x-robots-tag"), Some("noindex"));
    send(&workspace, &format!("{path}/unpublish"), &[]).await.expect(303);
    anybody.get(&public).await.expect(404);
    // A private memory is not listed.
    send(&workspace, &format!("{path}/list"), &[]).await.expect(400);
}

async fn a_memory_in_trash_is_told_and_comes_back(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let memory = memory(&workspace, &[]).await;
    let path = format!("/memories/{memory}");
    workspace.token.delete(&format!("/api/v1{path}")).await.expect(204);
    for below in ["", "?q=a", "/edit"] {
        let told = workspace.session.get(&format!("{path}{below}")).await.expect(404).text();
        assert!(told.contains("How we release") && told.contains("Restore"), "{below}: {told}");
    }
    let restored = send(&workspace, &format!("{path}/restore"), &[]).await.expect(303);
    assert_eq!(location(&restored), path);
    page(&workspace, &path).await;
}

async fn what_people_wrote_is_shown_as_text(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("<script>alert(2)", None).await;
    let file = workspace.file_id("<img src=x>.md", Some(&folder), HOSTILE).await;
    let member = json!({"kind": "file", "fileId": file});
    let body = json!({
        "name": HOSTILE, "useWhen": HOSTILE, "description": HOSTILE, "isPublic": true, "members": [member],
    });
    let made = workspace.token.post("/api/v1/memories").json(body).await.expect(201);
    let memory = id(&made.json());
    for path in [
        format!("/memories/{memory}"),
        format!("/memories/{memory}?q=%3Cscript%3E"),
        format!("/memories/{memory}/edit"),
        format!("/w/{}/memories", workspace.id),
        format!("/m/{memory}"),
    ] {
        let shown = page(&workspace, &path).await;
        assert!(!shown.contains("<script>alert") && !shown.contains("<img src=x"), "{path}: {shown}");
        assert!(shown.contains("&lt;script&gt;"), "{path}: {shown}");
    }
}

async fn addresses_of_no_memory_are_pages(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let nothing = "0199c0de-0000-7000-8000-00000000ffff";
    for path in [
        "/memories/x".to_owned(),
        format!("/memories/{nothing}"),
        format!("/memories/{nothing}/edit"),
        "/memories/%00".to_owned(),
        "/m/x".to_owned(),
        format!("/m/{nothing}"),
        format!("/w/{nothing}/memories"),
    ] {
        let told = workspace.session.get(&path).await.expect(404);
        assert_eq!(told.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert!(told.text().contains("href=\"/"), "{path} has a way back");
    }
    let memory = memory(&workspace, &[]).await;
    let long = format!("q={}", "x".repeat(300));
    for odd in ["q=%00", "q=%ff", "q=", "x[]=1", long.as_str()] {
        page(&workspace, &format!("/memories/{memory}?{odd}")).await;
    }
    let add = format!("/memories/{memory}/add");
    for odd in ["", "file", "file:x", "record:x"] {
        send(&workspace, &add, &[("item", odd)]).await.expect(400);
    }
}

async fn analytics_are_for_owners_and_admins(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = format!("/w/{}/analytics", workspace.id);
    for role in ["viewer", "contributor", "editor"] {
        let seat = people::join(&workspace, role).await.seat(&workspace);
        let refused = seat.session.get(&path).await.expect(403).text();
        assert!(refused.contains(role) && refused.contains("owner"), "{refused}");
        seat.session.get(&format!("{path}/csv")).await.expect(403);
        let overview = page(&seat, &format!("/w/{}", workspace.id)).await;
        assert!(!overview.contains(&format!("href=\"{path}\"")), "{role}");
    }
    assert!(page(&workspace, &path).await.contains("Nothing was asked in these days."));
    let made = workspace.file("aardwolf.md", None, "The aardwolf eats termites.\n").await;
    let asked = json!({"query": "aardwolf", "strategy": "keyword"});
    workspace.search_after(&made.change(), asked).await;
    let admin = people::join(&workspace, "admin").await.seat(&workspace);
    let shown = eventually("the question is counted", async || {
        let shown = page(&admin, &format!("{path}?days=7")).await;
        shown.contains("aardwolf.md").then_some(shown)
    })
    .await;
    for part in ["role=\"img\"", "<polyline", "<details", "By channel", "rest"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let csv = admin.session.get(&format!("{path}/csv?days=7")).await.expect(200);
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    assert_eq!(csv.text().lines().count(), 8, "{}", csv.text());
    assert!(csv.text().lines().last().unwrap().contains(",1,0,0,"), "{}", csv.text());
    for odd in ["days=0", "days=91", "days=x", "days=%00", "days=99999999999999999999"] {
        page(&workspace, &format!("{path}?{odd}")).await;
    }
    let stranger = people::join(&deployment.workspace().await, "owner").await;
    stranger.session.get(&path).await.expect(404);
}
