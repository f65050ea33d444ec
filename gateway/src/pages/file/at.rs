//! Resolves a file URL: the file, the visitor's workspace that has it, and the page if it is in trash.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::response::Response;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::TrashKind;
use cairn_proto::ids::{DocumentId, FileId};
use http::StatusCode;
use http::request::Parts;
use maud::{Markup, html};

use crate::answers::{File, TrashItem, optional_time};
use crate::app::App;
use crate::error::Error;
use crate::operations::{files, locations, trash};
use crate::pages::frame::Page;
use crate::pages::parts as part;
use crate::pages::trash::to_restore;
use crate::pages::viewer;
use crate::pages::visitor::Visitor;
use crate::pages::words;

/// A file and its visitor, in the file's workspace.
#[derive(Debug)]
pub(super) struct LocatedFile {
    pub(super) visitor: Visitor,
    pub(super) id: FileId,
}

impl FromRequestParts<App> for LocatedFile {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let (visitor, id) = located(parts, app, TrashKind::File, no_file).await?;
        Ok(Self { visitor, id: FileId(id.0) })
    }
}

/// Locates the item whose id is in the path, live or in trash, and enters its workspace.
pub(in crate::pages) async fn located(
    parts: &mut Parts,
    app: &App,
    kind: TrashKind,
    missing: fn() -> Problem,
) -> Result<(Visitor, DocumentId), Error> {
    let visitor = Visitor::from_request_parts(parts, app).await?;
    let path = RawPathParams::from_request_parts(parts, app).await.map_err(|_| missing())?;
    let named = path.iter().find(|(name, _)| *name == "id").and_then(|(_, id)| id.parse().ok());
    let id: DocumentId = named.ok_or_else(missing)?;
    let among = visitor.workspaces.iter().map(|workspace| workspace.id.clone()).collect();
    let found = locations::locate_among(&visitor.person, among, kind, id).await;
    let workspace =
        found.map_err(|problem| if problem.reason == Reason::NotFound { missing() } else { problem })?;
    let visitor = visitor.enter(parts, workspace).await?;
    Ok((viewer::through(visitor, parts).await?, id))
}

fn no_file() -> Problem {
    Problem::not_found("there is no such file, or it is nothing that you may see")
}

/// A file, or the page shown instead.
pub(super) enum Found {
    Live(Box<File>),
    Elsewhere(Response),
}

impl LocatedFile {
    /// The file with its text; for a trashed one the page that says so.
    pub(super) async fn file(&self) -> Result<Found, Error> {
        let context = self.visitor.context()?;
        match files::get(&context, self.id).await {
            Ok(file) => Ok(Found::Live(Box::new(file))),
            Err(problem) if problem.reason == Reason::NotFound => {
                let page = trashed(&self.visitor, TrashKind::File, self.id.to_string()).await?;
                page.map(Found::Elsewhere).ok_or_else(|| problem.into())
            }
            Err(problem) => Err(problem.into()),
        }
    }
}

/// The page of a trashed item: what it was, since when, by whom, and Restore. `None` if it is not in trash.
pub(in crate::pages) async fn trashed(
    visitor: &Visitor,
    kind: TrashKind,
    id: String,
) -> Result<Option<Response>, Error> {
    let person = &visitor.person;
    match trash::get(&person.upstreams, &person.call, kind, id.clone()).await {
        Ok(item) => Ok(Some(show(visitor, kind, &id, &item)?)),
        Err(problem) if problem.reason == Reason::NotFound => Ok(None),
        Err(problem) => Err(problem.into()),
    }
}

fn show(visitor: &Visitor, kind: TrashKind, id: &str, item: &TrashItem) -> Result<Response, Error> {
    let here = visitor.here()?.id;
    let went_along = item.id != id;
    let of = TrashKind::from_number(item.kind).unwrap_or_default();
    let deleted = optional_time(item.deleted_at.as_ref());
    let by: Markup = match &item.deleted_by {
        Some(by) => html! { bdi { (by.name) } @if by.kind == "token" { " (a token)" } },
        None => html! { "somebody that nobody noted" },
    };
    let may = visitor.may(to_restore(of));
    let permission = words::capital(to_restore(of).as_str());
    let body = html! {
        @if went_along {
            p { "This " (kind.as_str()) " went to trash along with the " (of.as_str()) " " bdi { (item.name) } "." }
        } @else {
            p { "The " (of.as_str()) " " bdi { (item.name) } " is in trash." }
        }
        dl.facts {
            dt { "Where it stood" } dd { bdi { (item.path) } }
            dt { "Deleted" } dd { (part::time_or(deleted.as_deref(), "nobody knows when")) " by " (by) }
        }
        @if !may {
            p.quiet { "To restore it takes the permission " (permission) ", which your role here does not have: ask an owner." }
        }
        div.buttons {
            @if may {
                (part::action(&format!("/w/{here}/trash/restore"), "Restore", &item.name, &[("item", &format!("{}:{}", of.as_str(), item.id)), ("back", &visitor.address)]))
            }
            a.button href={ "/w/" (here) "/trash" } { "All that is in trash" }
        }
    };
    Ok(Page::new("In trash").with_error(StatusCode::NOT_FOUND).show(visitor, &body))
}
