//! Invitations of people without an account: a secret, in a link that somebody hands over, makes the account and the
//! membership, once.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::Role;
use cairn_chassis::sql::{Db, Tx};
use cairn_proto::ids::{InvitationId, UserId, WorkspaceId};

use crate::error::Error;
use crate::passwords::{self, Passwords};
use crate::sessions::{Sessions, SignedIn};
use crate::users::{NewUser, User};
use crate::workspaces::{Membership, require_manager, require_member};
use crate::{names, secrets, store};

/// An invitation that nobody accepts ends after this time.
pub(crate) const LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// An open invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invitation {
    /// The invitation, which is not the secret.
    pub(crate) id: InvitationId,
    /// What it opens.
    pub(crate) workspace: WorkspaceId,
    /// Who is invited, folded.
    pub(crate) email: String,
    /// The role of whoever accepts.
    pub(crate) role: Role,
    /// Who made it.
    pub(crate) inviter: User,
    /// When it was made.
    pub(crate) created_at: Timestamp,
    /// When it ends.
    pub(crate) expires_at: Timestamp,
}

/// An invitation as its holder may see it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) invitation: Invitation,
    pub(crate) workspace_name: String,
    /// Whether somebody has an account with the email by now.
    pub(crate) has_account: bool,
}

/// What is left of an invitation that was used up.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) workspace: WorkspaceId,
    pub(crate) email: String,
    pub(crate) role: Role,
}

/// The rules of invitations; [`crate::members`] makes them.
#[derive(Debug)]
pub(crate) struct Invitations {
    pub(crate) db: Db,
    pub(crate) ambient: Ambient,
    pub(crate) passwords: Passwords,
    pub(crate) sessions: Arc<Sessions>,
}

impl Invitations {
    /// The open invitations of a workspace, newest first.
    pub(crate) async fn list(&self, user: UserId, workspace: WorkspaceId) -> Result<Vec<Invitation>, Error> {
        let mut tx = self.db.begin_read().await?;
        let held = require_member(&mut tx, user, workspace).await?.role;
        require_manager(held, "listing invitations")?;
        let open = store::invitations::list(&mut tx, workspace, self.ambient.clock.now()).await?;
        tx.commit().await?;
        Ok(open)
    }

    /// Takes an invitation back.
    pub(crate) async fn delete(
        &self,
        user: UserId,
        workspace: WorkspaceId,
        id: InvitationId,
    ) -> Result<(), Error> {
        let mut tx = self.db.begin_write().await?;
        let held = require_member(&mut tx, user, workspace).await?.role;
        require_manager(held, "taking an invitation back")?;
        if !store::invitations::delete(&mut tx, workspace, id).await? {
            return Err(Error::NotFound("invitation"));
        }
        Ok(tx.commit().await?)
    }

    /// What the holder of a secret is invited to.
    pub(crate) async fn look_up(&self, secret: &str) -> Result<Found, Error> {
        let now = self.ambient.clock.now();
        let found = store::invitations::find(&self.db, &secrets::digest(secret), now).await?;
        found.ok_or(Error::InvitationRefused)
    }

    /// Makes the account and the membership, and signs the new person in.
    pub(crate) async fn accept(&self, secret: &str, name: &str, password: &str) -> Result<SignedIn, Error> {
        // First: a secret that opens nothing must not cost a password hash.
        if self.look_up(secret).await?.has_account {
            return Err(Error::HasAccount);
        }
        let mut violations = Vec::new();
        let name = names::check("name", name, &mut violations);
        passwords::check("password", password, &mut violations);
        if !violations.is_empty() {
            return Err(Error::Invalid(violations));
        }
        let password_hash = self.passwords.hash(password, &*self.ambient.entropy).await?;

        let mut tx = self.db.begin_write().await?;
        let taken = self.take(&mut tx, secret).await?;
        let user = User { id: self.ambient.ids.next(), email: taken.email.clone(), name };
        let account = NewUser {
            id: user.id,
            email: &user.email,
            name: &user.name,
            password_hash: Some(&password_hash),
        };
        let made = store::users::insert(&mut tx, &account, self.ambient.clock.now()).await;
        made.map_err(|error| if error.is_unique_violation() { Error::HasAccount } else { error.into() })?;
        self.join_in(&mut tx, &taken, user.id).await?;
        tx.commit().await?;
        self.sessions.open(user).await
    }

    /// Makes a signed-in person a member, if it was that person who was invited.
    pub(crate) async fn join(&self, user: UserId, secret: &str) -> Result<Membership, Error> {
        let mut tx = self.db.begin_write().await?;
        let user = store::users::find(&mut tx, user).await?.ok_or(Error::SessionRefused)?;
        let taken = self.take(&mut tx, secret).await?;
        if taken.email != user.email {
            return Err(Error::InvitedAnother);
        }
        let membership = self.join_in(&mut tx, &taken, user.id).await?;
        tx.commit().await?;
        Ok(membership)
    }

    /// Forgets the invitations that have ended.
    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        Ok(store::invitations::delete_ended(&self.db, self.ambient.clock.now()).await?)
    }

    async fn take(&self, tx: &mut Tx, secret: &str) -> Result<Taken, Error> {
        let now = self.ambient.clock.now();
        let taken = store::invitations::take(tx, &secrets::digest(secret), now).await?;
        taken.ok_or(Error::InvitationRefused)
    }

    /// Somebody who is a member already stays what they are.
    async fn join_in(&self, tx: &mut Tx, taken: &Taken, user: UserId) -> Result<Membership, Error> {
        store::members::insert(tx, taken.workspace, user, taken.role, self.ambient.clock.now()).await?;
        // None when the workspace was deleted meanwhile.
        let joined = store::workspaces::find_membership(tx, user, taken.workspace).await?;
        joined.ok_or(Error::InvitationRefused)
    }
}
