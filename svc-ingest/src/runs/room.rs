//! Documents beyond the limits of the plan: they are left out, the run continues, and then fails.

use cairn_chassis::limits;
use cairn_chassis::status::Violation;

use super::batch::{Batch, Write};
use super::document::Finding;
use super::read::Read;
use super::worker::{Checkpoint, Halt, Worker};
use crate::Error;
use crate::model::{Run, StoredDocument, Warning};

/// The warning code of a run that left something out. It is stored with the run, for workers that resume it.
const NO_ROOM: &str = "no_room";

/// The warning of a run that left something out.
pub(super) fn left_out(run: &Run) -> Option<&str> {
    run.warnings.iter().find(|warning| warning.code == NO_ROOM).map(|warning| warning.message.as_str())
}

impl Worker<'_> {
    /// Whether a document of this run was left out. New documents are then not fetched, which saves their requests.
    pub(super) fn is_full(&self) -> bool {
        left_out(&self.run).is_some()
    }

    /// Writes a batch, and the checkpoint if there is one. Leaves out documents beyond the limits.
    pub(super) async fn commit(&mut self, batch: Batch, checkpoint: Option<Checkpoint>) -> Result<(), Halt> {
        if batch.is_empty() && checkpoint.is_none() {
            return Ok(());
        }
        match self.write(&batch, checkpoint.as_ref()).await {
            Err(Halt::Error(Error::LimitExceeded(_))) => {}
            other => return other,
        }
        // One document at a time, as far as there is room.
        let (writes, mut rest) = batch.split();
        for one in writes {
            match self.write(&one, None).await {
                Err(Halt::Error(Error::LimitExceeded(refused))) => {
                    for write in one.writes {
                        self.leave_out(&mut rest, write, &refused);
                    }
                }
                other => other?,
            }
        }
        self.write(&rest, checkpoint.as_ref()).await
    }

    /// Leaves out a document: a new one counts as failed, a known one keeps its previous content.
    fn leave_out(&self, batch: &mut Batch, write: Write, refused: &[Violation]) {
        if !self.is_full() && batch.warnings.iter().all(|warning| warning.code != NO_ROOM) {
            let message = format!(
                "the plan of the workspace has no room for more ({}): what is new or has grown was left out; remove \
                 something or take a larger plan, then sync again",
                limits::summary(refused)
            );
            batch.warnings.push(Warning::new(NO_ROOM, message));
        }
        match write.before {
            None => batch.counters.failed += 1,
            Some(before) => self.keep_as_it_was(batch, before),
        }
    }

    fn keep_as_it_was(&self, batch: &mut Batch, before: StoredDocument) {
        let found = Finding::Unreadable {
            version: before.version.clone(),
            metadata: before.metadata.clone(),
            message: "the plan of the workspace has no room for what it is now".to_owned(),
            is_lasting: false,
        };
        let (id, listing) = (before.external_id.clone(), Some(self.run.listing));
        self.take(batch, Some(before), &id, Read::of(found), listing);
    }
}
