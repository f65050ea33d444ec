//! Explains why a search does not return a document: the checks in order.

use cairn_proto::domain::{DocumentKind, Verdict, page_of};
use cairn_proto::retrieval::v1::{self as proto, CoverageNote, ListRank, SoughtWord};
use serde::Serialize;
use utoipa::ToSchema;

use super::Links;
use super::search::Citation;

/// What a search does to a document, step by step. What does not exist and what is out of the caller's reach are told alike.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Absence {
    /// Left out when there is none, or none that the caller may see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) document: Option<MissedDocument>,
    /// Its place among the results, from 1; left out when it is not among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<u32>,
    /// In the order in which a search goes; the first that failed is why the document is missing.
    pub(crate) checks: Vec<AbsenceCheck>,
    /// Notes on what was not looked at.
    pub(crate) coverage: Vec<CoverageNote>,
}

/// The document that was asked about.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MissedDocument {
    pub(crate) kind: DocumentKind,
    #[schema(format = "uuid")]
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) path: String,
    /// A link that opens the document, or says that it is in trash.
    pub(crate) url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) database_id: Option<String>,
    /// Of the text that it has now; left out of one in trash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content_hash: Option<String>,
}

/// One check.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AbsenceCheck {
    /// `exists`, `trash`, `reach`, `source`, `filters`, `indexed`, `words`, `excluded`, `phrases`, `rank_words`,
    /// `rank_meaning`, `rank`, `copies`, `min_score`, `limit` or `token_budget`.
    pub(crate) code: String,
    pub(crate) verdict: Verdict,
    /// A sentence for people.
    pub(crate) message: String,
    /// What can be done about it; left out where there is nothing to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub(crate) advice: String,
    /// Of `words`: each word of the question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) words: Vec<SoughtWord>,
    /// Of `rank_words`, `rank_meaning` and `rank`: where it stands in each list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) ranks: Vec<ListRank>,
    /// Of `copies`: where the same text stands that is shown instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) copy_of: Option<Citation>,
}

impl Absence {
    pub(crate) fn read(answer: proto::ExplainAbsenceResponse, links: &Links) -> Self {
        Self {
            document: answer.document.map(|document| MissedDocument::read(document, links)),
            place: answer.place,
            checks: answer.checks.into_iter().map(|check| AbsenceCheck::read(check, links)).collect(),
            coverage: answer.coverage,
        }
    }

    /// The check that excludes the document.
    pub(crate) fn cause(&self) -> Option<&AbsenceCheck> {
        self.checks.iter().find(|check| check.verdict == Verdict::Failed)
    }
}

impl MissedDocument {
    fn read(document: proto::MissedDocument, links: &Links) -> Self {
        Self {
            url: links.to(&page_of(document.kind(), &document.id, document.database_id.as_deref())),
            kind: DocumentKind::from_number(document.kind).unwrap_or_default(),
            id: document.id,
            title: document.title,
            path: document.path,
            database_id: document.database_id,
            content_hash: document.content_hash,
        }
    }
}

impl AbsenceCheck {
    fn read(check: proto::AbsenceCheck, links: &Links) -> Self {
        Self {
            verdict: Verdict::from_number(check.verdict).unwrap_or_default(),
            code: check.code,
            message: check.message,
            advice: check.advice,
            words: check.words,
            ranks: check.ranks,
            copy_of: check.copy_of.map(|copy| Citation::of_lines(copy, links)),
        }
    }
}
