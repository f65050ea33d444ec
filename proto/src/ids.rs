//! Id newtypes: UUIDs in lower-case hyphenated form on every wire and in every store.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The text is not a UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidId;

impl fmt::Display for InvalidId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("not a UUID")
    }
}

impl std::error::Error for InvalidId {}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
            #[serde(transparent)]
            pub struct $name(pub Uuid);

            impl fmt::Display for $name {
                fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.0.hyphenated().fmt(formatter)
                }
            }

            impl FromStr for $name {
                type Err = InvalidId;

                /// Reads the hyphenated form only: one id has one spelling.
                fn from_str(text: &str) -> Result<Self, InvalidId> {
                    const HYPHENATED_LENGTH: usize = 36;
                    if text.len() != HYPHENATED_LENGTH {
                        return Err(InvalidId);
                    }
                    Uuid::try_parse(text).map(Self).map_err(|_| InvalidId)
                }
            }

            impl From<Uuid> for $name {
                fn from(uuid: Uuid) -> Self {
                    Self(uuid)
                }
            }
        )*
    };
}

ids! {
    /// A workspace.
    WorkspaceId,
    /// A person with an account.
    UserId,
    /// An API token.
    TokenId,
    /// What a person allowed an agent by OAuth.
    GrantId,
    /// A web session.
    SessionId,
    /// An invitation to a workspace.
    InvitationId,
    /// A report to the people who maintain a workspace.
    FeedbackId,
    /// A golden question.
    GoldenQuestionId,
    /// A folder.
    FolderId,
    /// A file.
    FileId,
    /// A memory.
    MemoryId,
    /// A member of a memory.
    MemberId,
    /// A structured database.
    DatabaseId,
    /// A property of a structured database.
    PropertyId,
    /// A saved view of a structured database.
    ViewId,
    /// A record of a structured database.
    RecordId,
    /// An attachment.
    AssetId,
    /// The bytes of attachments, as they are stored.
    ObjectId,
    /// One soft deletion: everything that it took to trash carries its id.
    DeletionId,
    /// A document of any kind, as retrieval sees it.
    DocumentId,
    /// A connected source.
    SourceId,
    /// One reading of a connected source.
    SourceRunId,
    /// An address to which changes are sent.
    WebhookId,
    /// A message to a webhook, however often it is tried.
    WebhookDeliveryId,
    /// One directory sync.
    SyncRunId,
    /// A question of the question log.
    QuestionId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let text = "0199c0de-0000-7000-8000-000000000001";
        let id: FileId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(text.to_uppercase().parse::<FileId>().unwrap().to_string(), text);
        for odd in ["", "0199c0de000070008000000000000001", "{0199c0de-0000-7000-8000-000000000001}", "a-b"] {
            assert_eq!(odd.parse::<FileId>(), Err(InvalidId));
        }
    }
}
