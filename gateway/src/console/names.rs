//! Finds folders, databases and memories of a workspace by name.

use axum::response::IntoResponse as _;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::Answer;
use crate::answers::FoundNames;
use crate::extract::Query;
use crate::json_body::JsonBody;
use crate::operations::names;
use crate::operations::person::Person;
use crate::schema::inputs;

inputs!(FindNames);

/// What is looked for.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct FindNames {
    /// A part of the name, whatever the case.
    #[schema(min_length = 1, max_length = 255)]
    #[param(min_length = 1, max_length = 255)]
    query: String,
    /// How many of each kind: 1 to 100, 20 when left out.
    #[schema(minimum = 1, maximum = 100)]
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
}

/// Find folders, databases and memories by a part of their names.
///
/// Of each kind the 100 000 oldest are looked through; `isPart` says that there are more.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/names", operation_id = "findNames", tag = "Workspaces",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), FindNames),
    responses((status = 200, description = "Folders, then databases, then memories; of each kind exact names first, then prefixes, then the rest.", body = FoundNames)),
)]
pub(super) async fn find(person: Person, Query(asked): Query<FindNames>) -> Answer {
    let found = names::find(&person.upstreams, &person.call, asked.query, asked.limit).await?;
    Ok(JsonBody(found).into_response())
}
