//! What every page holds to, read back from its HTML: a page without an entry in [`PAGES`] fails.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Body;
use html5gum::{Token, Tokenizer};
use http::{Method, Request};

use crate::class::Surface;
use crate::testing::{Answer, FILE, PASSWORD, TRASHED, WORKSPACE, bench};

/// Elements without an end.
const VOID: [&str; 8] = ["meta", "link", "input", "hr", "br", "img", "path", "wbr"];

/// An element as the page wrote it.
#[derive(Debug)]
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
}

impl Element {
    fn get(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }
}

/// Every element, and what is wrong with how they are written.
fn elements(html: &str) -> (Vec<Element>, Vec<String>) {
    let (mut elements, mut wrong, mut open) = (Vec::new(), Vec::new(), Vec::<String>::new());
    for token in Tokenizer::new(html) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                let attributes = tag.attributes.iter().map(|(name, value)| {
                    (String::from_utf8_lossy(name).into_owned(), String::from_utf8_lossy(value).into_owned())
                });
                elements.push(Element { attributes: attributes.collect(), name: name.clone() });
                if !tag.self_closing && !VOID.contains(&name.as_str()) {
                    open.push(name);
                }
            }
            Token::EndTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                if VOID.contains(&name.as_str()) {
                    continue;
                }
                match open.pop() {
                    Some(opened) if opened == name => {}
                    opened => wrong.push(format!("{opened:?} is closed by {name}")),
                }
            }
            Token::Error(error) => wrong.push(format!("{:?}", *error)),
            Token::String(_) | Token::Comment(_) | Token::Doctype(_) => {}
        }
    }
    wrong.extend(open.into_iter().map(|name| format!("{name} is left open")));
    (elements, wrong)
}

/// Everything that is wrong with a page.
fn faults(html: &str) -> Vec<String> {
    let (elements, mut wrong) = elements(html);
    let mut ids = BTreeSet::new();
    for element in &elements {
        if let Some(id) = element.get("id")
            && !ids.insert(id)
        {
            wrong.push(format!("the id {id} stands twice"));
        }
    }
    for element in &elements {
        wrong.extend(faults_of(element, &ids));
    }
    wrong.extend(faults_of_fields(&elements));
    wrong.extend(faults_of_headings(&elements));
    for (name, count) in [("main", 1), ("h1", 1), ("title", 1)] {
        let found = elements.iter().filter(|element| element.name == name).count();
        if found != count {
            wrong.push(format!("{found} × {name}"));
        }
    }
    if elements.iter().find(|element| element.name == "html").and_then(|html| html.get("lang")).is_none() {
        wrong.push("the page has no language".to_owned());
    }
    wrong
}

fn faults_of(element: &Element, ids: &BTreeSet<&str>) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = &element.name;
    for (attribute, value) in &element.attributes {
        if attribute == "style" || attribute.starts_with("on") {
            wrong.push(format!("{name} has {attribute}"));
        }
        let refers = ["for", "aria-labelledby", "aria-describedby", "commandfor", "popovertarget", "form"];
        if refers.contains(&attribute.as_str()) {
            for id in value.split_whitespace().filter(|id| !ids.contains(id)) {
                wrong.push(format!("{attribute} of {name} names {id}, which is not there"));
            }
        }
        if ["href", "src", "action"].contains(&attribute.as_str()) {
            let is_own = value.starts_with('/') && !value.starts_with("//");
            let is_here = value.strip_prefix('#').is_some_and(|id| ids.contains(id));
            let is_clients = value.starts_with("cursor://") || value.starts_with("vscode:");
            let installs = is_clients && element.get("rel").is_some();
            if !(is_own || is_here || installs) {
                wrong.push(format!("{attribute} of {name} leads to {value}"));
            }
        }
    }
    let is_dialogs = element.get("method") == Some("dialog");
    if name == "form" && element.get("action").is_none() && !is_dialogs {
        wrong.push("a form without an action".to_owned());
    }
    if name == "script" && element.get("src").is_none() {
        wrong.push("a script in the page".to_owned());
    }
    if name == "style" {
        wrong.push("a style in the page".to_owned());
    }
    wrong
}

/// Every field has a name for those who do not see the label, and every password says what it is.
fn faults_of_fields(elements: &[Element]) -> Vec<String> {
    let labelled: BTreeSet<_> =
        elements.iter().filter(|one| one.name == "label").filter_map(|one| one.get("for")).collect();
    let fields =
        elements.iter().filter(|one| ["input", "select", "textarea", "meter"].contains(&one.name.as_str()));
    let mut wrong = Vec::new();
    for field in fields.filter(|field| field.get("type") != Some("hidden")) {
        let has_label =
            field.get("id").is_some_and(|id| labelled.contains(id)) || field.get("aria-label").is_some();
        if !has_label {
            wrong.push(format!("a field without a label: {field:?}"));
        }
        let told = ["current-password", "new-password", "off"];
        if field.get("type") == Some("password")
            && !field.get("autocomplete").is_some_and(|word| told.contains(&word))
        {
            wrong.push(format!("a password that a browser must guess about: {field:?}"));
        }
    }
    wrong
}

/// The first heading is the `h1`, and none is skipped.
fn faults_of_headings(elements: &[Element]) -> Vec<String> {
    let level = |name: &str| name.strip_prefix('h').and_then(|level| level.parse::<u8>().ok());
    let mut wrong = Vec::new();
    let mut last = 0;
    for level in elements.iter().filter_map(|element| level(&element.name)) {
        if level > last + 1 {
            wrong.push(format!("h{level} after h{last}"));
        }
        last = level;
    }
    wrong
}

/// The pages that a GET shows, and how to ask for one that is there.
const PAGES: &[(&str, &str)] = &[
    ("/sign-in", "/sign-in"),
    ("/account", "/account"),
    ("/workspaces", "/workspaces"),
    ("/w/{id}", "/w/{w}"),
    ("/w/{id}/connect", "/w/{w}/connect"),
    ("/w/{id}/tokens", "/w/{w}/tokens"),
    ("/w/{id}/tokens/new", "/w/{w}/tokens/new"),
    ("/w/{id}/tokens/{token}", "/w/{w}/tokens/0199c0de-0000-7000-8000-0000000000c1"),
    ("/w/{id}/trash", "/w/{w}/trash"),
    ("/w/{id}/apps", "/w/{w}/apps"),
    ("/w/{id}/members", "/w/{w}/members"),
    ("/w/{id}/health", "/w/{w}/health"),
    ("/w/{id}/settings", "/w/{w}/settings"),
    ("/w/{id}/files", "/w/{w}/files"),
    ("/w/{id}/files", "/w/{w}/files?folder=0199c0de-0000-7000-8000-0000000000c1&tag=x"),
    ("/w/{id}/search", "/w/{w}/search"),
    ("/w/{id}/search", "/w/{w}/search?q=x&strategy=nothing"),
    ("/w/{id}/search", "/w/{w}/search?view=script&script=ls"),
    ("/file/{id}", "/file/{f}?lines=2-3&hash=blake3:0001"),
    ("/file/{id}", "/file/{f}?lines=2-3&hash=blake3:ffff"),
    ("/file/{id}", "/file/{f}?view=source&lines=2"),
    ("/file/{id}", "/file/{f}?view=changes"),
    ("/file/{id}", "/file/{f}?view=uses"),
    ("/file/{id}/edit", "/file/{f}/edit"),
    ("/file/{id}/versions/{version}", "/file/{f}/versions/1"),
    ("/file/{id}/versions/{version}", "/file/{f}/versions/2?show=now"),
    ("/file/{id}/versions/{version}", "/file/{f}/versions/1?show=text&lines=2"),
];
/// What answers a GET with something else than a page of this module.
const OTHERS: [&str; 4] = ["/", "/invite", "/file/{id}/download", "/w/{id}/open"];

async fn cookie(bench: &crate::testing::Bench) -> String {
    let body = serde_json::json!({"email": "a@b.example", "password": PASSWORD});
    let opened = bench.post("/api/session", body.to_string()).await;
    opened.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

async fn get(bench: &crate::testing::Bench, path: &str, cookie: &str) -> Answer {
    bench.send_as_is(Request::get(path).header("cookie", cookie).body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn every_page_is_sound() {
    let (_, classes) = crate::routes().into_parts();
    let known: BTreeSet<&str> = PAGES.iter().map(|(route, _)| *route).chain(OTHERS).collect();
    for (method, path, class) in classes.all() {
        let is_page = class.surface == Surface::Page && method == Some(&Method::GET);
        assert!(!is_page || known.contains(path), "{path} has no entry here");
    }
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    for (_, path) in PAGES {
        // The page for signing in is for those who are not.
        let cookie = if *path == "/sign-in" { "" } else { &cookie };
        let page = get(&bench, &path.replace("{w}", WORKSPACE).replace("{f}", FILE), cookie).await;
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
    ] {
        let page =
            get(&bench, &path.replace("{w}", WORKSPACE).replace("{f}", FILE).replace("{f}", FILE), &cookie)
                .await;
        assert_eq!(page.status, status, "{path}: {}", page.text);
        assert_eq!(page.headers["content-type"], "text/html; charset=utf-8", "{path}");
        assert_eq!(page.headers["content-security-policy"], super::document::POLICY, "{path}");
        assert_eq!(faults(&page.text), Vec::<String>::new(), "{path}: {}", page.text);
        let id = page.headers["x-request-id"].to_str().unwrap();
        // The name of the workspace is told only to those who are in it.
        let is_inside = path.starts_with("/file/");
        assert!(page.text.contains(id) && (is_inside || !page.text.contains("Home")), "{}", page.text);
    }
}

#[tokio::test]
async fn what_is_in_trash_has_a_sound_page_that_brings_it_back() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    for path in [format!("/file/{TRASHED}"), format!("/file/{TRASHED}/edit")] {
        let page = get(&bench, &path, &cookie).await;
        assert_eq!(page.status, 404, "{path}: {}", page.text);
        assert!(page.text.contains("Restore") && page.text.contains("(a token)"), "{}", page.text);
        assert_eq!(faults(&page.text), Vec::<String>::new(), "{path}: {}", page.text);
    }
    let nowhere = get(&bench, &format!("/w/{WORKSPACE}/open?name=zqnothing"), &cookie).await;
    assert_eq!((nowhere.status.as_u16(), faults(&nowhere.text)), (404, Vec::new()), "{}", nowhere.text);
}

#[tokio::test]
async fn forms_about_a_file_are_answered_with_sound_pages() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    for (path, body, status, told) in [
        ("preview", "content=%23+A%0D%0A%0D%0A%5Bx%5D%28y%29", 200, "<h3 id=\"s-a\""),
        ("edit", "hash=blake3:0001&content=mine", 409, "Keep theirs"),
        ("edit", "hash=blake3:0001&content=mine&then=merge", 200, "mine\n&gt;&gt;&gt;"),
        ("rename", "name=", 400, "Put this right"),
        ("versions/1/restore", "hash=x", 409, "changed meanwhile"),
    ] {
        let request = Request::post(format!("/file/{FILE}/{path}"))
            .header("cookie", &cookie)
            .header("sec-fetch-site", "same-origin")
            .header("content-type", "application/x-www-form-urlencoded");
        let page = bench.send_as_is(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(page.status, status, "{path}: {}", page.text);
        assert!(page.text.contains(told), "{path}: {told}: {}", page.text);
        assert_eq!(faults(&page.text), Vec::<String>::new(), "{path}: {}", page.text);
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
