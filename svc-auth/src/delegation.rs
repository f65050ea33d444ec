//! Delegated identities, with which services continue work after the request that started it has ended (ADR 58).

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

/// The identity of a service on behalf of a principal.
pub(crate) struct Delegated {
    pub(crate) issued: Issued,
    /// The current permissions of the principal.
    pub(crate) permissions: PermissionSet,
    pub(crate) whole_workspace: bool,
    /// The role of the user.
    pub(crate) role: Role,
}

cairn_chassis::debug_fields!(Delegated { issued, permissions });

/// The limits of a service's identity.
pub(crate) struct Reach {
    pub(crate) scope: Scope,
    pub(crate) permissions: PermissionSet,
}

/// The current state of a principal.
struct PrincipalState {
    /// The user whose role caps the permissions.
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
    /// Issues an identity for a service, in a workspace, on behalf of a principal. Checked at every call, so a change
    /// of the principal, of its user's role or of the workspace takes effect at the next one.
    pub(crate) async fn issue(
        &self,
        service: &str,
        workspace: WorkspaceId,
        (kind, id): (PrincipalKind, &str),
        reach: Reach,
    ) -> Result<Delegated, Error> {
        let now = self.ambient.clock.now();
        let mut tx = self.db.begin_read().await?;
        let principal_state =
            principal_state(&mut tx, workspace, kind, id, now).await?.ok_or(Error::DelegationRefused)?;
        let membership = store::workspaces::find_membership(&mut tx, principal_state.user, workspace).await?;
        tx.commit().await?;
        let membership = membership.ok_or(Error::DelegationRefused)?;
        let identity = Identity {
            principal: Principal {
                kind: PrincipalKind::Service,
                id: service.to_owned(),
                name: principal_state.name,
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
            issued: self.keys.issue(identity, now, principal_state.ends_at)?,
            permissions: principal_state.granted.intersection(membership.role.permissions()),
            whole_workspace: principal_state.scope == Scope::All,
            role: membership.role,
        })
    }
}

async fn principal_state(
    tx: &mut Tx,
    workspace: WorkspaceId,
    kind: PrincipalKind,
    id: &str,
    now: Timestamp,
) -> Result<Option<PrincipalState>, Error> {
    match kind {
        PrincipalKind::Token => {
            let Ok(id) = id.parse::<TokenId>() else { return Ok(None) };
            let found = store::tokens::find(tx.engine(), workspace, id).await?;
            let is_open = |end: Option<Timestamp>| end.is_none_or(|end| !has_ended(end, now));
            let open = found.filter(|token| token.active && is_open(token.expires_at));
            Ok(open.map(|token| PrincipalState {
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
            Ok(live.into_iter().find(|grant| grant.id == id).map(|grant| PrincipalState {
                user: grant.user,
                name: grant.client_name,
                granted: grant.permissions,
                scope: Scope::All,
                ends_at: Some(grant.expires_at),
            }))
        }
        PrincipalKind::User => {
            let Ok(id) = id.parse::<UserId>() else { return Ok(None) };
            Ok(store::users::find(tx, id).await?.map(|user| PrincipalState {
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
