//! Structured databases, their properties and views (spec 4.9).

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse as _;
use cairn_proto::ids::{DatabaseId, PropertyId, ViewId};
use http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{Answer, done, paging, written};
use crate::answers::{Database, DatabaseOfTable, Links, Property, View};
use crate::extract::{Json, PathId, PathIds, Query};
use crate::json_body::JsonBody;
use crate::operations::databases::{
    self, CreateDatabase, CreateField, CreateView, UpdateDatabase, UpdateField, UpdateView,
};
use crate::operations::tables::{self, CreateDatabaseOfTable};
use crate::operations::{Context, Paging};
use crate::schema::inputs;

inputs!(ListDatabases);

/// Which databases to list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListDatabases {
    /// How many at once: 1 to 1000, 1000 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// List databases.
#[utoipa::path(
    get, path = "/api/v1/databases", operation_id = "listDatabases", tag = "Databases", params(ListDatabases),
    responses((status = 200, description = "The databases, by name.", body = Vec<Database>)),
)]
pub(super) async fn list(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    context: Context,
    Query(query): Query<ListDatabases>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(databases::list(&context, None, page).await?, &uri, &links))
}

/// Create a database.
#[utoipa::path(
    post, path = "/api/v1/databases", operation_id = "createDatabase", tag = "Databases", request_body = CreateDatabase,
    responses((status = 201, description = "The database, with a Name property and a table view.", body = Database)),
)]
pub(super) async fn create(context: Context, Json(input): Json<CreateDatabase>) -> Answer {
    Ok(written(StatusCode::CREATED, databases::create(&context, input).await?))
}

/// Make a database of a table (CSV): a field for each column and a record for each row, or nothing at all.
///
/// Which values a column has is guessed where nothing is said of it; a dry run tells. `errors` of a 400 name what is wrong
/// at paths such as `fields[2].type` and `rows[17].Points`; the row with the names is row 1.
#[utoipa::path(
    post, path = "/api/v1/databases/csv", operation_id = "createDatabaseOfTable", tag = "Databases",
    request_body = CreateDatabaseOfTable,
    responses(
        (status = 201, description = "The database and its records are made.", body = DatabaseOfTable),
        (status = 200, description = "What would become of the table: a dry run.", body = DatabaseOfTable),
    ),
)]
pub(super) async fn create_of_table(context: Context, Json(input): Json<CreateDatabaseOfTable>) -> Answer {
    if input.dry_run {
        return Ok(JsonBody(tables::create_database(&context, input).await?.value).into_response());
    }
    Ok(written(StatusCode::CREATED, tables::create_database(&context, input).await?))
}

/// List the databases in trash.
#[utoipa::path(
    get, path = "/api/v1/databases/trash", operation_id = "listTrashedDatabases", tag = "Databases",
    params(ListDatabases),
    responses((status = 200, description = "The databases, by name.", body = Vec<Database>)),
)]
pub(super) async fn list_trashed(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    context: Context,
    Query(query): Query<ListDatabases>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(databases::list_trashed(&context, page).await?, &uri, &links))
}

/// Read a database: its properties, views and record count.
#[utoipa::path(
    get, path = "/api/v1/databases/{databaseId}", operation_id = "getDatabase", tag = "Databases",
    params(("databaseId" = String, Path, format = "uuid", description = "The database.")),
    responses((status = 200, description = "The database.", body = Database)),
)]
pub(super) async fn get(context: Context, PathId(id): PathId<DatabaseId>) -> Answer {
    Ok(JsonBody(databases::get(&context, id).await?).into_response())
}

/// Rename, describe or move a database.
#[utoipa::path(
    patch, path = "/api/v1/databases/{databaseId}", operation_id = "updateDatabase", tag = "Databases",
    request_body = UpdateDatabase,
    params(("databaseId" = String, Path, format = "uuid", description = "The database.")),
    responses((status = 200, description = "The database as it is now.", body = Database)),
)]
pub(super) async fn update(
    context: Context,
    PathId(id): PathId<DatabaseId>,
    Json(input): Json<UpdateDatabase>,
) -> Answer {
    Ok(written(StatusCode::OK, databases::update(&context, id, input).await?))
}

/// Move a database to trash.
#[utoipa::path(
    delete, path = "/api/v1/databases/{databaseId}", operation_id = "deleteDatabase", tag = "Databases",
    params(("databaseId" = String, Path, format = "uuid", description = "The database.")),
    responses((status = 204, description = "The database is in trash.")),
)]
pub(super) async fn delete(context: Context, PathId(id): PathId<DatabaseId>) -> Answer {
    Ok(done(&databases::delete(&context, id).await?))
}

/// Bring a database back from trash.
#[utoipa::path(
    post, path = "/api/v1/databases/{databaseId}/restore", operation_id = "restoreDatabase", tag = "Databases",
    params(("databaseId" = String, Path, format = "uuid", description = "The database.")),
    responses((status = 200, description = "The database; in the root when its folder is gone.", body = Database)),
)]
pub(super) async fn restore(context: Context, PathId(id): PathId<DatabaseId>) -> Answer {
    Ok(written(StatusCode::OK, databases::restore(&context, id).await?))
}

/// Remove a trashed database for good, with its records.
#[utoipa::path(
    delete, path = "/api/v1/databases/{databaseId}/permanent", operation_id = "deleteDatabasePermanently",
    tag = "Databases",
    params(("databaseId" = String, Path, format = "uuid", description = "The database.")),
    responses((status = 204, description = "The database is gone.")),
)]
pub(super) async fn purge(context: Context, PathId(id): PathId<DatabaseId>) -> Answer {
    Ok(done(&databases::purge(&context, id).await?))
}

/// Add a property.
#[utoipa::path(
    post, path = "/api/v1/databases/{databaseId}/fields", operation_id = "createField", tag = "Databases",
    request_body = CreateField,
    params(("databaseId" = String, Path, format = "uuid", description = "The database.")),
    responses((status = 201, description = "The property.", body = Property)),
)]
pub(super) async fn create_field(
    context: Context,
    PathId(id): PathId<DatabaseId>,
    Json(input): Json<CreateField>,
) -> Answer {
    Ok(written(StatusCode::CREATED, databases::create_field(&context, id, input).await?))
}

/// Change a property.
#[utoipa::path(
    patch, path = "/api/v1/databases/{databaseId}/fields/{fieldId}", operation_id = "updateField", tag = "Databases",
    request_body = UpdateField,
    params(
        ("databaseId" = String, Path, format = "uuid", description = "The database."),
        ("fieldId" = String, Path, format = "uuid", description = "The property."),
    ),
    responses((status = 200, description = "The property as it is now.", body = Property)),
)]
pub(super) async fn update_field(
    context: Context,
    PathIds(id, field): PathIds<DatabaseId, PropertyId>,
    Json(input): Json<UpdateField>,
) -> Answer {
    Ok(written(StatusCode::OK, databases::update_field(&context, id, field, input).await?))
}

/// Delete a property that is not the primary one, with its values.
#[utoipa::path(
    delete, path = "/api/v1/databases/{databaseId}/fields/{fieldId}", operation_id = "deleteField", tag = "Databases",
    params(
        ("databaseId" = String, Path, format = "uuid", description = "The database."),
        ("fieldId" = String, Path, format = "uuid", description = "The property."),
    ),
    responses((status = 204, description = "The property is gone.")),
)]
pub(super) async fn delete_field(
    context: Context,
    PathIds(id, field): PathIds<DatabaseId, PropertyId>,
) -> Answer {
    Ok(done(&databases::delete_field(&context, id, field).await?))
}

/// Save a view.
#[utoipa::path(
    post, path = "/api/v1/databases/{databaseId}/views", operation_id = "createView", tag = "Databases",
    request_body = CreateView,
    params(("databaseId" = String, Path, format = "uuid", description = "The database.")),
    responses((status = 201, description = "The view.", body = View)),
)]
pub(super) async fn create_view(
    context: Context,
    PathId(id): PathId<DatabaseId>,
    Json(input): Json<CreateView>,
) -> Answer {
    Ok(written(StatusCode::CREATED, databases::create_view(&context, id, input).await?))
}

/// Change a view.
#[utoipa::path(
    patch, path = "/api/v1/databases/{databaseId}/views/{viewId}", operation_id = "updateView", tag = "Databases",
    request_body = UpdateView,
    params(
        ("databaseId" = String, Path, format = "uuid", description = "The database."),
        ("viewId" = String, Path, format = "uuid", description = "The view."),
    ),
    responses((status = 200, description = "The view as it is now.", body = View)),
)]
pub(super) async fn update_view(
    context: Context,
    PathIds(id, view): PathIds<DatabaseId, ViewId>,
    Json(input): Json<UpdateView>,
) -> Answer {
    Ok(written(StatusCode::OK, databases::update_view(&context, id, view, input).await?))
}

/// Delete a view that is not the last one. Where it was the default, the first of the others is.
#[utoipa::path(
    delete, path = "/api/v1/databases/{databaseId}/views/{viewId}", operation_id = "deleteView", tag = "Databases",
    params(
        ("databaseId" = String, Path, format = "uuid", description = "The database."),
        ("viewId" = String, Path, format = "uuid", description = "The view."),
    ),
    responses((status = 204, description = "The view is gone.")),
)]
pub(super) async fn delete_view(context: Context, PathIds(id, view): PathIds<DatabaseId, ViewId>) -> Answer {
    Ok(done(&databases::delete_view(&context, id, view).await?))
}
