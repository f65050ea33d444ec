//! Workspaces of the signed-in person.

use axum::extract::State;
use axum::response::IntoResponse as _;
use cairn_proto::auth::v1 as proto;
use cairn_proto::domain::Publishers;
use cairn_proto::ids::WorkspaceId;
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Answer, answered, present};
use crate::answers::Workspace;
use crate::app::App;
use crate::auth::{Member, SignedIn};
use crate::extract::{Json, PathId, Query};
use crate::json_body::JsonBody;
use crate::schema::inputs;

inputs!(ListWorkspaces, CreateWorkspace, UpdateWorkspace);

/// Which workspaces.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListWorkspaces {
    /// Instead of those that live, the deleted ones that the person owns and can restore.
    deleted: Option<bool>,
}

/// A workspace to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateWorkspace {
    #[schema(min_length = 1, max_length = 255)]
    name: String,
}

/// Changes of a workspace: fields that are left out stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(min_properties = 1)]
pub(super) struct UpdateWorkspace {
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255)]
    name: Option<String>,
    /// Only the owner may change it.
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 64)]
    plan: Option<String>,
    /// Who may make memories public: `admins` (owners and admins, as long as nothing else is said), `editors` (these and
    /// editors) or `writers` (everybody who may write). What is public already stays so.
    #[serde(default)]
    #[schema(value_type = Publishers, required = false)]
    publishers: Option<Publishers>,
}

pub(super) async fn list(
    State(app): State<App>,
    person: SignedIn,
    Query(query): Query<ListWorkspaces>,
) -> Answer {
    let message =
        person.call.request(proto::ListWorkspacesRequest { deleted: query.deleted.unwrap_or_default() });
    let listed = answered(app.upstreams.workspaces().list_workspaces(message).await)?;
    let workspaces: Vec<Workspace> = listed.memberships.into_iter().map(Into::into).collect();
    Ok(JsonBody(workspaces).into_response())
}

pub(super) async fn create(
    State(app): State<App>,
    person: SignedIn,
    Json(input): Json<CreateWorkspace>,
) -> Answer {
    let message = person.call.request(proto::CreateWorkspaceRequest { name: input.name });
    let created = answered(app.upstreams.workspaces().create_workspace(message).await)?;
    Ok((StatusCode::CREATED, JsonBody(Workspace::from(present(created.membership)?))).into_response())
}

pub(super) async fn get(State(app): State<App>, person: SignedIn, PathId(id): PathId<WorkspaceId>) -> Answer {
    let message = person.call.request(proto::GetWorkspaceRequest { workspace_id: id.to_string() });
    let found = answered(app.upstreams.workspaces().get_workspace(message).await)?;
    Ok(JsonBody(Workspace::from(present(found.membership)?)).into_response())
}

pub(super) async fn update(
    State(app): State<App>,
    caller: Member,
    PathId(id): PathId<WorkspaceId>,
    Json(input): Json<UpdateWorkspace>,
) -> Answer {
    let given = [
        ("name", input.name.is_some()),
        ("plan", input.plan.is_some()),
        ("publishers", input.publishers.is_some()),
    ];
    let paths =
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(field, _)| field.to_owned()).collect();
    let message = caller.call.request(proto::UpdateWorkspaceRequest {
        workspace_id: id.to_string(),
        name: input.name.unwrap_or_default(),
        plan: input.plan.unwrap_or_default(),
        publishers: input.publishers.map(Publishers::number).unwrap_or_default(),
        update_mask: Some(prost_types::FieldMask { paths }),
    });
    let updated = answered(app.upstreams.workspaces().update_workspace(message).await)?;
    Ok(JsonBody(Workspace::from(present(updated.membership)?)).into_response())
}

pub(super) async fn delete(
    State(app): State<App>,
    person: SignedIn,
    PathId(id): PathId<WorkspaceId>,
) -> Answer {
    let message = person.call.request(proto::DeleteWorkspaceRequest { workspace_id: id.to_string() });
    answered(app.upstreams.workspaces().delete_workspace(message).await)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Takes a deleted workspace back, until `purgeAt`.
pub(super) async fn restore(
    State(app): State<App>,
    person: SignedIn,
    PathId(id): PathId<WorkspaceId>,
) -> Answer {
    let message = person.call.request(proto::RestoreWorkspaceRequest { workspace_id: id.to_string() });
    let restored = answered(app.upstreams.workspaces().restore_workspace(message).await)?;
    Ok(JsonBody(Workspace::from(present(restored.membership)?)).into_response())
}
