//! Grants: who may list and revoke them.
//!
//! As with API tokens, owners and admins of a workspace manage all of its grants, and everybody else only their own:
//! other members' grants do not exist for them.

use cairn_chassis::ambient::Ambient;
use cairn_chassis::sql::Db;
use cairn_proto::ids::{GrantId, UserId, WorkspaceId};

use crate::error::Error;
use crate::model::oauth::Grant;
use crate::store;
use crate::workspaces::require_member;

/// The rules of grants.
#[derive(Debug)]
pub(crate) struct Grants {
    db: Db,
    ambient: Ambient,
}

impl Grants {
    pub(crate) const fn new(db: Db, ambient: Ambient) -> Self {
        Self { db, ambient }
    }

    /// The grants of a workspace that the user may manage, newest first.
    pub(crate) async fn list(&self, user: UserId, workspace: WorkspaceId) -> Result<Vec<Grant>, Error> {
        let mut tx = self.db.begin_read().await?;
        let role = require_member(&mut tx, user, workspace).await?.role;
        let mut grants = store::oauth_grants::list(&mut tx, workspace, self.ambient.clock.now()).await?;
        tx.commit().await?;
        grants.retain(|grant| role.is_manager() || grant.user == user);
        Ok(grants)
    }

    /// Revokes a grant with all of its tokens.
    pub(crate) async fn revoke(
        &self,
        user: UserId,
        workspace: WorkspaceId,
        id: GrantId,
    ) -> Result<(), Error> {
        let mut tx = self.db.begin_write().await?;
        let role = require_member(&mut tx, user, workspace).await?.role;
        let owner = store::oauth_grants::find_user(tx.engine(), workspace, id).await?;
        if !owner.is_some_and(|owner| role.is_manager() || owner == user) {
            return Err(Error::NotFound("grant"));
        }
        store::oauth_grants::delete(&mut tx, workspace, id).await?;
        Ok(tx.commit().await?)
    }
}
