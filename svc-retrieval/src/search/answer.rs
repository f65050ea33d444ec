//! The shapes that leave: results with citations, coverage notes, the page within its budget.

use cairn_proto::document::v1::{ConfirmedDocument, DocumentRef};
use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1::{
    self as proto, Citation, CoverageNote, Location, SearchContextResponse, SyncMode, Trace,
};

use super::request::{Mode, SearchRequest};
use crate::index::StoredChunk;

/// English prose and code measure between three and five bytes a token with the tokenizers in use.
const BYTES_PER_TOKEN: usize = 4;

pub(super) fn response(
    results: Vec<proto::Result>,
    coverage: Vec<CoverageNote>,
    mode: Mode,
) -> SearchContextResponse {
    let mode = match mode {
        Mode::Fast => proto::Mode::Fast,
        Mode::Balanced => proto::Mode::Balanced,
        Mode::Fresh => proto::Mode::Fresh,
    };
    SearchContextResponse { results, coverage, mode: mode.into() }
}

pub(super) fn result(
    chunk: StoredChunk,
    document: &ConfirmedDocument,
    score: f32,
    trace: Option<Trace>,
) -> proto::Result {
    let kind = document.r#ref.as_ref().map_or(Kind::Unspecified, DocumentRef::kind);
    let document_id = chunk.id.document.hyphenated().to_string();
    let location =
        Location { start_line: chunk.start_line, end_line: chunk.end_line, heading_path: chunk.heading_path };
    let citation = Citation {
        label: format!("{}, lines {}–{}", document.title, location.start_line, location.end_line),
        url: deep_link(kind, &document_id, document.database_id.as_deref()),
        kind: kind.into(),
        id: document_id.clone(),
        path: document.path.clone(),
        location: Some(location),
        content_hash: chunk.content_hash,
        sync_mode: SyncMode::Indexed.into(),
        updated_at: document.updated_at,
    };
    proto::Result {
        content: chunk.text,
        score: f64::from(score),
        citation: Some(citation),
        chunk_id: chunk.id.to_string(),
        document_id,
        folder_id: document.folder_id.clone(),
        database_id: document.database_id.clone(),
        chunk_index: chunk.id.ordinal,
        trace,
    }
}

/// Where the console shows a document.
fn deep_link(kind: Kind, id: &str, database_id: Option<&str>) -> String {
    match kind {
        Kind::Record => format!("/databases/{}?record={id}", database_id.unwrap_or_default()),
        Kind::Memory => format!("/memory/{id}"),
        Kind::File
        | Kind::Folder
        | Kind::Database
        | Kind::SourceDocument
        | Kind::Ingested
        | Kind::Unspecified => format!("/file/{id}"),
    }
}

/// Results up to the request's limit and token budget.
#[derive(Debug)]
pub(super) struct Page {
    results: Vec<proto::Result>,
    limit: usize,
    bytes_left: Option<usize>,
    over_budget: u32,
}

impl Page {
    pub(super) fn new(request: &SearchRequest) -> Self {
        let bytes_left = request.token_budget.map(|tokens| tokens.saturating_mul(BYTES_PER_TOKEN));
        Self { results: Vec::new(), limit: request.limit, bytes_left, over_budget: 0 }
    }

    /// Takes the next best result, when the whole of it fits the budget; a smaller one behind it may still fit.
    pub(super) fn push(&mut self, result: proto::Result) {
        match self.bytes_left.map(|left| left.checked_sub(result.content.len())) {
            Some(None) => self.over_budget += 1,
            Some(Some(left)) => {
                self.bytes_left = Some(left);
                self.results.push(result);
            }
            None => self.results.push(result),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.results.len() + usize::try_from(self.over_budget).unwrap_or(usize::MAX) >= self.limit
    }

    pub(super) fn finish(self, outdated: usize) -> (Vec<proto::Result>, Vec<CoverageNote>) {
        let mut notes = Vec::new();
        if self.over_budget > 0 {
            let message = format!("{} further results did not fit the token budget", self.over_budget);
            notes.push(note("token_budget", message, Some(self.over_budget)));
        }
        if outdated > 0 {
            let count = u32::try_from(outdated).unwrap_or(u32::MAX);
            let message =
                format!("{count} matching documents changed a moment ago and are being indexed again");
            notes.push(note("index_behind", message, Some(count)));
        }
        (self.results, notes)
    }
}

pub(super) fn index_behind_write() -> CoverageNote {
    let message = "the index has not seen the write that X-Cairn-Change names within the time to wait; \
                   search again in a moment or raise X-Cairn-Wait-Ms";
    note("index_behind", message.to_owned(), None)
}

pub(super) fn index_lags(lag: u64) -> CoverageNote {
    let count = u32::try_from(lag).unwrap_or(u32::MAX);
    note("index_behind", format!("{lag} changes of this workspace are not indexed yet"), Some(count))
}

pub(super) fn source_not_connected(source_id: &str) -> CoverageNote {
    let message = "this source is not connected to the workspace".to_owned();
    CoverageNote { source_id: Some(source_id.to_owned()), ..note("source_excluded", message, None) }
}

fn note(code: &str, message: String, count: Option<u32>) -> CoverageNote {
    CoverageNote { code: code.to_owned(), message, source_id: None, count }
}
