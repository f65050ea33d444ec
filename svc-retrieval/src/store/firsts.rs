//! When each milestone was first reached in a workspace.

use std::collections::BTreeMap;

use cairn_chassis::call::Channel;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::on_db;
use cairn_chassis::sql::{Dialect, Error, Text, Tx};
use cairn_proto::ids::WorkspaceId;
use serde_json::json;

use crate::analytics::{First, FirstKey, Milestone, Operation};

macro_rules! upsert {
    ($select:literal) => {
        concat!(
            "INSERT INTO retrieval_firsts (workspace_id, channel, milestone, at, operation) ",
            $select,
            " ON CONFLICT (workspace_id, channel, milestone) DO UPDATE SET at = excluded.at, \
             operation = excluded.operation WHERE excluded.at < retrieval_firsts.at"
        )
    };
}

const UPSERT: Dialect = Dialect {
    sqlite: upsert!(
        "SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each($1) WHERE true"
    ),
    postgres: upsert!(
        "SELECT r ->> 0, r ->> 1, r ->> 2, CAST(r ->> 3 AS BIGINT), r ->> 4 \
         FROM jsonb_array_elements(CAST(CAST($1 AS TEXT) AS JSONB)) AS list (r)"
    ),
};

const LIST: &str = "SELECT channel, milestone, at, operation FROM retrieval_firsts WHERE workspace_id = $1 ORDER BY at, channel";

#[cfg(test)]
pub(super) fn statements() -> Vec<cairn_chassis::sql::Statement> {
    vec![UPSERT.into(), LIST.into()]
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    channel: String,
    milestone: String,
    at: Timestamp,
    operation: String,
}

/// A milestone with the time when it was first reached.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) channel: String,
    pub(crate) milestone: String,
    pub(crate) at: Timestamp,
    pub(crate) operation: String,
}

impl Reached {
    pub(crate) fn is(&self, milestone: Milestone) -> bool {
        self.milestone == milestone.as_str()
    }

    pub(crate) fn is_by(&self, channel: Channel) -> bool {
        self.channel == channel.as_str()
    }
}

/// Records milestones; an earlier time is kept.
pub(crate) async fn record(tx: &mut Tx, firsts: &BTreeMap<FirstKey, First>) -> Result<(), Error> {
    let rows = firsts.iter().map(|(key, first)| {
        let operation = first.operation.map_or("", Operation::as_str);
        let (channel, milestone) = (key.channel.as_str(), key.milestone.as_str());
        json!([key.workspace, channel, milestone, first.at.as_micros(), operation])
    });
    super::write(tx, UPSERT, rows.collect()).await
}

/// All milestones, earliest first.
pub(crate) async fn list(tx: &mut Tx, workspace: WorkspaceId) -> Result<Vec<Reached>, Error> {
    let rows: Vec<Row> = on_db!(tx, |c| sqlx::query_as(LIST).bind(Text(workspace)).fetch_all(c).await)?;
    let reached = |row: Row| Reached {
        channel: row.channel,
        milestone: row.milestone,
        at: row.at,
        operation: row.operation,
    };
    Ok(rows.into_iter().map(reached).collect())
}
