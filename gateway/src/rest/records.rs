//! Records of databases (spec 4.9), and the backlinks of files (spec 4.1).

use std::sync::Arc;

use axum::extract::{FromRequestParts, OriginalUri, Path, State};
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::status::Problem;
use cairn_proto::domain::{DateUnit, GroupOrder, SortOrder};
use cairn_proto::ids::{DatabaseId, FileId, RecordId};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{Answer, conditional, done, paging, written};
use crate::answers::{Backlink, ImportedTable, Links, Record, RecordGroups, RecordPage, RecordVersion};
use crate::error::Error;
use crate::extract::{Json, PathId, PathIds, Query};
use crate::json_body::JsonBody;
use crate::operations::records::{self, CreateRecord, Grouping, ImportTable, Selection, UpdateRecord};
use crate::operations::{Context, Paging, Written};
use crate::schema::inputs;

inputs!(ListRecords, GroupRecords, ListVersions, ListBacklinks);

/// Which records, in which order.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListRecords {
    /// Answers the page that contains this record. Where the filters, the search or the view leave it out, the 404 says so.
    #[schema(format = "uuid")]
    record_id: Option<String>,
    /// Words that must all stand in a record's values; upper and lower case are the same.
    search: Option<String>,
    /// The property to sort by: numbers as numbers, dates as dates, selects in the order of their options. Records
    /// without a value come last. Left out: by creation.
    #[schema(format = "uuid")]
    sort_field_id: Option<String>,
    /// The direction; `asc` when left out.
    #[param(inline)]
    sort_direction: Option<SortOrder>,
    /// Several sorts as a JSON list, behind `sortFieldId`: `[{"fieldId": "…", "direction": "desc"}]`.
    sorts: Option<String>,
    /// The property to filter on.
    #[schema(format = "uuid")]
    filter_field_id: Option<String>,
    /// `contains`, `equals`, `not_equals`, `is_empty`, `is_not_empty`, and those of `filter`.
    filter_operator: Option<String>,
    /// What to compare with.
    filter_value: Option<String>,
    /// A JSON tree of `{"and": […]}`, `{"or": […]}` and `{"fieldId": "…", "operator": "gte", "value": 5}` with the
    /// operators equals, not_equals, contains, in, gt, gte, lt, lte, before, after, is_empty, is_not_empty.
    filter: Option<String>,
    /// Applies a saved view: its filters and, unless sorts are given, its sorts.
    #[schema(format = "uuid")]
    view_id: Option<String>,
    /// How many at once: 1 to 200, 50 when left out.
    #[schema(minimum = 1, maximum = 200)]
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// How many to skip.
    #[schema(minimum = 0)]
    offset: Option<u64>,
}

/// Which records, and by what they are grouped.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct GroupRecords {
    /// The property whose values make the groups. A record that has several values is in several groups.
    #[schema(format = "uuid")]
    group_by: String,
    /// Of a date property, what makes a group: `day`, which it is when left out, `month` or `year`, in UTC.
    #[param(inline)]
    date_unit: Option<DateUnit>,
    /// `asc` and `desc` by value, `count` by the number of records, the most first. Left out: `asc` where values have an
    /// order of their own (options, truth values, numbers, dates), otherwise `count`.
    #[param(inline)]
    order: Option<GroupOrder>,
    /// A property of numbers or dates that is summed up for each group; given several times, each of them.
    #[serde(default)]
    #[schema(required = false, max_items = 10)]
    #[param(required = false, max_items = 10)]
    summarize: Vec<String>,
    /// Words that must all stand in a record's values; upper and lower case are the same.
    search: Option<String>,
    /// The property to filter on.
    #[schema(format = "uuid")]
    filter_field_id: Option<String>,
    /// `contains`, `equals`, `not_equals`, `is_empty`, `is_not_empty`, and those of `filter`.
    filter_operator: Option<String>,
    /// What to compare with.
    filter_value: Option<String>,
    /// A JSON tree of conditions, as for the list of records.
    filter: Option<String>,
    /// Applies the filters of a saved view.
    #[schema(format = "uuid")]
    view_id: Option<String>,
}

/// Which versions to list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListVersions {
    /// How many at once: 1 to 1000, 1000 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// Which backlinks to list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListBacklinks {
    /// How many at once: 1 to 1000, 1000 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// A version of a record in the path.
#[derive(Debug)]
pub(super) struct VersionPath {
    database: DatabaseId,
    record: RecordId,
    version: u64,
}

impl<S: Send + Sync> FromRequestParts<S> for VersionPath {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let no_such = || Error::from(Problem::not_found("there is nothing with that id in this workspace"));
        let read = Path::<(String, String, String)>::from_request_parts(parts, state).await;
        let Path((database, record, version)) = read.map_err(|_| no_such())?;
        Ok(Self {
            database: database.parse().map_err(|_| no_such())?,
            record: record.parse().map_err(|_| no_such())?,
            version: version.parse().map_err(|_| no_such())?,
        })
    }
}

/// List records.
#[utoipa::path(
    get, path = "/api/v1/databases/{databaseId}/records", operation_id = "queryRecords", tag = "Records",
    params(("databaseId" = String, Path, format = "uuid", description = "The database."), ListRecords),
    responses((status = 200, description = "A page of records.", body = RecordPage)),
)]
pub(super) async fn list(
    context: Context,
    PathId(id): PathId<DatabaseId>,
    Query(query): Query<ListRecords>,
) -> Answer {
    let selection = Selection {
        record_id: query.record_id,
        search: query.search,
        sort_field_id: query.sort_field_id,
        sort_direction: query.sort_direction,
        sorts: query.sorts,
        filter_field_id: query.filter_field_id,
        filter_operator: query.filter_operator,
        filter_value: query.filter_value,
        filter: query.filter.as_deref().map(records::read_filter).transpose()?,
        view_id: query.view_id,
        limit: query.limit,
        offset: query.offset,
        allow_names: false,
    };
    Ok(JsonBody(records::list(&context, id, selection).await?).into_response())
}

/// Count records by the values of a property, with sums and bounds of others.
#[utoipa::path(
    get, path = "/api/v1/databases/{databaseId}/records/groups", operation_id = "groupRecords", tag = "Records",
    params(("databaseId" = String, Path, format = "uuid", description = "The database."), GroupRecords),
    responses((status = 200, description = "The groups.", body = RecordGroups)),
)]
pub(super) async fn groups(
    context: Context,
    PathId(id): PathId<DatabaseId>,
    Query(query): Query<GroupRecords>,
) -> Answer {
    let selection = Selection {
        search: query.search,
        filter_field_id: query.filter_field_id,
        filter_operator: query.filter_operator,
        filter_value: query.filter_value,
        filter: query.filter.as_deref().map(records::read_filter).transpose()?,
        view_id: query.view_id,
        ..Selection::default()
    };
    let grouping = Grouping {
        group_by: query.group_by,
        date_unit: query.date_unit,
        order: query.order,
        summarize: query.summarize,
    };
    Ok(JsonBody(records::groups(&context, id, selection, grouping).await?).into_response())
}

/// Create a record.
#[utoipa::path(
    post, path = "/api/v1/databases/{databaseId}/records", operation_id = "createRecord", tag = "Records",
    request_body = CreateRecord,
    params(("databaseId" = String, Path, format = "uuid", description = "The database.")),
    responses((status = 201, description = "The record.", body = Record,
        headers(("ETag" = String, description = "The version, for `If-Match`.")))),
)]
pub(super) async fn create(
    context: Context,
    PathId(id): PathId<DatabaseId>,
    Json(input): Json<CreateRecord>,
) -> Answer {
    Ok(tagged(StatusCode::CREATED, records::create(&context, id, input, false).await?))
}

/// Make a record of each row of a table (CSV), or of none: every row is checked before the first is written.
///
/// `errors` of a 400 name the first of what is wrong at paths such as `rows[17].Points`; the row with the names is row 1.
#[utoipa::path(
    post, path = "/api/v1/databases/{databaseId}/records/csv", operation_id = "createRecordsOfTable", tag = "Records",
    request_body = ImportTable,
    params(("databaseId" = String, Path, format = "uuid", description = "The database.")),
    responses(
        (status = 201, description = "The records are made.", body = ImportedTable),
        (status = 200, description = "What would become of the table: a dry run.", body = ImportedTable),
    ),
)]
pub(super) async fn import(
    context: Context,
    PathId(id): PathId<DatabaseId>,
    Json(input): Json<ImportTable>,
) -> Answer {
    if input.dry_run {
        return Ok(JsonBody(records::import(&context, id, input).await?.value).into_response());
    }
    Ok(written(StatusCode::CREATED, records::import(&context, id, input).await?))
}

/// Read one record.
#[utoipa::path(
    get, path = "/api/v1/databases/{databaseId}/records/{recordId}", operation_id = "getRecord", tag = "Records",
    params(
        ("databaseId" = String, Path, format = "uuid", description = "The database."),
        ("recordId" = String, Path, format = "uuid", description = "The record."),
    ),
    responses((status = 200, description = "The record.", body = Record,
        headers(("ETag" = String, description = "The version, for `If-Match`.")))),
)]
pub(super) async fn get(context: Context, PathIds(id, record): PathIds<DatabaseId, RecordId>) -> Answer {
    let record = records::get(&context, id, record).await?;
    let tag = etag(&record);
    let mut response = JsonBody(record).into_response();
    response.headers_mut().extend(tag);
    Ok(response)
}

/// Change a record: values are merged, and a version is saved.
#[utoipa::path(
    patch, path = "/api/v1/databases/{databaseId}/records/{recordId}", operation_id = "updateRecord", tag = "Records",
    request_body = UpdateRecord,
    params(
        ("databaseId" = String, Path, format = "uuid", description = "The database."),
        ("recordId" = String, Path, format = "uuid", description = "The record."),
        ("If-Match" = Option<String>, Header, description = "Change the record only while it has this version."),
    ),
    responses(
        (status = 200, description = "The record as it is now.", body = Record,
            headers(("ETag" = String, description = "The version, for `If-Match`."))),
        (status = 409, description = "The record has another version.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn update(
    context: Context,
    PathIds(id, record): PathIds<DatabaseId, RecordId>,
    headers: HeaderMap,
    Json(input): Json<UpdateRecord>,
) -> Answer {
    let if_version = required_versions(&headers, input.version);
    let updated = records::update(&context, id, record, input, if_version, false).await?;
    Ok(tagged(StatusCode::OK, updated))
}

/// The versions accepted by `If-Match`. 0, which no record has, stands for tags that match nothing.
fn required_versions(headers: &HeaderMap, version: Option<u64>) -> Vec<u64> {
    let named = conditional::required(headers).into_iter().map(|tag| tag.parse().unwrap_or(0));
    let named: Vec<u64> = named.collect();
    match version {
        None => named,
        Some(version) if named.is_empty() || named.contains(&version) => vec![version],
        Some(_) => vec![0],
    }
}

/// Move a record to trash.
#[utoipa::path(
    delete, path = "/api/v1/databases/{databaseId}/records/{recordId}", operation_id = "deleteRecord", tag = "Records",
    params(
        ("databaseId" = String, Path, format = "uuid", description = "The database."),
        ("recordId" = String, Path, format = "uuid", description = "The record."),
    ),
    responses((status = 204, description = "The record is in trash.")),
)]
pub(super) async fn delete(context: Context, PathIds(id, record): PathIds<DatabaseId, RecordId>) -> Answer {
    Ok(done(&records::delete(&context, id, record).await?))
}

/// Bring a record back from trash.
#[utoipa::path(
    post, path = "/api/v1/databases/{databaseId}/records/{recordId}/restore", operation_id = "restoreRecord",
    tag = "Records",
    params(
        ("databaseId" = String, Path, format = "uuid", description = "The database."),
        ("recordId" = String, Path, format = "uuid", description = "The record."),
    ),
    responses((status = 200, description = "The record.", body = Record)),
)]
pub(super) async fn restore(context: Context, PathIds(id, record): PathIds<DatabaseId, RecordId>) -> Answer {
    Ok(tagged(StatusCode::OK, records::restore(&context, id, record).await?))
}

/// Remove a trashed record for good, with its versions.
#[utoipa::path(
    delete, path = "/api/v1/databases/{databaseId}/records/{recordId}/permanent",
    operation_id = "deleteRecordPermanently", tag = "Records",
    params(
        ("databaseId" = String, Path, format = "uuid", description = "The database."),
        ("recordId" = String, Path, format = "uuid", description = "The record."),
    ),
    responses((status = 204, description = "The record is gone.")),
)]
pub(super) async fn purge(context: Context, PathIds(id, record): PathIds<DatabaseId, RecordId>) -> Answer {
    Ok(done(&records::purge(&context, id, record).await?))
}

/// List the versions of a record, the newest first.
#[utoipa::path(
    get, path = "/api/v1/databases/{databaseId}/records/{recordId}/versions", operation_id = "listRecordVersions",
    tag = "Records",
    params(
        ("databaseId" = String, Path, format = "uuid", description = "The database."),
        ("recordId" = String, Path, format = "uuid", description = "The record."),
        ListVersions,
    ),
    responses((status = 200, description = "The versions.", body = Vec<RecordVersion>)),
)]
pub(super) async fn versions(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    context: Context,
    PathIds(id, record): PathIds<DatabaseId, RecordId>,
    Query(query): Query<ListVersions>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(records::versions(&context, id, record, page).await?, &uri, &links))
}

/// Make a record what it was at a version, as a new version.
#[utoipa::path(
    post, path = "/api/v1/databases/{databaseId}/records/{recordId}/versions/{version}/restore",
    operation_id = "restoreRecordVersion", tag = "Records",
    params(
        ("databaseId" = String, Path, format = "uuid", description = "The database."),
        ("recordId" = String, Path, format = "uuid", description = "The record."),
        ("version" = u64, Path, description = "The version."),
    ),
    responses((status = 200, description = "The record as it is now.", body = Record)),
)]
pub(super) async fn restore_version(context: Context, path: VersionPath) -> Answer {
    let restored = records::restore_version(&context, path.database, path.record, path.version).await?;
    Ok(tagged(StatusCode::OK, restored))
}

/// List the records that name a file, by a property or as their body.
#[utoipa::path(
    get, path = "/api/v1/files/{fileId}/database-backlinks", operation_id = "getDatabaseBacklinks", tag = "Records",
    params(("fileId" = String, Path, format = "uuid", description = "The file."), ListBacklinks),
    responses((status = 200, description = "The records, the oldest first.", body = Vec<Backlink>)),
)]
pub(super) async fn backlinks(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    context: Context,
    PathId(id): PathId<FileId>,
    Query(query): Query<ListBacklinks>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(records::backlinks(&context, id, page).await?, &uri, &links))
}

fn tagged(status: StatusCode, record: Written<Record>) -> Response {
    let tag = etag(&record.value);
    let mut response = written(status, record);
    response.headers_mut().extend(tag);
    response
}

fn etag(record: &Record) -> Option<(header::HeaderName, HeaderValue)> {
    HeaderValue::from_str(&format!("\"{}\"", record.version)).ok().map(|tag| (header::ETAG, tag))
}
