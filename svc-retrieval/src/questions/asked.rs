//! Turns a search into an entry of the log.

use cairn_chassis::call::Call;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Identity, PrincipalKind};
use cairn_proto::domain::QuestionOutcome;
use cairn_proto::ids::{QuestionId, UserId, WorkspaceId};
use cairn_proto::retrieval::v1::question_details::Asked as AskedMessage;
use cairn_proto::retrieval::v1::{
    self as proto, CoverageNote, QuerySourceRequest, QuestionDetails, ReturnedPassage, SearchContextRequest,
};
use prost::Message as _;

use super::writer::Entry;
use super::{Asker, Question, Questions};
use crate::analytics::Operation;

/// Scores are shares of the best that each list found, words and meaning half and half: a best score below this was found by
/// one of the two alone, or near the end of both.
const GOOD_SCORE: f64 = 0.6;
/// Arguments beyond this many bytes are shortened.
const MAX_ARGUMENTS: usize = 16 * 1024;
/// The limits of shortened texts, in characters, and of shortened lists.
const SHORT_TEXT: usize = 500;
const SHORT_LIST: usize = 20;
/// Coverage notes that are stored of an answer.
const MAX_NOTES: usize = 50;

/// A request that is logged.
#[derive(Debug)]
pub(crate) enum LoggedRequest {
    /// A search of everything.
    Search(Box<SearchContextRequest>),
    /// A query of one connected source.
    SourceQuery(QuerySourceRequest),
}

/// A question that is being answered.
#[derive(Debug)]
pub(crate) struct PendingQuestion {
    workspace: WorkspaceId,
    days: u32,
    person: Option<UserId>,
    asker: Asker,
    asked: LoggedRequest,
    began_at: Timestamp,
}

impl PendingQuestion {
    pub(super) fn new(
        workspace: WorkspaceId,
        days: u32,
        identity: &Identity,
        call: &Call,
        asked: LoggedRequest,
        began_at: Timestamp,
    ) -> Self {
        let principal = &identity.principal;
        // The user agent of a browser identifies no program.
        let is_program = matches!(principal.kind, PrincipalKind::Token | PrincipalKind::Grant);
        let asker = Asker {
            kind: principal.kind.as_str().to_owned(),
            id: principal.id.clone(),
            name: principal.name.clone(),
            channel: call.channel().as_str().to_owned(),
            client: if is_program { call.client().to_owned() } else { String::new() },
        };
        Self { workspace, days, person: identity.person(), asker, asked, began_at }
    }

    /// Completes the entry with the answer, and enqueues it.
    pub(crate) fn answered(
        self,
        questions: &Questions,
        results: &[proto::Result],
        coverage: &[CoverageNote],
    ) {
        let now = questions.clock.now();
        let best_score = results.iter().map(|result| result.score).reduce(f64::max);
        let (operation, query, asked, is_shortened) = split(self.asked);
        let question = Question {
            id: questions.ids.next::<QuestionId>(),
            asked_at: self.began_at,
            operation: operation.as_str().to_owned(),
            asker: self.asker,
            query,
            outcome: outcome(best_score),
            results: u64::try_from(results.len()).unwrap_or(u64::MAX),
            best_score,
            took_micros: u64::try_from(now.since(self.began_at).as_micros()).unwrap_or(u64::MAX),
        };
        let details = QuestionDetails {
            asked: Some(asked),
            shortened: is_shortened,
            passages: results.iter().map(passage).collect(),
            coverage: coverage.iter().take(MAX_NOTES).cloned().collect(),
        };
        let (workspace, days, person) = (self.workspace, self.days, self.person);
        questions.enqueue(Entry { workspace, days, person, question, details: details.encode_to_vec() });
    }
}

fn outcome(best_score: Option<f64>) -> QuestionOutcome {
    match best_score {
        None => QuestionOutcome::Unanswered,
        Some(score) if score < GOOD_SCORE => QuestionOutcome::Weak,
        Some(_) => QuestionOutcome::Answered,
    }
}

fn passage(result: &proto::Result) -> ReturnedPassage {
    let cited = result.citation.clone().unwrap_or_default();
    let place = cited.location.unwrap_or_default();
    ReturnedPassage {
        kind: cited.kind,
        document_id: cited.id,
        content_hash: cited.content_hash,
        start_line: place.start_line,
        end_line: place.end_line,
        score: result.score,
        ..ReturnedPassage::default()
    }
}

/// Splits a request into operation, query, and the remaining arguments without the query.
fn split(asked: LoggedRequest) -> (Operation, String, AskedMessage, bool) {
    match asked {
        LoggedRequest::Search(request) => {
            let mut request = *request;
            let query = std::mem::take(&mut request.query);
            // Consistency tokens are meaningless in the log.
            (request.after, request.max_wait) = (Vec::new(), None);
            let is_long = request.encoded_len() > MAX_ARGUMENTS;
            if is_long {
                shorten(&mut request);
            }
            (Operation::SearchContext, query, AskedMessage::Search(request), is_long)
        }
        LoggedRequest::SourceQuery(mut request) => {
            let query = std::mem::take(&mut request.query);
            (Operation::QuerySource, query, AskedMessage::SourceQuery(request), false)
        }
    }
}

fn shorten(request: &mut SearchContextRequest) {
    for search in &mut request.searches {
        search.text = search.text.chars().take(SHORT_TEXT).collect();
    }
    for list in [&mut request.source_ids, &mut request.tags] {
        list.truncate(SHORT_LIST);
        for text in list {
            *text = text.chars().take(SHORT_TEXT).collect();
        }
    }
}

/// The details with the query in its place.
pub(super) fn with_query(mut details: QuestionDetails, query: &str) -> QuestionDetails {
    match &mut details.asked {
        Some(AskedMessage::Search(request)) => query.clone_into(&mut request.query),
        Some(AskedMessage::SourceQuery(request)) => query.clone_into(&mut request.query),
        None => {}
    }
    details
}
