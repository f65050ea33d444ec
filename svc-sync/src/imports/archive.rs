//! Archives of runs: stored in pieces, for whichever process executes the run, and read by a child process.

use bytes::Bytes;
use cairn_import::Counts;
use cairn_proto::ids::{SyncRunId, WorkspaceId};

use crate::context::Context;
use crate::reading::{Failure, Finding, Frame, Item, Query, Reader, Scratch, Source};
use crate::{Error, store};

const PIECE_BYTES: usize = 1024 * 1024;

/// The plan of an archive.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Planned {
    /// The name of the import's own folder.
    pub(crate) root: String,
    pub(crate) counts: Counts,
    pub(crate) items: Vec<Item>,
    pub(crate) findings: Vec<Finding>,
}

/// Has a child process plan an archive.
pub(crate) async fn plan(scratch: &Scratch, reader: &Reader, of: &Source) -> Result<Planned, Failure> {
    let mut answers = scratch.ask(reader, of, Query::Plan).await?;
    let mut planned =
        Planned { root: String::new(), counts: Counts::default(), items: Vec::new(), findings: Vec::new() };
    while let Some(told) = answers.next().await? {
        match told {
            Frame::Root { name, counts } => (planned.root, planned.counts) = (name, counts),
            Frame::Items { .. } => planned.items.extend(answers.body::<Vec<Item>>().await?),
            Frame::Findings { .. } => planned.findings.extend(answers.body::<Vec<Finding>>().await?),
            Frame::Part { .. }
            | Frame::Asset { .. }
            | Frame::File { .. }
            | Frame::Records { .. }
            | Frame::Refused { .. }
            | Frame::End => return Err(Failure::Lost),
        }
    }
    Ok(planned)
}

/// Stores the archive of a run that is about to be created. If that fails, a sweep removes the pieces.
pub(super) async fn keep(
    context: &Context,
    workspace: WorkspaceId,
    run: SyncRunId,
    scratch: &Scratch,
) -> Result<(), Error> {
    let (mut place, mut at) = (0, 0);
    loop {
        let piece = scratch.read(at, PIECE_BYTES).await.map_err(Error::Scratch)?;
        if piece.is_empty() {
            return Ok(());
        }
        let mut tx = context.db.begin_write().await?;
        store::details::insert_piece(&mut tx, workspace, run, place, &piece).await?;
        tx.commit().await?;
        place += 1;
        at += piece.len() as u64;
    }
}

/// Copies the archive of a run to the local disk.
pub(crate) async fn fetch(
    context: &Context,
    workspace: WorkspaceId,
    run: SyncRunId,
) -> Result<Scratch, Error> {
    let mut scratch = Scratch::new(context.scratch.clone()).await.map_err(Error::Scratch)?;
    for place in 0.. {
        let wanted = std::iter::once(place).collect();
        let piece = store::details::pieces(&context.db, workspace, run, &wanted).await?.pop();
        let Some((_, piece)) = piece else { break };
        scratch.push(Bytes::from(piece)).await.map_err(Error::Scratch)?;
    }
    if scratch.length() == 0 {
        return Err(Error::ArchiveGone);
    }
    scratch.close_volume();
    Ok(scratch)
}
