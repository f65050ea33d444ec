mod places;
mod traps;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::*;
use crate::contract::{self, World, guard};
use crate::rest::fake::{Asked, Fake, Reply};
use crate::{ProviderKind, Reach, connect};

/// A site whose pages can be written, with a sitemap, a feed, and a page that links to all of them.
#[derive(Clone)]
struct Site {
    fake: Fake,
    state: Arc<Mutex<State>>,
    kind: &'static str,
}

#[derive(Default)]
struct State {
    pages: BTreeMap<String, String>,
    /// What is answered instead, by path.
    instead: BTreeMap<String, Reply>,
}

impl State {
    fn addresses(&self, base: &Url) -> Vec<String> {
        self.pages.keys().map(|path| format!("{base}docs/{path}")).collect()
    }

    fn answer(&self, base: &Url, asked: &Asked) -> Reply {
        if let Some(reply) = self.instead.get(&asked.path) {
            return reply.clone();
        }
        let xml = |body: String| Reply::with(200, "application/xml", body);
        match asked.path.as_str() {
            "/sitemap.xml" => xml(format!(
                "<sitemapindex><sitemap><loc>{base}1.xml</loc></sitemap><sitemap><loc>{base}2.xml</loc></sitemap></sitemapindex>"
            )),
            "/1.xml" => xml(urlset(self.addresses(base).iter().step_by(2))),
            "/2.xml" => xml(urlset(self.addresses(base).iter().skip(1).step_by(2))),
            "/feed.xml" => {
                xml(self.addresses(base).iter().fold("<rss><channel>".to_owned(), |mut feed, url| {
                    let _ = write!(feed, "<item><title>About {url}</title><link>{url}</link></item>");
                    feed
                }) + "</channel></rss>")
            }
            "/docs/" => page(&self.addresses(base).iter().fold(
                "<meta name=robots content=noindex><a href='/private'>x</a>".to_owned(),
                |mut page, url| {
                    let _ = write!(page, "<a href='{url}'>x</a>");
                    page
                },
            )),
            path => match path.strip_prefix("/docs/").and_then(|path| self.pages.get(path)) {
                Some(text) => tagged(asked, text),
                None => Reply::with(404, "text/html", "<h1>Not found</h1>"),
            },
        }
    }
}

fn urlset<'u>(urls: impl Iterator<Item = &'u String>) -> String {
    let urls: Vec<String> = urls.map(|url| format!("<url><loc>{url}</loc></url>")).collect();
    format!("<urlset>{}</urlset>", urls.concat())
}

fn page(text: &str) -> Reply {
    Reply::with(200, "text/html; charset=utf-8", format!("<!DOCTYPE html><html><body>{text}</body></html>"))
}

/// A page that is sent only to those who do not have it.
fn tagged(asked: &Asked, text: &str) -> Reply {
    let tag = format!("\"{}\"", blake3::hash(text.as_bytes()).to_hex());
    let reply = if asked.header("if-none-match") == Some(&tag) {
        Reply::with(304, "text/html", "")
    } else {
        page(text)
    };
    reply.header("etag", tag)
}

impl Site {
    async fn new(kind: &'static str) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let fake = Fake::start(move |base| {
            let base = base.clone();
            move |asked: &Asked| shared.lock().unwrap().answer(&base, asked)
        });
        Self { fake: fake.await, state, kind }
    }

    fn write(&self, path: &str, text: &str) {
        self.state.lock().unwrap().pages.insert(path.to_owned(), text.to_owned());
    }

    fn instead(&self, path: &str, reply: Reply) {
        self.state.lock().unwrap().instead.insert(path.to_owned(), reply);
    }

    fn url(&self, path: &str) -> String {
        self.fake.base().join(path).unwrap().into()
    }

    fn id(&self, path: &str) -> ExternalId {
        ExternalId::new(self.url(path)).unwrap()
    }

    fn settings(&self) -> Value {
        let begin = match self.kind {
            "sitemap" => "sitemap.xml",
            "feed" => "feed.xml",
            _ => "docs/",
        };
        json!({ "kind": self.kind, "url": self.url(begin) })
    }

    fn with(&self, more: &Value) -> Box<dyn Provider> {
        self.in_mode(more, SourceMode::Indexed)
    }

    fn in_mode(&self, more: &Value, mode: SourceMode) -> Box<dyn Provider> {
        let mut settings = self.settings();
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        connect(ProviderKind::Web, &settings, None, Some(mode), &reach()).unwrap()
    }

    /// What was asked for, without the rules of the site.
    fn asked(&self) -> Vec<String> {
        let asked = self.fake.take_asked().into_iter().map(|asked| asked.path);
        asked.filter(|path| path != "/robots.txt").collect()
    }
}

fn reach() -> Reach {
    Reach::new(guard(), &[])
}

#[async_trait]
impl World for Site {
    fn provider(&self) -> Box<dyn Provider> {
        if self.kind != "page" {
            return self.with(&json!({}));
        }
        let urls = self.state.lock().unwrap().addresses(self.fake.base());
        let settings = json!({ "kind": "page", "urls": urls });
        connect(ProviderKind::Web, &settings, None, None, &reach()).unwrap()
    }

    async fn put(&self, name: &str, text: &str) {
        self.write(name, text);
    }

    async fn remove(&self, name: &str) {
        self.state.lock().unwrap().pages.remove(name);
    }

    async fn id(&self, name: &str) -> ExternalId {
        self.id(&format!("docs/{name}"))
    }

    async fn limit(&self) -> bool {
        let limit = Reply::with(429, "text/plain", "slow down").header("retry-after", "7");
        self.fake.set_mood(crate::rest::fake::Mood::Once(limit));
        // Pages of the settings are listed without asking for anything.
        if self.kind == "page" {
            self.fake.set_mood(None);
        }
        self.kind != "page"
    }
}

#[tokio::test]
async fn every_kind_keeps_the_contract() {
    for kind in KINDS {
        contract::holds(&Site::new(kind).await).await;
    }
}

#[tokio::test]
async fn no_kind_is_hurt_by_hostile_answers() {
    let world = contract::Caller::new();
    for kind in KINDS {
        let site = Site::new(kind).await;
        site.write("a", "text");
        let connect = || site.with(&json!({}));
        let listed = contract::listed(connect().as_ref(), &world.call).await;
        let id = listed.entries.into_keys().next().unwrap().to_string();
        contract::survives_hostile_answers(&world, &site.fake, &connect, &id, contract::Service::Pages).await;
        // Pages of the settings are listed without asking for anything.
        if kind != "page" {
            contract::can_be_cancelled(&world, &site.fake, &connect).await;
        }
    }
}

#[test]
fn settings_are_checked_before_anything_is_asked() {
    let violations = |settings: Value, mode: Option<SourceMode>| {
        let Err(violations) = connect(ProviderKind::Web, &settings, None, mode, &reach()) else {
            return Vec::new();
        };
        violations.into_iter().map(|one| format!("{} {}", one.path, one.code)).collect::<Vec<_>>()
    };
    assert_eq!(violations(json!({}), None), ["settings.kind required", "settings.url required"]);
    let odd = json!({
        "kind": "spider", "url": "https://me:secret@example.com/", "maxPages": 0, "maxDepth": "3", "maxpages": 1
    });
    assert_eq!(
        violations(odd, None),
        [
            "settings.kind invalid_value",
            "settings.url credentials_in_url",
            "settings.maxPages out_of_range",
            "settings.maxDepth invalid_type",
            "settings.maxpages unknown_field",
        ]
    );
    let inside = json!({ "kind": "page", "urls": ["https://example.com/", "http://10.0.0.1/", "ftp://x/"] });
    assert_eq!(violations(inside, None), ["settings.urls[1] not_public", "settings.urls[2] invalid_url"]);
    let crawl = json!({ "kind": "crawl", "url": "https://example.com/" });
    assert_eq!(violations(crawl.clone(), None), Vec::<String>::new());
    assert_eq!(violations(crawl, Some(SourceMode::Live)), ["settings.kind invalid_value"]);
    let many = json!({ "kind": "feed", "url": "https://example.com/", "urls": ["https://example.com/"] });
    assert_eq!(violations(many, None), ["settings.urls invalid_value"]);
}
