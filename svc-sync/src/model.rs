//! What rules and store speak of.

mod document;
mod entry;
mod run;
mod step;

pub(crate) use cairn_proto::domain::{ConflictPolicy, FileType, RunStatus, SyncAction};

pub(crate) use self::document::{Details, Document, Prunable, TextPlace, Warning};
pub(crate) use self::entry::{Entry, Kind, Memory};
pub(crate) use self::run::{Asker, Counters, Phase, Run};
pub(crate) use self::step::{Batch, Kept, Step, Still, Write};
