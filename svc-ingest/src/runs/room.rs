//! What the plan of a workspace has no room for: it is left out, the rest of the run goes on, and its end says so.

use cairn_chassis::limits;
use cairn_chassis::status::Violation;

use super::batch::{Batch, Write};
use super::document::Found;
use super::read::Read;
use super::worker::{Halt, Turn, Worker};
use crate::Error;
use crate::model::{Known, Run, Warning};

/// The code of the warning of a run that left something out. It stands in the run's row: a worker that goes on knows it.
const NO_ROOM: &str = "no_room";

/// What a run says that left something out.
pub(super) fn left_out(run: &Run) -> Option<&str> {
    run.warnings.iter().find(|warning| warning.code == NO_ROOM).map(|warning| warning.message.as_str())
}

impl Worker<'_> {
    /// Whether there was no room for a document of this run. New ones are then not read: each would cost a request.
    pub(super) fn is_full(&self) -> bool {
        left_out(&self.run).is_some()
    }

    /// Writes a batch, and with a turn the checkpoint. What there is no room for is left out.
    pub(super) async fn commit(&mut self, batch: Batch, turn: Option<Turn>) -> Result<(), Halt> {
        if batch.is_empty() && turn.is_none() {
            return Ok(());
        }
        match self.write(&batch, turn.as_ref()).await {
            Err(Halt::Error(Error::LimitExceeded(_))) => {}
            other => return other,
        }
        // Some of it has room: as much as comes first.
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
        self.write(&rest, turn.as_ref()).await
    }

    /// Notes a document that there is no room for: a new one is counted, of another one what it was stays.
    fn leave_out(&self, batch: &mut Batch, write: Write, refused: &[Violation]) {
        if !self.is_full() && batch.warnings.iter().all(|warning| warning.code != NO_ROOM) {
            let message = format!(
                "the plan of the workspace has no room for more ({}): what is new or has grown was left out; remove \
                 something or take a larger plan, then sync again",
                limits::said(refused)
            );
            batch.warnings.push(Warning::new(NO_ROOM, message));
        }
        match write.before {
            None => batch.counters.failed += 1,
            Some(before) => self.keep_as_it_was(batch, before),
        }
    }

    fn keep_as_it_was(&self, batch: &mut Batch, before: Known) {
        let found = Found::Unreadable {
            version: before.version.clone(),
            metadata: before.metadata.clone(),
            message: "the plan of the workspace has no room for what it is now".to_owned(),
            is_lasting: false,
        };
        let (id, listing) = (before.external_id.clone(), Some(self.run.listing));
        self.take(batch, Some(before), &id, Read::of(found), listing);
    }
}
