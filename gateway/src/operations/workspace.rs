//! The token's workspace, and the usage of a workspace.

use cairn_chassis::call::Call;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::auth::v1 as proto;
use cairn_proto::content::v1::GetUsageRequest;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1::GetUsageRequest as GetIngestUsageRequest;

use super::person::Person;
use super::{Context, answered, present};
use crate::answers::{TokenWorkspace, Usage};
use crate::upstreams::Upstreams;

pub(crate) async fn of_token(context: &Context) -> Result<TokenWorkspace, Problem> {
    let identity = &context.identity.claims;
    let request = context
        .call
        .request(proto::GetWorkspaceRequest { workspace_id: identity.workspace_id()?.to_string() });
    let found = answered(context.upstreams.workspaces().get_workspace(request).await)?;
    let workspace = present(found.membership.and_then(|membership| membership.workspace))?;
    let usage = usage(&context.upstreams, &context.call, found.tokens).await?;
    Ok(TokenWorkspace::read(workspace, identity, usage))
}

/// The usage of a member's workspace, against the limits of its plan.
pub(crate) async fn of_member(person: &Person, workspace: WorkspaceId) -> Result<Usage, Problem> {
    let Person { upstreams, call, .. } = person;
    let request = call.request(proto::GetWorkspaceRequest { workspace_id: workspace.to_string() });
    let found = answered(upstreams.workspaces().get_workspace(request).await)?;
    usage(upstreams, call, found.tokens).await
}

/// The usage beside tokens. Figures of an unavailable service are omitted.
async fn usage(
    upstreams: &Upstreams,
    call: &Call,
    tokens: Option<proto::TokenUsage>,
) -> Result<Usage, Problem> {
    let content = match answered(upstreams.usage().get_usage(call.request(GetUsageRequest {})).await) {
        Ok(content) => Some(content),
        Err(problem) if is_away(problem.reason) => None,
        Err(problem) => return Err(problem),
    };
    let ingest = upstreams.ingest_documents().get_usage(call.request(GetIngestUsageRequest {})).await;
    let ingest = match answered(ingest) {
        Ok(ingest) => Some(ingest),
        Err(problem) if is_away(problem.reason) => None,
        Err(problem) => return Err(problem),
    };
    Ok(Usage::read(content, ingest, tokens))
}

/// Also true of a service that is older than this gateway.
pub(super) fn is_away(reason: Reason) -> bool {
    matches!(reason, Reason::Unavailable | Reason::DeadlineExceeded | Reason::Unimplemented)
}
