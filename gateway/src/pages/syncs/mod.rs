//! `/w/{id}/sync`: the runs of directory syncs, and what each did or would do. Programs create the previews, from
//! the directory.

mod list;
mod run;

#[cfg(test)]
mod checks;

use cairn_proto::ids::WorkspaceId;

use super::MEMBER;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(MEMBER, "/w/{id}/sync", list::show)
        .get(MEMBER, "/w/{id}/sync/{run}", run::show)
        .post(MEMBER, "/w/{id}/sync/{run}/start", run::start)
        .post(MEMBER, "/w/{id}/sync/{run}/cancel", run::cancel)
        .post(MEMBER, "/w/{id}/sync/{run}/rollback", run::roll_back)
        .post(MEMBER, "/w/{id}/sync/{run}/delete", run::delete)
}

/// The URL of the list.
fn address(workspace: WorkspaceId) -> String {
    format!("/w/{workspace}/sync")
}

/// The URL of the runs of one sync.
fn address_of_name(workspace: WorkspaceId, name: &str) -> String {
    let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
    format!("{}?name={name}", address(workspace))
}
