//! The messages of an answer: results with citations, and coverage notes.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::wording::{self, Unit};
use cairn_embed as embed;
use cairn_proto::document::v1::ConfirmedDocument;
use cairn_proto::retrieval::v1::{self as proto, CoverageNote, Location, SearchContextResponse, Trace};
use uuid::Uuid;

use super::citation;
use super::excerpt::Excerpt;
use super::page::Passage;
use super::request::Mode;
use super::tuning::MAX_COPIES_NAMED;

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

/// One result of a page; `trace` where the caller requested an explanation.
pub(super) fn result(passage: &Passage<'_>, shown: Excerpt, trace: Option<Trace>) -> proto::Result {
    let (best, document) = (passage.best, &passage.best.document);
    let heading_path = passage.heading_path();
    let Excerpt { content, table_header, start_line, end_line, highlights } = shown;
    let location = Location {
        start_line,
        end_line,
        // The citation points to the first highlight.
        heading_path: highlights
            .first()
            .map_or_else(|| heading_path.clone(), |first| first.heading_path.clone()),
    };
    let named = passage.copies.iter().take(MAX_COPIES_NAMED);
    proto::Result {
        content,
        score: best.score(),
        citation: Some(citation::of_evidence(location, best)),
        chunk_id: best.chunk.id.to_string(),
        document_id: best.chunk.id.document.hyphenated().to_string(),
        folder_id: document.folder_id.clone(),
        database_id: document.database_id.clone(),
        source: source_of(document),
        chunk_index: best.chunk.id.ordinal,
        trace,
        highlights,
        heading_path,
        table_header,
        also_at: passage.others.iter().map(|other| citation::location(&other.chunk)).collect(),
        also_in: named.map(|copy| citation::of_evidence(citation::location(&copy.chunk), copy)).collect(),
        collapsed: u32::try_from(passage.copies.len()).unwrap_or(u32::MAX),
    }
}

fn source_of(document: &ConfirmedDocument) -> Option<proto::Source> {
    Some(proto::Source {
        id: document.source_id.clone()?,
        name: document.source_name.clone().unwrap_or_default(),
        provider: document.provider.clone().unwrap_or_default(),
    })
}

/// Notes on what a page leaves out.
pub(super) fn left_out(over_budget: usize, outdated: usize) -> Vec<CoverageNote> {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let mut notes = Vec::new();
    if over_budget > 0 {
        let further = wording::count(over_budget as u64, Unit::FurtherResults);
        let message = format!("beyond the token budget: {further}");
        notes.push(note("token_budget", message, Some(count(over_budget))));
    }
    if outdated > 0 {
        let message =
            format!("{outdated} matching documents changed a moment ago and are being indexed again");
        notes.push(note("index_behind", message, Some(count(outdated))));
    }
    notes
}

pub(super) fn index_behind_write() -> CoverageNote {
    let message = "the index has not seen the write that X-Cairn-Change names within the time to wait; \
                   search again in a moment or raise X-Cairn-Wait-Ms";
    note("index_behind", message.to_owned(), None)
}

pub(super) fn index_lags(lag: u64) -> CoverageNote {
    let count = u32::try_from(lag).unwrap_or(u32::MAX);
    note(
        "index_behind",
        format!("not indexed yet: {} of this workspace", wording::count(lag, Unit::Changes)),
        Some(count),
    )
}

pub(super) fn index_was_lost() -> CoverageNote {
    let message = "the index lost what it held while this search looked into it, and is being filled anew; \
                   search again in a moment";
    note("index_behind", message.to_owned(), None)
}

pub(super) fn without_names() -> CoverageNote {
    let message =
        "the names of folders and databases were not searched: the service that keeps them did not give them";
    note("provider_unavailable", message.to_owned(), None)
}

/// Notes on what a search of the past leaves out.
pub(super) fn as_it_was(at: Timestamp) -> CoverageNote {
    let message = format!(
        "what is there now was searched as it stood at {}: what was deleted since is left out, and so are records and memories that have \
         changed since, documents from outside, and the names of databases that have",
        at.to_rfc3339()
    );
    note("not_kept", message, None)
}

/// So many files that have changed since the moment were not searched as they were.
pub(super) fn past_not_searched(count: usize) -> Option<CoverageNote> {
    let files = wording::count(count as u64, Unit::Documents);
    let message =
        format!("changed since and not searched as they were, since that is too much at once: {files}");
    (count > 0).then(|| note("past_not_searched", message, u32::try_from(count).ok()))
}

/// Why a search by meaning was answered by words.
pub(super) fn words_only(error: &embed::Error) -> CoverageNote {
    let code = match error {
        embed::Error::Spent { .. } => "provider_budget_exhausted",
        embed::Error::Model { .. }
        | embed::Error::Unavailable { .. }
        | embed::Error::Refused { .. }
        | embed::Error::Paused
        | embed::Error::TooSlow { .. } => "provider_unavailable",
    };
    note(code, format!("ranked by words only, not by meaning: {}", error.public_message()), None)
}

pub(super) fn not_embedded(count: u64) -> CoverageNote {
    let message = format!(
        "found by words, and not yet by meaning: {} of this workspace",
        wording::count(count, Unit::Changes)
    );
    note("index_behind", message, Some(u32::try_from(count).unwrap_or(u32::MAX)))
}

pub(super) fn not_reranked() -> CoverageNote {
    let message = "the reranker has no word on this answer; it is in the order of words and meaning";
    note("provider_unavailable", message.to_owned(), None)
}

/// Documents whose owner does not answer, and that were left out therefore.
pub(super) fn unanswered(count: usize) -> Option<CoverageNote> {
    let left_out = CoverageNote { count: u32::try_from(count).ok(), ..outside_unanswered() };
    (count > 0).then_some(left_out)
}

pub(super) fn outside_unanswered() -> CoverageNote {
    let message = "documents from outside are left out: the service that keeps them does not answer now";
    note("provider_unavailable", message.to_owned(), None)
}

/// So many documents were read from the provider for this answer.
pub(super) fn live_fetch(source: Uuid, count: usize) -> CoverageNote {
    let read = wording::count(count as u64, Unit::Documents);
    of_source(source, "live_fetch", format!("read from the provider just now: {read}"), Some(count))
}

pub(super) fn catalog_match_not_fetched(source: Uuid, count: usize) -> CoverageNote {
    let matching = wording::count(count as u64, Unit::Documents);
    let message = format!(
        "match by title and were not read: {matching}; ask for one by its exact title, or query this source"
    );
    of_source(source, "catalog_match_not_fetched", message, Some(count))
}

/// The provider did not answer, or not for `not_read` of the requested documents.
pub(super) fn provider_unavailable(source: Uuid, not_read: Option<u32>) -> CoverageNote {
    let message = match not_read {
        None => "the provider of this source cannot be asked now".to_owned(),
        Some(count) => {
            let documents = wording::count(u64::from(count), Unit::Documents);
            format!("the provider of this source did not give the text of {documents}")
        }
    };
    let count = not_read.and_then(|count| usize::try_from(count).ok());
    of_source(source, "provider_unavailable", message, count)
}

pub(super) fn provider_budget_exhausted(source: Uuid) -> CoverageNote {
    let message = "the daily budget for live calls to this source is used up; it is renewed at midnight UTC";
    of_source(source, "provider_budget_exhausted", message.to_owned(), None)
}

/// Texts came from providers, and could not be ranked.
pub(super) fn not_ranked() -> CoverageNote {
    let message = "what providers gave could not be searched and is left out";
    note("provider_unavailable", message.to_owned(), None)
}

fn of_source(source: Uuid, code: &str, message: String, count: Option<usize>) -> CoverageNote {
    let count = count.and_then(|count| u32::try_from(count).ok());
    CoverageNote { source_id: Some(source.to_string()), ..note(code, message, count) }
}

pub(super) fn source_out_of_scope(source_id: &str) -> CoverageNote {
    let message = "connected sources are outside the folders of this token".to_owned();
    CoverageNote { source_id: Some(source_id.to_owned()), ..note("out_of_scope", message, None) }
}

pub(super) fn source_not_connected(source_id: &str) -> CoverageNote {
    let message = "this source is not connected to the workspace".to_owned();
    CoverageNote { source_id: Some(source_id.to_owned()), ..note("source_excluded", message, None) }
}

fn note(code: &str, message: String, count: Option<u32>) -> CoverageNote {
    CoverageNote { code: code.to_owned(), message, source_id: None, count }
}
