//! The caller of a request.

use cairn_chassis::identity::{Identity, PrincipalKind, Scope};
use cairn_chassis::status::Problem;
use cairn_proto::ids::WorkspaceId;

use crate::Error;
use crate::model::Requester;

/// The caller of a rule.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) workspace: WorkspaceId,
    pub(crate) requester: Requester,
    /// The workspace's plan.
    pub(crate) plan: Option<String>,
}

impl TryFrom<Identity> for Caller {
    type Error = Problem;

    fn try_from(identity: Identity) -> Result<Self, Problem> {
        let workspace = identity.workspace_id()?;
        if identity.scope != Scope::All {
            return Err(Error::BoundToFolders.into());
        }
        if identity.principal.kind == PrincipalKind::Service {
            // A run is executed on behalf of the principal that requested it.
            return Err(Problem::forbidden("a service syncs nothing by itself"));
        }
        let principal = identity.principal;
        let requester = Requester { kind: principal.kind, id: principal.id, name: principal.name };
        Ok(Self { workspace, requester, plan: identity.plan })
    }
}
