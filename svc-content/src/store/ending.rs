//! What a change ends with: it counts what is kept, tells the feed and notes what was done.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Unappended;
use cairn_chassis::sql::{Dialect, Error, Text, Tx};
use cairn_chassis::{append_entries, fetch, statements};
use cairn_proto::ids::WorkspaceId;

use super::activity::{self, insert_activity};
use super::usage::{self, add_usage};
use crate::model::{Activity, Actor, Growth, Usage};

statements! {
    pub(super) fn statements;

    /// All of it in one message, in the order in which rows are locked everywhere. $5 and $6 are what is kept more, $7 to $10 who
    /// does it, $11 what was done.
    const END: Dialect = Dialect {
        sqlite: concat!(
            add_usage!("SELECT $1, $5, $6 WHERE $5 <> 0 OR $6 <> 0"),
            "; ",
            append_entries!(sqlite),
            "; ",
            insert_activity!(
                sqlite,
                "(SELECT position FROM feed_heads WHERE workspace_id = $1)",
                "$7, $8, $9, $10",
                "$12",
                "$11"
            ),
            "; SELECT h.position, u.files, u.bytes FROM feed_heads h \
             LEFT JOIN workspace_usage u ON u.workspace_id = h.workspace_id WHERE h.workspace_id = $1"
        ),
        postgres: concat!(
            "WITH kept AS (",
            add_usage!(
                "SELECT CAST($1 AS TEXT), CAST($5 AS BIGINT), CAST($6 AS BIGINT) \
                 WHERE CAST($5 AS BIGINT) <> 0 OR CAST($6 AS BIGINT) <> 0"
            ),
            " RETURNING files, bytes), ",
            append_entries!(postgres, "kept"),
            ", noted AS (",
            insert_activity!(postgres, "head.position", "$7, $8, $9, $10", "$12", "head, ", "$11"),
            ") SELECT head.position, kept.files, kept.bytes FROM head LEFT JOIN kept ON TRUE"
        ),
    };
}

/// What a change ends with.
#[derive(Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) at: Timestamp,
    pub(crate) told: &'a Unappended,
    pub(crate) growth: Growth,
    pub(crate) actor: &'a Actor,
    pub(crate) done: &'a [Activity],
}

/// Where a change has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    /// Of the feed.
    pub(crate) position: i64,
    /// What the workspace keeps, where that was counted.
    pub(crate) used: Usage,
}

/// Counts, tells and notes. Until the transaction ends, other writers of the workspace wait.
pub(crate) async fn write(tx: &mut Tx, workspace: WorkspaceId, ending: &Ending<'_>) -> Result<Ended, Error> {
    let Ending { at, told, growth, actor, done } = ending;
    let author = &actor.author;
    let (position, files, bytes): (i64, Option<i64>, Option<i64>) = fetch!(
        one,
        tx,
        END,
        Text(workspace),
        *at,
        told.count,
        &told.list,
        growth.files,
        growth.bytes,
        &author.kind,
        &author.id,
        &author.name,
        actor.channel,
        activity::rows(done)?,
        activity::undone(actor)
    )?;
    let used = files.zip(bytes).map(usage::read).unwrap_or_default();
    Ok(Ended { position, used })
}
