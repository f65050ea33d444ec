//! Questions of the question log, with their results.

use cairn_proto::domain::{DocumentKind, Mode, QuestionOutcome, Strategy, SubqueryType};
use cairn_proto::retrieval::v1::question_details::Asked;
use cairn_proto::retrieval::v1::{self as proto, CoverageNote, search_context_request};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Citation, SearchAnswer, SearchResult, optional_time, time};
use crate::change;

/// What was asked, by whom, and how it went.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Question {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    #[schema(format = DateTime)]
    pub(crate) asked_at: String,
    /// `search_context` or `query_source`.
    pub(crate) operation: String,
    pub(crate) query: String,
    pub(crate) asked_by: Asker,
    /// `rest`, `mcp`, `console` or `grpc`.
    pub(crate) channel: String,
    /// What the program called itself, when it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<String>,
    pub(crate) results: u32,
    /// Left out when nothing was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) best_score: Option<f64>,
    pub(crate) outcome: QuestionOutcome,
    pub(crate) took_ms: f64,
}

/// Questions that ask nearly the same.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuestionGroup {
    /// The latest of them first; at most 20.
    pub(crate) questions: Vec<Question>,
    /// How many there are.
    pub(crate) count: u64,
    /// How many of them were not answered well since one last was: a group with some is a gap in what the workspace knows.
    pub(crate) open: u64,
}

impl From<proto::QuestionGroup> for QuestionGroup {
    fn from(group: proto::QuestionGroup) -> Self {
        Self {
            questions: group.questions.into_iter().map(Into::into).collect(),
            count: group.count,
            open: group.open,
        }
    }
}

/// The token, app or person that asked.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Asker {
    /// `token`, `grant`, `user` or `service`.
    pub(crate) kind: String,
    pub(crate) id: String,
    /// As it was called then.
    pub(crate) name: String,
}

/// A question with what was asked besides, and what was answered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuestionReplay {
    #[serde(flatten)]
    pub(crate) question: Question,
    pub(crate) arguments: QuestionArguments,
    /// Whether the arguments were too long to be kept whole.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) shortened: bool,
    /// In the order in which they were answered.
    pub(crate) passages: Vec<ReplayedPassage>,
    /// What the answer did not cover.
    pub(crate) coverage: Vec<CoverageNote>,
}

/// The arguments that were given beside the query.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuestionArguments {
    /// The connected source, of `query_source`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) strategy: Option<Strategy>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) searches: Vec<QuestionAngle>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) source_ids: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) folder_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) tags: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) kinds: Vec<DocumentKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) updated_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) updated_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) min_score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_budget: Option<u32>,
    /// A time or a change token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) as_of: Option<String>,
}

/// A further angle on a query.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuestionAngle {
    pub(crate) r#type: SubqueryType,
    pub(crate) text: String,
}

/// A passage as it was answered.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplayedPassage {
    pub(crate) kind: DocumentKind,
    /// The file, record or document.
    #[schema(format = "uuid")]
    pub(crate) id: String,
    /// Of the whole document that the lines were counted in.
    pub(crate) content_hash: String,
    pub(crate) start_line: u32,
    pub(crate) end_line: u32,
    pub(crate) score: f64,
    /// What the document is called now; left out when it is no longer there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// Of a record: its database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) database_id: Option<String>,
    /// The lines as they were, where the file still has the version that they were read in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
    /// That version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<u64>,
}

impl From<proto::Question> for Question {
    fn from(question: proto::Question) -> Self {
        Self {
            outcome: QuestionOutcome::from_number(question.outcome).unwrap_or_default(),
            asked_at: time(question.asked_at.as_ref()),
            id: question.id,
            operation: question.operation,
            query: question.query,
            asked_by: Asker {
                kind: question.principal_kind,
                id: question.principal_id,
                name: question.principal_name,
            },
            channel: question.channel,
            client: Some(question.client).filter(|client| !client.is_empty()),
            results: question.results,
            best_score: question.best_score,
            took_ms: question.took_micros as f64 / 1_000.0,
        }
    }
}

impl QuestionReplay {
    /// The question as recorded by svc-retrieval; the texts of passages come from the owning services.
    pub(crate) fn read(question: proto::Question, details: proto::QuestionDetails) -> Self {
        Self {
            question: question.into(),
            arguments: details.asked.map(QuestionArguments::from).unwrap_or_default(),
            shortened: details.shortened,
            passages: details.passages.into_iter().map(Into::into).collect(),
            coverage: details.coverage,
        }
    }
}

impl From<Asked> for QuestionArguments {
    fn from(asked: Asked) -> Self {
        let given = |number: u32| Some(number).filter(|number| *number > 0);
        match asked {
            Asked::SourceQuery(request) => {
                Self { source_id: Some(request.source_id), limit: given(request.limit), ..Self::default() }
            }
            Asked::Search(request) => Self {
                source_id: None,
                strategy: Strategy::from_number(request.strategy),
                searches: request.searches.into_iter().filter_map(angle).collect(),
                mode: Mode::from_number(request.mode),
                source_ids: request.source_ids,
                folder_id: request.folder_id,
                tags: request.tags,
                kinds: request.kinds.into_iter().filter_map(DocumentKind::from_number).collect(),
                updated_after: optional_time(request.updated_after.as_ref()),
                updated_before: optional_time(request.updated_before.as_ref()),
                limit: given(request.limit),
                min_score: request.min_score,
                token_budget: given(request.token_budget),
                as_of: request.when.and_then(moment),
            },
        }
    }
}

fn moment(when: search_context_request::When) -> Option<String> {
    match when {
        search_context_request::When::AsOf(time) => optional_time(Some(&time)),
        search_context_request::When::AfterChange(position) => Some(change::of_content(position).to_string()),
    }
}

fn angle(search: proto::Subquery) -> Option<QuestionAngle> {
    Some(QuestionAngle { r#type: SubqueryType::from_number(search.r#type)?, text: search.text })
}

impl From<proto::ReturnedPassage> for ReplayedPassage {
    fn from(passage: proto::ReturnedPassage) -> Self {
        Self {
            kind: DocumentKind::from_number(passage.kind).unwrap_or_default(),
            id: passage.document_id,
            content_hash: passage.content_hash,
            start_line: passage.start_line,
            end_line: passage.end_line,
            score: passage.score,
            title: passage.title,
            path: passage.path,
            database_id: passage.database_id,
            content: None,
            version: None,
        }
    }
}

/// The same question, asked again just now by the person who reads.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AskedAgain {
    /// What is answered now, the best first.
    pub(crate) results: Vec<SearchResult>,
    pub(crate) coverage: Vec<CoverageNote>,
    /// Where each passage stands now and stood then: first those of now, in their order, then those that are gone.
    pub(crate) ranks: Vec<RankChange>,
}

/// The place of a passage in both answers, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct RankChange {
    /// Left out when it is not answered any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) now: Option<u32>,
    /// Left out when it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) then: Option<u32>,
    /// Whether its document has another text now than then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) changed: bool,
}

impl AskedAgain {
    /// Compares new results with the original passages.
    pub(crate) fn read(then: &[ReplayedPassage], now: SearchAnswer) -> Self {
        let SearchAnswer { results, coverage, .. } = now;
        let places: Vec<_> = results.iter().map(|result| Place::of(&result.citation)).collect();
        Self { ranks: ranks(then, &places), results, coverage }
    }
}

/// The location of a passage.
#[derive(Debug)]
struct Place<'a> {
    document: &'a str,
    hash: &'a str,
    lines: (u32, u32),
}

impl<'a> Place<'a> {
    fn of(citation: &'a Citation) -> Self {
        let lines = (citation.start_line.unwrap_or_default(), citation.end_line.unwrap_or_default());
        Self { document: &citation.id, hash: &citation.content_hash, lines }
    }

    /// Whether this is the same passage, as far as can be told: overlapping lines of the same text, or the same
    /// document if its text has changed.
    fn is(&self, then: &ReplayedPassage) -> bool {
        let overlaps = self.lines.0 <= then.end_line && then.start_line <= self.lines.1;
        self.document == then.id && (self.hash != then.content_hash || overlaps)
    }
}

fn ranks(then: &[ReplayedPassage], now: &[Place<'_>]) -> Vec<RankChange> {
    let mut left: Vec<(u32, &ReplayedPassage)> = (1..).zip(then).collect();
    let mut ranks = Vec::new();
    for (rank, place) in (1..).zip(now) {
        let found = left.iter().position(|(_, passage)| place.is(passage)).map(|at| left.remove(at));
        let changed = found.is_some_and(|(_, passage)| passage.content_hash != place.hash);
        ranks.push(RankChange { now: Some(rank), then: found.map(|(rank, _)| rank), changed });
    }
    let gone = |(rank, _)| RankChange { now: None, then: Some(rank), changed: false };
    ranks.extend(left.into_iter().map(gone));
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_tell_what_moved_came_and_went() {
        let then = |document_id: &str, content_hash: &str, start_line, end_line| {
            ReplayedPassage::from(proto::ReturnedPassage {
                document_id: document_id.to_owned(),
                content_hash: content_hash.to_owned(),
                start_line,
                end_line,
                ..proto::ReturnedPassage::default()
            })
        };
        let then = [then("a", "1", 1, 5), then("b", "1", 1, 9), then("a", "1", 20, 29)];
        let now = |document, hash, lines| Place { document, hash, lines };
        let now = [now("b", "2", (40, 44)), now("a", "1", (25, 40)), now("c", "1", (1, 1))];
        let rank = |now, then, changed| RankChange { now, then, changed };
        let expected = [
            rank(Some(1), Some(2), true),
            rank(Some(2), Some(3), false),
            rank(Some(3), None, false),
            rank(None, Some(1), false),
        ];
        assert_eq!(ranks(&then, &now), expected);
        assert_eq!(ranks(&[], &[]), []);
    }
}
