//! Indexing results from retrieval.

use cairn_chassis::wording::{self, Unit};
use cairn_proto::ids::WorkspaceId;

use crate::context::Context;
use crate::model::Outcome;
use crate::{Error, store};

const MAX_OUTCOMES: usize = 1_000;
/// Characters of a failure message.
const MAX_FAILURE_CHARS: usize = 500;

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Indexing {
    context: Context,
}

impl Indexing {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// Stores the indexing results of ingested documents. Results may be duplicated or stale: those of another text than the current one are
    /// ignored.
    pub(crate) async fn acknowledge(&self, workspace: &str, outcomes: Vec<Outcome>) -> Result<(), Error> {
        let workspace = checked(workspace, &outcomes)?;
        if outcomes.is_empty() {
            return Ok(());
        }
        let mut outcomes: Vec<Outcome> = outcomes.into_iter().map(bounded).collect();
        outcomes.sort_unstable_by_key(|outcome| outcome.id);
        let mut tx = self.context.db.begin_write().await?;
        let now = self.context.clock.now();
        store::ingest::acknowledge(&mut tx, workspace, &outcomes, now).await?;
        Ok(tx.commit().await?)
    }

    /// The same of documents of sources.
    pub(crate) async fn acknowledge_of_sources(
        &self,
        workspace: &str,
        outcomes: Vec<Outcome>,
    ) -> Result<(), Error> {
        let workspace = checked(workspace, &outcomes)?;
        if outcomes.is_empty() {
            return Ok(());
        }
        let mut tx = self.context.db.begin_write().await?;
        let now = self.context.clock.now();
        let mut outcomes: Vec<Outcome> = outcomes.into_iter().map(bounded).collect();
        // Lock order: by id.
        outcomes.sort_unstable_by_key(|outcome| outcome.id);
        for outcome in outcomes {
            let Outcome { id, content_hash, chunks, failure } = outcome;
            let failure = failure.as_deref();
            store::source_views::acknowledge(&mut tx, workspace, id, &content_hash, chunks, failure, now)
                .await?;
        }
        Ok(tx.commit().await?)
    }
}

fn checked(workspace: &str, outcomes: &[Outcome]) -> Result<WorkspaceId, Error> {
    let workspace = workspace.parse().map_err(|_| Error::invalid("workspaceId", "invalid", wording::ID))?;
    if outcomes.len() > MAX_OUTCOMES {
        let message = wording::at_most(MAX_OUTCOMES, Unit::Documents);
        return Err(Error::invalid("documents", "out_of_range", message));
    }
    Ok(workspace)
}

fn bounded(outcome: Outcome) -> Outcome {
    let failure = outcome.failure.map(|text| text.chars().take(MAX_FAILURE_CHARS).collect());
    Outcome { failure, ..outcome }
}
