//! Invitations: those of a workspace, and what the holder of a link may do with it. The secret of a link travels in
//! bodies only.

use axum::extract::{FromRequest as _, Request, State};
use axum::response::IntoResponse as _;
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::auth::v1 as proto;
use cairn_proto::ids::{InvitationId, WorkspaceId};
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use serde::Deserialize;
use tonic::Code;
use utoipa::ToSchema;

use super::{Answer, answered, session};
use crate::answers::{Invitation, InvitationOffer, Session};
use crate::app::App;
use crate::auth::{self, SignedIn};
use crate::error::{self, Error};
use crate::extract::{Json, PathId, PathIds};
use crate::json_body::JsonBody;
use crate::schema::inputs;

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
    #[schema(min_length = 1, max_length = 255)]
    name: Option<String>,
    #[schema(min_length = 1, max_length = 1024)]
    password: Option<String>,
}

pub(super) async fn list(
    State(app): State<App>,
    person: SignedIn,
    PathId(workspace): PathId<WorkspaceId>,
) -> Answer {
    let message = person.call.request(proto::ListInvitationsRequest { workspace_id: workspace.to_string() });
    let listed = answered(app.upstreams.invitations().list_invitations(message).await)?;
    let invitations: Vec<Invitation> = listed.invitations.into_iter().map(Into::into).collect();
    Ok(JsonBody(invitations).into_response())
}

pub(super) async fn delete(
    State(app): State<App>,
    person: SignedIn,
    PathIds(workspace, invitation): PathIds<WorkspaceId, InvitationId>,
) -> Answer {
    let message = person.call.request(proto::DeleteInvitationRequest {
        workspace_id: workspace.to_string(),
        invitation_id: invitation.to_string(),
    });
    answered(app.upstreams.invitations().delete_invitation(message).await)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// What a link is for.
pub(super) async fn look_up(State(app): State<App>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    app.limits.open_body(&parts).await?;
    let call = auth::call_of(&parts);
    let Json(input) = Json::<LookUp>::from_request(Request::from_parts(parts, body), &app).await?;
    let message = call.request(proto::LookUpInvitationRequest { secret: input.secret });
    let found = answered(app.upstreams.invitations().look_up_invitation(message).await)?;
    Ok(JsonBody(InvitationOffer::from(found)).into_response())
}

/// Makes a member of whoever has the account, or makes it, and signs in; or makes the signed-in person a member.
pub(super) async fn accept(State(app): State<App>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    app.limits.open_body(&parts).await?;
    let head = parts.clone();
    let person = auth::person(&parts, &app).await;
    let Json(input) = Json::<Accept>::from_request(Request::from_parts(parts, body), &app).await?;
    let Some((name, password)) = new_account(input.name, input.password)? else {
        return join(&app, person?, input.secret).await;
    };
    let message =
        proto::AcceptInvitationRequest { secret: input.secret, name, password, source_address: None };
    let accepted = open(&app, &head, message).await?;
    let cookie = cookie_of(&app, &accepted)?;
    let session = Session::read(accepted.user, accepted.memberships, accepted.pending_invitations);
    Ok((StatusCode::CREATED, [(header::SET_COOKIE, cookie)], JsonBody(session)).into_response())
}

/// Accepts with the account that the password opens, or a new one. A wrong password counts as at the sign-in: an
/// invitation must be no way to guess faster.
pub(super) async fn open(
    app: &App,
    parts: &Parts,
    message: proto::AcceptInvitationRequest,
) -> Result<proto::AcceptInvitationResponse, Problem> {
    let source = app.limits.source(parts);
    let attempt = app.limits.begin_sign_in(&parts.extensions, source).await?;
    let message = proto::AcceptInvitationRequest { source_address: Some(source.to_string()), ..message };
    let message = auth::call_of(parts).request(message);
    let accepted = app.upstreams.invitations().accept_invitation(message).await;
    if !accepted.as_ref().is_err_and(|status| status.code() == Code::Unauthenticated) {
        app.limits.forget_sign_in(attempt).await;
    }
    accepted.map(tonic::Response::into_inner).map_err(|status| error::from_upstream(&status))
}

/// The cookie of the session that an acceptance has opened.
pub(super) fn cookie_of(app: &App, accepted: &proto::AcceptInvitationResponse) -> Result<HeaderValue, Error> {
    let lifetime = session::lifetime(app, accepted.expires_at.as_ref());
    session::cookie(app, &accepted.session_secret, lifetime)
}

/// Accepts what waits for the signed-in person's verified email.
pub(super) async fn accept_pending(
    State(app): State<App>,
    person: SignedIn,
    PathId(id): PathId<InvitationId>,
) -> Answer {
    let message =
        person.call.request(proto::AcceptPendingInvitationRequest { invitation_id: id.to_string() });
    answered(app.upstreams.invitations().accept_pending_invitation(message).await)?;
    session::read(State(app.clone()), person).await
}

/// Ends what waits for the signed-in person's verified email.
pub(super) async fn decline_pending(
    State(app): State<App>,
    person: SignedIn,
    PathId(id): PathId<InvitationId>,
) -> Answer {
    let message =
        person.call.request(proto::DeclinePendingInvitationRequest { invitation_id: id.to_string() });
    answered(app.upstreams.invitations().decline_pending_invitation(message).await)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn join(app: &App, person: SignedIn, secret: String) -> Answer {
    let message = person.call.request(proto::JoinWorkspaceRequest { secret });
    answered(app.upstreams.invitations().join_workspace(message).await)?;
    session::read(State(app.clone()), person).await
}

/// Half an account is a mistake, and none means that somebody who is signed in accepts.
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
