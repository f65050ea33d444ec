//! `GET /m/{id}`: the public page of a memory. No scripts, no session, and publicly cacheable for a while.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::response::Response;
use cairn_chassis::call::Call;
use cairn_proto::domain::FileType;
use cairn_proto::ids::MemoryId;
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode, header};
use maud::{Markup, html};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::answers::{Entry, Links, ResolvedMemory};
use crate::app::App;
use crate::auth::call_of;
use crate::error::Error;
use crate::extract::{PathId, Query};
use crate::operations::memories;
use crate::pages::document::{self, Document};
use crate::pages::reading::parts::{self, Part};
use crate::pages::text::{self, Language, Relative, Style, source_lines};
use crate::pages::{Answer, parts as part, words};
use crate::rate_limit::Limits;
use crate::schema::inputs;
use crate::upstreams::Upstreams;

inputs!(PageQuery);

/// Bounds how long caches serve a memory that was made private again.
const CACHE_POLICY: HeaderValue = HeaderValue::from_static("public, max-age=60");
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");
/// Limit of text on the page; longer contents have pages of their own.
const MAX_BYTES: usize = 256 * 1024;

/// An anonymous visitor: sessions and tokens are ignored.
#[derive(Debug)]
pub(super) struct AnonymousVisitor {
    upstreams: Arc<Upstreams>,
    links: Arc<Links>,
    call: Call,
}

impl FromRequestParts<App> for AnonymousVisitor {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        Arc::<Limits>::from_ref(app).public_read(parts).await?;
        Ok(Self { upstreams: FromRef::from_ref(app), links: FromRef::from_ref(app), call: call_of(parts) })
    }
}

/// The requested part.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct PageQuery {
    /// The number of a text, from 1; all of them without one.
    text: Option<String>,
    /// A line within the requested part.
    line: Option<String>,
}

pub(super) async fn show(
    anybody: AnonymousVisitor,
    PathId(id): PathId<MemoryId>,
    Query(page_query): Query<PageQuery>,
) -> Answer {
    let AnonymousVisitor { upstreams, links, call } = anybody;
    let memory = memories::export(&upstreams, &links, &call, id.to_string(), None).await?;
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<usize>().ok()).unwrap_or_default();
    let body = match number(page_query.text.as_deref()) {
        0 => all_contents(&memory),
        text => single_text(&memory, text, number(page_query.line.as_deref()).max(1)),
    };
    Ok(page(&memory, &body))
}

fn page(memory: &ResolvedMemory, body: &Markup) -> Response {
    let body = html! {
        main { (body) }
        footer.quiet { p { "Shared from a Cairn workspace · changed " (part::time(&memory.updated_at)) } }
    };
    let document = Document { title: &memory.name, class: "guide", ..Document::default() };
    let mut response = document.around(StatusCode::OK, &body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, document::READING);
    headers.insert(header::CACHE_CONTROL, CACHE_POLICY);
    // Only people with the link read it, unless whoever shares it allows search engines.
    if !memory.is_listed {
        headers.insert(ROBOTS, HeaderValue::from_static("noindex"));
    }
    response
}

fn entries(memory: &ResolvedMemory) -> impl Iterator<Item = &Entry> {
    memory.members.iter().flat_map(|member| &member.entries)
}

/// All contents, as far as they fit.
fn all_contents(memory: &ResolvedMemory) -> Markup {
    let mut left = MAX_BYTES;
    let mut texts = Vec::new();
    for (at, entry) in entries(memory).enumerate() {
        let fits = entry.content.len() <= left;
        left -= if fits { entry.content.len() } else { 0 };
        texts.push((at + 1, entry, fits));
    }
    html! {
        h1 dir="auto" { (memory.name) }
        @if let Some(description) = &memory.description { p.guidance dir="auto" { (description) } }
        @if let Some(when) = &memory.use_when { p.guidance { b { "When to use it: " } bdi { (when) } } }
        @if texts.len() > 1 {
            nav aria-label="Texts" {
                ol { @for (number, entry, fits) in &texts { li { a href=(to(&memory.id, *number, *fits)) { bdi { (entry.title) } } } } }
            }
        }
        @for (number, entry, fits) in &texts {
            section id={ "text-" (number) } {
                h2 dir="auto" { (entry.title) }
                @if *fits {
                    (rendered(entry, *number, &parts::around(&entry.content, 1), 3))
                } @else {
                    p { a href=(to(&memory.id, *number, false)) { "Read it on a page of its own" } " (" (words::bytes(entry.content.len() as u64)) ")" }
                }
            }
        }
        @if texts.is_empty() { p.quiet { "It holds no text." } }
        @if !memory.coverage.is_empty() {
            h2 { "Left out" }
            ul { @for note in &memory.coverage { li dir="auto" { (words::sentence(&note.message)) } } }
        }
    }
}

fn to(memory: &str, number: usize, is_here: bool) -> String {
    if is_here { format!("#text-{number}") } else { format!("/m/{memory}?text={number}") }
}

/// One text, the part that contains the line.
fn single_text(memory: &ResolvedMemory, number: usize, line: usize) -> Markup {
    let own = format!("/m/{}", memory.id);
    let entry = number.checked_sub(1).and_then(|at| entries(memory).nth(at));
    html! {
        nav aria-label="Breadcrumb" { a href=(own) { bdi { (memory.name) } } }
        @match entry {
            None => {
                h1 { "There is no such text" }
                p { "It was taken out, or it moved: the memory says what it holds now." }
            }
            Some(entry) => {
                @let part = parts::around(&entry.content, line);
                h1 dir="auto" { (entry.title) }
                (rendered(entry, number, &part, 2))
                (navigation(&own, number, &part))
            }
        }
    }
}

/// The navigation between the parts of a text.
fn navigation(own: &str, number: usize, part: &Part<'_>) -> Markup {
    if part.is_all() {
        return html! {};
    }
    let page = |line: usize| format!("{own}?text={number}&line={line}");
    html! {
        nav.pages aria-label="Pages" {
            @if let Some(previous) = part.previous { a.button rel="prev" href=(page(previous)) { "Previous" } }
            span { "Lines " (words::grouped(part.lines.first as u64)) "–" (words::grouped(part.lines.last as u64)) " of " (words::grouped(part.total as u64)) }
            @if let Some(next) = part.next { a.button rel="next" href=(page(next)) { "Next" } }
        }
    }
}

/// A rendered text. Its relative links are not open to anonymous readers.
fn rendered(entry: &Entry, number: usize, part: &Part<'_>, top_level: u8) -> Markup {
    let language = match entry.file_type {
        // Records and ingested documents are written in Markdown, too.
        None | Some(FileType::Markdown) => {
            let ids = format!("t{number}-");
            let style = Style {
                top_level,
                first_line: part.lines.first,
                cited: None,
                relative: Relative::Nothing,
                ids: &ids,
            };
            return html! { article.prose dir="auto" { (text::render(part.text, style).markup) } };
        }
        Some(FileType::Json) => Language::Json,
        Some(FileType::Yaml) => Language::Yaml,
        Some(FileType::Text) => Language::Plain,
    };
    html! {
        pre.source tabindex="0" dir="auto" role="group" aria-label={ "Text of " (entry.title) } {
            @for (index, line) in source_lines(language, part.text).enumerate() {
                span.line data-n=(part.lines.first + index) { (line) } "\n"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cairn_proto::content::v1 as proto;

    use super::*;

    fn memory(contents: &[&str]) -> ResolvedMemory {
        let entry = |content: &&str| {
            let file = proto::File {
                name: "<b>.md".to_owned(),
                file_type: FileType::Markdown.into(),
                content: Some((*content).to_owned()),
                ..Default::default()
            };
            proto::ResolvedEntry { file: Some(file), ..Default::default() }
        };
        let entries = contents.iter().map(entry).collect();
        let member = proto::ResolvedMember { entries, ..Default::default() };
        let memory = proto::Memory { id: "m".to_owned(), ..Default::default() };
        let resolved =
            proto::ResolvedMemory { memory: Some(memory), members: vec![member], ..Default::default() };
        ResolvedMemory::read(resolved, &Links::new(None))
    }

    #[test]
    fn texts_of_a_page_share_no_ids() {
        let html = all_contents(&memory(&["# A\n[x](y.md)", "# A"])).into_string();
        for part in ["id=\"t1-s-a\"", "id=\"t2-s-a\"", "href=\"#text-2\"", "<h3 ", "&lt;b&gt;.md"] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(html.contains("<a href=\"#\">x</a>"), "what a text links to is not shared: {html}");
    }

    #[test]
    fn what_does_not_fit_has_a_page_of_its_own() {
        let long = "line\n".repeat(MAX_BYTES / 5 + 1);
        let memory = memory(&[&long, "short"]);
        let html = all_contents(&memory).into_string();
        assert!(html.contains("href=\"/m/m?text=1\"") && html.contains("short"), "{html}");
        assert!(html.len() < 10_000, "{}", html.len());
        let html = single_text(&memory, 1, 1).into_string();
        assert!(html.contains("rel=\"next\"") && html.contains("/m/m?text=1&amp;line="), "{}", html.len());
        for none in [3, usize::MAX] {
            assert!(single_text(&memory, none, 1).into_string().contains("no such text"));
        }
    }
}
