//! Memories (spec 4.3).

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts, OriginalUri, State};
use axum::response::IntoResponse as _;
use cairn_chassis::call::Call;
use cairn_chassis::status::Problem;
use cairn_proto::ids::{MemberId, MemoryId, WorkspaceId};
use http::StatusCode;
use http::request::Parts;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{Answer, done, paging, written};
use crate::answers::{Links, Member, Memory, ResolvedMemory};
use crate::auth::{self, Caller};
use crate::error::Error;
use crate::extract::{Json, PathId, PathIds, Query};
use crate::json_body::JsonBody;
use crate::operations::memories::{self, AddMembers, CreateMemory, Membership, MoveMember, UpdateMemory};
use crate::operations::past_moment::PastMoment;
use crate::operations::{Context, Paging};
use crate::rate_limit::Limits;
use crate::schema::inputs;
use crate::upstreams::Upstreams;

inputs!(ListMemories, ReadMemory, ExportMemory);

/// Which memories to list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListMemories {
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
pub(super) struct ReadMemory {
    /// As it stood at that time (RFC 3339), or after the write that answered this change token: its version of then, with the files
    /// of then. The note `not_kept` says what is not known of then.
    #[schema(max_length = 64)]
    as_of: Option<String>,
}

/// Where to look for a memory without a token.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ExportMemory {
    /// Without a token: the workspace that the slug belongs to. A token names its workspace itself.
    #[schema(format = "uuid")]
    #[param(format = "uuid")]
    workspace_id: Option<String>,
}

/// The caller of an export: a token or an anonymous client.
#[derive(Debug)]
pub(super) struct Anybody {
    call: Call,
    has_token: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for Anybody
where
    Arc<Limits>: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        if let Some(caller) = parts.extensions.get::<Caller>() {
            return Ok(Self { call: caller.call.clone(), has_token: true });
        }
        Arc::<Limits>::from_ref(state).public_read(parts).await?;
        Ok(Self { call: auth::call_of(parts), has_token: false })
    }
}

/// List memories, with their members and without contents.
#[utoipa::path(
    get, path = "/api/v1/memories", operation_id = "listMemories", tag = "Memories", params(ListMemories),
    responses((status = 200, description = "The memories, by name.", body = Vec<Memory>)),
)]
pub(super) async fn list(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    context: Context,
    Query(query): Query<ListMemories>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(memories::list(&context, page).await?, &uri, &links))
}

/// Create a memory.
#[utoipa::path(
    post, path = "/api/v1/memories", operation_id = "createMemory", tag = "Memories", request_body = CreateMemory,
    responses(
        (status = 201, description = "The memory that was made.", body = Memory),
        (status = 409, description = "Another memory has that slug.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn create(context: Context, Json(input): Json<CreateMemory>) -> Answer {
    Ok(written(StatusCode::CREATED, memories::create(&context, input).await?))
}

/// Read a memory with the contents of its members, as they are or as they were.
#[utoipa::path(
    get, path = "/api/v1/memories/{id}", operation_id = "getMemory", tag = "Memories",
    params(("id" = String, Path, description = "The memory's id or slug."), ReadMemory),
    responses(
        (status = 200, description = "The memory, and notes on what is left out.", body = ResolvedMemory),
        (status = 410, description = "`asOf` is longer ago than it is known how things stood.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn get(
    context: Context,
    PathId(named): PathId<String>,
    Query(query): Query<ReadMemory>,
) -> Answer {
    let moment = PastMoment::read(query.as_of.as_deref(), None)?;
    Ok(JsonBody(memories::get(&context, named, moment).await?).into_response())
}

/// Change a memory.
///
/// Fields that are left out stay as they are.
#[utoipa::path(
    patch, path = "/api/v1/memories/{id}", operation_id = "updateMemory", tag = "Memories",
    request_body = UpdateMemory,
    params(("id" = String, Path, format = "uuid", description = "The memory's id.")),
    responses(
        (status = 200, description = "The memory as it is now.", body = Memory),
        (status = 409, description = "Another memory has that slug.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn update(
    context: Context,
    PathId(id): PathId<MemoryId>,
    Json(input): Json<UpdateMemory>,
) -> Answer {
    let updated = memories::update(&context, id.to_string(), input, Membership::default()).await?;
    Ok(written(StatusCode::OK, updated))
}

/// Remove a memory for good; what its members refer to stays.
#[utoipa::path(
    delete, path = "/api/v1/memories/{id}", operation_id = "deleteMemory", tag = "Memories",
    params(("id" = String, Path, format = "uuid", description = "The memory's id.")),
    responses((status = 204, description = "The memory is gone.")),
)]
pub(super) async fn delete(context: Context, PathId(id): PathId<MemoryId>) -> Answer {
    Ok(done(&memories::delete(&context, id).await?))
}

/// Add members to a memory.
#[utoipa::path(
    post, path = "/api/v1/memories/{id}/members", operation_id = "createMembers", tag = "Memories",
    request_body = AddMembers,
    params(("id" = String, Path, format = "uuid", description = "The memory.")),
    responses((status = 201, description = "The members that were added.", body = Vec<Member>)),
)]
pub(super) async fn add_members(
    context: Context,
    PathId(id): PathId<MemoryId>,
    Json(input): Json<AddMembers>,
) -> Answer {
    Ok(written(StatusCode::CREATED, memories::add_members(&context, id, input).await?))
}

/// Put a member of a memory at another place.
#[utoipa::path(
    patch, path = "/api/v1/memories/{id}/members/{memberId}", operation_id = "updateMember", tag = "Memories",
    request_body = MoveMember,
    params(
        ("id" = String, Path, format = "uuid", description = "The memory."),
        ("memberId" = String, Path, format = "uuid", description = "The member."),
    ),
    responses((status = 200, description = "The memory as it is now.", body = Memory)),
)]
pub(super) async fn move_member(
    context: Context,
    PathIds(id, member): PathIds<MemoryId, MemberId>,
    Json(input): Json<MoveMember>,
) -> Answer {
    Ok(written(StatusCode::OK, memories::move_member(&context, id, member, input).await?))
}

/// Take a member out of a memory.
#[utoipa::path(
    delete, path = "/api/v1/memories/{id}/members/{memberId}", operation_id = "deleteMember", tag = "Memories",
    params(
        ("id" = String, Path, format = "uuid", description = "The memory."),
        ("memberId" = String, Path, format = "uuid", description = "The member."),
    ),
    responses((status = 204, description = "The member is gone; what it referred to stays.")),
)]
pub(super) async fn remove_member(
    context: Context,
    PathIds(id, member): PathIds<MemoryId, MemberId>,
) -> Answer {
    Ok(done(&memories::remove_member(&context, id, member).await?))
}

/// Export a memory with the current contents of its members.
///
/// Without a token it serves a public memory only, by the memory's id, or by its slug with `workspaceId`.
#[utoipa::path(
    get, path = "/api/v1/memories/{slug}/export", operation_id = "exportMemory", tag = "Memories",
    params(("slug" = String, Path, description = "The memory's slug or id."), ExportMemory),
    responses((status = 200, description = "The memory, and notes on what is left out.", body = ResolvedMemory)),
    security((), ("bearer" = [])),
)]
pub(super) async fn export(
    State(upstreams): State<Arc<Upstreams>>,
    State(links): State<Arc<Links>>,
    Anybody { call, has_token }: Anybody,
    PathId(slug): PathId<String>,
    Query(query): Query<ExportMemory>,
) -> Answer {
    let workspace: Option<WorkspaceId> = query.workspace_id.and_then(|text| text.parse().ok());
    if !has_token && workspace.is_none() && slug.parse::<MemoryId>().is_err() {
        let message = "a slug belongs to a workspace: name it with ?workspaceId=, or send \
                       `Authorization: Bearer <API_TOKEN>`, or give a public memory's id in the slug's place";
        return Err(Problem::unauthorized(message).into());
    }
    Ok(JsonBody(memories::export(&upstreams, &links, &call, slug, workspace).await?).into_response())
}

#[cfg(test)]
mod tests;
