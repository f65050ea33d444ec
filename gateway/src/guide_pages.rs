//! The usage guides as pages for people: what agents read, so that both know the same.

use axum::extract::Path;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, header};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use pulldown_cmark::{Options, Parser};

use crate::class::{Class, Surface, Who};
use crate::error::Error;
use crate::guides::{self, Guide};
use crate::routes::Routes;

const STYLE: &str = include_str!("guide_pages/style.css");
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

pub(crate) fn routes() -> Routes {
    let open = Class::new(Surface::Open, Who::Anyone);
    Routes::default()
        .get(open, "/docs/guides", index)
        .get(open, "/docs/guides/style.css", style)
        .get(open, "/docs/guides/{name}", guide)
        .get(open, "/docs/guides/{name}/{*path}", file)
}

async fn style() -> Response {
    let kept = HeaderValue::from_static("public, max-age=3600");
    let kind = HeaderValue::from_static("text/css; charset=utf-8");
    ([(header::CACHE_CONTROL, kept), (header::CONTENT_TYPE, kind)], STYLE).into_response()
}

async fn index() -> Response {
    let body = html! {
        h1 { "Cairn's guides" }
        p { "What agents read before they use Cairn's tools, by " code { "get_usage_guide" } " or as skills." }
        dl {
            @for guide in guides::all() {
                dt { a href=(format!("/docs/guides/{}", guide.name)) { (guide.name) } }
                dd { (guide.description) }
            }
        }
    };
    page("Guides", &body)
}

async fn guide(Path(name): Path<String>) -> Result<Response, Error> {
    let guide = guides::named(&name).ok_or_else(Error::unknown_route)?;
    Ok(page(guide.name, &html! { (rendered(guide.body())) (others(guide)) }))
}

async fn file(Path((name, path)): Path<(String, String)>) -> Result<Response, Error> {
    let file = guides::named(&name).and_then(|guide| guide.file(&path)).ok_or_else(Error::unknown_route)?;
    Ok(page(file.path, &rendered(file.text)))
}

/// The files beside the guide's own text.
fn others(guide: &Guide) -> Markup {
    html! {
        @if guide.files.len() > 1 {
            h2 { "More" }
            ul {
                @for file in guide.files.iter().skip(1) {
                    li { a href=(format!("/docs/guides/{}/{}", guide.name, file.path)) { (file.path) } }
                }
            }
        }
    }
}

/// The guides are part of the binary, so what is HTML in them is ours.
fn rendered(text: &str) -> Markup {
    let mut html = String::with_capacity(text.len() * 2);
    pulldown_cmark::html::push_html(&mut html, Parser::new_ext(text, Options::ENABLE_TABLES));
    PreEscaped(html)
}

fn page(title: &str, body: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Cairn" }
                link rel="stylesheet" href="/docs/guides/style.css";
            }
            body {
                nav aria-label="Guides" { a href="/docs/guides" { "All guides" } }
                main { (body) }
            }
        }
    };
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    let headers = [(header::CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, POLICY)];
    (headers, page.into_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guide_is_rendered_with_its_tables_and_code() {
        for guide in guides::all() {
            let html = rendered(guide.body()).into_string();
            assert!(html.starts_with("<h1>"), "{}", guide.name);
            assert!(!html.contains("<script") && !html.contains("\n|"), "{}", guide.name);
        }
        assert!(rendered("| a |\n|---|\n| b |\n").into_string().contains("<table>"));
    }
}
