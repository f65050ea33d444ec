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

use axum::response::Response;
use cairn_chassis::status::Problem;

use crate::class::{Class, FORM_BYTES, Surface, Who};
use crate::error::{self, Error};
use crate::routes::Routes;

const ANYONE: Class = Class::new(Surface::Console, Who::Anyone);
const PERSON: Class = Class::new(Surface::Console, Who::Person);
const MEMBER: Class = Class::new(Surface::Console, Who::Member);
const PAGE: Class = Class::new(Surface::Page, Who::Anyone).up_to(FORM_BYTES).with_secrets();

/// Who manages a workspace, doing what the refusal begins with.
const fn manager(what: &'static str) -> Class {
    Class::new(Surface::Console, Who::Manager(what))
}

pub(crate) fn routes() -> Routes {
    let signing_in = ANYONE.up_to(FORM_BYTES).with_secrets();
    let account = PERSON.up_to(FORM_BYTES).with_secrets();
    let roles = |what| manager(what).up_to(FORM_BYTES).with_secrets();
    Routes::default()
        .get(account, "/api/session", session::read)
        .post(signing_in, "/api/session", session::create)
        .delete(signing_in, "/api/session", session::delete)
        .post(account, "/api/account/password", account::change_password)
        .delete(account, "/api/account/sessions", account::delete_sessions)
        .get(PAGE, "/invite", invite_page::ask)
        .post(PAGE, "/invite", invite_page::answer)
        .get(PAGE, "/invite/invite.js", invite_page::script)
        .post(signing_in, "/api/invitations/look-up", invitations::look_up)
        .post(signing_in, "/api/invitations/accept", invitations::accept)
        .post(account, "/api/invitations/{id}/accept", invitations::accept_pending)
        .post(account, "/api/invitations/{id}/decline", invitations::decline_pending)
        .get(PERSON, "/api/workspaces", workspaces::list)
        .post(PERSON, "/api/workspaces", workspaces::create)
        .get(PERSON, "/api/workspaces/{id}", workspaces::get)
        .patch(manager("changing a workspace"), "/api/workspaces/{id}", workspaces::update)
        .delete(PERSON, "/api/workspaces/{id}", workspaces::delete)
        .post(PERSON, "/api/workspaces/{id}/restore", workspaces::restore)
        .get(PERSON, "/api/workspaces/{id}/grants", grants::list)
        .delete(PERSON, "/api/workspaces/{id}/grants/{grantId}", grants::revoke)
        .get(PERSON.with_secrets(), "/api/workspaces/{id}/tokens", tokens::list)
        .post(MEMBER.with_secrets(), "/api/workspaces/{id}/tokens", tokens::create)
        .patch(MEMBER, "/api/workspaces/{id}/tokens/{tokenId}", tokens::update)
        .delete(PERSON, "/api/workspaces/{id}/tokens/{tokenId}", tokens::delete)
        .get(PERSON.with_secrets(), "/api/workspaces/{id}/members", members::list)
        .post(roles("adding members"), "/api/workspaces/{id}/members", members::add)
        .patch(roles("changing roles"), "/api/workspaces/{id}/members/{userId}", members::update)
        .delete(PERSON, "/api/workspaces/{id}/members/{userId}", members::remove)
        .get(PERSON.with_secrets(), "/api/workspaces/{id}/invitations", invitations::list)
        .delete(PERSON, "/api/workspaces/{id}/invitations/{invitationId}", invitations::delete)
        .get(MEMBER, "/api/workspaces/{id}/usage", usage::get)
        .get(PERSON, "/api/workspaces/{id}/feedback", feedback::list)
        .get(MEMBER, "/api/workspaces/{id}/trash", trash::list)
        .delete(MEMBER, "/api/workspaces/{id}/trash/{kind}/{itemId}", trash::remove)
        .post(MEMBER, "/api/workspaces/{id}/trash/{kind}/{itemId}/restore", trash::restore)
        .get(PERSON, "/api/assets/{id}/content", assets::content)
        .get(manager("reading the analytics of retrieval"), "/api/analytics/retrieval", analytics::retrieval)
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
