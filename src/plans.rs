//! `cairn plan`: the plans of workspaces, for the operator of the deployment.

use std::io::Write as _;

use anyhow::bail;
use cairn_auth::PlannedWorkspace;
use cairn_chassis::clock::{Clock as _, SystemClock};

use crate::cli::{PlanCommand, Role, SetPlanOptions, StoredOptions};
use crate::storages;

/// Runs a command about plans.
pub(crate) async fn run(command: PlanCommand) -> anyhow::Result<()> {
    match command {
        PlanCommand::List(options) => list(&options).await,
        PlanCommand::Set(options) => set(&options).await,
    }
}

async fn list(options: &StoredOptions) -> anyhow::Result<()> {
    let mut is_anything_here = false;
    for storage in storages::of(Role::Auth, &options.data, options.database.as_deref())? {
        let Some(workspaces) = cairn_auth::workspace_plans(&storage).await? else { continue };
        is_anything_here = true;
        for workspace in workspaces {
            say(&workspace)?;
        }
    }
    if is_anything_here { Ok(()) } else { bail!(storages::NONE_HERE) }
}

async fn set(options: &SetPlanOptions) -> anyhow::Result<()> {
    let SetPlanOptions { workspace, plan, stored } = options;
    let storages = storages::of(Role::Auth, &stored.data, stored.database.as_deref())?;
    if storages.is_empty() {
        bail!(storages::NONE_HERE);
    }
    for storage in storages {
        if let Some(changed) = cairn_auth::set_plan(&storage, *workspace, plan, SystemClock.now()).await? {
            return say(&changed);
        }
    }
    bail!("there is no workspace {workspace} here; `cairn plan list` shows those that there are")
}

fn say(workspace: &PlannedWorkspace) -> anyhow::Result<()> {
    let PlannedWorkspace { id, name, plan } = workspace;
    Ok(writeln!(std::io::stdout().lock(), "{id}  {plan:10}  {name}")?)
}
