//! Checks on the HTML of every page: a page without an entry in [`PAGES`] fails.

mod html;

use std::collections::BTreeSet;

use axum::body::Body;
use http::{Method, Request};

pub(in crate::pages) use self::html::faults;
use crate::class::Surface;
use crate::testing::databases::{DATABASE, RECORD, VIEW};
use crate::testing::{Answer, FILE, MEMORY, PASSWORD, TRASHED, WORKSPACE, bench};

/// The pages that answer GET, with the path of an existing one.
const PAGES: &[(&str, &str)] = &[
    ("/sign-in", "/sign-in"),
    ("/account", "/account"),
    ("/workspaces", "/workspaces"),
    ("/w/{id}", "/w/{w}"),
    ("/w/{id}/connect", "/w/{w}/connect"),
    ("/w/{id}/tokens", "/w/{w}/tokens"),
    ("/w/{id}/tokens/new", "/w/{w}/tokens/new"),
    ("/w/{id}/tokens/{token}", "/w/{w}/tokens/0199c0de-0000-7000-8000-0000000000c1"),
    ("/w/{id}/activity", "/w/{w}/activity"),
    ("/w/{id}/activity", "/w/{w}/activity?who=x&kind=file&folder=x&day=2026-11-23&open=1800000000000000.7.0"),
    ("/w/{id}/activity/undo", "/w/{w}/activity/undo?entry=1.2.0"),
    ("/w/{id}/activity/undo", "/w/{w}/activity/undo?who=x&within=7"),
    ("/w/{id}/activity/undo", "/w/{w}/activity/undo?write=1.2"),
    ("/w/{id}/trash", "/w/{w}/trash"),
    ("/w/{id}/apps", "/w/{w}/apps"),
    ("/w/{id}/members", "/w/{w}/members"),
    ("/w/{id}/health", "/w/{w}/health"),
    ("/w/{id}/settings", "/w/{w}/settings"),
    ("/w/{id}/files", "/w/{w}/files"),
    ("/w/{id}/files", "/w/{w}/files?folder=0199c0de-0000-7000-8000-0000000000c1&tag=x"),
    ("/w/{id}/files/all", "/w/{w}/files/all?do=trash"),
    ("/w/{id}/files/all", "/w/{w}/files/all?do=tag&tag-selected=%3Cscript%3E&q=%3Cscript%3E&all=yes"),
    ("/w/{id}/files/all", "/w/{w}/files/all?do=move&to=0199c0de-0000-7000-8000-0000000000c1"),
    ("/w/{id}/search", "/w/{w}/search"),
    ("/w/{id}/search", "/w/{w}/search?q=x&strategy=nothing"),
    ("/w/{id}/search", "/w/{w}/search?view=script&script=ls"),
    ("/w/{id}/golden", "/w/{w}/golden"),
    ("/w/{id}/search/absence", "/w/{w}/search/absence"),
    ("/w/{id}/search/absence", "/w/{w}/search/absence?q=x&find=x"),
    ("/w/{id}/search/absence", "/w/{w}/search/absence?q=x&document={f}"),
    ("/w/{id}/files", "/w/{w}/files?as=0199c0de-0000-7000-8000-0000000000c1"),
    ("/w/{id}/search", "/w/{w}/search?q=x&as=0199c0de-0000-7000-8000-0000000000c1"),
    ("/w/{id}/databases", "/w/{w}/databases?as=0199c0de-0000-7000-8000-0000000000c1"),
    ("/w/{id}/memories", "/w/{w}/memories?as=0199c0de-0000-7000-8000-0000000000c1"),
    ("/file/{id}", "/file/{f}?view=changes&as=0199c0de-0000-7000-8000-0000000000c1"),
    ("/databases/{id}", "/databases/{d}?record={r}&as=0199c0de-0000-7000-8000-0000000000c1"),
    ("/memories/{id}", "/memories/{m}?as=0199c0de-0000-7000-8000-0000000000c1"),
    ("/w/{id}/go", "/w/{w}/go"),
    ("/w/{id}/go", "/w/{w}/go?q=e"),
    ("/w/{id}/go", "/w/{w}/go?q=e&kind=file"),
    ("/file/{id}", "/file/{f}?lines=2-3&hash=blake3:0001"),
    ("/file/{id}", "/file/{f}?lines=2-3&hash=blake3:ffff"),
    ("/file/{id}", "/file/{f}?view=source&lines=2"),
    ("/file/{id}", "/file/{f}?view=changes"),
    ("/file/{id}", "/file/{f}?view=uses"),
    ("/file/{id}/index", "/file/{f}/index"),
    ("/file/{id}/edit", "/file/{f}/edit"),
    ("/file/{id}/edit", "/file/{f}/edit?ask=q%3D%22x%3C"),
    ("/file/{id}/edit", "/file/{f}/edit?ask=https://evil.example"),
    ("/file/{id}/versions/{version}", "/file/{f}/versions/1"),
    ("/file/{id}/versions/{version}", "/file/{f}/versions/2?show=now"),
    ("/file/{id}/versions/{version}", "/file/{f}/versions/1?show=text&lines=2"),
    ("/w/{id}/databases", "/w/{w}/databases"),
    ("/w/{id}/databases/import", "/w/{w}/databases/import"),
    ("/databases/{id}", "/databases/{d}"),
    (
        "/databases/{id}",
        "/databases/{d}?view={v}&q=x&filter={n}:gte:1&filter=nothing:is_empty&sort={n}:desc&page=2",
    ),
    ("/databases/{id}", "/databases/{d}?group={n}"),
    ("/databases/{id}", "/databases/{d}?group=0199c0de-0000-7000-8000-000000000104:month&q=x&page=2"),
    ("/databases/{id}", "/databases/{d}?group=nothing"),
    ("/databases/{id}", "/databases/{d}?record={r}"),
    ("/databases/{id}", "/databases/{d}?page=2&record={r}&show=versions"),
    ("/databases/{id}", "/databases/{d}?record={r}&show=backlinks"),
    ("/databases/{id}", "/databases/{d}?record=new"),
    ("/databases/{id}", "/databases/{d}?cell={r}:{n}"),
    ("/databases/{id}/fields", "/databases/{d}/fields"),
    ("/databases/{id}/import", "/databases/{d}/import"),
    ("/w/{id}/questions", "/w/{w}/questions"),
    ("/w/{id}/memories", "/w/{w}/memories"),
    ("/w/{id}/memories/new", "/w/{w}/memories/new"),
    ("/memories/{id}", "/memories/{m}"),
    ("/memories/{id}", "/memories/{m}?q=%3Cscript%3E"),
    ("/memories/{id}/edit", "/memories/{m}/edit"),
    ("/memories/{id}/versions", "/memories/{m}/versions"),
    ("/memories/{id}/versions/{version}", "/memories/{m}/versions/2"),
    ("/memories/{id}/versions/{version}", "/memories/{m}/versions/1?show=now"),
    ("/memories/{id}/versions/{version}", "/memories/{m}/versions/1?show=text"),
    ("/w/{id}/documents", "/w/{w}/documents"),
    ("/w/{id}/documents/new", "/w/{w}/documents/new"),
    ("/documents/{id}", "/documents/0199c0de-0000-7000-8000-0000000000d1?lines=1-3"),
    ("/w/{id}/sources", "/w/{w}/sources"),
    ("/w/{id}/sources/new", "/w/{w}/sources/new"),
    ("/w/{id}/sources/new", "/w/{w}/sources/new?provider=github"),
    ("/w/{id}/sources/{source}/change", "/w/{w}/sources/0199c0de-0000-7000-8000-0000000000e1/change"),
    ("/w/{id}/sources/{source}/credentials", "/w/{w}/sources/{u}/credentials"),
    ("/w/{id}/sources/{source}", "/w/{w}/sources/0199c0de-0000-7000-8000-0000000000e1"),
    ("/w/{id}/sources/{source}/runs", "/w/{w}/sources/0199c0de-0000-7000-8000-0000000000e1/runs"),
    ("/w/{id}/sources/{source}/runs/{run}", "/w/{w}/sources/{u}/runs/0199c0de-0000-7000-8000-0000000000a7"),
    ("/w/{id}/webhooks", "/w/{w}/webhooks"),
    ("/w/{id}/webhooks/new", "/w/{w}/webhooks/new"),
    ("/w/{id}/webhooks/{webhook}", "/w/{w}/webhooks/0199c0de-0000-7000-8000-0000000000b1"),
    ("/w/{id}/webhooks/{webhook}", "/w/{w}/webhooks/0199c0de-0000-7000-8000-0000000000b2?from=next"),
    ("/w/{id}/webhooks/{webhook}/change", "/w/{w}/webhooks/0199c0de-0000-7000-8000-0000000000b2/change"),
    ("/w/{id}/import", "/w/{w}/import"),
    ("/w/{id}/import/{run}", "/w/{w}/import/{u}"),
    ("/w/{id}/sync", "/w/{w}/sync"),
    ("/w/{id}/sync/{run}", "/w/{w}/sync/{u}"),
];
/// Routes that answer GET with something other than such a page, or have a test of their own.
const OTHERS: &[&str] = &[
    "/w/{id}/freshness",
    "/",
    "/w/{id}/events",
    "/invite",
    "/file/{id}/download",
    "/documents/{id}/download",
    "/w/{id}/open",
    "/databases/{id}/csv",
    "/m/{id}",
    "/w/{id}/analytics",
    "/w/{id}/analytics/csv",
    "/w/{id}/questions/{question}",
    "/w/{id}/questions/write",
];
/// The numeric property of the database.
const NUMBER: &str = "0199c0de-0000-7000-8000-000000000102";

/// A run that is ready.
const RUN: &str = "0199c0de-0000-7000-8000-0000000000e1";

/// A path with the ids of existing items filled in.
pub(super) fn filled(path: &str) -> String {
    let ids = [
        ("{w}", WORKSPACE),
        ("{f}", FILE),
        ("{m}", MEMORY),
        ("{d}", DATABASE),
        ("{r}", RECORD),
        ("{v}", VIEW),
        ("{n}", NUMBER),
        ("{u}", RUN),
    ];
    ids.into_iter().fold(path.to_owned(), |path, (name, id)| path.replace(name, id))
}

pub(in crate::pages) async fn cookie(bench: &crate::testing::Bench) -> String {
    let body = serde_json::json!({"email": "a@b.example", "password": PASSWORD});
    let opened = bench.post("/api/session", body.to_string()).await;
    opened.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

pub(in crate::pages) async fn get(bench: &crate::testing::Bench, path: &str, cookie: &str) -> Answer {
    bench.send_as_is(Request::get(path).header("cookie", cookie).body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn every_page_is_sound() {
    let (_, classes) = crate::routes().into_parts();
    let known: BTreeSet<&str> = PAGES.iter().map(|(route, _)| *route).chain(OTHERS.iter().copied()).collect();
    for (method, path, class) in classes.all() {
        let is_page = class.surface == Surface::Page && method == Some(&Method::GET);
        assert!(!is_page || known.contains(path), "{path} has no entry here");
    }
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    for (_, path) in PAGES {
        // The sign-in page is for people who are not signed in.
        let cookie = if *path == "/sign-in" { "" } else { &cookie };
        let page = get(&bench, &filled(path), cookie).await;
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        assert_eq!(page.headers["content-security-policy"], super::document::POLICY, "{path}");
        assert_eq!(page.headers["cache-control"], "no-store", "{path}");
        assert_eq!(page.headers["referrer-policy"], "same-origin", "{path}");
        assert_eq!(page.headers["x-frame-options"], "DENY", "{path}");
        assert_eq!(faults(&page.text), Vec::<String>::new(), "{path}: {}", page.text);
    }
}

#[tokio::test]
async fn errors_are_sound_pages() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    for (path, status) in [
        ("/w/not-an-id", 404),
        ("/w/0199c0de-0000-7000-8000-00000000ffff", 404),
        ("/w/{w}/tokens/x/off", 405),
        ("/file/not-an-id", 404),
        ("/file/0199c0de-0000-7000-8000-00000000ffff", 404),
        ("/file/0199c0de-0000-7000-8000-00000000ffff/edit", 404),
        ("/file/{f}/versions/9", 404),
        ("/databases/not-an-id", 404),
        ("/databases/0199c0de-0000-7000-8000-00000000ffff", 404),
        ("/databases/0199c0de-0000-7000-8000-00000000ffff/fields", 404),
        ("/databases/{d}?record=not-an-id", 404),
        ("/databases/{d}?record=0199c0de-0000-7000-8000-00000000ffff", 404),
        ("/memories/not-an-id", 404),
        ("/memories/0199c0de-0000-7000-8000-00000000ffff", 404),
        ("/memories/0199c0de-0000-7000-8000-00000000ffff/edit", 404),
        ("/memories/{m}/versions/9", 404),
        ("/documents/not-an-id", 404),
        ("/documents/0199c0de-0000-7000-8000-00000000ffff", 404),
        ("/w/{w}/import/not-an-id", 404),
        ("/w/{w}/sync/0199c0de-0000-7000-8000-00000000ffff", 404),
        ("/m/not-an-id", 404),
        // svc-retrieval is unavailable here.
        ("/w/{w}/analytics", 503),
    ] {
        let page = get(&bench, &filled(path), &cookie).await;
        assert_eq!(page.status, status, "{path}: {}", page.text);
        assert_eq!(page.headers["content-type"], "text/html; charset=utf-8", "{path}");
        assert_eq!(page.headers["content-security-policy"], super::document::POLICY, "{path}");
        assert_eq!(faults(&page.text), Vec::<String>::new(), "{path}: {}", page.text);
        let id = page.headers["x-request-id"].to_str().unwrap();
        // The workspace's name is only shown to its members.
        let is_inside =
            ["/file/", "/databases/", "/memories/", "/w/{w}/analytics", "/w/{w}/import/", "/w/{w}/sync/"]
                .iter()
                .any(|base| path.starts_with(base));
        assert!(page.text.contains(id) && (is_inside || !page.text.contains("Home")), "{}", page.text);
    }
}

#[tokio::test]
async fn what_is_in_trash_has_a_sound_page_that_brings_it_back() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    for path in [
        format!("/file/{TRASHED}"),
        format!("/file/{TRASHED}/edit"),
        format!("/memories/{TRASHED}"),
        format!("/databases/{TRASHED}"),
        format!("/databases/{DATABASE}?record={TRASHED}"),
    ] {
        let page = get(&bench, &path, &cookie).await;
        assert_eq!(page.status, 404, "{path}: {}", page.text);
        assert!(page.text.contains("Restore") && page.text.contains("(a token)"), "{}", page.text);
        assert_eq!(faults(&page.text), Vec::<String>::new(), "{path}: {}", page.text);
    }
    let nowhere = get(&bench, &format!("/w/{WORKSPACE}/open?name=zqnothing"), &cookie).await;
    assert_eq!((nowhere.status.as_u16(), faults(&nowhere.text)), (404, Vec::new()), "{}", nowhere.text);
}

/// A form with an overlong name, and how the name is echoed.
fn too_long() -> (String, String) {
    let name = "w".repeat(300);
    (format!("name={name}"), format!("value=\"{name}\""))
}

#[tokio::test]
async fn forms_about_a_file_are_answered_with_sound_pages() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let (long, kept) = too_long();
    for (path, body, status, told) in [
        ("preview", "content=%23+A%0D%0A%0D%0A%5Bx%5D%28y%29", 200, "<h3 id=\"s-a\""),
        ("edit", "hash=blake3:0001&content=mine", 409, "Keep theirs"),
        ("edit", "hash=blake3:0001&content=mine&then=merge", 200, "mine\n&gt;&gt;&gt;"),
        ("edit", "hash=blake3:0001&content=mine&ask=q%3Dx&again=yes", 409, "name=\"again\" value=\"yes\""),
        ("preview", "content=---%0D%0Aa:+b:+c%0D%0A---%0D%0A&ask=q%3Dx", 200, "no valid YAML: line 2"),
        ("preview", "content=x&ask=q%3Dx", 200, "Save and ask again"),
        ("rename", "name=", 400, "<h2>Rename</h2>"),
        ("rename", long.as_str(), 400, kept.as_str()),
        ("versions/1/restore", "hash=x", 409, "changed meanwhile"),
    ] {
        let page = send(&bench, &format!("/file/{FILE}/{path}"), body, &cookie).await;
        assert_eq!(page.status, status, "{path}: {}", page.text);
        assert!(page.text.contains(told), "{path}: {told}: {}", page.text);
        assert_eq!(faults(&page.text), Vec::<String>::new(), "{path}: {}", page.text);
    }
}

#[tokio::test]
async fn a_save_leads_back_to_what_led_to_the_file() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let path = format!("/file/{FILE}/edit");
    // The hash of the file's current text.
    let kept = "hash=blake3:00ff&content=";
    let question = "0199c0de-0000-7000-8000-0000000000e1";
    for (more, to) in [
        ("x", "/file/{f}".to_owned()),
        ("x&again=yes", "/file/{f}".to_owned()),
        ("x&ask=q%3Da%2Bb", "/file/{f}?ask=q%3Da%2Bb".to_owned()),
        ("x&ask=q%3Da%2Bb&again=yes", "/w/{w}/search?q=a+b&after=c1-8".to_owned()),
        (&format!("x&ask={question}&again=yes"), format!("/w/{{w}}/questions/{question}?again=1&after=c1-8")),
        ("x&ask=%2F%2Fevil.example&again=yes", "/file/{f}".to_owned()),
    ] {
        let saved = send(&bench, &path, &format!("{kept}{more}"), &cookie).await;
        assert_eq!(saved.status, 303, "{more}: {}", saved.text);
        assert_eq!(saved.headers["location"].to_str().unwrap(), filled(&to), "{more}");
        assert!(saved.headers["set-cookie"].to_str().unwrap().contains("saved"), "{more}");
    }
    let odd = send(&bench, &path, &format!("{kept}---%0D%0Aa:+b:+c%0D%0A---%0D%0A"), &cookie).await;
    assert!(odd.headers["set-cookie"].to_str().unwrap().contains("odd"), "{:?}", odd.headers);
}

pub(in crate::pages) async fn send(
    bench: &crate::testing::Bench,
    path: &str,
    body: &str,
    cookie: &str,
) -> Answer {
    let request = Request::post(filled(path))
        .header("cookie", cookie)
        .header("sec-fetch-site", "same-origin")
        .header("content-type", "application/x-www-form-urlencoded");
    bench.send_as_is(request.body(Body::from(filled(body))).unwrap()).await
}

#[tokio::test]
async fn forms_about_a_database_are_answered_with_sound_pages() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let (long, kept) = too_long();
    for (path, body, status, told) in [
        ("records/{r}", "version=2&field={n}&v-{n}=x&back=record%3D{r}", 400, "must be a number."),
        ("records/{r}", "version=1&field={n}&v-{n}=7&back=record%3D{r}", 409, "Keep theirs"),
        ("records/{r}", "version=1&field={n}&v-{n}=7&then=merge&back=record%3D{r}", 200, "value=\"7\""),
        ("records/{r}", "version=2&field={n}&v-{n}=x&cell={n}", 400, "Must be a number."),
        (
            "records/{r}",
            "version=1&field={n}&v-{n}=7&cell={n}",
            409,
            "Meanwhile somebody wrote “<bdi>1.5</bdi>”",
        ),
        ("records/many", "do=trash", 400, "needs records that are selected"),
        ("fields", "name=a%0Ab&type=text", 400, "Put this right"),
        ("fields", "name=a&type=nothing", 400, "must be one of the types"),
        ("views", "name=", 400, "<h2>Save as view</h2>"),
        ("rename", "name=&description=kept+words", 400, "value=\"kept words\""),
        ("fields/{n}", long.as_str(), 400, kept.as_str()),
    ] {
        let page = send(&bench, &format!("/databases/{{d}}/{path}"), body, &cookie).await;
        assert_eq!(page.status, status, "{path} {body}: {}", page.text);
        assert!(page.text.contains(told), "{path} {body}: {told}: {}", page.text);
        assert_eq!(faults(&page.text), Vec::<String>::new(), "{path} {body}: {}", page.text);
    }
    for (path, body, to) in [
        ("records/{r}", "version=2&field={n}&v-{n}=7&back=page%3D2%26record%3D{r}", "?page=2&record={r}"),
        ("records/{r}", "version=1&field={n}&v-{n}=1.5&cell={n}&back=q%3Dx", "?q=x"),
        ("records/{r}/delete", "back=q%3Dx%26record%3D{r}", "?q=x"),
        ("records/many", "do=trash&item={r}", ""),
    ] {
        let done = send(&bench, &format!("/databases/{{d}}/{path}"), body, &cookie).await;
        assert_eq!(done.status, 303, "{path} {body}: {}", done.text);
        let to = filled(&format!("/databases/{{d}}{to}"));
        assert_eq!(done.headers["location"].to_str().unwrap(), to, "{path} {body}");
    }
    for path in ["/w/{w}/databases/new", "/w/{w}/files/new", "/w/{w}/files/new-folder"] {
        let made = send(&bench, path, &long, &cookie).await;
        assert_eq!((made.status.as_u16(), faults(&made.text)), (400, Vec::new()), "{path}: {}", made.text);
        assert!(made.text.contains(&kept), "{path}: {}", made.text);
    }
}

#[tokio::test]
async fn a_filter_that_cannot_be_is_told_and_stays_in_the_bar() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let page = get(&bench, &filled("/databases/{d}?filter={n}:like:1"), &cookie).await;
    assert_eq!((page.status.as_u16(), faults(&page.text)), (400, Vec::new()), "{}", page.text);
    assert!(page.text.contains("href=\"#f-filter\""), "{}", page.text);
    assert!(page.text.contains(&filled("value=\"{n}:like:1\"")), "{}", page.text);
}

#[tokio::test]
async fn records_are_exported_as_a_table() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let file = get(&bench, &filled("/databases/{d}/csv?q=x"), &cookie).await;
    assert_eq!(file.status, 200, "{}", file.text);
    assert!(file.headers["content-type"].to_str().unwrap().starts_with("text/csv"));
    assert!(
        file.headers["content-disposition"].to_str().unwrap().starts_with("attachment; filename*=UTF-8''")
    );
    // The header row and all records, fetched in pages.
    assert_eq!(file.text.matches("\r\n").count(), 121, "{}", file.text);
    let wrong = get(&bench, &filled("/databases/{d}/csv?filter={n}:like:1"), &cookie).await;
    assert_eq!((wrong.status.as_u16(), faults(&wrong.text)), (400, Vec::new()), "{}", wrong.text);
}

#[tokio::test]
async fn forms_about_a_memory_are_answered_with_sound_pages() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let (memory, new) = (format!("/memories/{MEMORY}"), format!("/w/{WORKSPACE}/memories/new"));
    for (path, body, status, told) in [
        (new.clone(), "name=&useWhen=kept", 400, "kept</textarea>"),
        (new.clone(), "name=x&slug=guide", 400, "The slug is taken"),
        (new, "name=x", 303, ""),
        (format!("{memory}/edit"), "name=x&slug=&description=kept", 400, "kept</textarea>"),
        (format!("{memory}/edit"), "name=x&slug=x", 303, ""),
        (format!("{memory}/add"), "", 400, "Members need at least one"),
        (format!("{memory}/add"), "item=file:x", 400, "Put this right"),
        (format!("{memory}/move"), "member=x&position=1", 404, "There is nothing here"),
        (format!("{memory}/publish"), "", 303, ""),
        (format!("{memory}/delete"), "", 303, ""),
    ] {
        let page = send(&bench, &path, body, &cookie).await;
        assert_eq!(page.status, status, "{path}: {}", page.text);
        assert!(page.text.contains(told), "{path}: {told}: {}", page.text);
        if status != 303 {
            assert_eq!(faults(&page.text), Vec::<String>::new(), "{path}: {}", page.text);
        }
    }
}

#[tokio::test]
async fn a_public_memory_is_a_sound_page_for_anybody() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    // The page is the same for every reader.
    for cookie in ["", cookie.as_str()] {
        let page = get(&bench, &format!("/m/{MEMORY}"), cookie).await;
        assert_eq!(page.status, 200, "{}", page.text);
        assert!(page.text.contains(&format!("anybody {MEMORY}")), "{}", page.text);
        assert!(!page.text.contains("<script") && page.text.contains("<p data-l=\"1\">one"), "{}", page.text);
        assert_eq!(page.headers["cache-control"], "public, max-age=60");
        assert_eq!(page.headers["x-robots-tag"], "noindex");
        assert_eq!(page.headers["content-security-policy"], super::document::READING);
        assert!(!page.headers.contains_key("set-cookie"));
        assert_eq!(faults(&page.text), Vec::<String>::new(), "{}", page.text);
    }
    for odd in ["?text=1", "?text=9&line=x", "?text=99999999999999999999", "?line=%00"] {
        let page = get(&bench, &format!("/m/{MEMORY}{odd}"), "").await;
        assert_eq!((page.status.as_u16(), faults(&page.text)), (200, Vec::new()), "{odd}: {}", page.text);
    }
}

#[test]
fn analytics_are_sound() {
    use cairn_proto::retrieval::v1 as proto;
    let counts = proto::Retrievals { total: 3, empty: 1, results: 4, ..Default::default() };
    let day = proto::RetrievalDay { date: "2026-11-23".to_owned(), retrievals: Some(counts), latency: None };
    let hostile = || crate::testing::console::HOSTILE.to_owned();
    let share = proto::RetrievalShare { value: hostile(), retrievals: Some(counts), ..Default::default() };
    let document = proto::TopDocument { title: Some(hostile()), path: Some(hostile()), ..Default::default() };
    let answer = proto::GetRetrievalAnalyticsResponse {
        total: Some(counts),
        days: vec![day.clone(), day],
        by_channel: vec![share.clone()],
        by_operation: vec![share],
        top_documents: vec![document, proto::TopDocument::default()],
        ..Default::default()
    };
    let links = crate::answers::Links::new(None);
    for answer in [answer, proto::GetRetrievalAnalyticsResponse::default()] {
        let told = crate::answers::RetrievalAnalytics::read(WORKSPACE.parse().unwrap(), answer, &links);
        let body = super::analytics::body("/w/x", 30, &told).into_string();
        let page = format!(
            "<!DOCTYPE html><html lang=en><head><title>x</title></head><body><main><h1>x</h1>{body}</main></body></html>"
        );
        assert_eq!(faults(&page), Vec::<String>::new(), "{page}");
        assert!(!page.contains("<script"), "{page}");
    }
}

#[test]
fn navigation_leads_to_pages_that_there_are() {
    let (_, classes) = crate::routes().into_parts();
    let paths: BTreeSet<&str> = classes.all().map(|(_, path, _)| path).collect();
    for entry in super::frame::NAVIGATION {
        assert!(paths.contains(format!("/w/{{id}}{}", entry.path).as_str()), "{}", entry.path);
    }
}

#[test]
fn faults_are_found() {
    let page = |body: &str| {
        format!(
            "<!DOCTYPE html><html lang=en><head><title>x</title></head><body><main><h1>x</h1>{body}</main></body></html>"
        )
    };
    assert_eq!(faults(&page("<p>fine</p>")), Vec::<String>::new());
    for (body, told) in [
        ("<p style=\"a\">x</p>", "p has style"),
        ("<p onclick=\"a\">x</p>", "p has onclick"),
        ("<p id=a>x</p><p id=a>x</p>", "stands twice"),
        ("<label for=b>x</label>", "names b"),
        ("<input name=a>", "without a label"),
        ("<h3>x</h3>", "h3 after h1"),
        ("<h1>x</h1>", "2 × h1"),
        ("<form></form>", "without an action"),
        ("<a href=\"https://x.example\">x</a>", "leads to"),
        ("<a href=\"//x.example\">x</a>", "leads to"),
        ("<script>x</script>", "script in the page"),
        ("<p><b>x</p></b>", "closed by"),
        ("<input type=password aria-label=a autocomplete=on>", "guess"),
    ] {
        let found = faults(&page(body));
        assert!(found.iter().any(|fault| fault.contains(told)), "{body}: {found:?}");
    }
}
