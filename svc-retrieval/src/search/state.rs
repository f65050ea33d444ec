//! How the index stands to one document.

use cairn_chassis::call::Call;
use cairn_chassis::identity::Identity;
use cairn_chassis::status::Problem;
use cairn_proto::document::v1::DocumentRef;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1::FeedPosition;
use uuid::Uuid;

use super::held::{self, Held};
use super::request::{After, max_wait};
use super::{Missed, Searcher, catch_up};
use crate::error::Error;
use crate::generations::Generation;
use crate::{kinds, partition};

/// How the index stands to a document as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// It holds the text that the document has now.
    Current(Held),
    /// It holds an older text, which no search shows any more.
    Outdated(Held),
    /// It holds nothing of it yet.
    Waiting,
    /// There is nothing to hold: the document has no text.
    Empty,
    /// It cannot hold it, for that reason.
    Failed(&'static str),
}

impl State {
    /// That of a document which its owner confirmed.
    pub(crate) async fn of(
        generation: &Generation,
        workspace: WorkspaceId,
        missed: &Missed,
    ) -> Result<Self, Error> {
        let partition = partition::of(workspace, missed.document.catalog_only);
        let found = held::held(generation.engine.as_ref(), partition, missed.id).await?;
        if let Some(held) = found {
            let is_current = held.content_hash == missed.document.content_hash;
            return Ok(if is_current { Self::Current(held) } else { Self::Outdated(held) });
        }
        // Its text tells whether there will ever be anything.
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

/// That the owner of a document does not answer.
pub(super) fn unanswered() -> Error {
    let message = "the service that keeps documents from outside does not answer now";
    Problem::unavailable(message, std::time::Duration::from_secs(5)).into()
}

impl Searcher {
    /// The hash of the text that a document has now, and how the index stands to it.
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
        // What it does not reach in that time is told by the state itself.
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
