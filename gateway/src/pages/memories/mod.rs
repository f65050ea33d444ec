//! Memories: the list of a workspace, one with its contents as agents read them, and the public page.

mod at;
mod change;
mod edit;
mod list;
mod picker;
mod public;
mod show;
mod versions;

use cairn_chassis::status::Problem;
use cairn_proto::domain::{MemberKind, Permission};

pub(super) use super::places::memory as address;
use super::visitor::Visitor;
use super::{MEMBER, PERSON};
use crate::class::{Class, ORDINARY_BYTES, Surface, Who};
use crate::error::Error;
use crate::routes::Routes;

/// A page for anybody with the link.
const ANYBODY: Class = Class::new(Surface::Page, Who::Anyone);

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(MEMBER, "/w/{id}/memories", list::show)
        .get(MEMBER, "/w/{id}/memories/new", edit::ask_for_new)
        .post(MEMBER.up_to(ORDINARY_BYTES), "/w/{id}/memories/new", edit::create)
        .get(PERSON, "/memories/{id}", show::show)
        .get(PERSON, "/memories/{id}/edit", edit::ask)
        .post(PERSON.up_to(ORDINARY_BYTES), "/memories/{id}/edit", edit::save)
        .post(PERSON, "/memories/{id}/add", change::add)
        .post(PERSON, "/memories/{id}/move", change::move_member)
        .post(PERSON, "/memories/{id}/remove", change::remove)
        .post(PERSON, "/memories/{id}/publish", change::publish)
        .post(PERSON, "/memories/{id}/unpublish", change::unpublish)
        .post(PERSON, "/memories/{id}/list", change::list)
        .post(PERSON, "/memories/{id}/unlist", change::unlist)
        .post(PERSON, "/memories/{id}/delete", change::delete)
        .post(PERSON, "/memories/{id}/restore", change::restore)
        .get(PERSON, "/memories/{id}/versions", versions::list)
        .get(PERSON, "/memories/{id}/versions/{version}", versions::one)
        .post(PERSON, "/memories/{id}/versions/{version}/restore", versions::restore)
        .get(ANYBODY, "/m/{id}", public::show)
}

/// Checks that the visitor may write, before anything is typed that would be refused at the end.
fn require_write(visitor: &Visitor) -> Result<(), Error> {
    if visitor.may(Permission::Write) {
        return Ok(());
    }
    let role = visitor.here()?.role;
    let message =
        format!("this takes a role that may write, and yours here is {}: ask an owner", role.as_str());
    Err(Problem::forbidden(message).into())
}

/// The kind of a member, in words.
const fn kind(kind: MemberKind) -> &'static str {
    match kind {
        MemberKind::File => "file",
        MemberKind::Folder => "folder",
        MemberKind::SourceDocument => "document of a source",
        MemberKind::Database => "database",
    }
}
