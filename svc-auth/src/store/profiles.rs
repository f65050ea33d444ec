//! A user with memberships and invitations, in one statement: every page of the console needs them.

use std::cmp::Reverse;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Error, Text, json_rows};
use cairn_chassis::{fetch, rows_as_json, statements};
use cairn_proto::ids::{InvitationId, UserId, WorkspaceId};

use super::{users, word, workspaces};
use crate::model::invitations::{Found, Invitation};
use crate::model::profiles::Profile;
use crate::model::workspaces::Membership;
use crate::users::User;

macro_rules! profile {
    ($engine:ident) => {
        concat!(
            "SELECT p.id, p.email, p.name, p.email_verified, (SELECT ",
            rows_as_json!(
                $engine,
                "w.id, w.name, w.plan, w.publishers, w.question_log_days, w.created_at, w.updated_at, w.purge_at, m.role"
            ),
            " FROM members m JOIN workspaces w ON w.id = m.workspace_id \
             WHERE m.user_id = p.id AND w.deleted_at IS NULL) AS memberships, (SELECT ",
            rows_as_json!(
                $engine,
                "o.id, o.workspace_id, o.workspace_name, o.email, o.role, o.created_at, o.expires_at, \
                 o.inviter_id, o.inviter_email, o.inviter_name, o.inviter_verified"
            ),
            " FROM (SELECT i.id, i.workspace_id, w.name AS workspace_name, i.email, i.role, i.created_at, i.expires_at, \
             u.id AS inviter_id, u.email AS inviter_email, u.name AS inviter_name, \
             CASE WHEN u.email_verified THEN 1 ELSE 0 END AS inviter_verified \
             FROM invitations i JOIN users u ON u.id = i.inviter_id JOIN workspaces w ON w.id = i.workspace_id \
             WHERE p.email_verified AND i.email = p.email AND i.expires_at > $2 AND w.deleted_at IS NULL \
             ORDER BY i.created_at DESC, i.id DESC LIMIT 100) o) AS pending FROM users p WHERE p.id = $1"
        )
    };
}

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    /// Of the open invitations of the email to live workspaces, the newest.
    const FIND: Dialect = Dialect { sqlite: profile!(sqlite), postgres: profile!(postgres) };
}

#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    user: users::Row,
    memberships: String,
    pending: String,
}

#[derive(serde::Deserialize)]
struct PendingRow(
    InvitationId,
    WorkspaceId,
    String,
    String,
    String,
    Timestamp,
    Timestamp,
    UserId,
    String,
    String,
    i64,
);

impl TryFrom<PendingRow> for Found {
    type Error = Error;

    fn try_from(row: PendingRow) -> Result<Self, Error> {
        let PendingRow(
            id,
            workspace,
            workspace_name,
            email,
            role,
            created_at,
            expires_at,
            inviter,
            inviter_email,
            inviter_name,
            inviter_verified,
        ) = row;
        let inviter = User {
            id: inviter,
            email: inviter_email,
            name: inviter_name,
            email_verified: inviter_verified != 0,
        };
        let role = word("invitations.role", &role)?;
        let invitation = Invitation { id, workspace, email, role, inviter, created_at, expires_at };
        Ok(Self { invitation, workspace_name, by_mail: false })
    }
}

/// A user; `None` if the account is gone.
pub(crate) async fn find(db: &Db, id: UserId, now: Timestamp) -> Result<Option<Profile>, Error> {
    let row: Option<Row> = fetch!(optional, db, FIND, Text(id), now)?;
    row.map(Profile::try_from).transpose()
}

impl TryFrom<Row> for Profile {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let memberships = json_rows::<workspaces::ListedMembership>(&row.memberships)?.into_iter();
        let mut memberships: Vec<Membership> =
            memberships.map(Membership::try_from).collect::<Result<_, _>>()?;
        memberships.sort_by(|one, other| {
            let (one, other) = (&one.workspace, &other.workspace);
            (&one.name, one.id).cmp(&(&other.name, other.id))
        });
        let pending = json_rows::<PendingRow>(&row.pending)?.into_iter();
        let mut pending: Vec<Found> = pending.map(Found::try_from).collect::<Result<_, _>>()?;
        pending.sort_by_key(|found| Reverse((found.invitation.created_at, found.invitation.id)));
        Ok(Self { user: row.user.into(), memberships, pending })
    }
}
