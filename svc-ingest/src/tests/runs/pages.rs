//! Pages of a site that is really asked: what the provider says and what a run makes of it, together.

use std::sync::Mutex;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use cairn_providers::Reach;
use tokio::net::TcpListener;

use super::*;

/// What a site answers, by path; all else is not there.
type Site = Arc<Mutex<BTreeMap<String, (u16, String)>>>;

async fn answer(State(site): State<Site>, request: Request) -> Response<Body> {
    let found = site.lock().unwrap().get(request.uri().path()).cloned();
    let (mut status, mut text) = found.unwrap_or((404, "not found".to_owned()));
    let tag = format!("\"{}\"", text.len());
    if status == 200 && request.headers().get("if-none-match").is_some_and(|known| known == tag.as_str()) {
        (status, text) = (304, String::new());
    }
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response.headers_mut().insert("content-type", "text/html".parse().unwrap());
    response.headers_mut().insert("etag", tag.parse().unwrap());
    response
}

struct Pages {
    stand: Stand,
    site: Site,
    base: String,
    id: SourceId,
}

impl Pages {
    /// Pages that a sitemap names, on the first engine.
    async fn new(names: &[&str]) -> Self {
        let site = Site::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&site));
        tokio::spawn(async move { axum::serve(listener, router).await });

        let shelf = Shelf::new(Listing::Exhaustive, Changes::None, Deletions::FromListing);
        let guard = Guard::new(&["127.0.0.0/8".parse().unwrap()]).unwrap();
        let reach = Reach::new(guard, &[]);
        let bench = benches().await.into_iter().next().unwrap();
        let stand = Stand::over(bench, shelf, Arc::new(reach));
        let mut pages = Self { stand, site, base, id: SourceId(uuid::Uuid::nil()) };
        pages.list(names);
        for name in names {
            pages.set(name, 200, &page(name, "The first text."));
        }
        let draft = Draft {
            provider: "web".to_owned(),
            settings: format!(r#"{{"kind": "sitemap", "url": "{}/sitemap.xml"}}"#, pages.base).into_bytes(),
            ..draft("manual", None)
        };
        pages.id = pages.stand.sources.connect(&pages.stand.caller, draft).await.unwrap().source.id;
        pages.stand.work().await;
        pages
    }

    fn set(&self, path: &str, status: u16, text: &str) {
        self.site.lock().unwrap().insert(format!("/{path}"), (status, text.to_owned()));
    }

    fn list(&self, names: &[&str]) {
        let urls: Vec<String> =
            names.iter().map(|name| format!("<url><loc>{}/{name}</loc></url>", self.base)).collect();
        self.set("sitemap.xml", 200, &format!("<urlset>{}</urlset>", urls.concat()));
    }

    async fn sync(&self) -> Run {
        self.stand.sync(self.id).await
    }

    /// The pages that everybody sees: their paths, and what they are called.
    async fn titles(&self) -> Vec<(String, String)> {
        let views = views(&self.stand.runner.context.db, self.stand.caller.workspace).await;
        let path = |id: &str| id.strip_prefix(&self.base).unwrap().to_owned();
        let titles = views.into_iter().map(|view| (path(&view.external_id), view.title));
        titles.collect::<BTreeMap<_, _>>().into_iter().collect()
    }

    async fn paths(&self) -> Vec<String> {
        self.titles().await.into_iter().map(|(path, _)| path).collect()
    }
}

fn page(name: &str, text: &str) -> String {
    format!("<html><head><title>About {name}</title></head><body><main><p>{text}</p></main></body></html>")
}

#[tokio::test]
async fn pages_are_asked_for_in_each_run_and_sent_when_they_changed() {
    let pages = Pages::new(&["a", "b", "c"]).await;
    let first = pages.stand.last(pages.id).await;
    assert_eq!((first.state, first.complete), (COMPLETED, true), "{:?}", first.error);
    // The rules, the sitemap and the pages.
    assert_eq!((first.counters.created, first.counters.operations), (3, 5));
    let named = |titles: &[(&str, &str)]| -> Vec<(String, String)> {
        titles.iter().map(|(path, title)| ((*path).to_owned(), (*title).to_owned())).collect()
    };
    let titles = named(&[("/a", "About a"), ("/b", "About b"), ("/c", "About c")]);
    assert_eq!(pages.titles().await, titles, "pages say themselves what they are called");

    for _ in 0..2 {
        let again = pages.sync().await.counters;
        assert_eq!((again.unchanged, again.updated, again.fetched, again.operations), (3, 0, 0, 5));
        assert_eq!(pages.titles().await, titles);
    }
    pages.set("b", 200, &page("the new b", "Another text."));
    let changed = pages.sync().await.counters;
    assert_eq!((changed.unchanged, changed.updated, changed.fetched), (2, 1, 1));
    assert_eq!(pages.titles().await[1].1, "About the new b");
    pages.stand.assert_sound("after a change").await;
}

#[tokio::test]
async fn a_page_goes_when_it_is_missing_twice_or_the_sitemap_lacks_it() {
    let pages = Pages::new(&["a", "b", "c"]).await;
    pages.set("a", 404, "");
    pages.set("b", 403, "");
    for _ in 0..2 {
        assert_eq!(pages.sync().await.counters.removed, 0);
        assert_eq!(pages.paths().await, ["/a", "/b", "/c"], "one bad answer proves nothing");
    }
    pages.stand.clock.advance(HOUR * 2);
    let gone = pages.sync().await;
    assert_eq!((gone.counters.removed, gone.counters.failed, gone.state), (1, 1, WITH_WARNINGS));
    assert_eq!(pages.paths().await, ["/b", "/c"], "what is not shown to everybody stays");
    pages.list(&["a", "c"]);
    assert_eq!(pages.sync().await.counters.removed, 1);
    assert_eq!(pages.paths().await, ["/c"]);
    pages.stand.assert_sound("after removals").await;
}

#[tokio::test]
async fn what_a_site_does_not_allow_is_not_kept_and_its_bad_days_cost_nothing() {
    let pages = Pages::new(&["a", "b", "c"]).await;
    pages.set("robots.txt", 503, "");
    let stopped = pages.sync().await;
    assert_eq!(stopped.state, SourceRunStatus::Failed);
    assert!(stopped.error.unwrap().contains("robots.txt"));
    pages.set("robots.txt", 200, "User-agent: *\nDisallow: /a\n");
    pages.set("b", 200, "<html><head><meta name=robots content=noindex></head><body>The first text.</body></html>");
    let run = pages.sync().await;
    assert_eq!((run.counters.failed, run.counters.unchanged, run.state), (2, 1, WITH_WARNINGS));
    assert_eq!(pages.paths().await, ["/c"]);
    pages.set("robots.txt", 404, "");
    pages.set("b", 200, &page("b", "The first text."));
    assert_eq!(pages.sync().await.counters.created, 2);
    assert_eq!(pages.paths().await, ["/a", "/b", "/c"]);
    pages.stand.assert_sound("after it is allowed again").await;
}
