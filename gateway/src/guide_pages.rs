//! The usage guides as HTML pages, so that people can read what agents read.

use axum::extract::Path;
use axum::response::Response;
use http::{StatusCode, header};
use maud::{Markup, html};

use crate::class::{Class, Surface, Who};
use crate::error::Error;
use crate::guides::{self, Guide};
use crate::pages::document::{self, Document};
use crate::pages::text::{self, Relative, Style};
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    let open = Class::new(Surface::Open, Who::Anyone);
    Routes::default().get(open, "/docs/guides", index).get(open, "/docs/guides/{name}", guide).get(
        open,
        "/docs/guides/{name}/{*path}",
        file,
    )
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

/// The files beside `SKILL.md`.
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

fn rendered(text: &str) -> Markup {
    let style = Style { top_level: 1, first_line: 1, cited: None, relative: Relative::Page, ids: "" };
    text::render(text, style).markup
}

fn page(title: &str, body: &Markup) -> Response {
    let body = html! {
        nav aria-label="Guides" { a href="/" { "Cairn" } " · " a href="/docs/guides" { "All guides" } }
        main { (body) }
    };
    let document = Document { title, class: "guide", ..Document::default() };
    let mut response = document.around(StatusCode::OK, &body);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, document::READING);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guide_is_rendered_with_its_tables_and_code() {
        for guide in guides::all() {
            let html = rendered(guide.body()).into_string();
            assert!(html.starts_with("<h1 id="), "{}", guide.name);
            assert!(!html.contains("<script") && !html.contains("\n|"), "{}", guide.name);
        }
        assert!(rendered("| a |\n|---|\n| b |\n").into_string().contains("<table>"));
    }
}
