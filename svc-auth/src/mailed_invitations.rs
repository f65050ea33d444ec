//! Invitations by mail: their text, and their rate limits.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Tx};
use cairn_proto::ids::UserId;

use crate::error::Error;
use crate::mail::Mailer;
use crate::model::invitations::Invitation;
use crate::store;

/// Mails that one user's invitations may cause per hour.
const MAX_PER_INVITER: i64 = 20;
const INVITER_WINDOW: Duration = Duration::from_secs(60 * 60);
/// Mails that one address may get per day, over all inviters.
const MAX_PER_ADDRESS: i64 = 3;
const ADDRESS_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
/// Below the gateway's request timeout.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(8);
const SUBJECT: &str = "You are invited to a workspace of Cairn";

/// Mails invitations.
#[derive(Debug, Clone)]
pub(crate) struct InvitationMailer {
    mailer: Mailer,
    /// The configured public address: a link with a secret in it must not depend on the request's `Host`.
    base_url: String,
}

impl InvitationMailer {
    /// `None` without a mail server or without a public address.
    pub(crate) fn new(mailer: Option<Mailer>, base_url: Option<&str>) -> Option<Self> {
        let base_url = base_url?.trim_end_matches('/').to_owned();
        Some(Self { mailer: mailer?, base_url })
    }

    /// Whether the rate limits allow one more mail.
    pub(crate) async fn may_send(
        &self,
        tx: &mut Tx,
        inviter: UserId,
        email: &str,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let of_inviter =
            store::invitations::count_mails_of_inviter(tx, inviter, before(now, INVITER_WINDOW)).await?;
        let to_address = store::invitations::count_mails_to(tx, email, before(now, ADDRESS_WINDOW)).await?;
        Ok(of_inviter < MAX_PER_INVITER && to_address < MAX_PER_ADDRESS)
    }

    /// Sends the mail; returns whether it was accepted.
    pub(crate) async fn send(&self, invitation: &Invitation, workspace_name: &str, secret: &str) -> bool {
        let text = self.compose(invitation, workspace_name, secret);
        let sending = self.mailer.send(&invitation.email, SUBJECT, &text);
        let problem = match tokio::time::timeout(DELIVERY_TIMEOUT, sending).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the mail server is too slow".to_owned(),
        };
        tracing::warn!(workspace.id = %invitation.workspace, problem, "an invitation was not mailed");
        false
    }

    fn compose(&self, invitation: &Invitation, workspace_name: &str, secret: &str) -> String {
        let Invitation { inviter, role, expires_at, .. } = invitation;
        let who = if inviter.email_verified {
            format!("{} ({})", harmless(&inviter.name), inviter.email)
        } else {
            format!("{} (whose email is not verified)", harmless(&inviter.name))
        };
        format!(
            "{who} invites you to the workspace \"{}\", as {}.\n\n{}/invite#{secret}\n\nThe link is for you alone: it \
             proves that this mailbox is yours. It works once, until {}.\nIf you do not expect it, do nothing.\n",
            harmless(workspace_name),
            role.as_str(),
            self.base_url,
            expires_at.to_rfc3339(),
        )
    }
}

/// Deletes the records of mails that no longer count.
pub(crate) async fn purge(db: &Db, now: Timestamp) -> Result<(), Error> {
    Ok(store::invitations::delete_mails(db, before(now, ADDRESS_WINDOW)).await?)
}

/// A user-chosen name, altered so that no mail program makes a link or a line break of it.
fn harmless(name: &str) -> String {
    let kept = |one: char| one.is_alphanumeric() || matches!(one, ' ' | '-' | '\'' | '&' | ',');
    let text: String = name.chars().map(|one| if kept(one) { one } else { ' ' }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn before(now: Timestamp, window: Duration) -> Timestamp {
    let window = i64::try_from(window.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(window))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_mail_is_no_link_and_no_line() {
        assert_eq!(harmless("Ärzte & Co, O'Neil-West"), "Ärzte & Co, O'Neil-West");
        assert_eq!(harmless("win at http://evil.example/x\nnow"), "win at http evil example x now");
    }
}
