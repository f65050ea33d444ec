//! Views as a token: an identity of the current user, restricted to what the token can read.

use cairn_chassis::identity::{Identity, Permission, PermissionSet, Principal, PrincipalKind, Scope};
use cairn_proto::ids::{TokenId, UserId, WorkspaceId};

use super::{Tokens, draft, require_manageable};
use crate::error::Error;
use crate::keys::Issued;
use crate::store;
use crate::workspaces::require_member;

/// The token whose view is requested.
#[derive(Debug)]
pub(crate) enum ViewTarget {
    /// An existing token.
    Token(TokenId),
    /// A hypothetical token; unknown permissions are `None`.
    Draft { permissions: Vec<Option<Permission>>, folders: Option<Vec<String>> },
}

/// An identity that sees what a token sees.
pub(crate) struct View {
    pub(crate) issued: Issued,
    /// The permissions of the token, capped by those of the user.
    pub(crate) permissions: PermissionSet,
    pub(crate) scope: Scope,
}

cairn_chassis::debug_fields!(View { permissions, scope });

impl Tokens {
    /// A read-only identity of a member that sees what one of their tokens sees; owners and admins may view as any. It
    /// never exceeds what the member sees: a member sees the whole workspace, of which the token's folders are a part.
    pub(crate) async fn view(
        &self,
        user: UserId,
        workspace: WorkspaceId,
        target: ViewTarget,
    ) -> Result<View, Error> {
        let mut tx = self.db.begin_read().await?;
        let membership = require_member(&mut tx, user, workspace).await?;
        let person = store::users::find(&mut tx, user).await?.ok_or(Error::SessionRefused)?;
        let (granted, scope) = match target {
            ViewTarget::Token(id) => {
                let token = require_manageable(&mut tx, user, workspace, id).await?;
                let owner = store::workspaces::find_membership(&mut tx, token.owner, workspace).await?;
                let allowed = owner.map(|owner| owner.role.permissions()).unwrap_or_default();
                (token.permissions.intersection(allowed), token.scope)
            }
            ViewTarget::Draft { permissions, folders } => {
                (permissions.into_iter().flatten().collect(), draft::draft_scope(folders.as_deref())?)
            }
        };
        tx.commit().await?;
        let permissions = granted.intersection(membership.role.permissions());
        let reading: PermissionSet = [Permission::Read].into_iter().collect();
        let now = self.ambient.clock.now();
        let identity = Identity {
            principal: Principal { kind: PrincipalKind::User, id: user.to_string(), name: person.name },
            workspace: Some(workspace),
            // Views that require a role are not available to tokens.
            role: None,
            permissions: permissions.intersection(reading),
            may_publish: false,
            scope: scope.clone(),
            plan: Some(membership.workspace.plan),
            // Nothing is recorded while viewing as a token.
            question_log_days: None,
            on_behalf_of: None,
            expires_at: now,
        };
        Ok(View { issued: self.keys.issue(identity, now, None)?, permissions, scope })
    }
}
