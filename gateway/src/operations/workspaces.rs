//! The workspaces of a signed-in person.

use cairn_chassis::status::Problem;
use cairn_proto::auth::v1 as proto;
use cairn_proto::domain::Publishers;
use cairn_proto::ids::WorkspaceId;
use serde::Deserialize;
use utoipa::ToSchema;

use super::person::Person;
use super::{answered, null_or_value, present, questions};
use crate::answers::Workspace;
use crate::schema::inputs;

inputs!(CreateWorkspace, UpdateWorkspace);

/// A workspace to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateWorkspace {
    #[schema(min_length = 1, max_length = 100)]
    name: String,
}

/// Changes of a workspace: fields that are left out stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(min_properties = 1)]
pub(crate) struct UpdateWorkspace {
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 100)]
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
    /// For how many days what is asked is kept, 7, 30 or 90, or null to keep nothing, which is so until an owner says otherwise.
    /// Only an owner may change it. What is then too old goes at once: with null, everything.
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<u32>)]
    question_log_days: Option<Option<u32>>,
}

/// The live workspaces of the person, or the deleted ones they own and can restore.
pub(crate) async fn list(person: &Person, deleted: bool) -> Result<Vec<Workspace>, Problem> {
    let message = person.call.request(proto::ListWorkspacesRequest { deleted });
    let listed = answered(person.upstreams.workspaces().list_workspaces(message).await)?;
    Ok(listed.memberships.into_iter().map(Into::into).collect())
}

pub(crate) async fn create(person: &Person, input: CreateWorkspace) -> Result<Workspace, Problem> {
    let message = person.call.request(proto::CreateWorkspaceRequest { name: input.name });
    let created = answered(person.upstreams.workspaces().create_workspace(message).await)?;
    Ok(present(created.membership)?.into())
}

pub(crate) async fn get(person: &Person, id: WorkspaceId) -> Result<Workspace, Problem> {
    let message = person.call.request(proto::GetWorkspaceRequest { workspace_id: id.to_string() });
    let found = answered(person.upstreams.workspaces().get_workspace(message).await)?;
    Ok(present(found.membership)?.into())
}

pub(crate) async fn update(
    person: &Person,
    id: WorkspaceId,
    input: UpdateWorkspace,
) -> Result<Workspace, Problem> {
    let given = [
        ("name", input.name.is_some()),
        ("plan", input.plan.is_some()),
        ("publishers", input.publishers.is_some()),
        ("question_log_days", input.question_log_days.is_some()),
    ];
    let paths =
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(field, _)| field.to_owned()).collect();
    let message = person.call.request(proto::UpdateWorkspaceRequest {
        workspace_id: id.to_string(),
        name: input.name.unwrap_or_default(),
        plan: input.plan.unwrap_or_default(),
        publishers: input.publishers.map(Publishers::number).unwrap_or_default(),
        question_log_days: input.question_log_days.flatten(),
        update_mask: Some(prost_types::FieldMask { paths }),
    });
    let updated = answered(person.upstreams.workspaces().update_workspace(message).await)?;
    if let Some(days) = input.question_log_days {
        questions::keep(person, days).await?;
    }
    Ok(present(updated.membership)?.into())
}

/// Deletes a workspace; its owner can restore it until `purgeAt`.
pub(crate) async fn delete(person: &Person, id: WorkspaceId) -> Result<(), Problem> {
    let message = person.call.request(proto::DeleteWorkspaceRequest { workspace_id: id.to_string() });
    answered(person.upstreams.workspaces().delete_workspace(message).await).map(drop)
}

pub(crate) async fn restore(person: &Person, id: WorkspaceId) -> Result<Workspace, Problem> {
    let message = person.call.request(proto::RestoreWorkspaceRequest { workspace_id: id.to_string() });
    let restored = answered(person.upstreams.workspaces().restore_workspace(message).await)?;
    Ok(present(restored.membership)?.into())
}
