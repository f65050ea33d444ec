//! The console: server-rendered pages. A page calls the same operations as programs and agents, keeps no state, and
//! has no rule that a service lacks; everything works without scripts.
//!
//! `docs/CONSOLE.md` explains how to add a page.

mod account;
mod activity;
mod analytics;
mod apps;
mod ask_again;
mod assets;
mod connect;
mod databases;
pub(crate) mod document;
mod documents;
mod events;
mod failure;
mod file;
mod files;
mod folders;
mod form;
mod frame;
mod freshness;
mod go;
mod golden;
mod health;
mod imports;
mod live_calls;
mod look;
mod members;
mod memories;
mod notice;
mod overview;
mod own_sessions;
mod palette;
mod parts;
mod places;
mod popover;
mod questions;
mod reading;
mod recorded_form;
mod runs;
mod search;
mod settings;
pub(crate) mod sign_in;
mod sources;
mod syncs;
pub(crate) mod text;
mod tokens;
mod trash;
mod viewer;
mod visitor;
mod webhooks;
pub(crate) mod words;
mod workspaces;

use axum::response::Response;
use cairn_chassis::status::{Problem, Reason};
use http::request::Parts;

pub(crate) use self::assets::INVITE_JS;
pub(crate) use self::failure::PageRequest;
use self::visitor::{Visitor, see_other};
use crate::class::{Class, FORM_BYTES, Surface, Who};
use crate::error::Error;
use crate::routes::Routes;

/// A page or form for anybody; it may contain secrets.
const FORM: Class = Class::new(Surface::Page, Who::Anyone).up_to(FORM_BYTES).with_secrets();
/// A page for signed-in people.
const PERSON: Class = Class::new(Surface::Page, Who::Person).up_to(FORM_BYTES);
/// A page of the workspace in the path.
const MEMBER: Class = Class::new(Surface::Page, Who::Member).up_to(FORM_BYTES);

type Answer = Result<Response, Error>;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .get(PERSON, "/", home)
        .merge(assets::routes())
        .merge(sign_in::routes())
        .merge(account::routes())
        .merge(workspaces::routes())
        .merge(overview::routes())
        .merge(connect::routes())
        .merge(events::routes())
        .merge(tokens::routes())
        .merge(activity::routes())
        .merge(trash::routes())
        .merge(apps::routes())
        .merge(members::routes())
        .merge(health::routes())
        .merge(settings::routes())
        .merge(files::routes())
        .merge(file::routes())
        .merge(databases::routes())
        .merge(search::routes())
        .merge(go::routes())
        .merge(golden::routes())
        .merge(memories::routes())
        .merge(analytics::routes())
        .merge(questions::routes())
        .merge(freshness::routes())
        .merge(documents::routes())
        .merge(sources::routes())
        .merge(imports::routes())
        .merge(syncs::routes())
        .merge(webhooks::routes())
}

/// `GET /`.
async fn home(visitor: Visitor) -> Response {
    see_other(&visitor.home())
}

/// The page tokens of a list up to the requested page.
fn marks(parts: &Parts) -> Vec<String> {
    let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let marks = query.filter(|(name, value)| name == parts::MARK && !value.is_empty());
    marks.map(|(_, mark)| mark.into_owned()).collect()
}

/// Whether a list was refused because of a stale page token, so that it starts over.
fn is_stale(problem: &Problem, trail: &[String]) -> bool {
    problem.reason == Reason::ValidationError && !trail.is_empty()
}

#[cfg(test)]
mod checks;
