//! `/w/{id}/files`: the folder tree, the list of a folder, and bulk actions.

mod change;
mod columns;
mod list;
mod list_filters;
mod many;
mod open;
mod selection;
mod upload;

use super::MEMBER;
use crate::class::{MANIFEST_BYTES, ORDINARY_BYTES};
use crate::cost::Cost;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(MEMBER, "/w/{id}/files", list::show)
        .post(MEMBER, "/w/{id}/files/new", change::new_file)
        .post(MEMBER, "/w/{id}/files/new-folder", change::new_folder)
        .post(MEMBER, "/w/{id}/files/rename", change::rename)
        .post(MEMBER, "/w/{id}/files/move-folder", change::move_folder)
        .post(MEMBER, "/w/{id}/files/delete-folder", change::delete_folder)
        .get(MEMBER, "/w/{id}/files/all", many::plan)
        .post(MEMBER.up_to(ORDINARY_BYTES).costing(Cost::BULK), "/w/{id}/files/many", many::carry_out)
        .post(MEMBER.up_to(MANIFEST_BYTES).costing(Cost::BULK), "/w/{id}/files/upload", upload::upload)
        .get(MEMBER, "/w/{id}/open", open::open)
}
