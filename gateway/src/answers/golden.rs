//! Golden questions.

use cairn_proto::domain::{DocumentKind, Strategy};
use cairn_proto::retrieval::v1 as proto;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Links, time};

/// A question of which the workspace knows what must be found.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GoldenQuestion {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    pub(crate) query: String,
    pub(crate) strategy: Strategy,
    /// How many results it asks for.
    pub(crate) limit: u32,
    /// The folder that it is asked in; left out for the whole workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) folder_id: Option<String>,
    pub(crate) kind: DocumentKind,
    /// The document that must be found.
    #[schema(format = "uuid")]
    pub(crate) document_id: String,
    /// What it is called and where it stands; left out when it does not live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) document: Option<GoldenDocument>,
    /// The passage that must be found; left out when any will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quote: Option<String>,
    /// Where it stood when the question was pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start_line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end_line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content_hash: Option<String>,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    /// Who pinned it.
    pub(crate) author: GoldenAuthor,
}

/// What a document is called now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GoldenDocument {
    pub(crate) title: String,
    pub(crate) path: String,
    /// A link that opens it.
    pub(crate) url: String,
    /// The same below the deployment's address.
    #[serde(skip)]
    pub(crate) page: String,
}

/// Who pinned a question.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GoldenAuthor {
    /// `user`, `token` or `grant`.
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) name: String,
}

/// The default number of results of a search.
const DEFAULT_RESULTS: u32 = 10;

impl GoldenQuestion {
    pub(crate) fn read(question: proto::GoldenQuestion, links: &Links) -> Self {
        let search = question.search.unwrap_or_default();
        let page = question.url.unwrap_or_default();
        let document = question.title.zip(question.path).map(|(title, path)| GoldenDocument {
            title,
            path,
            url: links.to(&page),
            page,
        });
        let some = |line: u32| Some(line).filter(|line| *line > 0);
        Self {
            id: question.id,
            strategy: Strategy::from_number(search.strategy).unwrap_or_default(),
            limit: if search.limit == 0 { DEFAULT_RESULTS } else { search.limit },
            folder_id: search.folder_id,
            query: search.query,
            kind: DocumentKind::from_number(question.kind).unwrap_or_default(),
            document_id: question.document_id,
            document,
            quote: Some(question.quote).filter(|quote| !quote.is_empty()),
            start_line: some(question.start_line),
            end_line: some(question.end_line),
            content_hash: Some(question.content_hash).filter(|hash| !hash.is_empty()),
            created_at: time(question.created_at.as_ref()),
            author: GoldenAuthor {
                kind: question.author_kind,
                id: question.author_id,
                name: question.author_name,
            },
        }
    }
}
