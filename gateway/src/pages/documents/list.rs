//! `GET /w/{id}/documents`: ingested documents, and documents of sources.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::Permission;
use cairn_proto::ids::{SourceId, WorkspaceId};
use maud::{Markup, html};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{IndexingStatus, address};
use crate::answers::{IngestedDocument, Source, SourceDocument};
use crate::extract::Query;
use crate::operations::sources::{self, DocumentFilter};
use crate::operations::{Page, Paging, ingest};
use crate::pages::frame;
use crate::pages::parts::{self as part, Choice, Pages};
use crate::pages::visitor::{Visitor, see_other};
use crate::pages::{Answer, places, words};
use crate::schema::inputs;

inputs!(PageQuery);

const PAGE_SIZE: u32 = 50;
/// Values of the source filter, beside ids of sources.
const INGESTED: &str = "ingested";
const ALL_SOURCES: &str = "all";

/// The filters of the list.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageQuery {
    status: Option<String>,
    /// `ingested`, `all` sources, or the id of one; everything if absent.
    source: Option<String>,
    /// A part of the title.
    q: Option<String>,
    /// The page tokens up to this page.
    #[serde(default)]
    from: Vec<String>,
}

/// The kinds of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DocumentKinds {
    /// All: the first page of both lists.
    Both,
    Ingested,
    Sources,
    Source(SourceId),
}

/// The parsed filters.
#[derive(Debug)]
struct Filters {
    among: DocumentKinds,
    status: Option<IndexingStatus>,
    title: Option<String>,
}

impl Filters {
    fn of(page_query: &PageQuery) -> Self {
        let among = match page_query.source.as_deref().unwrap_or_default() {
            INGESTED => DocumentKinds::Ingested,
            ALL_SOURCES => DocumentKinds::Sources,
            id => id.parse().map_or(DocumentKinds::Both, DocumentKinds::Source),
        };
        let title = page_query.q.as_deref().map(str::trim).filter(|title| !title.is_empty());
        let status = page_query.status.as_deref().and_then(IndexingStatus::named);
        Self { among, status, title: title.map(ToOwned::to_owned) }
    }

    /// The status as in the query and the API.
    fn status(&self) -> Option<&'static str> {
        let status = self.status?;
        IndexingStatus::ALL.into_iter().find(|(one, ..)| *one == status).map(|(_, name, _)| name)
    }

    fn source(&self) -> Option<String> {
        match self.among {
            DocumentKinds::Both => None,
            DocumentKinds::Ingested => Some(INGESTED.to_owned()),
            DocumentKinds::Sources => Some(ALL_SOURCES.to_owned()),
            DocumentKinds::Source(id) => Some(id.to_string()),
        }
    }

    fn is_narrowed(&self) -> bool {
        self.among != DocumentKinds::Both || self.status.is_some() || self.title.is_some()
    }

    /// Ingested documents are never catalog-only.
    fn wants_ingested(&self) -> bool {
        matches!(self.among, DocumentKinds::Both | DocumentKinds::Ingested)
            && self.status != Some(IndexingStatus::Catalog)
    }

    /// The URL of the first page of the list of one kind.
    fn address(&self, path: &str, source: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("source", source);
        let kept = [("status", self.status()), ("q", self.title.as_deref())];
        query.extend_pairs(kept.into_iter().filter_map(|(name, value)| Some((name, value?))));
        format!("{path}?{}", query.finish())
    }
}

pub(super) async fn show(visitor: Visitor, Query(page_query): Query<PageQuery>) -> Answer {
    let here = visitor.here()?.id;
    let path = format!("/w/{here}/documents");
    let wanted = Filters::of(&page_query);
    // The combined list only shows first pages.
    let trail = if wanted.among == DocumentKinds::Both { Vec::new() } else { page_query.from };
    let found = tokio::try_join!(
        ingested(&visitor, &wanted, &trail),
        of_sources(&visitor, &wanted, &trail),
        connected(&visitor),
    );
    let (ingested, of_sources, connected) = match found {
        Ok(found) => found,
        // A stale page token, or a removed source: start over.
        Err(problem) if is_of_the_address(&problem) && wanted.is_narrowed() => return Ok(see_other(&path)),
        Err(problem) => return Err(problem.into()),
    };
    let found = Found { path, wanted, trail, ingested, of_sources, connected };
    let actions = html! {
        @if visitor.may(Permission::Write) { a.button.primary href={ (found.path) "/new" } data-key="n" { "Add a document" } }
    };
    Ok(frame::Page::new("Documents")
        .actions(actions)
        .show(&visitor, &found.show(here, visitor.may(Permission::Write))))
}

fn is_of_the_address(problem: &Problem) -> bool {
    matches!(problem.reason, Reason::ValidationError | Reason::NotFound)
}

async fn ingested(
    visitor: &Visitor,
    wanted: &Filters,
    trail: &[String],
) -> Result<Option<Page<IngestedDocument>>, Problem> {
    if !wanted.wants_ingested() {
        return Ok(None);
    }
    let context = visitor.context().map_err(|_| Problem::internal("a list of no workspace"))?;
    let paging = Paging { limit: Some(PAGE_SIZE), cursor: trail.last().cloned() };
    let status = wanted.status().and_then(|status| status.parse().ok());
    ingest::list(&context, status, wanted.title.clone(), paging).await.map(Some)
}

async fn of_sources(
    visitor: &Visitor,
    wanted: &Filters,
    trail: &[String],
) -> Result<Option<Page<SourceDocument>>, Problem> {
    let source = match wanted.among {
        DocumentKinds::Ingested => return Ok(None),
        DocumentKinds::Both | DocumentKinds::Sources => None,
        DocumentKinds::Source(id) => Some(id),
    };
    let status = wanted.status().map(ToOwned::to_owned);
    let filter = DocumentFilter { source, status, title: wanted.title.clone() };
    let paging = Paging { limit: Some(PAGE_SIZE), cursor: trail.last().cloned() };
    sources::documents_of(&visitor.person, filter, paging).await.map(Some)
}

async fn connected(visitor: &Visitor) -> Result<Vec<Source>, Problem> {
    let context = visitor.context().map_err(|_| Problem::internal("a list of no workspace"))?;
    sources::list(&context).await.map(|page| page.items)
}

/// The documents found.
#[derive(Debug)]
struct Found {
    path: String,
    wanted: Filters,
    trail: Vec<String>,
    ingested: Option<Page<IngestedDocument>>,
    of_sources: Option<Page<SourceDocument>>,
    connected: Vec<Source>,
}

impl Found {
    fn show(&self, workspace: WorkspaceId, may_retry: bool) -> Markup {
        let ingested = self.ingested.as_ref().map_or(&[][..], |page| &page.items);
        let of_sources = self.of_sources.as_ref().map_or(&[][..], |page| &page.items);
        let is_empty = ingested.is_empty() && of_sources.is_empty();
        let moves = ingested.iter().any(|document| IndexingStatus::of(document.status).is_under_way())
            || of_sources.iter().any(|document| status_of(document).is_under_way());
        html! {
            @if !is_empty || self.wanted.is_narrowed() { (self.filter()) }
            div #documents data-poll=[moves.then_some("")] {
                @if is_empty && self.wanted.is_narrowed() {
                    p.quiet { "No document is like that." }
                } @else if is_empty {
                    (part::empty("No document has come from outside yet.", &html! {
                        p { "Programs send them, and connected sources bring them: " a href="/docs/guides/ingesting" { "how documents are sent" } ", " a href="/docs/guides/connecting-a-source" { "what can be connected" } "." }
                    }))
                }
                @if !ingested.is_empty() { (self.sent(ingested)) }
                @if !of_sources.is_empty() { (self.brought(of_sources, workspace, may_retry)) }
            }
        }
    }

    fn filter(&self) -> Markup {
        let (status, source) = (self.wanted.status(), self.wanted.source());
        let chosen = |value: &str| source.as_deref() == Some(value);
        let statuses = IndexingStatus::ALL.into_iter().map(|(_, name, word)| (name, word));
        let statuses = [("", "Any")].into_iter().chain(statuses);
        let fixed = [("", "Everywhere"), (INGESTED, "Sent by programs"), (ALL_SOURCES, "All sources")];
        let sources = self.connected.iter().map(|source| (source.id.as_str(), source.name.as_str()));
        html! {
            form.filter role="search" method="get" action=(self.path) {
                div.field {
                    label for="f-q" { "Title" }
                    input #f-q type="search" name="q" value=[self.wanted.title.as_deref()] maxlength="255" autocomplete="off" data-key="/";
                }
                (part::choices("status", "Status", statuses.map(|(value, label)| Choice {
                    value, label, is_chosen: status.unwrap_or_default() == value,
                })))
                (part::choices("source", "From", fixed.into_iter().chain(sources).map(|(value, label)| Choice {
                    value, label, is_chosen: chosen(value),
                })))
                button type="submit" { "Show" }
            }
        }
    }

    fn sent(&self, documents: &[IngestedDocument]) -> Markup {
        let rows = html! {
            @for document in documents {
                tr {
                    th scope="row" { a href=(address(&document.id)) { bdi { (document.title) } } }
                    td { (status_badge(IndexingStatus::of(document.status), document.error.as_deref())) }
                    td { (part::time(&document.created_at)) }
                }
            }
        };
        html! {
            h2 { "Sent by programs" }
            (part::table("Documents that programs sent", &["Title", "Status", "Came"], &rows))
            @if let Some(page) = &self.ingested { (self.pagination(page, INGESTED)) }
        }
    }

    fn brought(&self, documents: &[SourceDocument], workspace: WorkspaceId, may_retry: bool) -> Markup {
        let rows = html! {
            @for document in documents {
                tr {
                    th scope="row" { a href=(address(&document.id)) { bdi { (document.title) } } }
                    td { (status_badge(status_of(document), document.error.as_deref())) }
                    td { a href=(places::source(workspace, &document.source_id)) { bdi { (self.name_of(&document.source_id)) } } }
                    td { (part::time_or(document.last_synced_at.as_deref(), "never")) }
                    td {
                        @if may_retry && status_of(document) == IndexingStatus::Failed {
                            (part::action(&format!("{}/retry", address(&document.id)), "Try again", &document.title, &[]))
                        }
                    }
                }
            }
        };
        html! {
            h2 { "From sources" }
            (part::table("Documents of sources", &["Title", "Status", "Source", "Last seen there", ""], &rows))
            @if let Some(page) = &self.of_sources { (self.pagination(page, ALL_SOURCES)) }
        }
    }

    fn name_of(&self, id: &str) -> &str {
        let source = self.connected.iter().find(|source| source.id == id);
        source.map_or("a source that is gone", |source| source.name.as_str())
    }

    /// The pagination links; from the combined list to the full list of one kind.
    fn pagination<T>(&self, page: &Page<T>, kind: &str) -> Markup {
        if self.wanted.among == DocumentKinds::Both {
            let all = words::count(page.total, "document", "documents");
            return html! {
                @if page.next.is_some() { p { a href=(self.wanted.address(&self.path, kind)) { "All " (all) } } }
            };
        }
        let source = self.wanted.source();
        let kept = [
            ("source", source.as_deref()),
            ("status", self.wanted.status()),
            ("q", self.wanted.title.as_deref()),
        ];
        let query: Vec<(&str, &str)> =
            kept.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        part::pages(&Pages::of(&self.path, &query, self.trail.clone(), PAGE_SIZE, page))
    }
}

fn status_of(document: &SourceDocument) -> IndexingStatus {
    IndexingStatus::named(&document.index_status).unwrap_or(IndexingStatus::Pending)
}

/// The badge of a status, with the reason of a failure.
pub(super) fn status_badge(status: IndexingStatus, error: Option<&str>) -> Markup {
    html! {
        (part::badge(status.tone(), status.word()))
        @if let Some(error) = error { span.hint { bdi { (words::sentence(error)) } } }
    }
}
