//! Identities for what services go on with after the call of whoever asked is over (ADR 58).

use std::sync::Arc;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Identity, PermissionSet, Principal, PrincipalKind, Role, Scope};
use cairn_chassis::sql::{Db, Tx};
use cairn_proto::ids::{GrantId, TokenId, UserId, WorkspaceId};

use crate::error::Error;
use crate::keys::{Issued, Keys};
use crate::model::has_ended;
use crate::store;

/// What a service may go on with, for whom.
pub(crate) struct Delegated {
    pub(crate) issued: Issued,
    /// What whoever asked may do now.
    pub(crate) permissions: PermissionSet,
    pub(crate) whole_workspace: bool,
    /// The role of the person.
    pub(crate) role: Role,
}

cairn_chassis::debug_fields!(Delegated { issued, permissions });

/// How far the identity of a service goes.
pub(crate) struct Reach {
    pub(crate) scope: Scope,
    pub(crate) permissions: PermissionSet,
}

/// What a principal is now.
struct Standing {
    /// Whose role caps it.
    user: UserId,
    name: String,
    granted: PermissionSet,
    scope: Scope,
    ends_at: Option<Timestamp>,
}

/// The rules of delegation.
#[derive(Debug)]
pub(crate) struct Delegation {
    pub(crate) db: Db,
    pub(crate) ambient: Ambient,
    pub(crate) keys: Arc<Keys>,
}

impl Delegation {
    /// An identity of that service in a workspace, for what that principal asked for. The checks run each time, so that a
    /// change of the principal, of its person's role or of the workspace holds at the next one.
    pub(crate) async fn issue(
        &self,
        service: &str,
        workspace: WorkspaceId,
        (kind, id): (PrincipalKind, &str),
        reach: Reach,
    ) -> Result<Delegated, Error> {
        let now = self.ambient.clock.now();
        let mut tx = self.db.begin_read().await?;
        let standing = standing(&mut tx, workspace, kind, id, now).await?.ok_or(Error::DelegationRefused)?;
        let membership = store::workspaces::find_membership(&mut tx, standing.user, workspace).await?;
        tx.commit().await?;
        let membership = membership.ok_or(Error::DelegationRefused)?;
        let identity = Identity {
            principal: Principal {
                kind: PrincipalKind::Service,
                id: service.to_owned(),
                name: standing.name,
            },
            workspace: Some(workspace),
            role: None,
            permissions: reach.permissions,
            may_publish: false,
            question_log_days: None,
            on_behalf_of: None,
            scope: reach.scope,
            plan: Some(membership.workspace.plan),
            expires_at: now,
        };
        Ok(Delegated {
            issued: self.keys.issue(identity, now, standing.ends_at)?,
            permissions: standing.granted.intersection(membership.role.permissions()),
            whole_workspace: standing.scope == Scope::All,
            role: membership.role,
        })
    }
}

async fn standing(
    tx: &mut Tx,
    workspace: WorkspaceId,
    kind: PrincipalKind,
    id: &str,
    now: Timestamp,
) -> Result<Option<Standing>, Error> {
    match kind {
        PrincipalKind::Token => {
            let Ok(id) = id.parse::<TokenId>() else { return Ok(None) };
            let found = store::tokens::find(tx.engine(), workspace, id).await?;
            let is_open = |end: Option<Timestamp>| end.is_none_or(|end| !has_ended(end, now));
            let open = found.filter(|token| token.active && is_open(token.expires_at));
            Ok(open.map(|token| Standing {
                user: token.owner,
                name: token.name,
                granted: token.permissions,
                scope: token.scope,
                ends_at: token.expires_at,
            }))
        }
        PrincipalKind::Grant => {
            let Ok(id) = id.parse::<GrantId>() else { return Ok(None) };
            let live = store::oauth_grants::list(tx, workspace, now).await?;
            Ok(live.into_iter().find(|grant| grant.id == id).map(|grant| Standing {
                user: grant.user,
                name: grant.client_name,
                granted: grant.permissions,
                scope: Scope::All,
                ends_at: Some(grant.expires_at),
            }))
        }
        PrincipalKind::User => {
            let Ok(id) = id.parse::<UserId>() else { return Ok(None) };
            Ok(store::users::find(tx, id).await?.map(|user| Standing {
                user: user.id,
                name: user.name,
                granted: PermissionSet::all(),
                scope: Scope::All,
                ends_at: None,
            }))
        }
        PrincipalKind::Service => Ok(None),
    }
}
