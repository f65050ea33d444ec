//! The workspace overview tool.

use cairn_chassis::status::Problem;
use serde::Deserialize;
use utoipa::ToSchema;

use super::arguments::Arguments;
use super::outcome::Outcome;
use super::{Hints, Terms, Tool};
use crate::answers::WorkspaceOverview;
use crate::operations::{Context, overview};
use crate::schema::{Input as _, inlined, inputs};

inputs!(GetWorkspaceOverview);

/// Takes nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GetWorkspaceOverview {}

pub(super) static GET_WORKSPACE_OVERVIEW: Tool = Tool {
    name: "get_workspace_overview",
    title: "Look at the workspace",
    description: "See what the workspace holds, in one call: files, folders and those at the top, whether the index is \
        current, what changed last and by whom, memories with when to use them, databases with their record counts, \
        connected sources. Use it once at the beginning. Takes no arguments: {}. For content use search_context, for a \
        memory get_memory.",
    hints: Hints::READ,
    terms: Terms::LIST,
    input: GetWorkspaceOverview::contract,
    output: Some(inlined::<WorkspaceOverview>),
    recovery: "call list_folders with {} to see the folders that there are.",
    run: |context, arguments| Box::pin(run_overview(context, arguments)),
};

async fn run_overview(context: &Context, arguments: Arguments) -> Result<Outcome, Problem> {
    arguments.read::<GetWorkspaceOverview>()?;
    Ok(Outcome::answer(&overview::get(context).await?))
}
