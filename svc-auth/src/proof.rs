//! Proof of email ownership, and the takeover of an account that was created without one.
//!
//! Anybody who gets an invitation's link can create an account for an email that is not theirs. When the owner of the
//! email comes, by an OpenID Connect provider or by a mailed link, the account becomes theirs, and nothing in it may
//! remain useful to whoever created it: password, sessions, tokens, grants and invitations end. Memberships that were
//! accepted in their name become invitations again, except where a workspace would lose its last owner.

use cairn_chassis::ambient::Ambient;
use cairn_chassis::identity::Role;
use cairn_chassis::sql::Tx;
use cairn_proto::ids::{UserId, WorkspaceId};

use crate::error::Error;
use crate::model::invitations::{LIFETIME, NewInvitation};
use crate::users::User;
use crate::{secrets, store};

const SECRET_BYTES: usize = 32;

/// Hands an account with an unproved email over to whoever has proved it now.
pub(crate) async fn take_over(tx: &mut Tx, ambient: &Ambient, account: &User) -> Result<User, Error> {
    store::users::lock(tx, account.id).await?;
    let memberships = store::members::list_of_user(tx, account.id).await?;
    for (workspace, _) in &memberships {
        // Prevents a token from being created concurrently.
        store::members::lock(tx, *workspace).await?;
    }
    store::users::set_password(tx, account.id, None).await?;
    store::sessions::delete_of_user(tx, account.id).await?;
    store::tokens::delete_all_of_owner(tx, account.id).await?;
    store::oauth_codes::delete_of_user(tx, account.id).await?;
    store::oauth_grants::delete_all_of_user(tx, account.id).await?;
    store::invitations::delete_all_of_inviter(tx, account.id).await?;
    for (workspace, role) in memberships {
        if let Some(owner) = store::members::find_other_owner(tx, workspace, account.id).await? {
            store::members::delete(tx, workspace, account.id).await?;
            offer(tx, ambient, workspace, owner, role, account).await?;
        }
    }
    store::users::set_verified(tx, account.id).await?;
    tracing::info!(user.id = %account.id, "an account passed to whoever has proved its email");
    Ok(User { email_verified: true, ..account.clone() })
}

/// Replaces a membership by an invitation. Nobody has its secret: a verified email needs none.
async fn offer(
    tx: &mut Tx,
    ambient: &Ambient,
    workspace: WorkspaceId,
    inviter: UserId,
    role: Role,
    account: &User,
) -> Result<(), Error> {
    let now = ambient.clock.now();
    let nobodys = secrets::random_hex::<SECRET_BYTES>(&*ambient.entropy);
    store::invitations::delete_of_email(tx, workspace, &account.email).await?;
    let new = NewInvitation {
        id: ambient.ids.next(),
        workspace,
        email: &account.email,
        role,
        inviter,
        digest: secrets::digest(&nobodys),
        mail_digest: None,
        created_at: now,
        expires_at: now.plus(LIFETIME),
    };
    Ok(store::invitations::insert(tx, &new).await?)
}
