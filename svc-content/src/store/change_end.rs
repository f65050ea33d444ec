//! The end of a change: it updates the usage of the workspace, appends to the feed and inserts the activity, in one
//! message.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::PendingEntries;
use cairn_chassis::sql::{Dialect, Error, Text, Tx};
use cairn_chassis::{append_entries, fetch, statements};
use cairn_proto::ids::WorkspaceId;

use super::activity::{self, insert_activity};
use super::usage::{self, add_usage};
use crate::model::{Activity, Actor, Growth, Usage};

/// The end of a change on SQLite. The parameters are the time, the number and the list of feed entries, the growth in
/// files and bytes, the author, the activity, and the entry that it undoes. The last statement returns the row; the
/// caller may append to its `WHERE`.
macro_rules! end {
    ($at:literal, $count:literal, $entries:literal, $files:literal, $bytes:literal, $author:literal, $done:literal, $undoes:literal) => {
        concat!(
            add_usage!(concat!(
                "SELECT $1, ",
                $files,
                ", ",
                $bytes,
                " WHERE ",
                $files,
                " <> 0 OR ",
                $bytes,
                " <> 0"
            )),
            "; ",
            append_entries!(sqlite, $at, $count, $entries),
            "; ",
            insert_activity!(
                sqlite,
                $at,
                "(SELECT position FROM feed_heads WHERE workspace_id = $1)",
                $author,
                $undoes,
                $done
            ),
            "; SELECT h.position, u.files, u.bytes FROM feed_heads h \
             LEFT JOIN workspace_usage u ON u.workspace_id = h.workspace_id WHERE h.workspace_id = $1"
        )
    };
}
pub(super) use end;

statements! {
    pub(super) fn statements;

    /// In the global lock order: usage, feed head, activity. `$5` and `$6` are the growth in files and bytes, `$7` to
    /// `$10` the author, `$11` the activity.
    const END: Dialect = Dialect {
        sqlite: end!("$2", "$3", "$4", "$5", "$6", "$7, $8, $9, $10", "$11", "$12"),
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

/// The parameters of the end of a change.
#[derive(Debug)]
pub(crate) struct ChangeEnd<'a> {
    pub(crate) at: Timestamp,
    pub(crate) entries: &'a PendingEntries,
    pub(crate) growth: Growth,
    pub(crate) actor: &'a Actor,
    pub(crate) done: &'a [Activity],
}

/// The result of the end of a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeEndResult {
    /// The feed position.
    pub(crate) position: i64,
    /// The usage of the workspace, if it was counted.
    pub(crate) used: Usage,
}

/// The position and the usage as the statement returns them.
pub(super) type Row = (i64, Option<i64>, Option<i64>);

impl ChangeEndResult {
    pub(super) fn read((position, files, bytes): Row) -> Self {
        Self { position, used: files.zip(bytes).map(usage::read).unwrap_or_default() }
    }
}

/// Ends a change. The rows of usage and of the feed head stay locked until the transaction ends: other writers of the
/// workspace wait.
pub(crate) async fn write(
    tx: &mut Tx,
    workspace: WorkspaceId,
    end: &ChangeEnd<'_>,
) -> Result<ChangeEndResult, Error> {
    let ChangeEnd { at, entries, growth, actor, done } = end;
    let author = &actor.author;
    let row: Row = fetch!(
        one,
        tx,
        END,
        Text(workspace),
        *at,
        entries.count,
        &entries.list,
        growth.files,
        growth.bytes,
        &author.kind,
        &author.id,
        &author.name,
        actor.channel,
        activity::rows(done)?,
        activity::undone(actor)
    )?;
    Ok(ChangeEndResult::read(row))
}
