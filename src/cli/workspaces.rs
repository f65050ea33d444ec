//! Options about workspaces, and the operator's command for their plans.

use std::time::Duration;

use cairn_auth::PlanChanges;
use cairn_proto::ids::WorkspaceId;
use clap::{Args, Subcommand, ValueEnum};

use super::protection::StoredOptions;

pub(super) const PLAN_EXAMPLES: &str = "Examples:
  cairn plan list                           of cairn up, with its data in ./cairn-data
  cairn plan set 0199c0de-0000-7000-8000-000000000001 team
  cairn plan set 0199c0de-0000-7000-8000-000000000001 free --data /srv/cairn
  cairn plan list --database postgres://cairn@db/cairn

It may run while Cairn runs: a new plan holds within a second. Plans: free, starter, studio, team, pro, business, selfhosted.
With CAIRN_PLAN_CHANGES=operator nobody else changes them.";

/// Who may change the plan of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhoChangesPlans {
    /// Its owners.
    Owner,
    /// Only `cairn plan`.
    Operator,
}

/// What people may do with workspaces.
#[derive(Debug, Clone, Args)]
pub(crate) struct WorkspaceOptions {
    /// How many workspaces one person may own; deleted ones do not count.
    #[arg(
        long,
        env = "CAIRN_WORKSPACES_PER_PERSON",
        value_name = "COUNT",
        default_value_t = 50,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub(crate) workspaces_per_person: u32,
    /// Who changes the plan of a workspace.
    #[arg(long, env = "CAIRN_PLAN_CHANGES", value_name = "WHO", value_enum, default_value = "owner")]
    pub(crate) plan_changes: WhoChangesPlans,
    /// Seconds in which the owner of a deleted workspace may take it back, before it is removed for good: 7 days.
    #[arg(
        long,
        env = "CAIRN_WORKSPACE_GRACE_SECONDS",
        value_name = "SECONDS",
        default_value_t = cairn_auth::DEFAULT_GRACE.as_secs(),
        value_parser = clap::value_parser!(u64).range(0..=315_360_000)
    )]
    workspace_grace_seconds: u64,
}

impl WorkspaceOptions {
    /// How long a deleted workspace can be taken back.
    pub(crate) const fn workspace_grace(&self) -> Duration {
        Duration::from_secs(self.workspace_grace_seconds)
    }

    pub(crate) const fn plan_changes(&self) -> PlanChanges {
        match self.plan_changes {
            WhoChangesPlans::Owner => PlanChanges::Owner,
            WhoChangesPlans::Operator => PlanChanges::Operator,
        }
    }
}

/// What is done about plans.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Show the workspaces with their plans.
    #[command(after_help = PLAN_EXAMPLES)]
    List(StoredOptions),
    /// Change the plan of a workspace.
    #[command(after_help = PLAN_EXAMPLES)]
    Set(SetPlanOptions),
}

/// Which workspace gets which plan.
#[derive(Debug, Args)]
pub(crate) struct SetPlanOptions {
    /// The workspace's id, as `cairn plan list` shows it.
    #[arg(value_name = "WORKSPACE")]
    pub(crate) workspace: WorkspaceId,
    /// The plan that it gets.
    #[arg(value_name = "PLAN", value_parser = cairn_auth::PLANS)]
    pub(crate) plan: String,
    #[command(flatten)]
    pub(crate) stored: StoredOptions,
}
