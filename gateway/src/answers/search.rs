//! Search results (contract: "Search result", "Citation", "Search trace", "Coverage note").

use cairn_proto::content::v1 as content;
use cairn_proto::domain::{DocumentKind, Mode, SyncMode, page_of, plain_page_of};
use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1::{self as proto, CoverageNote, Trace};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Links, optional_time};
use crate::seen_contents::EarlierContent;

/// Cited evidence, what the answer does not cover, and how sources were consulted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchAnswer {
    /// Best first.
    pub(crate) results: Vec<SearchResult>,
    /// Notes on what was not searched: no evidence, never to be quoted as content.
    pub(crate) coverage: Vec<CoverageNote>,
    pub(crate) mode: Mode,
}

/// A piece of cited evidence.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SearchResult {
    pub(crate) content: String,
    /// Where the content begins in the midst of a table: the table's header, in Markdown with the line under it. The lines of the
    /// citation are those of the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) table_header: Option<String>,
    /// 0 to 1; comparable within one answer.
    pub(crate) score: f64,
    pub(crate) citation: Citation,
    pub(crate) chunk_id: String,
    pub(crate) document_id: String,
    /// The file, when the evidence comes from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<String>,
    /// The record, when the evidence comes from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    record_id: Option<String>,
    /// The record's database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) database_id: Option<String>,
    /// The folder of the document; left out for the root and for sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    folder_id: Option<String>,
    /// The connected source, when the evidence comes from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Source>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    updated_at: Option<String>,
    chunk: Chunk,
    /// The lines within it that answer, at most three places, best first, each under its own headings.
    pub(crate) highlights: Vec<Location>,
    /// With `detail: documents`: where else in the document something was found, the best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) also_at: Vec<Location>,
    /// Where the same or nearly the same text stands, too, the best first: such results are collapsed into this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) also_in: Vec<Citation>,
    /// How many results were collapsed into this one, when there are any; `alsoIn` names the first ten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) collapsed: Option<u32>,
    /// How the score came about; only with `explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<Trace>,
    /// What concerns the agent that asks; agents alone are told.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub(crate) meta: Option<ResultMeta>,
}

/// Metadata of a result for the calling agent.
#[derive(Debug, Serialize)]
pub(crate) struct ResultMeta {
    /// Set if the document has changed since the agent last received it.
    #[serde(rename = "cairn/changed")]
    pub(crate) changed: Changed,
}

/// The earlier content of a document that the agent received.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changed {
    pub(crate) shown_at: String,
    /// The content hash of that time.
    pub(crate) shown_hash: String,
}

impl From<EarlierContent> for ResultMeta {
    fn from(before: EarlierContent) -> Self {
        Self { changed: Changed { shown_at: before.at.to_rfc3339(), shown_hash: before.content_hash } }
    }
}

/// A connected source.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ResultSource)]
pub(crate) struct Source {
    #[schema(format = "uuid")]
    id: String,
    name: String,
    /// Whose it is, such as `github`.
    provider: String,
}

impl From<proto::Source> for Source {
    fn from(source: proto::Source) -> Self {
        Self { id: source.id, name: source.name, provider: source.provider }
    }
}

/// Where evidence comes from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Citation {
    /// For people: name and place.
    pub(crate) label: String,
    /// A link that opens the document: where it comes from, for a document from outside that says so.
    pub(crate) url: String,
    /// A link to the page of the document here, with the lines and the hash of the text that they were counted in. The page of a file
    /// or a document from outside marks them, and shows what they were when the text has changed since; that of a record or a memory
    /// shows what it is now.
    pub(crate) permalink: String,
    pub(crate) kind: DocumentKind,
    /// The id of the file, record or document.
    pub(crate) id: String,
    /// The connected source, for a document of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_id: Option<String>,
    /// Of a document of a source: the provider's own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) external_id: Option<String>,
    pub(crate) path: String,
    /// The first line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start_line: Option<u32>,
    /// The last line, inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end_line: Option<u32>,
    /// The headings above what answers in it, outermost first.
    pub(crate) heading_path: Vec<String>,
    /// Of the whole stored document that the lines were counted in.
    pub(crate) content_hash: String,
    sync_mode: SyncMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) updated_at: Option<String>,
}

/// The piece of the document. Neighbouring pieces that were found are one result: it has the lines of all, and names
/// the best of them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Chunk {
    location: Location,
    /// The piece's place in its document, from 0.
    index: u32,
}

/// Where a piece stands in the stored document.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Location {
    /// The first line, from 1.
    pub(crate) start_line: u32,
    /// The last line, inclusive.
    pub(crate) end_line: u32,
    heading_path: Vec<String>,
}

impl From<proto::Location> for Location {
    fn from(place: proto::Location) -> Self {
        Self { start_line: place.start_line, end_line: place.end_line, heading_path: place.heading_path }
    }
}

impl SearchAnswer {
    pub(crate) fn read(answer: proto::SearchContextResponse, links: &Links) -> Self {
        Self {
            mode: Mode::from_number(answer.mode).unwrap_or_default(),
            results: answer.results.into_iter().map(|result| SearchResult::read(result, links)).collect(),
            coverage: answer.coverage,
        }
    }
}

impl SearchResult {
    fn read(result: proto::Result, links: &Links) -> Self {
        let cited = result.citation.unwrap_or_default();
        let kind = DocumentKind::from_number(cited.kind).unwrap_or_default();
        let place = cited.location.clone().unwrap_or_default();
        Self {
            content: result.content,
            table_header: Some(result.table_header).filter(|header| !header.is_empty()),
            score: result.score,
            chunk_id: result.chunk_id,
            document_id: result.document_id,
            file_id: (kind == DocumentKind::File).then(|| cited.id.clone()),
            record_id: (kind == DocumentKind::Record).then(|| cited.id.clone()),
            database_id: result.database_id,
            folder_id: result.folder_id,
            source: result.source.map(Source::from),
            updated_at: optional_time(cited.updated_at.as_ref()),
            chunk: Chunk {
                location: Location {
                    start_line: place.start_line,
                    end_line: place.end_line,
                    heading_path: result.heading_path,
                },
                index: result.chunk_index,
            },
            highlights: result.highlights.into_iter().map(Location::from).collect(),
            also_at: result.also_at.into_iter().map(Location::from).collect(),
            also_in: result.also_in.into_iter().map(|copy| Citation::of_lines(copy, links)).collect(),
            collapsed: Some(result.collapsed).filter(|collapsed| *collapsed > 0),
            trace: result.trace,
            meta: None,
            citation: Citation::read(cited, kind, links),
        }
    }
}

/// A link to the cited lines with the hash of their text; to the whole document without a location.
fn permalink(page: &str, place: Option<&proto::Location>, content_hash: &str) -> String {
    // The page URL of a record already has a query.
    let mark = if page.contains('?') { '&' } else { '?' };
    match place {
        Some(place) => {
            let (start, end) = (place.start_line, place.end_line);
            format!("{page}{mark}lines={start}-{end}&hash={content_hash}#L{start}")
        }
        None => format!("{page}{mark}hash={content_hash}"),
    }
}

impl Citation {
    /// Of a whole ingested or source document.
    pub(super) fn of_document(document: &content::ResolvedDocument, links: &Links) -> Self {
        let cited = proto::Citation {
            label: document.title.clone(),
            url: plain_page_of(Kind::SourceDocument, &document.document_id),
            kind: Kind::SourceDocument.into(),
            id: document.document_id.clone(),
            path: document.path.clone(),
            content_hash: document.content_hash.clone(),
            sync_mode: proto::SyncMode::Indexed.into(),
            updated_at: document.updated_at,
            source_id: document.source_id.clone(),
            address: document.address.clone(),
            ..proto::Citation::default()
        };
        Self::read(cited, DocumentKind::SourceDocument, links)
    }

    /// Of a whole record.
    pub(super) fn of_record(record: &content::ResolvedRecord, links: &Links) -> Self {
        let page = links.to(&page_of(Kind::Record, &record.record_id, Some(&record.database_id)));
        Self {
            label: record.title.clone(),
            permalink: permalink(&page, None, &record.content_hash),
            url: page,
            kind: DocumentKind::Record,
            source_id: None,
            external_id: None,
            id: record.record_id.clone(),
            path: record.path.clone(),
            start_line: None,
            end_line: None,
            heading_path: Vec::new(),
            content_hash: record.content_hash.clone(),
            sync_mode: SyncMode::Indexed,
            updated_at: optional_time(record.updated_at.as_ref()),
        }
    }

    /// Of a whole file.
    pub(super) fn of_file(file: &content::File, links: &Links) -> Self {
        let page = links.to(&plain_page_of(Kind::File, &file.id));
        Self {
            label: file.name.clone(),
            permalink: permalink(&page, None, &file.content_hash),
            url: page,
            kind: DocumentKind::File,
            source_id: None,
            external_id: None,
            id: file.id.clone(),
            path: file.path.clone(),
            start_line: None,
            end_line: None,
            heading_path: Vec::new(),
            content_hash: file.content_hash.clone(),
            sync_mode: SyncMode::Indexed,
            updated_at: optional_time(file.updated_at.as_ref()),
        }
    }

    /// Of a range of lines.
    pub(super) fn of_lines(cited: proto::Citation, links: &Links) -> Self {
        let kind = DocumentKind::from_number(cited.kind).unwrap_or_default();
        Self::read(cited, kind, links)
    }

    fn read(cited: proto::Citation, kind: DocumentKind, links: &Links) -> Self {
        let page = links.to(&cited.url);
        Self {
            label: cited.label,
            permalink: permalink(&page, cited.location.as_ref(), &cited.content_hash),
            url: cited.address.unwrap_or(page),
            kind,
            external_id: cited.external_id.filter(|_| kind == DocumentKind::SourceDocument),
            source_id: cited.source_id,
            id: cited.id,
            path: cited.path,
            start_line: cited.location.as_ref().map(|place| place.start_line),
            end_line: cited.location.as_ref().map(|place| place.end_line),
            heading_path: cited.location.map(|place| place.heading_path).unwrap_or_default(),
            content_hash: cited.content_hash,
            sync_mode: SyncMode::from_number(cited.sync_mode).unwrap_or_default(),
            updated_at: optional_time(cited.updated_at.as_ref()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permalink_names_the_lines_and_the_text_that_they_were_counted_in() {
        let place = proto::Location { start_line: 3, end_line: 5, heading_path: Vec::new() };
        assert_eq!(permalink("/file/1", Some(&place), "blake3:a"), "/file/1?lines=3-5&hash=blake3:a#L3");
        let record = permalink("/databases/1?record=2", Some(&place), "blake3:a");
        assert_eq!(record, "/databases/1?record=2&lines=3-5&hash=blake3:a#L3");
        assert_eq!(permalink("/memories/1", None, "blake3:a"), "/memories/1?hash=blake3:a");
    }
}
