//! `/api/v1`: each handler reads its input, calls one operation, and answers as the spec says.

pub(crate) mod conditional;
mod database_records;
mod databases;
mod feedback;
mod file_versions;
mod files;
mod folders;
mod memories;
pub(crate) mod paging;
mod related;
mod search;
mod sources;
mod trash;
mod vfs;
mod workspace;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::change;
use crate::error::Error;
use crate::json_body::JsonBody;
use crate::operations::Written;

/// The routes together with their documentation.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(files::list, files::create))
        .routes(routes!(files::get, files::update, files::delete))
        .routes(routes!(files::raw))
        .routes(routes!(trash::restore_file))
        .routes(routes!(trash::purge_file))
        .routes(routes!(file_versions::list))
        .routes(routes!(file_versions::get))
        .routes(routes!(file_versions::restore))
        .routes(routes!(folders::list, folders::create))
        .routes(routes!(folders::get, folders::update, folders::delete))
        .routes(routes!(folders::files))
        .routes(routes!(folders::subfolders))
        .routes(routes!(trash::restore_folder))
        .routes(routes!(trash::purge_folder))
        .routes(routes!(memories::list, memories::create))
        .routes(routes!(memories::get, memories::update, memories::delete))
        .routes(routes!(memories::add_members))
        .routes(routes!(memories::remove_member))
        .routes(routes!(memories::export))
        .routes(routes!(trash::restore_memory))
        .routes(routes!(trash::purge_memory))
        .routes(routes!(databases::list, databases::create))
        .routes(routes!(databases::list_trashed))
        .routes(routes!(databases::get, databases::update, databases::delete))
        .routes(routes!(databases::restore))
        .routes(routes!(databases::purge))
        .routes(routes!(databases::create_field))
        .routes(routes!(databases::update_field, databases::delete_field))
        .routes(routes!(databases::create_view))
        .routes(routes!(databases::update_view, databases::delete_view))
        .routes(routes!(database_records::list, database_records::create))
        .routes(routes!(database_records::get, database_records::update, database_records::delete))
        .routes(routes!(database_records::restore))
        .routes(routes!(database_records::purge))
        .routes(routes!(database_records::versions))
        .routes(routes!(database_records::restore_version))
        .routes(routes!(database_records::backlinks))
        .routes(routes!(feedback::submit))
        .routes(routes!(search::search_context))
        .routes(routes!(related::list))
        .routes(routes!(vfs::execute))
        .routes(routes!(sources::list))
        .routes(routes!(sources::query))
        .routes(routes!(sources::fetch))
        .routes(routes!(workspace::get))
}

/// The answer of a write: its record, and where it stands in the change feed.
fn written<T: Serialize>(status: StatusCode, written: Written<T>) -> Response {
    (status, change_header(&written.change), JsonBody(written.value)).into_response()
}

/// The answer of a write that leaves nothing to show.
fn done(written: &Written<()>) -> Response {
    (StatusCode::NO_CONTENT, change_header(&written.change)).into_response()
}

pub(crate) fn change_header(token: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_str(token) {
        headers.insert(change::HEADER, value);
    }
    headers
}

/// The text of a header that a caller may send once.
fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

type Answer = Result<Response, Error>;

#[cfg(test)]
mod tests;
