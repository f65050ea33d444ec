//! Who gets feedback.

use cairn_chassis::on_db;
use cairn_chassis::sql::{Db, Error, Text};
use cairn_proto::ids::WorkspaceId;

const LIST_MANAGERS: &str = "SELECT u.email FROM members m JOIN users u ON u.id = m.user_id \
     WHERE m.workspace_id = $1 AND m.role IN ('owner', 'admin') ORDER BY m.created_at, u.id";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[LIST_MANAGERS];

/// The addresses of a workspace's owners and admins.
pub(crate) async fn list_managers(db: &Db, workspace: WorkspaceId) -> Result<Vec<String>, Error> {
    on_db!(db, |c| sqlx::query_scalar(LIST_MANAGERS).bind(Text(workspace)).fetch_all(c).await)
}
