//! Files similar to a given one, and why.

use cairn_proto::domain::plain_page_of;
use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1::{self as proto, CoverageNote};
use serde::Serialize;
use utoipa::ToSchema;

use super::search::Citation;
use super::{Links, optional_time};

/// Files near a known one, and what the answer does not cover.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RelatedFiles {
    /// Best first.
    pub(crate) files: Vec<RelatedFile>,
    /// Notes on what was not seen: no evidence, never to be quoted as content.
    pub(crate) coverage: Vec<CoverageNote>,
}

/// A file near the known one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RelatedFile {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) path: String,
    /// The folder that holds it; left out for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    folder_id: Option<String>,
    /// A link that opens the file.
    pub(crate) url: String,
    /// 0 to 1: half how near both files are as wholes, half how near their nearest passages are.
    pub(crate) score: f64,
    pub(crate) why: Relation,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    updated_at: Option<String>,
}

/// Why two files are near each other.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Relation {
    /// How near both files are as wholes, 0 to 1.
    pub(crate) whole_score: f64,
    /// How near the two passages are, 0 to 1.
    pub(crate) passage_score: f64,
    /// The passage of the known file.
    pub(crate) from: Citation,
    /// The passage of this file.
    pub(crate) to: Citation,
    /// The text of the latter.
    pub(crate) content: String,
    /// Words that both passages hold, the more telling first.
    pub(crate) shared_words: Vec<String>,
}

impl RelatedFiles {
    pub(crate) fn read(answer: proto::GetRelatedFilesResponse, links: &Links) -> Self {
        Self {
            files: answer.files.into_iter().map(|file| RelatedFile::read(file, links)).collect(),
            coverage: answer.coverage,
        }
    }
}

impl RelatedFile {
    fn read(file: proto::RelatedFile, links: &Links) -> Self {
        let cited =
            |citation: Option<proto::Citation>| Citation::of_lines(citation.unwrap_or_default(), links);
        Self {
            url: links.to(&plain_page_of(Kind::File, &file.id)),
            id: file.id,
            name: file.name,
            path: file.path,
            folder_id: file.folder_id,
            score: file.score,
            updated_at: optional_time(file.updated_at.as_ref()),
            why: Relation {
                whole_score: file.whole_score,
                passage_score: file.passage_score,
                from: cited(file.from),
                to: cited(file.to),
                content: file.content,
                shared_words: file.shared_words,
            },
        }
    }
}
