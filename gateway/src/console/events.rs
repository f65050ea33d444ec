//! Live events of a workspace, as server-sent events.

use std::sync::Arc;

use axum::extract::State;
use http::request::Parts;

use super::Answer;
use crate::auth::{Authenticator, Member};
use crate::events::{self, Events};

/// Follow what happens in a workspace, as server-sent events: ids and kinds, no texts.
///
/// `ready` comes first; then `change` (`feed`, `position`, `kind`, `id`, `op`) for each item that was written or went, `changes` for
/// more of them than are told one by one, `index` (`state`, `behind`), `run` (`kind`, `id`, `status`), `token` (`kind`, `id`) for a token
/// or an app of the person (of an owner or admin: of anybody) that was used, `call` (`principalKind`, `principalId`, `channel`, `tool`,
/// `results`, `failed`, `ms`, `at`) for a call of an agent that this server has answered. Ids are positions of the feeds: sent back as
/// `Last-Event-ID`, they say from where changes are told. A stream ends with the session, with the membership, and when the server
/// goes down.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/events", operation_id = "followEvents", tag = "Workspaces",
    params(
        ("id" = String, Path, format = "uuid", description = "The workspace."),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that arrived."),
    ),
    responses((status = 200, description = "The events.", body = String, content_type = "text/event-stream")),
)]
pub(super) async fn follow(
    State(events): State<Arc<Events>>,
    State(authenticator): State<Arc<Authenticator>>,
    member: Member,
    parts: Parts,
) -> Answer {
    events::stream(&events, &authenticator, &member, &parts).await
}
