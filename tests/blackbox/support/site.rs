//! A website of pages that a test writes, with a sitemap of all of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{Html, IntoResponse as _, Response};
use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::scripted;

/// A running server; its thread ends with the test process.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    address: SocketAddr,
    /// By path and query, percent-encoded.
    pages: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Site {
    pub(crate) fn start() -> Self {
        let (address, listener) = scripted::listen();
        let site = Self { address, pages: Arc::default() };
        scripted::serve(listener, Router::new().fallback(answer).with_state(site.clone()));
        site
    }

    /// Creates or rewrites a page; returns its URL.
    pub(crate) fn write(&self, place: &str, title: &str, text: &str) -> String {
        let page = format!(
            "<html><head><title>{title}</title></head><body><main><h1>{title}</h1><p>{text}</p></main></body></html>"
        );
        self.pages.lock().unwrap().insert(place.to_owned(), page);
        self.at(place)
    }

    fn at(&self, place: &str) -> String {
        format!("http://{}{place}", self.address)
    }

    /// The body that connects a source of all its pages.
    pub(crate) fn draft(&self, name: &str) -> Value {
        let settings = json!({"kind": "sitemap", "url": self.at("/sitemap.xml")});
        json!({"name": name, "provider": "web", "settings": settings})
    }

    fn sitemap(&self) -> String {
        let pages = self.pages.lock().unwrap();
        let listed = pages.keys().map(|place| self.at(place).replace('&', "&amp;"));
        let listed: String = listed.map(|url| format!("<url><loc>{url}</loc></url>")).collect();
        format!(
            "<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{listed}</urlset>"
        )
    }
}

async fn answer(State(site): State<Site>, request: Request) -> Response {
    let place = request.uri().path_and_query().map_or("/", |place| place.as_str());
    if place == "/sitemap.xml" {
        return ([(CONTENT_TYPE, "application/xml")], site.sitemap()).into_response();
    }
    match site.pages.lock().unwrap().get(place) {
        Some(page) => Html(page.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
