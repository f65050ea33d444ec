//! Retries failed documents on request, ahead of their backoff.

use cairn_chassis::feed::Kind;
use cairn_chassis::sql::Tx;
use cairn_proto::domain::{SourceMode, SourceRunStatus};
use cairn_proto::ids::DocumentId;

use super::{SOURCES, Sources};
use crate::model::{DocumentStatus, ListedDocument, Run, Source, Stage};
use crate::scope::Caller;
use crate::work::Work;
use crate::{Error, store};

impl Sources {
    /// Retries a failed document at once. Does nothing for documents that have not failed; repeated requests are coalesced.
    pub(crate) async fn retry_document(&self, caller: &Caller, id: &str) -> Result<ListedDocument, Error> {
        caller.require_whole_workspace(SOURCES)?;
        let (db, workspace) = (self.db(), caller.workspace);
        let no_document = || Error::NoDocumentHere(id.to_owned());
        let parsed: DocumentId = id.parse().map_err(|_| no_document())?;
        let document = store::source_views::one(db, workspace, parsed).await?.ok_or_else(no_document)?;
        if document.status != DocumentStatus::Failed {
            return Ok(document);
        }
        self.learn_plan(caller).await?;
        let mut work = Work::without_limits(&self.runner.context, workspace).await?;
        // Lock order: the source's row first.
        let held = store::sources::get_for_update(work.tx(), workspace, document.source).await?;
        let mut source = held.ok_or_else(no_document)?;
        if store::source_documents::index_again(work.tx(), workspace, parsed).await? {
            work.publish_upsert(Kind::SourceDocument, parsed);
        }
        if store::source_documents::try_first(work.tx(), workspace, source.id, parsed).await? {
            require_readable(&source)?;
            self.queue_retry(work.tx(), &mut source).await?;
        }
        work.commit().await?;
        self.runner.wake();
        store::source_views::one(db, workspace, parsed).await?.ok_or_else(no_document)
    }

    /// Ensures that a run will start with the retries: the queued one, or a new one, which starts at once or right after the current one.
    async fn queue_retry(&self, tx: &mut Tx, source: &mut Source) -> Result<(), Error> {
        if self.runner.queue(tx, source, false).await?.is_some() {
            return Ok(());
        }
        let open = store::source_runs::open(tx, source.workspace, source.id).await?;
        let begins_with_it = |run: &Run| run.state == SourceRunStatus::Queued && run.stage == Stage::Retries;
        if open.as_ref().is_some_and(begins_with_it) {
            return Ok(());
        }
        let now = self.now();
        source.next_run_at = Some(source.next_run_at.map_or(now, |at| at.min(now)));
        Ok(store::sources::set_next(tx, source).await?)
    }
}

/// Checks that a run would read the document; otherwise a queued retry would never happen.
fn require_readable(source: &Source) -> Result<(), Error> {
    let message = if source.mode != SourceMode::Indexed {
        "only titles of this source are kept: the next run lists the document anew"
    } else if source.paused {
        "the source is paused: resume it, which queues a run"
    } else if source.needs_credentials {
        "the source needs new credentials: replace them, which queues a run"
    } else {
        return Ok(());
    };
    Err(Error::RunNotStartable(message))
}
