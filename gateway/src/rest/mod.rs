//! `/api/v1`: each handler decodes its input, calls one operation, and encodes the response.

mod assets;
mod browse;
mod bulk;
pub(crate) mod changes;
pub(crate) mod conditional;
mod databases;
mod feedback;
mod file_versions;
mod files;
mod folders;
mod ingest;
mod memories;
mod memory_versions;
pub(crate) mod paging;
mod records;
mod related;
pub(crate) mod search;
mod sources;
mod syncs;
mod trash;
mod workspace;

use axum::response::{IntoResponse, Response};
use cairn_chassis::feed::ChangeToken;
use cairn_chassis::identity::Permission;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use utoipa_axum::routes;

use crate::change;
use crate::class::{Class, FILE_BYTES, MANIFEST_BYTES, Surface, Who};
use crate::cost::Cost;
use crate::error::Error;
use crate::json_body::JsonBody;
use crate::operations::Written;
use crate::routes::Routes;

const READ: Class = Class::rest(Permission::Read);
/// A page of items.
const LIST: Class = READ.costing(Cost::LIST);
/// May wait for the index.
const SEARCH: Class = READ.patient().costing(Cost::SEARCH);
const WRITE: Class = Class::rest(Permission::Write).costing(Cost::WRITE);
const DELETE: Class = Class::rest(Permission::Delete).costing(Cost::WRITE);
/// Bulk operations.
const BULK: Class = WRITE.patient().costing(Cost::BULK);
/// With the text of a file.
const WRITE_FILE: Class = WRITE.up_to(FILE_BYTES);
const ANY_TOKEN: Class = Class::new(Surface::Rest, Who::Token(None));
/// Anonymous callers are allowed; an invalid token is still refused.
const ANYBODY: Class = Class::new(Surface::Rest, Who::TokenIfSent);

/// The routes together with their OpenAPI documentation.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .below("/api/v1", ANYBODY)
        .api(LIST, routes!(files::list))
        .api(WRITE_FILE, routes!(files::create))
        .api(READ, routes!(files::get))
        .api(WRITE_FILE, routes!(files::update))
        .api(DELETE, routes!(files::delete))
        .api(READ, routes!(files::raw))
        .api(DELETE, routes!(trash::restore_file))
        .api(DELETE, routes!(trash::purge_file))
        .api(LIST, routes!(file_versions::list))
        .api(READ, routes!(file_versions::get))
        .api(WRITE, routes!(file_versions::restore))
        .api(LIST, routes!(folders::list))
        .api(WRITE, routes!(folders::create))
        .api(READ, routes!(folders::get))
        .api(WRITE, routes!(folders::update))
        .api(DELETE, routes!(folders::delete))
        .api(LIST, routes!(folders::files))
        .api(LIST, routes!(folders::subfolders))
        .api(DELETE, routes!(trash::restore_folder))
        .api(DELETE, routes!(trash::purge_folder))
        .api(WRITE.costing(Cost::BULK), routes!(bulk::move_items))
        .api(WRITE.costing(Cost::BULK), routes!(bulk::tag))
        .api(DELETE.costing(Cost::BULK), routes!(bulk::trash))
        .api(DELETE.costing(Cost::BULK), routes!(bulk::restore))
        .api(READ.patient(), routes!(changes::list))
        .api(LIST, routes!(memories::list))
        .api(WRITE, routes!(memories::create))
        .api(LIST, routes!(memories::get))
        .api(WRITE, routes!(memories::update))
        .api(DELETE, routes!(memories::delete))
        .api(WRITE, routes!(memories::add_members))
        .api(WRITE, routes!(memories::move_member))
        .api(DELETE, routes!(memories::remove_member))
        .api(ANYBODY.costing(Cost::LIST), routes!(memories::export))
        .api(LIST, routes!(memory_versions::list))
        .api(LIST, routes!(memory_versions::get))
        .api(WRITE, routes!(memory_versions::restore))
        .api(DELETE, routes!(trash::restore_memory))
        .api(DELETE, routes!(trash::purge_memory))
        .api(LIST, routes!(databases::list))
        .api(WRITE, routes!(databases::create))
        .api(BULK.up_to(FILE_BYTES), routes!(databases::create_of_table))
        .api(LIST, routes!(databases::list_trashed))
        .api(READ, routes!(databases::get))
        .api(WRITE, routes!(databases::update))
        .api(DELETE, routes!(databases::delete))
        .api(DELETE, routes!(databases::restore))
        .api(DELETE, routes!(databases::purge))
        .api(WRITE, routes!(databases::create_field))
        .api(WRITE, routes!(databases::update_field))
        .api(WRITE, routes!(databases::delete_field))
        .api(WRITE, routes!(databases::create_view))
        .api(WRITE, routes!(databases::update_view))
        .api(WRITE, routes!(databases::delete_view))
        .api(LIST, routes!(records::list))
        .api(LIST, routes!(records::groups))
        .api(WRITE, routes!(records::create))
        .api(BULK.up_to(FILE_BYTES), routes!(records::import))
        .api(READ, routes!(records::get))
        .api(WRITE, routes!(records::update))
        .api(DELETE, routes!(records::delete))
        .api(WRITE, routes!(records::restore))
        .api(DELETE, routes!(records::purge))
        .api(LIST, routes!(records::versions))
        .api(WRITE, routes!(records::restore_version))
        .api(LIST, routes!(records::backlinks))
        .api(LIST, routes!(assets::list))
        .api(READ.with_upload(), routes!(assets::content))
        .api(READ, routes!(feedback::submit))
        .api(SEARCH, routes!(search::search_context))
        .api(SEARCH, routes!(search::explain_absence))
        .api(READ.patient(), routes!(search::document_status))
        .api(SEARCH, routes!(related::list))
        .api(READ.patient().costing(Cost::SCRIPT), routes!(browse::execute))
        .api(LIST, routes!(sources::list))
        .api(READ.costing(Cost::SEARCH), routes!(sources::query))
        .api(READ.costing(Cost::SEARCH), routes!(sources::fetch))
        .api(LIST, routes!(ingest::list))
        .api(WRITE_FILE.with_upload(), routes!(ingest::create))
        .api(READ, routes!(ingest::get))
        .api(DELETE, routes!(ingest::delete))
        .api(READ, routes!(ingest::content))
        .api(BULK.up_to(MANIFEST_BYTES), routes!(syncs::preview))
        .api(READ, routes!(syncs::get))
        .api(WRITE, routes!(syncs::start))
        .api(WRITE, routes!(syncs::delete))
        .api(ANY_TOKEN, routes!(workspace::get))
}

/// The response of a write: its record, and the change token as a header.
pub(crate) fn written<T: Serialize>(status: StatusCode, written: Written<T>) -> Response {
    (status, change_header(written.change), JsonBody(written.value)).into_response()
}

/// The response of a write without a record.
pub(crate) fn done(written: &Written<()>) -> Response {
    (StatusCode::NO_CONTENT, change_header(written.change)).into_response()
}

fn change_header(token: ChangeToken) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_str(&token.to_string()) {
        headers.insert(change::HEADER, value);
    }
    headers
}

/// The text of a header.
fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

type Answer = Result<Response, Error>;

#[cfg(test)]
mod tests;
