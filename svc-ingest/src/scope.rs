//! Who asks.

use cairn_chassis::identity::{Identity, Scope};
use cairn_chassis::status::Problem;

use crate::Error;

/// The caller of a rule.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    scope: Scope,
}

impl TryFrom<Identity> for Caller {
    type Error = Problem;

    fn try_from(identity: Identity) -> Result<Self, Problem> {
        identity.workspace_id()?;
        Ok(Self { scope: identity.scope })
    }
}

impl Caller {
    #[cfg(test)]
    pub(crate) fn with_scope(scope: Scope) -> Self {
        Self { scope }
    }

    /// Checks that the caller may see what stands in no folder.
    pub(crate) fn require_whole_workspace(&self) -> Result<(), Error> {
        match self.scope {
            Scope::All => Ok(()),
            Scope::Folders(_) => Err(Error::BoundToFolders),
        }
    }
}
