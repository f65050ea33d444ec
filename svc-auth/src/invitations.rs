//! Invitations: a membership begins only when the invited user accepts.
//!
//! An invitation has one secret in the link that is shown to the inviter, and another one in the link that is mailed to
//! the invited email. Either can be used, once. Only the mailed one proves the email. A user with a verified email
//! needs neither: they see their pending invitations, and accept or decline them.

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

/// The account that accepts an invitation.
enum Account {
    /// An existing one: the password was verified against this hash.
    Known(User, String),
    /// One that was created without a proof: the mailed secret proves the owner, and it gets this password hash.
    TakenOver(User, String),
    /// A new one with this password hash.
    New(String),
}

/// The rules of invitations; [`crate::members`] creates them.
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

    /// Revokes an invitation.
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

    /// The invitation of a secret's holder. Whether the email has an account is not revealed.
    pub(crate) async fn look_up(&self, secret: &str) -> Result<Found, Error> {
        let now = self.ambient.clock.now();
        let found = store::invitations::find(&self.db, &secrets::digest(secret), now).await?;
        found.ok_or(Error::InvitationRefused)
    }

    /// Creates the membership and signs the user in: with the existing account of the invited email, if the password
    /// matches, else with a new one.
    pub(crate) async fn accept(
        &self,
        device: &Device,
        secret: &str,
        name: &str,
        password: &str,
    ) -> Result<SignedIn, Error> {
        // First: an invalid secret must not cost a password hash.
        let found = self.look_up(secret).await?;
        let mut violations = Vec::new();
        let name = names::check("name", name, &mut violations);
        passwords::check("password", password, &mut violations);
        if !violations.is_empty() {
            return Err(Error::Invalid(violations));
        }
        // Rate limited like a sign-in, since it checks a password.
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

    /// Adds a signed-in user as a member, if the invitation is for them.
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

    /// Adds a user whose verified email is invited as a member.
    pub(crate) async fn accept_pending(&self, user: UserId, id: InvitationId) -> Result<Membership, Error> {
        let mut tx = self.db.begin_write().await?;
        let taken = self.take_pending(&mut tx, user, id).await?;
        let membership = self.join_in(&mut tx, &taken, user).await?;
        tx.commit().await?;
        Ok(membership)
    }

    /// Declines an invitation to a user's verified email.
    pub(crate) async fn decline_pending(&self, user: UserId, id: InvitationId) -> Result<(), Error> {
        let mut tx = self.db.begin_write().await?;
        self.take_pending(&mut tx, user, id).await?;
        Ok(tx.commit().await?)
    }

    /// Deletes expired invitations.
    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        let now = self.ambient.clock.now();
        mailed_invitations::purge(&self.db, now).await?;
        Ok(store::invitations::delete_ended(&self.db, now).await?)
    }

    /// Determines the account, with the work of one password hash in every case.
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
        self.sessions.lock_account(tx, user.id, hash).await?;
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
        // Read again: of two concurrent proofs, one has taken the account over by now.
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
        // An account was created concurrently: as if it had existed before.
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

    /// An existing member keeps their role.
    async fn join_in(&self, tx: &mut Tx, taken: &Taken, user: UserId) -> Result<Membership, Error> {
        // A takeover of the account may have turned this membership into an invitation: it is accepted here.
        store::invitations::delete_of_email(tx, taken.workspace, &taken.email).await?;
        store::members::insert(tx, taken.workspace, user, taken.role, self.ambient.clock.now()).await?;
        // `None` if the workspace was deleted meanwhile.
        let joined = store::workspaces::find_membership(tx, user, taken.workspace).await?;
        joined.ok_or(Error::InvitationRefused)
    }
}
