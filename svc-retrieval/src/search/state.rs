//! The state of one document in the index.

use cairn_chassis::call::Call;
use cairn_chassis::identity::Identity;
use cairn_chassis::status::Problem;
use cairn_proto::document::v1::DocumentRef;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1::FeedPosition;
use uuid::Uuid;

use super::request::{After, max_wait};
use super::stored_document::{self, StoredDocument};
use super::{Missed, Searcher, catch_up};
use crate::error::Error;
use crate::generations::Generation;
use crate::{kinds, partition};

/// The state of a document in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// The index has its current text.
    Current(StoredDocument),
    /// The index has an older text, which no search returns any more.
    Outdated(StoredDocument),
    /// It is not indexed yet.
    Waiting,
    /// There is nothing to index: the document has no text.
    Empty,
    /// It cannot be indexed, for that reason.
    Failed(&'static str),
}

impl State {
    /// The state of a document that its owner confirmed.
    pub(crate) async fn of(
        generation: &Generation,
        workspace: WorkspaceId,
        missed: &Missed,
    ) -> Result<Self, Error> {
        let partition = partition::of(workspace, missed.document.catalog_only);
        let found = stored_document::find(generation.engine.as_ref(), partition, missed.id).await?;
        if let Some(held) = found {
            let is_current = held.content_hash == missed.document.content_hash;
            return Ok(if is_current { Self::Current(held) } else { Self::Outdated(held) });
        }
        // Its text decides whether there will ever be anything to index.
        let feed = kinds::feed_of(missed.kind);
        let owner =
            generation.indexer.owner(feed).ok_or(Error::Answer("no owner is known for a document"))?;
        let reference = DocumentRef { kind: missed.kind.into(), id: missed.id.hyphenated().to_string() };
        let Some(document) = owner.read_documents(workspace, vec![reference]).await?.pop() else {
            return Ok(Self::Waiting);
        };
        Ok(match generation.indexer.count_passages(missed.id, document).await? {
            None => Self::Failed("the text could not be cut into passages, so search does not find it"),
            Some(0) => Self::Empty,
            Some(_) => Self::Waiting,
        })
    }
}

/// The error when the owner of a document does not answer.
pub(super) fn unanswered() -> Error {
    let message = "the service that keeps documents from outside does not answer now";
    Problem::unavailable(message, std::time::Duration::from_secs(5)).into()
}

impl Searcher {
    /// The hash of a document's current text, and its state in the index.
    ///
    /// # Errors
    /// NOT_FOUND for what does not exist and for what the caller may not see; UNAVAILABLE when its owner does not answer.
    pub(crate) async fn state_of(
        &self,
        identity: &Identity,
        call: &Call,
        (kind, id): (Kind, &str),
        (after, wait): (&[FeedPosition], Option<&prost_types::Duration>),
    ) -> Result<(String, State), Error> {
        let workspace = identity.workspace_id()?;
        let missing = || Problem::not_found("there is no such document, or it is nothing that you may see");
        let id = Uuid::try_parse(id).map_err(|_| missing())?;
        let generation = self.generations.current();
        let after: Vec<After> = after.iter().cloned().map(After::from).collect();
        // A timeout shows in the state itself.
        drop(catch_up(&generation, workspace, &after, max_wait(wait)).await);
        let (found, is_unanswered) = Missed::find(&generation, call, &[kind], id).await?;
        match found {
            Some(missed) => {
                let state = State::of(&generation, workspace, &missed).await?;
                Ok((missed.document.content_hash.clone(), state))
            }
            None if is_unanswered => Err(unanswered()),
            None => Err(missing().into()),
        }
    }
}
