//! Changes of a workspace, for programs that follow them.

use cairn_chassis::feed::{ChangeToken, Source};
use cairn_proto::feed::v1::{ChangeAuthor, SeenChange};
use serde::Serialize;
use utoipa::ToSchema;

use super::time;

/// Who wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ChangePrincipal {
    /// `user`, `token`, `grant` or `service`.
    kind: String,
    id: String,
    name: String,
}

impl From<ChangeAuthor> for ChangePrincipal {
    fn from(author: ChangeAuthor) -> Self {
        Self { kind: author.kind, id: author.id, name: author.name }
    }
}

/// One change: ids and kinds, no texts. What the item is now, its own address tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Change {
    /// Its token: what a write answered as `X-Cairn-Change`, where it was the last of that write.
    #[schema(examples("c1-2s"))]
    pub(crate) change: String,
    /// `file`, `folder`, `memory`, `database`, `record`, `source_document` or `ingested`.
    pub(crate) kind: String,
    #[schema(format = "uuid")]
    pub(crate) id: String,
    /// `upsert` for what is new or different, `delete` for what is gone, went to trash, or left the token's folders.
    pub(crate) op: String,
    /// The version that the write made of a file, a record or a memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<u64>,
    /// Who wrote, where that was noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<ChangePrincipal>,
    #[schema(format = DateTime)]
    pub(crate) at: String,
    #[serde(skip)]
    pub(crate) token: ChangeToken,
}

impl Change {
    pub(crate) fn read(feed: Source, change: SeenChange) -> Self {
        let token = ChangeToken { source: feed, position: change.position };
        let spelled = |name: &str, prefix: &str| name.trim_start_matches(prefix).to_ascii_lowercase();
        Self {
            change: token.to_string(),
            kind: spelled(change.kind().as_str_name(), "KIND_"),
            op: spelled(change.op().as_str_name(), "OP_"),
            id: change.item_id,
            version: change.version,
            principal: change.author.map(Into::into),
            at: time(change.at.as_ref()),
            token,
        }
    }
}

/// A part of the feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changes {
    /// In their order; those of what comes from outside behind the others.
    pub(crate) changes: Vec<Change>,
    /// Where to go on, as `after`.
    #[schema(examples("c1-2s.i1-4"))]
    pub(crate) next: String,
    /// Whether there is more already.
    pub(crate) has_more: bool,
}
