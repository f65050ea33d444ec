//! Files (spec 4.1).

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::{IntoResponse as _, Response};
use cairn_proto::ids::FileId;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{Answer, conditional, done, paging, written};
use crate::answers::{File, Links, content_type};
use crate::extract::{Json, PathId, Query};
use crate::json_body::JsonBody;
use crate::operations::file_versions;
use crate::operations::files::{self, CreateFile, Selection, UpdateFile};
use crate::operations::past_moment::PastMoment;
use crate::operations::{Context, Paging};
use crate::schema::inputs;

inputs!(ListFiles, ReadFile);

pub(super) const NO_SNIFF: (HeaderName, HeaderValue) =
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));

/// Which files to list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListFiles {
    /// Only the files of this folder, not of those below it; `root` for the root's own files. Left out: all files.
    folder_id: Option<String>,
    /// Only files that bear this tag; given several times, all of these tags.
    #[serde(default)]
    #[schema(required = false, max_items = 50)]
    #[param(required = false, max_items = 50)]
    tag: Vec<String>,
    /// How many at once: 1 to 1000, 1000 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// As what it is read; left out: as it is now.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ReadFile {
    /// As it stood at that time (RFC 3339), or after the write that answered this change token: name, path, tags and content.
    #[schema(max_length = 64)]
    as_of: Option<String>,
    /// With the content of that `contentHash`, which it has or had: what a citation was of. All else is as it is now.
    #[schema(max_length = 128)]
    hash: Option<String>,
}

/// List files, without their content.
#[utoipa::path(
    get, path = "/api/v1/files", operation_id = "listFiles", tag = "Files", params(ListFiles),
    responses((status = 200, description = "The files, by name.", body = Vec<File>)),
)]
pub(super) async fn list(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    context: Context,
    Query(query): Query<ListFiles>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    let selection = Selection::of_filter(query.folder_id)?.with_tags(query.tag);
    let listed = files::list(&context, selection, page).await?;
    Ok(paging::respond(listed, &uri, &links))
}

/// Create a file.
#[utoipa::path(
    post, path = "/api/v1/files", operation_id = "createFile", tag = "Files", request_body = CreateFile,
    responses((status = 201, description = "The file that was made.", body = File,
            headers(("ETag" = String, description = "Names the content, for `If-Match` and `If-None-Match`.")))),
)]
pub(super) async fn create(context: Context, Json(input): Json<CreateFile>) -> Answer {
    let created = files::create(&context, input).await?;
    let tag = conditional::etag(&created.value.content_hash);
    Ok(tagged(written(StatusCode::CREATED, created), tag))
}

/// Read a file with its content, as it is or as it was.
///
/// Takes `If-None-Match` with an entity tag that an earlier read answered. What the token may not read now it may not read as it
/// was, either: a file that is in trash, or that stood outside of its folders then.
#[utoipa::path(
    get, path = "/api/v1/files/{id}", operation_id = "getFile", tag = "Files",
    params(("id" = String, Path, format = "uuid", description = "The file."), ReadFile),
    responses(
        (status = 200, description = "The file.", body = File,
            headers(("ETag" = String, description = "Names the content, for `If-Match` and `If-None-Match`."))),
        (status = 304, description = "The content is the one that `If-None-Match` names."),
        (status = 410, description = "`asOf` is longer ago than it is known how files stood.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn get(
    context: Context,
    PathId(id): PathId<FileId>,
    Query(query): Query<ReadFile>,
    headers: HeaderMap,
) -> Answer {
    let moment = PastMoment::read(query.as_of.as_deref(), query.hash.as_deref())?;
    let file = file_versions::at(&context, id, moment).await?;
    let tag = conditional::etag(&file.content_hash);
    if conditional::is_current(&headers, &file.content_hash) {
        return Ok(tagged(StatusCode::NOT_MODIFIED.into_response(), tag));
    }
    Ok(tagged(JsonBody(file).into_response(), tag))
}

/// Change a file.
///
/// Fields that are left out stay as they are. Takes `If-Match` with an entity tag that a read answered.
#[utoipa::path(
    patch, path = "/api/v1/files/{id}", operation_id = "updateFile", tag = "Files", request_body = UpdateFile,
    params(
        ("id" = String, Path, format = "uuid", description = "The file."),
        ("If-Match" = Option<String>, Header, description = "Change the file only while it has this content."),
    ),
    responses(
        (status = 200, description = "The file as it is now, without its content.", body = File,
            headers(("ETag" = String, description = "Names the content, for `If-Match` and `If-None-Match`."))),
        (status = 409, description = "The content is not the one that `If-Match` names.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn update(
    context: Context,
    PathId(id): PathId<FileId>,
    headers: HeaderMap,
    Json(input): Json<UpdateFile>,
) -> Answer {
    let updated = files::update(&context, id, input, conditional::required(&headers)).await?;
    let tag = conditional::etag(&updated.value.content_hash);
    Ok(tagged(written(StatusCode::OK, updated), tag))
}

/// Move a file to trash.
#[utoipa::path(
    delete, path = "/api/v1/files/{id}", operation_id = "deleteFile", tag = "Files",
    params(("id" = String, Path, format = "uuid", description = "The file.")),
    responses((status = 204, description = "The file is in trash.")),
)]
pub(super) async fn delete(context: Context, PathId(id): PathId<FileId>) -> Answer {
    Ok(done(&files::delete(&context, id).await?))
}

/// Download a file as it is.
///
/// Takes `If-None-Match` with an entity tag that an earlier read answered.
#[utoipa::path(
    get, path = "/api/v1/files/{id}/raw", operation_id = "getFileRaw", tag = "Files",
    params(("id" = String, Path, format = "uuid", description = "The file."), ReadFile),
    responses(
        (status = 200, description = "The content.", content(
            (String = "text/markdown"), (String = "application/json"), (String = "text/yaml"), (String = "text/plain"),
        )),
        (status = 304, description = "The content is the one that `If-None-Match` names."),
    ),
)]
pub(super) async fn raw(
    context: Context,
    PathId(id): PathId<FileId>,
    Query(query): Query<ReadFile>,
    headers: HeaderMap,
) -> Answer {
    let moment = PastMoment::read(query.as_of.as_deref(), query.hash.as_deref())?;
    let file = file_versions::at(&context, id, moment).await?;
    let tag = conditional::etag(&file.content_hash);
    if conditional::is_current(&headers, &file.content_hash) {
        return Ok(tagged(StatusCode::NOT_MODIFIED.into_response(), tag));
    }
    let described = [
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type(&file))),
        (header::CONTENT_DISPOSITION, disposition(&file.name)),
        NO_SNIFF,
    ];
    Ok(tagged((described, file.content.unwrap_or_default()).into_response(), tag))
}

pub(super) fn tagged(mut response: Response, tag: Option<HeaderValue>) -> Response {
    if let Some(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// `Content-Disposition: attachment` (RFC 6266), so that a browser saves the file and never runs it on our origin:
/// an ASCII name for old clients, and the full name for the others.
pub(super) fn disposition(name: &str) -> HeaderValue {
    let plain: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || " ._-()".contains(letter) { letter } else { '_' })
        .collect();
    let value = format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{}", paging::encoded(name));
    HeaderValue::from_str(&value).unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_cannot_break_out_of_its_header() {
        let value = disposition("a\"; evil=\"\r\n é.md");
        assert_eq!(
            value,
            "attachment; filename=\"a__ evil____ _.md\"; filename*=UTF-8''a%22%3B%20evil%3D%22%0D%0A%20%C3%A9.md"
        );
    }
}
