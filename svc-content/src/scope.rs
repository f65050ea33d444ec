//! The caller and its folder scope (spec 5.6).
//!
//! A folder scope covers the listed folders and all folders below them. The root is outside of every folder scope.
//! Coverage is decided by the folders above an item, so reads return both at once.

use cairn_chassis::call::Call;
use cairn_chassis::identity::{Identity, Principal, PrincipalKind, Scope};
use cairn_chassis::status::Problem;
use cairn_proto::ids::{FolderId, WorkspaceId};

use crate::Error;
use crate::model::{ActivityId, Actor, Author};

/// The caller of a rule.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) workspace: WorkspaceId,
    pub(crate) scope: Scope,
    /// Who it is, for histories.
    pub(crate) principal: Principal,
    /// The plan of the workspace; absent for callers without an identity of the workspace.
    pub(crate) plan: Option<String>,
    /// Whether it may make memories public.
    pub(crate) may_publish: bool,
    /// The activity entry that its writes undo.
    pub(crate) undoes: Option<ActivityId>,
    /// Its call, to call another service in its name; absent for callers without an identity.
    pub(crate) call: Option<Call>,
}

impl TryFrom<Identity> for Caller {
    type Error = Problem;

    fn try_from(identity: Identity) -> Result<Self, Problem> {
        Ok(Self {
            workspace: identity.workspace_id()?,
            scope: identity.scope,
            principal: identity.principal,
            plan: identity.plan,
            may_publish: identity.may_publish,
            undoes: None,
            call: None,
        })
    }
}

impl Caller {
    /// An anonymous caller of public items: the rule that admits it checks what it returns.
    pub(crate) const fn anybody(workspace: WorkspaceId) -> Self {
        let principal = Principal { kind: PrincipalKind::Service, id: String::new(), name: String::new() };
        Self {
            workspace,
            scope: Scope::All,
            principal,
            plan: None,
            may_publish: false,
            undoes: None,
            call: None,
        }
    }

    /// This service itself, for maintenance of a workspace.
    pub(crate) fn upkeep(workspace: WorkspaceId) -> Self {
        let principal =
            Principal { kind: PrincipalKind::Service, id: "upkeep".to_owned(), name: "Cairn".to_owned() };
        Self { principal, ..Self::anybody(workspace) }
    }

    /// The principal and the channel, for the activity.
    pub(crate) fn actor(&self) -> Actor {
        let channel = self.call.as_ref().map_or("", |call| call.channel().as_str());
        Actor { author: Author::of_record(&self.principal), channel, undoes: self.undoes }
    }

    /// Whether the scope covers an item in the last of these folders, which lead to it from the root.
    pub(crate) fn covers(&self, folders: &[FolderId]) -> bool {
        match &self.scope {
            Scope::All => true,
            Scope::Folders(listed) => folders.iter().any(|folder| listed.contains(folder)),
        }
    }

    /// The listed folders; `None` when the scope is the whole workspace.
    pub(crate) fn listed(&self) -> Option<&[FolderId]> {
        match &self.scope {
            Scope::All => None,
            Scope::Folders(listed) => Some(listed),
        }
    }

    /// Checks that an existing item is in the scope.
    pub(crate) fn require(&self, kind: &str, id: impl ToString, folders: &[FolderId]) -> Result<(), Error> {
        if self.covers(folders) {
            return Ok(());
        }
        Err(Error::OutOfScope(format!("the {kind} {} is outside the folders of this token", id.to_string())))
    }

    /// Checks that something may be put into the root.
    pub(crate) fn require_root(&self) -> Result<(), Error> {
        match self.scope {
            Scope::All => Ok(()),
            Scope::Folders(_) => Err(Error::OutOfScope(
                "the root is outside the folders of this token: name one of its folders".into(),
            )),
        }
    }

    /// Checks that something may become public; `action` starts the message, such as "making a memory public".
    pub(crate) fn require_publisher(&self, action: &'static str) -> Result<(), Error> {
        if self.may_publish { Ok(()) } else { Err(Error::MayNotPublish(action)) }
    }

    /// Checks that a folder may be renamed, moved or deleted: this changes the folder above it, so that one must be
    /// in the scope. A token therefore cannot move or delete the folders that it is bound to.
    pub(crate) fn require_entry(&self, id: FolderId, folders_above: &[FolderId]) -> Result<(), Error> {
        if self.covers(folders_above) {
            return Ok(());
        }
        Err(Error::OutOfScope(format!(
            "the folder {id} is one that this token is bound to: only a workspace-wide token may rename, move or delete it"
        )))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_scope_covers_what_is_below_its_folders() {
        let [a, b, c] = [1, 2, 3].map(|number| FolderId(Uuid::from_u128(number)));
        let caller =
            Caller { scope: Scope::Folders([b].into()), ..Caller::anybody(WorkspaceId(Uuid::nil())) };
        assert!(caller.covers(&[a, b]) && caller.covers(&[a, b, c]));
        assert!(!caller.covers(&[a]) && !caller.covers(&[a, c]) && !caller.covers(&[]));
        assert!(caller.require_entry(b, &[a]).is_err());
        assert!(caller.require_entry(c, &[a, b]).is_ok());
        assert!(caller.require_root().is_err());
        let nobody = Caller { scope: Scope::Folders([].into()), ..caller };
        assert!(!nobody.covers(&[a, b, c]));
    }
}
