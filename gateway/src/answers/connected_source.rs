//! Connections of sources, and their runs (contract, "Connected sources").

use cairn_chassis::status::Problem;
use cairn_proto::domain::{SourceRunKind, SourceRunStatus};
use cairn_proto::ingest::v1::{self as proto, Source, SourceNote};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::optional_time;

/// A source with how it is connected. Its credentials are in no answer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConnectedSource {
    #[serde(flatten)]
    pub(crate) source: Source,
    /// In the provider's own fields.
    #[schema(value_type = Object)]
    pub(crate) settings: Value,
    /// Whose the credentials are, as the provider says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<String>,
    /// The end of the secret, so that two can be told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) credential_hint: Option<String>,
    /// How often it is read.
    #[schema(examples("1h"))]
    pub(crate) every: String,
    /// Left out when it is not read by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) next_sync_at: Option<String>,
    pub(crate) paused: bool,
    /// Left out when the provider may be asked now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) waiting_until: Option<String>,
    pub(crate) budget: SourceBudget,
    /// The newest run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<SourceRun>,
}

/// Requests of live calls in a day (UTC).
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourceBudget {
    pub(crate) limit: u32,
    pub(crate) used: u32,
    pub(crate) remaining: u32,
}

impl TryFrom<proto::ConnectedSource> for ConnectedSource {
    type Error = Problem;

    fn try_from(connected: proto::ConnectedSource) -> Result<Self, Problem> {
        let lacks = |what: &str| Problem::internal(format!("a connected source lacks its {what}"));
        let budget = connected.budget.ok_or_else(|| lacks("budget"))?;
        Ok(Self {
            source: connected.source.ok_or_else(|| lacks("record"))?,
            settings: serde_json::from_slice(&connected.settings).map_err(|_| lacks("settings"))?,
            account: connected.account,
            credential_hint: connected.credential_hint,
            every: connected.every,
            next_sync_at: optional_time(connected.next_sync_at.as_ref()),
            paused: connected.paused,
            waiting_until: optional_time(connected.waiting_until.as_ref()),
            budget: SourceBudget { limit: budget.limit, used: budget.used, remaining: budget.remaining },
            run: connected.run.map(TryInto::try_into).transpose()?,
        })
    }
}

/// One reading of a source.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceRun {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    pub(crate) kind: SourceRunKind,
    pub(crate) status: SourceRunStatus,
    /// Whether the whole listing was read; nothing is removed by absence otherwise.
    pub(crate) complete: bool,
    pub(crate) counters: SourceRunCounters,
    pub(crate) warnings: Vec<SourceNote>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[schema(required = true)]
    pub(crate) started_at: Option<String>,
    #[schema(required = true)]
    pub(crate) finished_at: Option<String>,
    /// Of a run that waits because the provider asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) waiting_until: Option<String>,
}

/// Documents; operations are requests to the provider.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourceRunCounters {
    pub(crate) listed: u64,
    pub(crate) fetched: u64,
    pub(crate) unchanged: u64,
    pub(crate) created: u64,
    pub(crate) updated: u64,
    pub(crate) removed: u64,
    pub(crate) failed: u64,
    pub(crate) operations: u64,
}

impl TryFrom<proto::SourceRun> for SourceRun {
    type Error = Problem;

    fn try_from(run: proto::SourceRun) -> Result<Self, Problem> {
        let unknown = || Problem::internal("a run of a source has an unknown kind or status");
        let counters = run.counters.unwrap_or_default();
        Ok(Self {
            id: run.id,
            kind: SourceRunKind::from_number(run.kind).ok_or_else(unknown)?,
            status: SourceRunStatus::from_number(run.status).ok_or_else(unknown)?,
            complete: run.complete,
            counters: SourceRunCounters {
                listed: counters.listed,
                fetched: counters.fetched,
                unchanged: counters.unchanged,
                created: counters.created,
                updated: counters.updated,
                removed: counters.removed,
                failed: counters.failed,
                operations: counters.operations,
            },
            warnings: run.warnings,
            error: run.error,
            started_at: optional_time(run.started_at.as_ref()),
            finished_at: optional_time(run.finished_at.as_ref()),
            waiting_until: optional_time(run.waiting_until.as_ref()),
        })
    }
}

/// What a provider says to settings and credentials.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckedSource {
    pub(crate) ok: bool,
    /// Whose the credentials are, as the provider says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<String>,
    pub(crate) message: String,
}

impl From<proto::CheckSourceResponse> for CheckedSource {
    fn from(checked: proto::CheckSourceResponse) -> Self {
        Self { ok: checked.ok, account: checked.account, message: checked.message }
    }
}
