//! The workspace of the calling token.

use cairn_chassis::status::Problem;
use cairn_proto::auth::v1 as proto;

use super::{Context, answered, present};
use crate::auth;
use crate::records::TokenWorkspace;

pub(crate) async fn of_token(context: &Context) -> Result<TokenWorkspace, Problem> {
    let identity = auth::identity_of(&context.call, &context.app).await?;
    let request = context
        .call
        .request(proto::GetWorkspaceRequest { workspace_id: identity.workspace_id()?.to_string() });
    let found = answered(context.app.upstreams.workspaces().get_workspace(request).await)?;
    let workspace = present(found.membership.and_then(|membership| membership.workspace))?;
    Ok(TokenWorkspace::read(workspace, &identity))
}
