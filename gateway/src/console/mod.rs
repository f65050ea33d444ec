//! The console's JSON API: for signed-in people, by session cookie (contract, "Console API").

mod account;
mod activity;
mod analytics;
mod assets;
mod events;
mod feedback;
mod golden;
mod grants;
mod health;
mod imports;
mod invitations;
mod invite_page;
mod locations;
mod members;
mod names;
mod questions;
mod session;
mod sources;
mod syncs;
mod tokens;
mod trash;
mod usage;
mod webhooks;
mod workspaces;

use axum::response::Response;
use utoipa_axum::routes;

use crate::class::{Class, FILE_BYTES, FORM_BYTES, Surface, Who};
use crate::cost::Cost;
use crate::error::Error;
use crate::routes::Routes;

const ANYONE: Class = Class::new(Surface::Console, Who::Anyone);
const PERSON: Class = Class::new(Surface::Console, Who::Person);
const MEMBER: Class = Class::new(Surface::Console, Who::Member);
/// A thousand ids of entries.
const UNDO_BYTES: usize = 128 * 1024;
const PAGE: Class = Class::new(Surface::Page, Who::Anyone).up_to(FORM_BYTES).with_secrets();

/// The class of routes for owners and admins; `what` begins the refusal.
const fn manager(what: &'static str) -> Class {
    Class::new(Surface::Console, Who::Manager(what))
}

pub(crate) fn routes() -> Routes {
    let signing_in = ANYONE.up_to(FORM_BYTES).with_secrets();
    let with_password = signing_in.costing(Cost::PASSWORD);
    let account = PERSON.up_to(FORM_BYTES).with_secrets();
    let roles = |what| manager(what).up_to(FORM_BYTES).with_secrets();
    let uploading = PERSON.with_upload().costing(Cost::BULK);
    Routes::default()
        .api(account, routes!(session::read))
        .api(with_password, routes!(session::create))
        .api(signing_in, routes!(session::delete))
        .api(account.costing(Cost::PASSWORD), routes!(account::change_password))
        .api(account, routes!(account::list_sessions))
        .api(account, routes!(account::delete_sessions))
        .api(account, routes!(account::end_session))
        .get(PAGE, "/invite", invite_page::ask)
        .post(PAGE.costing(Cost::PASSWORD), "/invite", invite_page::answer)
        .api(signing_in, routes!(invitations::look_up))
        .api(with_password, routes!(invitations::accept))
        .api(account, routes!(invitations::accept_pending))
        .api(account, routes!(invitations::decline_pending))
        .api(PERSON, routes!(workspaces::list))
        .api(PERSON, routes!(workspaces::create))
        .api(PERSON, routes!(workspaces::get))
        .api(manager("changing a workspace"), routes!(workspaces::update))
        .api(PERSON, routes!(workspaces::delete))
        .api(PERSON, routes!(workspaces::restore))
        .api(PERSON, routes!(grants::list))
        .api(PERSON, routes!(grants::revoke))
        .api(PERSON.with_secrets(), routes!(tokens::list))
        .api(MEMBER.with_secrets(), routes!(tokens::create))
        .api(MEMBER, routes!(tokens::update))
        .api(MEMBER, routes!(tokens::reach))
        .api(MEMBER, routes!(tokens::preview_reach))
        .api(MEMBER.patient().costing(Cost::SEARCH), routes!(tokens::search))
        .api(PERSON, routes!(tokens::delete))
        .api(PERSON.with_secrets(), routes!(members::list))
        .api(roles("adding members"), routes!(members::add))
        .api(roles("changing roles"), routes!(members::update))
        .api(PERSON, routes!(members::remove))
        .api(PERSON.with_secrets(), routes!(invitations::list))
        .api(PERSON, routes!(invitations::delete))
        .api(MEMBER, routes!(usage::get))
        .api(MEMBER, routes!(health::get))
        .api(MEMBER, routes!(events::follow))
        .api(PERSON, routes!(feedback::list))
        .api(PERSON, routes!(locations::locate))
        .api(PERSON, routes!(locations::locate_document))
        .api(MEMBER, routes!(names::find))
        .api(MEMBER, routes!(activity::list))
        .api(MEMBER, routes!(activity::actors))
        .api(MEMBER.up_to(UNDO_BYTES).costing(Cost::BULK), routes!(activity::undo))
        .api(MEMBER, routes!(questions::list))
        .api(MEMBER, routes!(questions::groups))
        .api(MEMBER, routes!(questions::get))
        .api(MEMBER.patient().costing(Cost::SEARCH), routes!(questions::ask_again))
        .api(manager("deleting questions from the log"), routes!(questions::delete))
        .api(MEMBER, routes!(trash::list))
        .api(MEMBER, routes!(trash::deleters))
        .api(MEMBER, routes!(trash::get))
        .api(MEMBER, routes!(trash::remove))
        .api(MEMBER, routes!(trash::restore))
        .api(PERSON, routes!(assets::content))
        .api(MEMBER, routes!(sources::list))
        .api(manager("connecting sources").with_secrets(), routes!(sources::connect))
        .api(manager("checking sources").with_secrets(), routes!(sources::check))
        .api(MEMBER, routes!(sources::get))
        .api(manager("changing sources").with_secrets(), routes!(sources::update))
        .api(manager("disconnecting sources"), routes!(sources::disconnect))
        .api(manager("running sources"), routes!(sources::sync))
        .api(MEMBER, routes!(sources::runs))
        .api(MEMBER, routes!(sources::run))
        .api(manager("cancelling runs"), routes!(sources::cancel))
        .api(MEMBER, routes!(sources::documents))
        .api(MEMBER, routes!(sources::document))
        .api(MEMBER, routes!(sources::retry))
        .api(manager("reading webhooks"), routes!(webhooks::list))
        .api(manager("making webhooks").with_secrets(), routes!(webhooks::create))
        .api(manager("reading webhooks"), routes!(webhooks::get))
        .api(manager("changing webhooks"), routes!(webhooks::update))
        .api(manager("deleting webhooks"), routes!(webhooks::delete))
        .api(manager("changing webhooks").with_secrets(), routes!(webhooks::rotate))
        .api(manager("testing webhooks"), routes!(webhooks::test))
        .api(manager("reading webhooks"), routes!(webhooks::deliveries))
        .api(manager("replaying deliveries"), routes!(webhooks::replay))
        .api(MEMBER, routes!(syncs::list))
        .api(MEMBER, routes!(syncs::get))
        .api(MEMBER, routes!(syncs::start))
        .api(MEMBER, routes!(syncs::cancel))
        .api(MEMBER, routes!(syncs::roll_back))
        .api(MEMBER, routes!(syncs::delete))
        .api(uploading, routes!(imports::preview))
        .api(MEMBER, routes!(imports::list))
        .api(PERSON, routes!(imports::get))
        .api(PERSON, routes!(imports::report))
        .api(PERSON, routes!(imports::entries))
        .api(PERSON, routes!(imports::start))
        .api(PERSON, routes!(imports::cancel))
        .api(PERSON, routes!(imports::roll_back))
        .merge(imports::former_paths(PERSON, MEMBER, uploading))
        .api(MEMBER, routes!(golden::list))
        .api(MEMBER, routes!(golden::create))
        .api(MEMBER, routes!(golden::delete))
        .api(MEMBER.patient().costing(Cost::BULK), routes!(golden::run))
        .api(MEMBER.patient().up_to(FILE_BYTES).costing(Cost::BULK), routes!(golden::check))
        .api(manager("reading the analytics of retrieval"), routes!(analytics::retrieval))
        .api(manager("reading the analytics of retrieval"), routes!(analytics::freshness))
}

type Answer = Result<Response, Error>;
