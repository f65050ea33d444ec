//! Who asks.

use cairn_chassis::identity::{Identity, Scope};
use cairn_chassis::status::Problem;
use cairn_proto::ids::WorkspaceId;

use crate::Error;

/// The caller of a rule.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) workspace: WorkspaceId,
    scope: Scope,
    /// The workspace's plan.
    pub(crate) plan: Option<String>,
}

impl TryFrom<Identity> for Caller {
    type Error = Problem;

    fn try_from(identity: Identity) -> Result<Self, Problem> {
        Ok(Self { workspace: identity.workspace_id()?, scope: identity.scope, plan: identity.plan })
    }
}

impl Caller {
    #[cfg(test)]
    pub(crate) fn of_test(workspace: WorkspaceId, scope: Scope, plan: &str) -> Self {
        Self { workspace, scope, plan: Some(plan.to_owned()) }
    }

    /// Whether the caller's scope includes resources that are in no folder.
    pub(crate) const fn has_whole_workspace(&self) -> bool {
        match self.scope {
            Scope::All => true,
            Scope::Folders(_) => false,
        }
    }

    /// Checks that it may; `what` it is about begins the refusal.
    pub(crate) fn require_whole_workspace(&self, what: &'static str) -> Result<(), Error> {
        if self.has_whole_workspace() { Ok(()) } else { Err(Error::BoundToFolders(what)) }
    }
}
