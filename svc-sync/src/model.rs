//! The types that rules and store share.

mod document;
mod entry;
mod report;
mod run;
mod step;

pub(crate) use cairn_proto::domain::{ConflictPolicy, FileType, ImportProvider, RunStatus, SyncAction};

pub(crate) use self::document::{Details, Document, Prunable, TextPlace, Warning};
pub(crate) use self::entry::{Baseline, Entry, Kind};
pub(crate) use self::report::{
    Report, ReportAction, ReportIgnored, ReportItem, ReportLink, ReportPhase, ReportRoot,
};
pub(crate) use self::run::{Counters, Origin, Phase, Requester, Run, Sync};
pub(crate) use self::step::{Batch, Kept, Step, Unwritten, Write};
