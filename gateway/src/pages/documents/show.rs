//! `/documents/{id}`: the retained text with cited lines highlighted, its origin, and its status.

use axum::response::IntoResponse as _;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::Permission;
use http::{HeaderValue, StatusCode, header};
use maud::{Markup, html};
use serde::Deserialize;
use utoipa::ToSchema;

use super::at::LocatedDocument;
use super::outside::{Document, Text};
use super::{IndexingStatus, address, web};
use crate::error::Error;
use crate::extract::Query;
use crate::operations::{ingest, sources};
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts as part;
use crate::pages::reading::{Reading, Stale};
use crate::pages::text::{Language, Lines, Relative};
use crate::pages::{Answer, places, words};
use crate::schema::inputs;

inputs!(PageQuery);

/// The view of a document.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageQuery {
    view: Option<String>,
    /// The cited lines, and the hash of the text they refer to.
    lines: Option<String>,
    hash: Option<String>,
    /// The cited words: only the current text is kept.
    quote: Option<String>,
    /// A line within the requested part of a large text.
    line: Option<String>,
}

pub(super) async fn show(at: LocatedDocument, Query(page_query): Query<PageQuery>) -> Answer {
    let document = at.document().await?;
    let body = html! {
        (state(&at, &document))
        (facts(&at, &document))
        @if let Some(text) = &document.text { (reading(&at, &document, text, &page_query)) }
    };
    page(&at, &document, &body, None)
}

fn page(at: &LocatedDocument, document: &Document, body: &Markup, status: Option<StatusCode>) -> Answer {
    let above = vec![("Documents".to_owned(), format!("/w/{}/documents", at.visitor.here()?.id))];
    let page = Page::new(&document.title)
        .heading(html! { bdi { (document.title) } })
        .crumbs(above)
        .actions(actions(at, document));
    let page = match status {
        Some(status) => page.with_error(status),
        None => page,
    };
    Ok(page.show(&at.visitor, body))
}

fn actions(at: &LocatedDocument, document: &Document) -> Markup {
    let base = address(at.id);
    html! {
        @if let Some(url) = document.url.as_deref().and_then(web) {
            a.button href=(url) rel="noopener noreferrer" { "Open the original" }
        }
        @if document.text.is_some() { a.button href=(at.visitor.onward(format!("{base}/download"))) { "Download" } }
        @if at.is_ingested() && at.visitor.may(Permission::Delete) {
            (part::opens("delete", "Delete", ""))
            (part::dialog("delete", "Delete this document for good?", &html! {
                p { "Searches find it no more, and citations of it lead nowhere. Whoever sent it can send it again under the same key." }
            }, &format!("{base}/delete"), "Delete for good", &html! {}))
        }
    }
}

/// The status, and its actions.
fn state(at: &LocatedDocument, document: &Document) -> Markup {
    let status = document.status;
    html! {
        div #state data-poll=[status.is_under_way().then_some("")] {
            p { (part::badge(status.tone(), status.word())) " " (status_text(document)) }
            @if status == IndexingStatus::Failed {
                div.notice {
                    p { strong { "Why: " } bdi { (words::sentence(document.error.as_deref().unwrap_or("nobody noted a reason"))) } }
                    p {
                        @if document.source.is_some() { "A later run of its source tries to read it again, unless it has to change first." }
                        @else { "A document never changes: delete it, and send it again in a form that can be read." }
                    }
                }
                @if document.source.is_some() && at.visitor.may(Permission::Write) {
                    (part::action(&format!("{}/retry", address(at.id)), "Try again", "", &[]))
                }
            }
            @if status == IndexingStatus::Catalog {
                (part::action(&format!("{}/read", address(at.id)), "Read it now", "", &[]))
            }
        }
    }
}

/// The meaning of the status for this document.
fn status_text(document: &Document) -> Markup {
    html! {
        @match document.status {
            IndexingStatus::Indexed => "Searches and agents find it.",
            IndexingStatus::Pending => "Its text is still to be read.",
            IndexingStatus::Indexing => "Its text is on its way into the index.",
            IndexingStatus::Failed if document.text.is_some() => "It is kept, and searches do not find it.",
            IndexingStatus::Failed => "Nothing of its text is kept.",
            IndexingStatus::Catalog => {
                "Its title and its place are kept, its text is not. When somebody asks for it, it is read from "
                @match &document.source { Some(source) => { bdi { (source.name) } " (" (source.provider) ")" } None => { "its source" } }
                ", which takes requests of the day's budget of its source."
            }
        }
    }
}

fn facts(at: &LocatedDocument, document: &Document) -> Markup {
    let here = at.visitor.here_if_any().map(|here| here.id);
    html! {
        details open[document.text.is_none()] {
            summary { "Where it comes from" }
            dl.facts {
                @if let (Some(source), Some(here)) = (&document.source, here) {
                    dt { "Comes from" }
                    dd { "the source " a href=(places::source(here, &source.id)) { bdi { (source.name) } } " (" (source.provider) ")" }
                }
                (document.facts)
                @if let Some(path) = &document.path { dt { "In scripts" } dd { code { bdi { (path) } } } }
            }
        }
    }
}

fn reading(at: &LocatedDocument, document: &Document, text: &Text, page_query: &PageQuery) -> Markup {
    let page = address(at.id);
    let is_source = page_query.view.as_deref() == Some("source");
    let is_rendered = text.language() == Language::Markdown;
    let lines = page_query.lines.as_deref().and_then(Lines::parse);
    let (cited, notice) = match stale_hash(text, page_query) {
        Some(hash) => {
            let stale = Stale {
                page: &page,
                content: &text.content,
                lines,
                hash,
                quote: page_query.quote.as_deref(),
            };
            stale.show(&at_its_origin(document))
        }
        None => (lines, html! {}),
    };
    let reading = Reading {
        page: &page,
        visitor: &at.visitor,
        content: &text.content,
        hash: Some(&text.content_hash),
        language: text.language(),
        is_source,
        line: page_query.line.as_deref().and_then(|line| line.parse().ok()),
        cited,
        relative: Relative::Nothing,
    };
    html! {
        @if is_rendered {
            nav.tabs aria-label="Views" {
                a href=(at.visitor.onward(&page)) aria-current=[(!is_source).then_some("page")] { "Read" }
                a href=(at.visitor.onward(format!("{page}?view=source"))) aria-current=[is_source.then_some("page")] { "Source" }
            }
        }
        (notice)
        (reading.show("The document"))
    }
}

/// The hash of the cited text, if it differs from the current one.
fn stale_hash<'a>(text: &Text, page_query: &'a PageQuery) -> Option<&'a str> {
    page_query.hash.as_deref().filter(|hash| !hash.is_empty() && *hash != text.content_hash)
}

/// The link to the origin: only the current text is kept here.
fn at_its_origin(document: &Document) -> Markup {
    html! {
        @if let Some(url) = document.url.as_deref().and_then(web) {
            p { "Where it comes from there may be older versions: " a href=(url) rel="noopener noreferrer" { "open the original" } "." }
        }
    }
}

/// `GET /documents/{id}/download`: the raw retained text.
pub(super) async fn download(at: LocatedDocument) -> Answer {
    let document = at.document().await?;
    let text = document.text.ok_or_else(|| Problem::not_found("no text of this document is retained"))?;
    let name = document.path.as_deref().and_then(|path| path.rsplit('/').next()).unwrap_or("document");
    let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
    let disposition = format!("attachment; filename*=UTF-8''{}", name.replace('+', "%20"));
    let kind = HeaderValue::from_str(&format!("{}; charset=utf-8", text.file_type.media_type()));
    let mut response = text.content.into_response();
    let headers = response.headers_mut();
    if let (Ok(kind), Ok(disposition)) = (kind, HeaderValue::from_str(&disposition)) {
        headers.insert(header::CONTENT_TYPE, kind);
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// `POST /documents/{id}/read`: the provider's current text, shown once and not stored.
pub(super) async fn read_now(at: LocatedDocument) -> Answer {
    let document = at.document().await?;
    let Some(source) = &document.source else {
        return Err(Problem::not_found("this document was sent: it is read here alone").into());
    };
    let context = at.visitor.context()?;
    let read = sources::fetch(&context, source.id()?.to_string(), source.external_id.clone()).await;
    let (told, status) = match read {
        Ok(read) => {
            let (used, left) = (read.provider_operations.used, read.provider_operations.remaining_today);
            let used = words::count(u64::from(used), "request", "requests");
            let reading = Reading {
                page: &address(at.id),
                visitor: &at.visitor,
                content: &read.content,
                hash: None,
                language: by_name(document.path.as_deref().unwrap_or_default()),
                is_source: false,
                line: None,
                cited: None,
                relative: Relative::Nothing,
            };
            let told = html! {
                p.notice { "Read from " (source.provider) " just now, and kept nowhere. It took " (used) "; today " (words::grouped(u64::from(left))) " are left." }
                (reading.show("The document"))
            };
            (told, None)
        }
        Err(problem) => {
            let told = part::summary(Some(&problem), &[]);
            (told, Some(Error::from(problem).status))
        }
    };
    let body = html! {
        (told)
        @if status.is_some() { (state(&at, &document)) }
        (facts(&at, &document))
    };
    page(&at, &document, &body, status)
}

/// `POST /documents/{id}/retry`: retries a failed document of a source at once.
pub(super) async fn retry(at: LocatedDocument) -> Answer {
    if at.is_ingested() {
        let message =
            "a document that was sent never changes: delete it, and send it again in a form that can be read";
        return Err(Problem::forbidden(message).into());
    }
    match sources::retry(&at.visitor.person, at.id).await {
        Ok(_) => Ok(at.visitor.done(&address(at.id), &Notice::Retried)),
        Err(problem) if problem.reason == Reason::RunNotStartable => {
            let document = at.document().await?;
            let body = html! {
                (part::summary(Some(&problem), &[]))
                (state(&at, &document))
                (facts(&at, &document))
            };
            page(&at, &document, &body, Some(Error::from(problem).status))
        }
        Err(problem) => Err(problem.into()),
    }
}

/// The language by file extension.
fn by_name(path: &str) -> Language {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("md" | "markdown") => Language::Markdown,
        Some("json") => Language::Json,
        Some("yaml" | "yml") => Language::Yaml,
        _ => Language::Plain,
    }
}

/// `POST /documents/{id}/delete`: permanently; its key can be used again.
pub(super) async fn delete(at: LocatedDocument) -> Answer {
    if !at.is_ingested() {
        let message = "this document is its source's: delete it there, and the next run removes it here";
        return Err(Error::from(Problem::forbidden(message)));
    }
    ingest::delete(&at.visitor.context()?, at.id).await?;
    let to = format!("/w/{}/documents", at.visitor.here()?.id);
    Ok(at.visitor.done(&to, &Notice::Deleted))
}
