//! The console's JSON API: for signed-in people, by session cookie (contract, "Console API").

mod account;
mod analytics;
mod assets;
mod feedback;
mod grants;
mod invitations;
mod invite_page;
mod members;
pub(crate) mod session;
mod tokens;
mod trash;
mod usage;
mod workspaces;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, patch, post};
use cairn_chassis::status::Problem;
use http::{HeaderValue, header};

use crate::app::App;
use crate::error::{self, Error};

pub(crate) fn routes(app: &App) -> Router<App> {
    Router::new()
        .route("/api/session", get(session::read).post(session::create).delete(session::delete))
        .route("/api/account/password", post(account::change_password))
        .route("/api/account/sessions", axum::routing::delete(account::delete_sessions))
        .route("/invite", get(invite_page::ask).post(invite_page::answer))
        .route("/invite/invite.js", get(invite_page::script))
        .route("/api/invitations/look-up", post(invitations::look_up))
        .route("/api/invitations/accept", post(invitations::accept))
        .route("/api/invitations/{id}/accept", post(invitations::accept_pending))
        .route("/api/invitations/{id}/decline", post(invitations::decline_pending))
        .route("/api/workspaces", get(workspaces::list).post(workspaces::create))
        .route(
            "/api/workspaces/{id}",
            get(workspaces::get).patch(workspaces::update).delete(workspaces::delete),
        )
        .route("/api/workspaces/{id}/restore", post(workspaces::restore))
        .route("/api/workspaces/{id}/grants", get(grants::list))
        .route("/api/workspaces/{id}/grants/{grantId}", axum::routing::delete(grants::revoke))
        .route("/api/workspaces/{id}/tokens", get(tokens::list).post(tokens::create))
        .route("/api/workspaces/{id}/tokens/{tokenId}", patch(tokens::update).delete(tokens::delete))
        .route("/api/workspaces/{id}/members", get(members::list).post(members::add))
        .route("/api/workspaces/{id}/members/{userId}", patch(members::update).delete(members::remove))
        .route("/api/workspaces/{id}/invitations", get(invitations::list))
        .route("/api/workspaces/{id}/invitations/{invitationId}", axum::routing::delete(invitations::delete))
        .route("/api/workspaces/{id}/usage", get(usage::get))
        .route("/api/workspaces/{id}/feedback", get(feedback::list))
        .route("/api/workspaces/{id}/trash", get(trash::list))
        .route("/api/workspaces/{id}/trash/{kind}/{itemId}", axum::routing::delete(trash::remove))
        .route("/api/workspaces/{id}/trash/{kind}/{itemId}/restore", axum::routing::post(trash::restore))
        .route("/api/assets/{id}/content", get(assets::content))
        .route("/api/analytics/retrieval", get(analytics::retrieval))
        .route_layer(middleware::from_fn_with_state(app.clone(), guard))
}

/// A cookie comes along with requests that other sites' pages make: those may not change anything. And what the
/// console reads is for one person: nothing on the way may keep it, unless the handler says how.
async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    if !request.method().is_safe() && !app.origins.allow_session_write(request.headers()) {
        let message =
            "requests of another site's page may not change anything here; use the console's own pages";
        return Error::origin_not_allowed(message).into_response();
    }
    let mut response = next.run(request).await;
    let caching = response.headers_mut().entry(header::CACHE_CONTROL);
    caching.or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The message of an answer, or the error.
fn answered<T>(answer: Result<tonic::Response<T>, tonic::Status>) -> Result<T, Error> {
    answer.map(tonic::Response::into_inner).map_err(|status| error::from_upstream(&status).into())
}

/// The record that a response must hold.
fn present<T>(record: Option<T>) -> Result<T, Error> {
    record.ok_or_else(|| Problem::internal("a response lacks its record").into())
}

type Answer = Result<Response, Error>;
