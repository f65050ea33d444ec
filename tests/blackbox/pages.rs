//! The console's pages (docs/CONSOLE.md): who sees which, who may submit which form, and the headers that browsers get.

use std::collections::BTreeSet;

use crate::support::callers::Session;
use crate::support::http::{Reply, each, id, items, text};
use crate::support::oauth::encoded;
use crate::support::people::{self, PASSWORD, Person};
use crate::support::prelude::*;

scenarios![
    pages_are_for_members,
    forms_are_for_those_who_may,
    every_link_leads_to_a_page,
    people_sign_in_and_out,
    a_look_stays_with_the_browser,
    a_token_is_shown_once,
    an_invitation_is_shown_once,
    what_was_deleted_comes_back,
    a_workspace_ends_only_when_its_name_is_typed,
    browsers_get_pages_and_programs_get_json,
];

const FORM: &str = "application/x-www-form-urlencoded";
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types cairn";
const ROLES: [&str; 5] = ["owner", "admin", "editor", "contributor", "viewer"];

/// Pages of everybody who is signed in.
const ACCOUNT_PAGES: [&str; 2] = ["/account", "/workspaces"];
/// Pages below a workspace, for each of its members.
const MEMBER_PAGES: &[&str] = &[
    "",
    "/connect",
    "/tokens",
    "/tokens/new",
    "/activity",
    "/trash",
    "/apps",
    "/members",
    "/health",
    "/files",
    "/databases",
    "/databases/import",
    "/search",
    "/search/absence",
    "/go",
    "/golden",
    "/memories",
    "/questions",
    "/documents",
    "/sources",
    "/settings",
    "/import",
    "/sync",
];
/// Pages for owners and admins, or for whoever may write; their own scenarios test them.
const RESTRICTED_PAGES: &[&str] = &[
    "/activity/undo",
    "/analytics",
    "/analytics/csv",
    "/freshness",
    "/documents/new",
    "/memories/new",
    "/questions/write",
    "/sources/new",
    "/webhooks",
    "/webhooks/new",
];
/// Pages about a single item below a workspace.
const ITEM_PAGES: &[&str] = &["/tokens/{id}", "/questions/{id}", "/sources/{id}", "/webhooks/{id}"];
/// The fields of a form.
type Fields = &'static [(&'static str, &'static str)];
/// Invalid forms below a workspace, with the lowest role that may submit them: these roles get a 400, lower ones a 403.
const FORMS: &[(&str, Fields, &str)] = &[
    ("/settings/rename", &[("name", "")], "admin"),
    ("/settings/publishers", &[("publishers", "nobody")], "admin"),
    ("/settings/questions", &[("days", "8")], "owner"),
    ("/settings/delete", &[("typed", "another name")], "viewer"),
    ("/members", &[("email", "x"), ("role", "viewer")], "admin"),
    ("/trash/delete", &[("item", "nonsense")], "viewer"),
    ("/activity/undo", &[("entry", "nonsense")], "editor"),
    ("/databases/new", &[("name", "")], "contributor"),
    ("/databases/import", &[("csv", "")], "contributor"),
    ("/questions/write", &[("name", "")], "contributor"),
    ("/documents/new", &[("title", "")], "contributor"),
    ("/sources/new", &[("provider", "github")], "admin"),
    ("/webhooks/new", &[("name", "")], "admin"),
    ("/import", &[("provider", "nothing")], "contributor"),
    ("/golden/pin", &[("q", "")], "contributor"),
];
/// Forms whose permission depends on the item that they name, not on the role; these items do not exist.
const ITEM_FORMS: &[&str] = &[
    "/tokens/0199c0de-0000-7000-8000-00000000ffff/rename",
    "/golden/0199c0de-0000-7000-8000-00000000ffff/unpin",
    "/tokens/0199c0de-0000-7000-8000-00000000ffff/off",
    "/tokens/0199c0de-0000-7000-8000-00000000ffff/on",
    "/tokens/0199c0de-0000-7000-8000-00000000ffff/replace",
    "/tokens/0199c0de-0000-7000-8000-00000000ffff/delete",
    "/apps/0199c0de-0000-7000-8000-00000000ffff/end",
    "/questions/0199c0de-0000-7000-8000-00000000ffff/delete",
    "/members/0199c0de-0000-7000-8000-00000000ffff/role",
    "/members/0199c0de-0000-7000-8000-00000000ffff/remove",
    "/members/invitations/0199c0de-0000-7000-8000-00000000ffff/withdraw",
    "/sources/0199c0de-0000-7000-8000-00000000ffff/sync",
    "/sources/0199c0de-0000-7000-8000-00000000ffff/retry",
    "/sources/0199c0de-0000-7000-8000-00000000ffff/pause",
    "/sources/0199c0de-0000-7000-8000-00000000ffff/resume",
    "/sources/0199c0de-0000-7000-8000-00000000ffff/disconnect",
    "/webhooks/0199c0de-0000-7000-8000-00000000ffff/test",
    "/webhooks/0199c0de-0000-7000-8000-00000000ffff/replay",
    "/webhooks/0199c0de-0000-7000-8000-00000000ffff/enable",
    "/webhooks/0199c0de-0000-7000-8000-00000000ffff/disable",
    "/webhooks/0199c0de-0000-7000-8000-00000000ffff/rotate",
    "/webhooks/0199c0de-0000-7000-8000-00000000ffff/delete",
    "/import/0199c0de-0000-7000-8000-00000000ffff/start",
    "/import/0199c0de-0000-7000-8000-00000000ffff/cancel",
    "/import/0199c0de-0000-7000-8000-00000000ffff/rollback",
    "/sync/0199c0de-0000-7000-8000-00000000ffff/start",
    "/sync/0199c0de-0000-7000-8000-00000000ffff/cancel",
    "/sync/0199c0de-0000-7000-8000-00000000ffff/rollback",
    "/sync/0199c0de-0000-7000-8000-00000000ffff/delete",
];

async fn send(caller: &impl Caller, path: &str, fields: &[(&str, &str)]) -> Reply {
    caller.post(path).body(FORM, encoded(fields.iter().copied())).await
}

/// The values of an attribute, as escaped in the page.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let begin = format!(" {attribute}=\"");
    page.split(begin.as_str()).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

/// A path without the id that is its last segment.
fn without_id(path: &str) -> String {
    let (above, last) = path.rsplit_once('/').unwrap_or(("", path));
    let is_id = above.matches('/').count() > 2 && last.len() == 36;
    if is_id { format!("{above}/{{id}}") } else { path.to_owned() }
}

#[track_caller]
fn assert_page(reply: &Reply, status: u16, what: &str) {
    assert_eq!(reply.status, status, "{what}: {}", reply.text());
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"), "{what}");
    assert_eq!(reply.header("content-security-policy"), Some(POLICY), "{what}");
    assert_eq!(reply.header("cache-control"), Some("no-store"), "{what}");
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{what}");
    assert_eq!(reply.header("x-frame-options"), Some("DENY"), "{what}");
    assert_eq!(reply.header("cross-origin-opener-policy"), Some("same-origin"), "{what}");
    assert_eq!(reply.header("referrer-policy"), Some("same-origin"), "{what}");
}

#[track_caller]
fn assert_sent_to_sign_in(reply: &Reply, back: &str) {
    let back = encoded([("return_to", back)]);
    assert_eq!(reply.status, 303, "{}", reply.text());
    assert_eq!(reply.header("location"), Some(format!("/sign-in?{back}").as_str()));
}

/// A workspace and its members, one of each role.
async fn cast(deployment: &Deployment) -> (Workspace, Vec<(&'static str, Session)>) {
    let workspace = deployment.workspace().await;
    let mut members = vec![("owner", workspace.session.clone())];
    for role in ROLES.into_iter().skip(1) {
        members.push((role, people::join(&workspace, role).await.session));
    }
    (workspace, members)
}

async fn pages_are_for_members(deployment: &Deployment) {
    let (workspace, members) = cast(deployment).await;
    let nobody = deployment.anonymous();
    let stranger = people::join(&deployment.workspace().await, "owner").await.session;
    let base = format!("/w/{}", workspace.id);
    for path in ACCOUNT_PAGES {
        assert_page(&stranger.get(path).await, 200, path);
        assert_sent_to_sign_in(&nobody.get(path).await, path);
    }
    for below in MEMBER_PAGES {
        let path = format!("{base}{below}");
        for (role, member) in &members {
            assert_page(&member.get(&path).await, 200, &format!("{path} as {role}"));
        }
        let hidden = stranger.get(&path).await;
        assert_page(&hidden, 404, &path);
        assert!(
            !hidden.text().contains("A scenario's own") && !hidden.text().contains("A scenario&#"),
            "its name"
        );
        assert_sent_to_sign_in(&nobody.get(&path).await, &path);
    }
    let with_query = format!("{base}/trash?from=a&x=%C3%A9");
    assert_sent_to_sign_in(&nobody.get(&with_query).await, &with_query);
    assert_sent_to_sign_in(&nobody.get("/").await, "/");
    for odd in ["from=nonsense", "from=", "from=%00&from=%ff", "%", "lines=9-1&x[]=%F0"] {
        let reply = workspace.session.get(&format!("{base}/trash?{odd}")).await;
        assert!(reply.status < 500, "{odd}: {}", reply.text());
    }
}

async fn forms_are_for_those_who_may(deployment: &Deployment) {
    let (workspace, members) = cast(deployment).await;
    let nobody = deployment.anonymous();
    let stranger = people::join(&deployment.workspace().await, "owner").await.session;
    let base = format!("/w/{}", workspace.id);
    let rank = |role: &str| ROLES.iter().position(|one| *one == role).unwrap();
    for (below, fields, least) in FORMS {
        let path = format!("{base}{below}");
        for (role, member) in &members {
            // A permitted role gets a validation error.
            let expected = if rank(role) <= rank(least) { 400 } else { 403 };
            let reply = send(member, &path, fields).await;
            // A caller who may not even read may get the validation error first.
            let is_refused = reply.status == expected || (expected == 403 && reply.status == 400);
            assert!(is_refused, "{path} as {role}: {} {}", reply.status, reply.text());
            assert_page(&reply, reply.status, &path);
        }
        assert_page(&send(&stranger, &path, fields).await, 404, &path);
    }
    for below in ITEM_FORMS {
        let path = format!("{base}{below}");
        for (role, member) in &members {
            let reply = send(member, &path, &[("role", "viewer")]).await;
            assert!(matches!(reply.status, 403 | 404), "{path} as {role}: {} {}", reply.status, reply.text());
            assert_page(&reply, reply.status, &path);
        }
        assert_page(&send(&stranger, &path, &[]).await, 404, &path);
    }
    let all = FORMS.iter().map(|(below, ..)| *below).chain(ITEM_FORMS.iter().copied());
    for below in all.chain(["/tokens", "/trash/restore"]) {
        let path = format!("{base}{below}");
        assert_eq!(send(&nobody, &path, &[]).await.status, 303, "{path}");
        for (header, value) in
            [("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")]
        {
            let reply = workspace.session.post(&path).header(header, value).body(FORM, "");
            assert_page(&reply.await, 403, &path);
        }
        let got = workspace.session.get(&path).await;
        assert!(matches!(got.status, 200 | 405), "{path}: {}", got.status);
    }
    let renamed = send(&members[4].1, &format!("{base}/settings/rename"), &[("name", "Mine")]).await;
    assert_page(&renamed, 403, "renaming as viewer");
    let people = format!("/api/workspaces/{}/members", workspace.id);
    let people = workspace.session.get(&people).await.expect(200).json();
    let owner = items(&people).iter().find(|one| text(one, "role") == "owner");
    let owner = owner.unwrap_or_else(|| panic!("no owner in {people}"));
    for part in ["viewer".to_owned(), format!("<bdi>{}</bdi> (owner)", text(owner, "name"))] {
        assert!(renamed.text().contains(&part), "no {part}: {}", renamed.text());
    }
}

/// Every page that a page links to is in one of the lists above, and every form gets a response.
async fn every_link_leads_to_a_page(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let base = format!("/w/{}", workspace.id);
    workspace.file("a.md", None, "text").await;
    let mut known: BTreeSet<String> = MEMBER_PAGES.iter().map(|below| format!("{base}{below}")).collect();
    known.extend(ACCOUNT_PAGES.iter().map(ToString::to_string));
    known.extend(["/", "/docs/guides"].map(ToOwned::to_owned));
    let pages = known.clone();
    known.extend(RESTRICTED_PAGES.iter().map(|below| format!("{base}{below}")));
    known.extend(ITEM_PAGES.iter().map(|below| format!("{base}{below}")));
    for path in pages.into_iter().filter(|path| path != "/") {
        let page = workspace.session.get(&path).await.expect(200).text();
        for href in values(&page, "href") {
            let path = href.split(['?', '#']).next().unwrap();
            let is_elsewhere = path.is_empty()
                || path.starts_with("/console/")
                || path.starts_with("/docs/")
                || (path.starts_with("/w/") && !path.starts_with(&base));
            // Scenarios of their own test the pages of files, databases, memories and documents.
            let is_about_one = ["/file/", "/databases/", "/memories/", "/documents/"]
                .iter()
                .any(|about| path.starts_with(about));
            let is_elsewhere = is_elsewhere || is_about_one || path == format!("{base}/open");
            let is_clients = href.starts_with("cursor:") || href.starts_with("vscode:");
            assert!(
                is_elsewhere || is_clients || known.contains(&without_id(path)),
                "{href} on {path} has no entry here"
            );
        }
        for source in values(&page, "src").into_iter().chain(values(&page, "href")) {
            if source.starts_with("/console/") {
                let asset = deployment.anonymous().get(source).await.expect(200);
                assert_eq!(
                    asset.header("cache-control"),
                    Some("public, max-age=31536000, immutable"),
                    "{source}"
                );
            }
        }
        for action in values(&page, "action") {
            let reply = deployment.anonymous().post(action).body(FORM, "").await;
            // 405: a form that submits with GET.
            assert!(matches!(reply.status, 303 | 405), "{action} on {path}: {}", reply.text());
        }
    }
    deployment.anonymous().get("/console/app-000000000000.css").await.expect(404);
}

async fn people_sign_in_and_out(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let Person { email, .. } = people::join(&workspace, "viewer").await;
    let nobody = deployment.anonymous();
    let page = nobody.get("/sign-in?return_to=%2Faccount").await;
    assert_page(&page, 200, "/sign-in");
    assert!(page.text().contains("name=\"return_to\" value=\"/account\""), "{}", page.text());
    for wrong in [
        &[("email", email.as_str()), ("password", "wrong")][..],
        &[("email", "nobody@b.example"), ("password", PASSWORD)],
        &[],
    ] {
        let refused = send(&nobody, "/sign-in", wrong).await;
        assert_page(&refused, 400, "/sign-in");
        assert!(refused.header("set-cookie").is_none() && !refused.text().contains(PASSWORD));
        assert!(refused.text().contains("<title>Error: Sign in"), "{}", refused.text());
    }
    for (back, to) in [
        ("/account", "/account"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("", "/"),
    ] {
        let fields = [("return_to", back), ("email", email.as_str()), ("password", PASSWORD)];
        let opened = send(&nobody, "/sign-in", &fields).await.expect(303);
        assert_eq!(opened.header("location"), Some(to), "{back}");
        let session = Session { http: deployment.http(), cookie: people::session_cookie(&opened) };
        assert_eq!(
            session.get("/sign-in?return_to=%2Faccount").await.expect(303).header("location"),
            Some("/account")
        );
        let home = session.get("/").await.expect(303);
        assert_eq!(home.header("location"), Some(format!("/w/{}", workspace.id).as_str()));
        let out = send(&session, "/sign-out", &[]).await.expect(303);
        assert!(out.header("set-cookie").is_some_and(|cookie| cookie.contains("Max-Age=0")));
        let ended = async || (session.get("/account").await.status == 303).then_some(());
        eventually("the session has ended", ended).await;
    }
    let session = deployment.sign_in().await;
    let fields = [("currentPassword", "not it"), ("newPassword", "another battery")];
    let wrong = send(&session, "/account/password", &fields).await;
    assert_page(&wrong, 400, "/account/password");
    assert!(
        wrong.text().contains("Current password") && !wrong.text().contains("another battery"),
        "{}",
        wrong.text()
    );
}

async fn a_look_stays_with_the_browser(deployment: &Deployment) {
    let session = deployment.session().await;
    let changed =
        send(&session, "/account/look", &[("theme", "dark"), ("density", "dense")]).await.expect(303);
    let cookies: Vec<_> =
        changed.headers.get_all("set-cookie").iter().map(|one| one.to_str().unwrap()).collect();
    let look = cookies.iter().find(|cookie| cookie.starts_with("cairn_look=")).unwrap();
    assert!(look.contains("HttpOnly") && look.contains("SameSite=Lax"), "{look}");
    let notice = cookies.iter().find(|cookie| cookie.starts_with("cairn_notice=")).unwrap();
    assert!(notice.contains("HttpOnly") && notice.contains("Max-Age=30"), "{notice}");
    let cookie = |set: &str| set.split(';').next().unwrap().to_owned();
    let with_both = format!("{}; {}; {}", session.cookie, cookie(look), cookie(notice));
    let page = deployment.anonymous().get("/account").header("cookie", with_both).await.expect(200);
    let text = page.text();
    assert!(text.contains("data-theme=\"dark\" data-density=\"dense\" data-keys=\"off\""), "{text}");
    assert!(text.contains("Changed for this browser."), "{text}");
    assert!(
        page.header("set-cookie").is_some_and(|cookie| cookie.starts_with("cairn_notice=;")),
        "told once"
    );
}

async fn a_token_is_shown_once(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let base = format!("/w/{}/tokens", workspace.id);
    let page = workspace.session.get(&format!("{base}/new")).await.expect(200).text();
    let number = page.split("name=\"number\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let fields = [
        ("number", number.as_str()),
        ("name", "<b>of a program</b>"),
        ("permissions", "read"),
        ("permissions", "write"),
    ];
    let wrong =
        send(&workspace.session, &base, &[("number", &number), ("name", "kept as it was typed")]).await;
    assert_page(&wrong, 400, &base);
    assert!(wrong.text().contains("value=\"kept as it was typed\""), "{}", wrong.text());

    let request = workspace.session.post(&base).header("accept-encoding", "zstd, gzip");
    let made = request.body(FORM, encoded(fields)).await;
    assert_page(&made, 200, &base);
    assert_eq!(made.header("content-encoding"), None, "a secret is not compressed");
    let text = made.text();
    let secret =
        values(&text, "value").into_iter().find(|value| value.starts_with("cairn_")).unwrap().to_owned();
    assert!(text.contains("&lt;b&gt;of a program") && !text.contains("<b>of"), "{text}");
    deployment.token(&secret).get("/api/v1/files").await.expect(200);

    let again = send(&workspace.session, &base, &fields).await;
    assert_page(&again, 200, &base);
    assert!(!again.text().contains("cairn_") && again.text().contains("sent before"), "{}", again.text());
    let path = format!("/api/workspaces/{}/tokens", workspace.id);
    let listed = workspace.session.get(&path).await.expect(200).json();
    let named = each(&listed, "name").into_iter().filter(|name| name.contains("of a program")).count();
    assert_eq!(named, 1, "{listed}");
    let list = workspace.session.get(&base).await.expect(200).text();
    assert!(!list.contains(&secret) && list.contains("Switch off"), "{list}");

    let token = items(&listed).iter().find(|one| one["name"] == "<b>of a program</b>").map(id).unwrap();
    let one = workspace.session.get(&format!("{base}/{token}")).await;
    assert_page(&one, 200, "the token's own page");
    assert!(one.text().contains("It reaches the whole workspace: 0 files"), "{}", one.text());
    let folder = workspace.folder("inside", None).await;
    workspace.file("in.md", Some(&folder), "text").await;
    workspace.file("out.md", None, "text").await;
    let asked = [("number", number.as_str()), ("name", "x"), ("folders", folder.as_str())];
    let preview = send(&workspace.session, &format!("{base}/preview"), &asked).await.expect(200).text();
    assert!(preview.contains("It reaches 1 file in 1 folder"), "{preview}");
    // Its replacement is shown once, and the replaced one is invalid from then on.
    let replace = format!("{base}/{token}/replace");
    let replaced = send(&workspace.session, &replace, &[("number", &number)]).await;
    assert_page(&replaced, 200, &replace);
    let text = replaced.text();
    let newer = values(&text, "value").into_iter().find(|value| value.starts_with("cairn_")).unwrap();
    assert!(newer != secret && text.contains("The old one is switched off."), "{text}");
    deployment.token(newer).get("/api/v1/files").await.expect(200);
    let again = send(&workspace.session, &replace, &[("number", &number)]).await.expect(200).text();
    assert!(!again.contains("cairn_") && again.contains("sent before"), "{again}");
    for (verb, opens) in [("off", false), ("on", true), ("delete", false)] {
        send(&workspace.session, &format!("{base}/{token}/{verb}"), &[]).await.expect(303);
        let expected = if opens { 200 } else { 401 };
        let known =
            async || (deployment.token(&secret).get("/api/v1/files").await.status == expected).then_some(());
        eventually(verb, known).await;
    }
}

async fn an_invitation_is_shown_once(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let base = format!("/w/{}/members", workspace.id);
    let page = workspace.session.get(&base).await.expect(200).text();
    let number = page.split("name=\"number\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let email = people::unused_email();
    let fields = [("number", number.as_str()), ("email", email.as_str()), ("role", "contributor")];
    let text = send(&workspace.session, &base, &fields).await.expect(200).text();
    let link =
        values(&text, "value").into_iter().find(|value| value.contains("/invite#")).unwrap().to_owned();
    let again = send(&workspace.session, &base, &fields).await.expect(200).text();
    assert!(!again.contains("/invite#") && again.contains("sent before"), "{again}");
    let (_, secret) = link.split_once('#').unwrap();
    people::accept(&deployment.anonymous(), secret).await.expect(201);
    let list = workspace.session.get(&base).await.expect(200).text();
    assert!(list.contains(&email) && !list.contains("Invited"), "{list}");

    let second = people::unused_email();
    people::invite(&workspace, &second, "viewer").await;
    let list = workspace.session.get(&base).await.expect(200).text();
    let withdraw =
        values(&list, "action").into_iter().find(|path| path.ends_with("/withdraw")).unwrap().to_owned();
    send(&workspace.session, &withdraw, &[]).await.expect(303);
    assert!(!workspace.session.get(&base).await.expect(200).text().contains(&second));
}

async fn what_was_deleted_comes_back(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let base = format!("/w/{}/trash", workspace.id);
    let mut items = Vec::new();
    for name in ["one.md", "two.md"] {
        let file = workspace.file_id(name, None, "text").await;
        workspace.token.delete(&format!("/api/v1/files/{file}")).await.expect(204);
        items.push(format!("file:{file}"));
    }
    let folder = workspace.folder("a folder", None).await;
    workspace.token.delete(&format!("/api/v1/folders/{folder}")).await.expect(204);
    let listed = workspace.session.get(&base).await.expect(200).text();
    assert!(listed.contains("one.md") && listed.contains("two.md") && listed.contains("Restore"), "{listed}");
    let fields: Vec<_> = items.iter().map(|item| ("item", item.as_str())).collect();
    let restored = send(&workspace.session, &format!("{base}/restore"), &fields).await.expect(303);
    assert_eq!(restored.header("location"), Some(base.as_str()));
    let files = workspace.token.get("/api/v1/files").await.expect(200).json();
    assert_eq!(each(&files, "name").len(), 2, "{files}");

    let item = format!("folder:{folder}");
    let wrong =
        send(&workspace.session, &format!("{base}/delete"), &[("item", &item), ("name", "folder")]).await;
    assert_page(&wrong, 400, "a wrong name does nothing");
    assert!(workspace.session.get(&base).await.expect(200).text().contains("a folder"));
    send(&workspace.session, &format!("{base}/delete"), &[("item", &item), ("name", "a folder")])
        .await
        .expect(303);
    assert!(workspace.session.get(&base).await.expect(200).text().contains("Nothing is in trash"));
}

async fn a_workspace_ends_only_when_its_name_is_typed(deployment: &Deployment) {
    let session = deployment.session().await;
    let made = send(&session, "/workspaces", &[("name", "Short <lived>")]).await.expect(303);
    let home = made.header("location").unwrap().to_owned();
    let page = session.get(&home).await.expect(200).text();
    assert!(page.contains("Short &lt;lived&gt;") && page.contains("Connect an agent"), "{page}");
    let delete = format!("{home}/settings/delete");
    assert_page(&send(&session, &delete, &[("typed", "Short")]).await, 400, &delete);
    session.get(&home).await.expect(200);
    send(&session, &format!("{home}/settings/rename"), &[("name", "Shorter")]).await.expect(303);
    send(&session, &delete, &[("typed", "Shorter")]).await.expect(303);
    assert_page(&session.get(&home).await, 404, &home);
    let workspace = home.trim_start_matches("/w/");
    send(&session, &format!("/workspaces/{workspace}/restore"), &[]).await.expect(303);
    session.get(&home).await.expect(200);
}

async fn browsers_get_pages_and_programs_get_json(deployment: &Deployment) {
    let session = deployment.session().await;
    let browser = |path: &'static str| session.get(path).header("accept", "text/html,application/xhtml+xml");
    for path in ["/nowhere", "/w/nothing", "/w/0199c0de-0000-7000-8000-00000000ffff/tokens"] {
        let page = browser(path).await;
        assert_page(&page, 404, path);
        let id = page.header("x-request-id").unwrap();
        assert!(page.text().contains(id), "the request's id: {}", page.text());
    }
    session.get("/nowhere").await.expect_error(404, "NOT_FOUND");
    browser("/api/nowhere").await.expect_error(404, "NOT_FOUND");
    browser("/api/v1/files").await.expect_error(401, "UNAUTHORIZED");
    let large = "x".repeat(20_000);
    assert_page(&send(&session, "/workspaces", &[("name", &large)]).await, 413, "too large");
}
