//! What a token sees, for a person who looks: an identity of that person, cut to what the token may read.

use cairn_chassis::identity::{Identity, Permission, PermissionSet, Principal, PrincipalKind, Scope};
use cairn_proto::ids::{TokenId, UserId, WorkspaceId};

use super::{Tokens, draft, require_manageable};
use crate::error::Error;
use crate::keys::Issued;
use crate::store;
use crate::workspaces::require_member;

/// Which token.
#[derive(Debug)]
pub(crate) enum Seen {
    /// One that there is.
    Made(TokenId),
    /// One that could be made; permissions that the contract does not have are `None`.
    Wished { permissions: Vec<Option<Permission>>, folders: Option<Vec<String>> },
}

/// An identity that sees what a token sees.
pub(crate) struct View {
    pub(crate) issued: Issued,
    /// What the token may do now, as far as the person may do it, too.
    pub(crate) permissions: PermissionSet,
    pub(crate) scope: Scope,
}

cairn_chassis::debug_fields!(View { permissions, scope });

impl Tokens {
    /// A read-only identity of a member that sees what a token of theirs sees; owners and admins may look at any. It never
    /// sees what the member does not see: a member sees the whole workspace, and the token's folders are of it.
    pub(crate) async fn view(&self, user: UserId, workspace: WorkspaceId, seen: Seen) -> Result<View, Error> {
        let mut tx = self.db.begin_read().await?;
        let membership = require_member(&mut tx, user, workspace).await?;
        let person = store::users::find(&mut tx, user).await?.ok_or(Error::SessionRefused)?;
        let (granted, scope) = match seen {
            Seen::Made(id) => {
                let token = require_manageable(&mut tx, user, workspace, id).await?;
                let owner = store::workspaces::find_membership(&mut tx, token.owner, workspace).await?;
                let allowed = owner.map(|owner| owner.role.permissions()).unwrap_or_default();
                (token.permissions.intersection(allowed), token.scope)
            }
            Seen::Wished { permissions, folders } => {
                (permissions.into_iter().flatten().collect(), draft::wished_scope(folders.as_deref())?)
            }
        };
        tx.commit().await?;
        let permissions = granted.intersection(membership.role.permissions());
        let reading: PermissionSet = [Permission::Read].into_iter().collect();
        let now = self.ambient.clock.now();
        let identity = Identity {
            principal: Principal { kind: PrincipalKind::User, id: user.to_string(), name: person.name },
            workspace: Some(workspace),
            // What only a person with a role may see, a token does not.
            role: None,
            permissions: permissions.intersection(reading),
            may_publish: false,
            scope: scope.clone(),
            plan: Some(membership.workspace.plan),
            // Nothing is recorded while one sees as a token.
            question_log_days: None,
            on_behalf_of: None,
            expires_at: now,
        };
        Ok(View { issued: self.keys.issue(identity, now, None)?, permissions, scope })
    }
}
