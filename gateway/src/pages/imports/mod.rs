//! `/w/{id}/import`: imports of other tools' archives, previewed before anything is written.

mod list;
mod run;
mod words;

#[cfg(test)]
mod checks;

use cairn_proto::ids::WorkspaceId;

use super::MEMBER;
use crate::cost::Cost;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(MEMBER, "/w/{id}/import", list::show)
        .post(MEMBER.with_upload().costing(Cost::BULK), "/w/{id}/import", list::upload)
        .get(MEMBER, "/w/{id}/import/{run}", run::show)
        .post(MEMBER, "/w/{id}/import/{run}/start", run::start)
        .post(MEMBER, "/w/{id}/import/{run}/cancel", run::cancel)
        .post(MEMBER, "/w/{id}/import/{run}/rollback", run::roll_back)
}

/// The URL of the list.
fn address(workspace: WorkspaceId) -> String {
    format!("/w/{workspace}/import")
}
