//! Proving an email, and what becomes of an account that somebody made with it without a proof.
//!
//! Whoever is handed an invitation's link can make an account of an email that is not theirs. When its owner comes, by an
//! OpenID Connect provider or by a link that was mailed, the account becomes theirs, and nothing in it may be of use to
//! whoever had it before: password, sessions, tokens, grants and invitations end. What was accepted in their name they
//! are asked anew. Only a workspace that would be left without an owner stays.

use cairn_chassis::ambient::Ambient;
use cairn_chassis::identity::Role;
use cairn_chassis::sql::Tx;
use cairn_proto::ids::{UserId, WorkspaceId};

use crate::error::Error;
use crate::model::invitations::{LIFETIME, NewInvitation};
use crate::users::User;
use crate::{secrets, store};

const SECRET_BYTES: usize = 32;

/// Gives an account whose email nobody had proved to whoever has proved it now.
pub(crate) async fn take_over(tx: &mut Tx, ambient: &Ambient, account: &User) -> Result<User, Error> {
    store::users::lock(tx, account.id).await?;
    let memberships = store::members::list_of_user(tx, account.id).await?;
    for (workspace, _) in &memberships {
        // A token that is made meanwhile must not be left behind.
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

/// An invitation in the place of a membership. Nobody has its secret: a verified email needs none.
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
