//! Invitations: nobody belongs to a workspace before they accept.
//!
//! An invitation has a secret in the link that is shown to whoever made it, and another one in the link that is mailed to
//! the email that was invited. Both open it, once. Only the mailed one proves the email. A person whose email is verified
//! needs neither: they see what waits for them, and accept or decline it.

use std::sync::Arc;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::sql::{Db, Tx};
use cairn_proto::ids::{InvitationId, UserId, WorkspaceId};

use crate::error::Error;
use crate::model::invitations::{Found, Invitation, Taken};
use crate::model::workspaces::Membership;
use crate::passwords::{self, Passwords};
use crate::sessions::{Device, Sessions, SignedIn};
use crate::users::{NewUser, User};
use crate::workspaces::{require_manager, require_member};
use crate::{mailed_invitations, names, proof, secrets, store};

/// Whose account an invitation is accepted with.
enum Account {
    /// One that there is: the password was right, and had this hash.
    Known(User, String),
    /// One that somebody made without a proof: the secret that was mailed proves whose it is, and it gets this password.
    TakenOver(User, String),
    /// A new one with this password.
    New(String),
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

    /// What the holder of a secret is invited to. Whether the email has an account is not told.
    pub(crate) async fn look_up(&self, secret: &str) -> Result<Found, Error> {
        let now = self.ambient.clock.now();
        let found = store::invitations::find(&self.db, &secrets::digest(secret), now).await?;
        found.ok_or(Error::InvitationRefused)
    }

    /// Makes the membership and signs the person in: with the account of the email that was invited, when the password is
    /// that account's, else with a new one.
    pub(crate) async fn accept(
        &self,
        device: &Device,
        secret: &str,
        name: &str,
        password: &str,
    ) -> Result<SignedIn, Error> {
        // First: a secret that opens nothing must not cost a password hash.
        let found = self.look_up(secret).await?;
        let mut violations = Vec::new();
        let name = names::check("name", name, &mut violations);
        passwords::check("password", password, &mut violations);
        if !violations.is_empty() {
            return Err(Error::Invalid(violations));
        }
        // An invitation must be no way to guess faster than at the sign-in.
        let email = Some(found.invitation.email.as_str());
        let sign_ins = self.sessions.sign_ins();
        let account = sign_ins.counted(device.source(), email, self.account(&found, password)).await?;

        let mut tx = self.db.begin_write().await?;
        let taken = self.take(&mut tx, secret).await?;
        let user = match account {
            Account::Known(user, hash) => self.known(&mut tx, &taken, user, &hash).await?,
            Account::TakenOver(user, hash) => self.taken_over(&mut tx, &taken, &user, name, &hash).await?,
            Account::New(hash) => self.made(&mut tx, &taken, name, &hash).await?,
        };
        self.join_in(&mut tx, &taken, user.id).await?;
        let opened = self.sessions.open_in(&mut tx, user.id, device).await?;
        tx.commit().await?;
        self.sessions.signed_in(user.id, opened).await
    }

    /// Makes a signed-in person a member, if it was that person who was invited.
    pub(crate) async fn join(&self, user: UserId, secret: &str) -> Result<Membership, Error> {
        let mut tx = self.db.begin_write().await?;
        let user = store::users::find(&mut tx, user).await?.ok_or(Error::SessionRefused)?;
        let taken = self.take(&mut tx, secret).await?;
        if taken.email != user.email {
            return Err(Error::InvitedAnother);
        }
        if taken.by_mail {
            store::users::set_verified(&mut tx, user.id).await?;
        }
        let membership = self.join_in(&mut tx, &taken, user.id).await?;
        tx.commit().await?;
        Ok(membership)
    }

    /// Makes a person a member whose email is verified and invited.
    pub(crate) async fn accept_pending(&self, user: UserId, id: InvitationId) -> Result<Membership, Error> {
        let mut tx = self.db.begin_write().await?;
        let taken = self.take_pending(&mut tx, user, id).await?;
        let membership = self.join_in(&mut tx, &taken, user).await?;
        tx.commit().await?;
        Ok(membership)
    }

    /// Ends an invitation to a person's verified email.
    pub(crate) async fn decline_pending(&self, user: UserId, id: InvitationId) -> Result<(), Error> {
        let mut tx = self.db.begin_write().await?;
        self.take_pending(&mut tx, user, id).await?;
        Ok(tx.commit().await?)
    }

    /// Forgets the invitations that have ended.
    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        let now = self.ambient.clock.now();
        mailed_invitations::purge(&self.db, now).await?;
        Ok(store::invitations::delete_ended(&self.db, now).await?)
    }

    /// Whose account it is, for the work of one password whether there is an account or not.
    async fn account(&self, found: &Found, password: &str) -> Result<Account, Error> {
        let hash = async || self.passwords.hash(password, &*self.ambient.entropy).await;
        let Some((user, known)) = store::users::find_account(&self.db, &found.invitation.email).await? else {
            return Ok(Account::New(hash().await?));
        };
        let is_right = self.passwords.verify(password, known.clone()).await?;
        match known.filter(|_| is_right) {
            Some(known) => Ok(Account::Known(user, known)),
            None if found.by_mail && !user.email_verified => Ok(Account::TakenOver(user, hash().await?)),
            None => Err(Error::SignInRefused),
        }
    }

    async fn known(&self, tx: &mut Tx, taken: &Taken, user: User, hash: &str) -> Result<User, Error> {
        self.sessions.hold(tx, user.id, hash).await?;
        if taken.by_mail {
            store::users::set_verified(tx, user.id).await?;
        }
        Ok(User { email_verified: user.email_verified || taken.by_mail, ..user })
    }

    async fn taken_over(
        &self,
        tx: &mut Tx,
        taken: &Taken,
        user: &User,
        name: String,
        hash: &str,
    ) -> Result<User, Error> {
        // Read again: of two who came with the proof, one is the owner by now.
        let user = store::users::find(tx, user.id).await?.ok_or(Error::SignInRefused)?;
        if user.email_verified || !taken.by_mail {
            return Err(Error::SignInRefused);
        }
        let owned = proof::take_over(tx, &self.ambient, &user).await?;
        store::users::set_password(tx, owned.id, Some(hash)).await?;
        store::users::set_name(tx, owned.id, &name).await?;
        Ok(User { name, ..owned })
    }

    async fn made(&self, tx: &mut Tx, taken: &Taken, name: String, hash: &str) -> Result<User, Error> {
        let email_verified = taken.by_mail;
        let user = User { id: self.ambient.ids.next(), email: taken.email.clone(), name, email_verified };
        let account = NewUser {
            id: user.id,
            email: &user.email,
            name: &user.name,
            password_hash: Some(hash),
            email_verified,
        };
        let made = store::users::insert(tx, &account, self.ambient.clock.now()).await;
        // Somebody was faster: as if the account had been there before.
        made.map_err(|error| if error.is_unique_violation() { Error::SignInRefused } else { error.into() })?;
        Ok(user)
    }

    async fn take(&self, tx: &mut Tx, secret: &str) -> Result<Taken, Error> {
        let now = self.ambient.clock.now();
        let taken = store::invitations::take(tx, &secrets::digest(secret), now).await?;
        taken.ok_or(Error::InvitationRefused)
    }

    async fn take_pending(&self, tx: &mut Tx, user: UserId, id: InvitationId) -> Result<Taken, Error> {
        let user = store::users::find(tx, user).await?.ok_or(Error::SessionRefused)?;
        if !user.email_verified {
            return Err(Error::NotFound("invitation"));
        }
        let now = self.ambient.clock.now();
        let taken = store::invitations::take_pending(tx, &user.email, id, now).await?;
        taken.ok_or(Error::NotFound("invitation"))
    }

    /// Somebody who is a member already stays what they are.
    async fn join_in(&self, tx: &mut Tx, taken: &Taken, user: UserId) -> Result<Membership, Error> {
        // When an account passed to its owner on the way, what it had is offered again: here it is taken.
        store::invitations::delete_of_email(tx, taken.workspace, &taken.email).await?;
        store::members::insert(tx, taken.workspace, user, taken.role, self.ambient.clock.now()).await?;
        // None when the workspace was deleted meanwhile.
        let joined = store::workspaces::find_membership(tx, user, taken.workspace).await?;
        joined.ok_or(Error::InvitationRefused)
    }
}
