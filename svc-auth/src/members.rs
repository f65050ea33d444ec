//! The members of a workspace and their roles.
//!
//! Owners manage everybody. Admins manage everybody but owners, and cannot appoint any. Everybody may leave, except the
//! last owner.

use cairn_chassis::ambient::Ambient;
use cairn_chassis::identity::Role;
use cairn_chassis::sql::{Db, Tx};
use cairn_chassis::status::Violation;
use cairn_proto::ids::{UserId, WorkspaceId};

use crate::error::Error;
use crate::mailed_invitations::InvitationMailer;
use crate::model::invitations::{Invitation, LIFETIME, NewInvitation};
use crate::model::members::Member;
use crate::model::workspaces::Membership;
use crate::secrets;
use crate::store;
use crate::users;
use crate::workspaces::{require_manager, require_member};

const SECRET_BYTES: usize = 32;
/// Open invitations of one workspace.
const MAX_INVITATIONS: i64 = 500;

/// A new invitation with the secret of its link, which is not stored.
pub(crate) struct Invited {
    pub(crate) invitation: Invitation,
    pub(crate) secret: String,
    /// Whether a link with another secret was mailed to the invited email.
    pub(crate) mailed: bool,
}

cairn_chassis::debug_fields!(Invited { invitation });

/// The rules of members.
#[derive(Debug)]
pub(crate) struct Members {
    db: Db,
    ambient: Ambient,
    mailer: Option<InvitationMailer>,
}

impl Members {
    pub(crate) const fn new(db: Db, ambient: Ambient, mailer: Option<InvitationMailer>) -> Self {
        Self { db, ambient, mailer }
    }

    /// The members of a workspace, longest membership first; visible to every member.
    pub(crate) async fn list(&self, user: UserId, workspace: WorkspaceId) -> Result<Vec<Member>, Error> {
        let mut tx = self.db.begin_read().await?;
        require_member(&mut tx, user, workspace).await?;
        let members = store::members::list(&mut tx, workspace).await?;
        tx.commit().await?;
        Ok(members)
    }

    /// Invites an email. Whether it has an account makes no difference, nor is it revealed. A new invitation replaces
    /// an earlier one for the same email, whose link may be lost.
    pub(crate) async fn invite(
        &self,
        user: UserId,
        workspace: WorkspaceId,
        email: &str,
        role: Option<Role>,
    ) -> Result<Invited, Error> {
        let (mut tx, held) = self.begin(user, workspace).await?;
        require_manager(held.role, "adding members")?;
        let (email, role) = check(email, role)?;
        require_over(held.role, role)?;
        let inviter = store::users::find(&mut tx, user).await?.ok_or(Error::SessionRefused)?;
        let now = self.ambient.clock.now();
        store::invitations::delete_of_email(&mut tx, workspace, &email).await?;
        let open = store::invitations::count(&mut tx, workspace, now).await?;
        if open >= MAX_INVITATIONS {
            return Err(Error::LimitExceeded {
                path: "invitations",
                what: "open invitations of the workspace",
                used: open,
                limit: MAX_INVITATIONS,
                remedy: "take some back, or wait until they are accepted",
            });
        }
        let invitation = Invitation {
            id: self.ambient.ids.next(),
            workspace,
            email,
            role,
            inviter,
            created_at: now,
            expires_at: now.plus(LIFETIME),
        };
        let secret = secrets::random_hex::<SECRET_BYTES>(&*self.ambient.entropy);
        let mail = self.mail(&mut tx, &invitation).await?;
        let new = NewInvitation {
            id: invitation.id,
            workspace,
            email: &invitation.email,
            role,
            inviter: user,
            digest: secrets::digest(&secret),
            mail_digest: mail.as_ref().map(|(_, secret)| secrets::digest(secret)),
            created_at: invitation.created_at,
            expires_at: invitation.expires_at,
        };
        store::invitations::insert(&mut tx, &new).await?;
        tx.commit().await?;
        let mailed = match mail {
            Some((mailer, secret)) => mailer.send(&invitation, &held.workspace.name, &secret).await,
            None => false,
        };
        Ok(Invited { invitation, secret, mailed })
    }

    /// The mailer and the secret for the mail; `None` if nothing is to be mailed.
    async fn mail(
        &self,
        tx: &mut Tx,
        invitation: &Invitation,
    ) -> Result<Option<(&InvitationMailer, String)>, Error> {
        let Some(mailer) = &self.mailer else { return Ok(None) };
        let Invitation { id, email, inviter, created_at: now, .. } = invitation;
        if !mailer.may_send(tx, inviter.id, email, *now).await? {
            return Ok(None);
        }
        store::invitations::insert_mail(tx, *id, inviter.id, email, *now).await?;
        Ok(Some((mailer, secrets::random_hex::<SECRET_BYTES>(&*self.ambient.entropy))))
    }

    /// Changes a member's role.
    pub(crate) async fn set_role(
        &self,
        user: UserId,
        workspace: WorkspaceId,
        member: UserId,
        role: Option<Role>,
    ) -> Result<Member, Error> {
        let (mut tx, Membership { role: held, .. }) = self.begin(user, workspace).await?;
        require_manager(held, "changing roles")?;
        let target = require_target(&mut tx, workspace, member).await?;
        let role = role.ok_or_else(|| Error::Invalid(vec![unknown_role()]))?;
        require_over(held, target.role)?;
        require_over(held, role)?;
        if role != Role::Owner {
            keep_an_owner(&mut tx, workspace, &target).await?;
            // An inviter may only grant what their own role allows.
            store::invitations::delete_of_inviter(&mut tx, workspace, member).await?;
        }
        store::members::set_role(&mut tx, workspace, member, role).await?;
        tx.commit().await?;
        Ok(Member { role, ..target })
    }

    /// Ends a membership and deletes its tokens, so that none works again if the user is added later.
    pub(crate) async fn remove(
        &self,
        user: UserId,
        workspace: WorkspaceId,
        member: UserId,
    ) -> Result<(), Error> {
        let (mut tx, Membership { role: held, .. }) = self.begin(user, workspace).await?;
        if user != member {
            require_manager(held, "removing members")?;
        }
        let target = require_target(&mut tx, workspace, member).await?;
        if user != member {
            require_over(held, target.role)?;
        }
        keep_an_owner(&mut tx, workspace, &target).await?;
        store::tokens::delete_of_owner(&mut tx, workspace, member).await?;
        store::oauth_grants::delete_of_user(&mut tx, workspace, member).await?;
        store::invitations::delete_of_inviter(&mut tx, workspace, member).await?;
        store::members::delete(&mut tx, workspace, member).await?;
        Ok(tx.commit().await?)
    }

    /// Begins a transaction that locks the workspace's members, and returns the caller's membership.
    async fn begin(&self, user: UserId, workspace: WorkspaceId) -> Result<(Tx, Membership), Error> {
        let mut tx = self.db.begin_write().await?;
        store::members::lock(&mut tx, workspace).await?;
        let held = require_member(&mut tx, user, workspace).await?;
        Ok((tx, held))
    }
}

fn check(email: &str, role: Option<Role>) -> Result<(String, Role), Error> {
    let mut violations = Vec::new();
    let email = users::fold_email(email);
    if email.is_none() {
        violations.push(Violation::new("email", "invalid", "must be an email address: name@host"));
    }
    if role.is_none() {
        violations.push(unknown_role());
    }
    match (email, role) {
        (Some(email), Some(role)) => Ok((email, role)),
        _ => Err(Error::Invalid(violations)),
    }
}

fn unknown_role() -> Violation {
    let names = Role::ALL.map(Role::as_str).join(", ");
    Violation::new("role", "invalid", format!("must be one of: {names}"))
}

/// Whether a manager may grant that role, or manage somebody who has it.
fn require_over(held: Role, role: Role) -> Result<(), Error> {
    if role == Role::Owner && held != Role::Owner {
        return Err(Error::RoleTooLow { action: "deciding about owners", needed: "'owner'", held });
    }
    Ok(())
}

async fn require_target(tx: &mut Tx, workspace: WorkspaceId, member: UserId) -> Result<Member, Error> {
    store::members::find(tx, workspace, member).await?.ok_or(Error::NotFound("member"))
}

async fn keep_an_owner(tx: &mut Tx, workspace: WorkspaceId, leaving: &Member) -> Result<(), Error> {
    if leaving.role == Role::Owner && store::members::count_owners(tx, workspace).await? <= 1 {
        return Err(Error::LastOwner);
    }
    Ok(())
}
