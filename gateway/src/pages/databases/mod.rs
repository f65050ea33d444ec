//! `/w/{id}/databases` and `/databases/{id}`: the databases of a workspace; one as a grid with a record beside it;
//! its fields and views. The view state is in the URL.

mod at;
mod change;
mod conflict;
mod export;
mod fields;
mod filters;
mod form_outcome;
mod grid;
mod groups;
mod import;
mod list;
mod model;
mod names;
mod of_table;
mod record;
mod rows;
mod save;
mod submitted_form;
mod tabs;
mod values;
mod view_state;
mod views;

#[cfg(test)]
mod checks;

use super::places::{database as address, record as record_address};
use super::{MEMBER, PERSON};
use crate::class::{FILE_BYTES, ORDINARY_BYTES};
use crate::cost::Cost;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    let writing = PERSON.up_to(FILE_BYTES);
    let several = PERSON.up_to(ORDINARY_BYTES);
    Routes::default()
        .get(MEMBER, "/w/{id}/databases", list::show)
        .post(MEMBER, "/w/{id}/databases/new", list::create)
        .get(MEMBER, "/w/{id}/databases/import", of_table::show)
        .post(
            MEMBER.up_to(FILE_BYTES).patient().costing(Cost::BULK),
            "/w/{id}/databases/import",
            of_table::send,
        )
        .get(PERSON, "/databases/{id}", grid::show)
        .get(PERSON.patient().costing(Cost::BULK), "/databases/{id}/csv", export::csv)
        .get(PERSON, "/databases/{id}/import", import::show)
        .post(writing.patient().costing(Cost::BULK), "/databases/{id}/import", import::send)
        .post(PERSON, "/databases/{id}/rename", change::rename)
        .post(PERSON, "/databases/{id}/move", change::move_to)
        .post(PERSON, "/databases/{id}/delete", change::delete)
        .post(writing, "/databases/{id}/records", save::create)
        .post(several, "/databases/{id}/records/many", change::many)
        .post(writing, "/databases/{id}/records/{record}", save::save)
        .post(writing.patient(), "/databases/{id}/records/{record}/check", save::check)
        .post(PERSON, "/databases/{id}/records/{record}/delete", change::delete_record)
        .post(PERSON, "/databases/{id}/records/{record}/restore", change::restore_version)
        .post(PERSON, "/databases/{id}/records/{record}/page", change::add_page)
        .post(PERSON, "/databases/{id}/records/{record}/no-page", change::remove_page)
        .post(PERSON, "/databases/{id}/views", views::create)
        .post(PERSON, "/databases/{id}/views/{view}", views::update)
        .post(PERSON, "/databases/{id}/views/{view}/delete", views::delete)
        .get(PERSON, "/databases/{id}/fields", fields::show)
        .post(several, "/databases/{id}/fields", fields::create)
        .post(several, "/databases/{id}/fields/{field}", fields::update)
        .post(PERSON, "/databases/{id}/fields/{field}/move", fields::move_to)
        .post(PERSON, "/databases/{id}/fields/{field}/delete", fields::delete)
}
