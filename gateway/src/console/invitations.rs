//! Invitations: of a workspace, and what the holder of a link may do with it. The secret of a link travels in bodies
//! only.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequest as _, Request, State};
use axum::response::IntoResponse as _;
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::auth::v1 as proto;
use cairn_proto::ids::{InvitationId, WorkspaceId};
use http::{StatusCode, header};
use serde::Deserialize;
use utoipa::ToSchema;

use super::Answer;
use crate::answers::{Invitation, InvitationOffer, Session};
use crate::app::App;
use crate::auth::{self, Authenticator};
use crate::extract::{Json, PathId, PathIds};
use crate::intake::Intake;
use crate::json_body::JsonBody;
use crate::operations::invitations;
use crate::operations::person::Person;
use crate::operations::sessions::Sessions;
use crate::rate_limit::Limits;
use crate::schema::inputs;
use crate::upstreams::Upstreams;

inputs!(LookUp, Accept);

/// The link's secret.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LookUp {
    #[schema(min_length = 1, max_length = 256)]
    secret: String,
}

/// The link's secret, and the account: the one of the email that was invited, when the password is that account's, else a
/// new one. A person who is signed in leaves name and password out.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Accept {
    #[schema(min_length = 1, max_length = 256)]
    secret: String,
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    #[schema(min_length = 1, max_length = 1024)]
    password: Option<String>,
}

/// List the open invitations of a workspace; for owners and admins.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/invitations", operation_id = "listInvitations", tag = "Invitations",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "The invitations.", body = Vec<Invitation>)),
)]
pub(super) async fn list(person: Person, PathId(workspace): PathId<WorkspaceId>) -> Answer {
    Ok(JsonBody(invitations::list(&person, workspace).await?).into_response())
}

/// Take an invitation back; for owners and admins.
#[utoipa::path(
    delete, path = "/api/workspaces/{id}/invitations/{invitationId}", operation_id = "deleteInvitation", tag = "Invitations",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("invitationId" = String, Path, format = "uuid", description = "The invitation.")),
    responses((status = 204, description = "Its link opens nothing any more.")),
)]
pub(super) async fn delete(
    person: Person,
    PathIds(workspace, invitation): PathIds<WorkspaceId, InvitationId>,
) -> Answer {
    invitations::delete(&person, workspace, invitation).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Read what the link of an invitation is for.
#[utoipa::path(
    post, path = "/api/invitations/look-up", operation_id = "lookUpInvitation", tag = "Invitations",
    request_body = LookUp,
    responses((status = 200, description = "The workspace, and who invites whom.", body = InvitationOffer)),
)]
pub(super) async fn look_up(
    State(upstreams): State<Arc<Upstreams>>,
    State(limits): State<Arc<Limits>>,
    State(intake): State<Arc<Intake>>,
    request: Request,
) -> Answer {
    let (parts, body) = request.into_parts();
    limits.open_body(&parts).await?;
    let call = auth::call_of(&parts);
    let Json(input) = Json::<LookUp>::from_request(Request::from_parts(parts, body), &intake).await?;
    let found = invitations::look_up(&upstreams, &call, input.secret).await?;
    Ok(JsonBody(InvitationOffer::from(found)).into_response())
}

/// State for accepting an invitation, as JSON or on the page: the caller is only known once the body is read.
#[derive(Clone)]
pub(super) struct AcceptState {
    pub(super) upstreams: Arc<Upstreams>,
    pub(super) authenticator: Arc<Authenticator>,
    pub(super) sessions: Sessions,
    pub(super) limits: Arc<Limits>,
    pub(super) intake: Arc<Intake>,
}

impl FromRef<App> for AcceptState {
    fn from_ref(app: &App) -> Self {
        Self {
            upstreams: FromRef::from_ref(app),
            authenticator: FromRef::from_ref(app),
            sessions: FromRef::from_ref(app),
            limits: FromRef::from_ref(app),
            intake: FromRef::from_ref(app),
        }
    }
}

/// Accept an invitation by its link: with the account of the invited email, a new one, or as the signed-in person.
#[utoipa::path(
    post, path = "/api/invitations/accept", operation_id = "acceptInvitation", tag = "Invitations",
    request_body = Accept,
    responses(
        (status = 200, description = "The signed-in person is a member.", body = Session),
        (status = 201, description = "The account is a member and signed in; the answer sets the cookie.", body = Session),
    ),
)]
pub(super) async fn accept(State(accepting): State<AcceptState>, request: Request) -> Answer {
    let AcceptState { upstreams, authenticator, sessions, limits, intake } = accepting;
    let (parts, body) = request.into_parts();
    limits.open_body(&parts).await?;
    let head = parts.clone();
    let person = authenticator.person(&parts).await;
    let Json(input) = Json::<Accept>::from_request(Request::from_parts(parts, body), &intake).await?;
    let Some((name, password)) = new_account(input.name, input.password)? else {
        let person = person?;
        invitations::join(&upstreams, &person.call, input.secret).await?;
        return Ok(JsonBody(sessions.read(&person.call).await?).into_response());
    };
    let message = proto::AcceptInvitationRequest {
        secret: input.secret,
        name,
        password,
        source_address: None,
        agent: String::new(),
    };
    let accepted = sessions.accept_invitation(&head, message).await?;
    let cookie = sessions.cookie(&accepted.session_secret, accepted.expires_at.as_ref())?;
    let session = Session::read(accepted.user, accepted.memberships, accepted.pending_invitations);
    Ok((StatusCode::CREATED, [(header::SET_COOKIE, cookie)], JsonBody(session)).into_response())
}

/// Accept an invitation that waits for the signed-in person's verified email.
#[utoipa::path(
    post, path = "/api/invitations/{id}/accept", operation_id = "acceptPendingInvitation", tag = "Invitations",
    params(("id" = String, Path, format = "uuid", description = "The invitation.")),
    responses((status = 200, description = "Who is signed in, with workspaces and roles.", body = Session)),
)]
pub(super) async fn accept_pending(
    State(sessions): State<Sessions>,
    person: Person,
    PathId(id): PathId<InvitationId>,
) -> Answer {
    invitations::accept_pending(&person, id).await?;
    Ok(JsonBody(sessions.read(&person.call).await?).into_response())
}

/// Decline an invitation that waits for the signed-in person's verified email.
#[utoipa::path(
    post, path = "/api/invitations/{id}/decline", operation_id = "declinePendingInvitation", tag = "Invitations",
    params(("id" = String, Path, format = "uuid", description = "The invitation.")),
    responses((status = 204, description = "The invitation has ended.")),
)]
pub(super) async fn decline_pending(person: Person, PathId(id): PathId<InvitationId>) -> Answer {
    invitations::decline_pending(&person, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Name and password belong together; without both, the signed-in person accepts.
fn new_account(name: Option<String>, password: Option<String>) -> Result<Option<(String, String)>, Problem> {
    let missing = |path: &str| {
        let message = "is required to make an account; a person who is signed in leaves out both";
        Err(Problem::validation(vec![Violation::new(path, "required", message)]))
    };
    match (name, password) {
        (Some(name), Some(password)) => Ok(Some((name, password))),
        (None, None) => Ok(None),
        (Some(_), None) => missing("password"),
        (None, Some(_)) => missing("name"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_account_is_a_mistake() {
        let given = |name: Option<&str>, password: Option<&str>| {
            new_account(name.map(ToOwned::to_owned), password.map(ToOwned::to_owned))
        };
        assert_eq!(given(None, None), Ok(None));
        assert_eq!(given(Some("a"), Some("b")), Ok(Some(("a".to_owned(), "b".to_owned()))));
        assert_eq!(given(Some("a"), None).unwrap_err().violations[0].path, "password");
        assert_eq!(given(None, Some("b")).unwrap_err().violations[0].path, "name");
    }
}
