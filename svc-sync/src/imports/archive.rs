//! Archives of runs: kept in pieces, so that whoever carries a run out has it, and read by a child.

use bytes::Bytes;
use cairn_import::Counts;
use cairn_proto::ids::{SyncRunId, WorkspaceId};

use crate::context::Context;
use crate::reading::{Failure, Finding, Item, Reader, Scratch, Source, Told, What};
use crate::{Error, store};

const PIECE_BYTES: usize = 1024 * 1024;

/// What becomes of an archive.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Planned {
    /// The name of the import's own folder.
    pub(crate) root: String,
    pub(crate) counts: Counts,
    pub(crate) items: Vec<Item>,
    pub(crate) findings: Vec<Finding>,
}

/// Asks what becomes of an archive.
pub(crate) async fn plan(scratch: &Scratch, reader: &Reader, of: &Source) -> Result<Planned, Failure> {
    let mut answers = scratch.ask(reader, of, What::Plan).await?;
    let mut planned =
        Planned { root: String::new(), counts: Counts::default(), items: Vec::new(), findings: Vec::new() };
    while let Some(told) = answers.next().await? {
        match told {
            Told::Root { name, counts } => (planned.root, planned.counts) = (name, counts),
            Told::Items { .. } => planned.items.extend(answers.body::<Vec<Item>>().await?),
            Told::Findings { .. } => planned.findings.extend(answers.body::<Vec<Finding>>().await?),
            Told::Part { .. }
            | Told::Asset { .. }
            | Told::File { .. }
            | Told::Records { .. }
            | Told::Refused { .. }
            | Told::End => return Err(Failure::Lost),
        }
    }
    Ok(planned)
}

/// Keeps the archive of a run that is about to be there. What is left of one that never came goes with the sweep.
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

/// The archive of a run, on our disk.
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
