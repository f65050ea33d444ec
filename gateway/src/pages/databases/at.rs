//! Resolves a database URL: the database, the visitor's workspace that has it, and the page if it is in trash.

use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::response::Response;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::TrashKind;
use cairn_proto::ids::{DatabaseId, DocumentId};
use http::request::Parts;

use crate::answers::Database;
use crate::app::App;
use crate::error::Error;
use crate::operations::{databases, locations};
use crate::pages::file;
use crate::pages::viewer;
use crate::pages::visitor::Visitor;

/// A database and its visitor, in the database's workspace.
#[derive(Debug)]
pub(super) struct LocatedDatabase {
    pub(super) visitor: Visitor,
    pub(super) id: DatabaseId,
}

impl FromRequestParts<App> for LocatedDatabase {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let visitor = Visitor::from_request_parts(parts, app).await?;
        let path = RawPathParams::from_request_parts(parts, app).await.map_err(|_| no_database())?;
        let named = path.iter().find(|(name, _)| *name == "id").and_then(|(_, id)| id.parse().ok());
        let id: DatabaseId = named.ok_or_else(no_database)?;
        let among = visitor.workspaces.iter().map(|workspace| workspace.id.clone()).collect();
        let found =
            locations::locate_among(&visitor.person, among, TrashKind::Database, DocumentId(id.0)).await;
        let is_nowhere = |problem: &Problem| problem.reason == Reason::NotFound;
        let workspace =
            found.map_err(|problem| if is_nowhere(&problem) { no_database() } else { problem })?;
        let visitor = visitor.enter(parts, workspace).await?;
        Ok(Self { visitor: viewer::through(visitor, parts).await?, id })
    }
}

fn no_database() -> Problem {
    Problem::not_found("there is no such database, or it is nothing that you may see")
}

/// A database with a part of it in the path: a record, a property, a view.
#[derive(Debug)]
pub(super) struct LocatedPart<T> {
    pub(super) at: LocatedDatabase,
    pub(super) id: T,
}

impl<T: FromStr + Send> FromRequestParts<App> for LocatedPart<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let at = LocatedDatabase::from_request_parts(parts, app).await?;
        let path = RawPathParams::from_request_parts(parts, app).await.map_err(|_| no_part())?;
        let named = path.iter().find(|(name, _)| *name != "id").and_then(|(_, id)| id.parse().ok());
        Ok(Self { at, id: named.ok_or_else(no_part)? })
    }
}

/// The error of an unknown part in a path or query.
pub(super) fn no_part() -> Problem {
    Problem::not_found("the database has nothing like that")
}

/// A database, or the page shown instead.
pub(super) enum Found {
    Live(Box<Database>),
    Elsewhere(Response),
}

impl LocatedDatabase {
    /// The database with its properties and views; for a trashed one the page that says so.
    pub(super) async fn database(&self) -> Result<Found, Error> {
        let context = self.visitor.context()?;
        match databases::get(&context, self.id).await {
            Ok(database) => Ok(Found::Live(Box::new(database))),
            Err(problem) if problem.reason == Reason::NotFound => {
                let page = file::trashed(&self.visitor, TrashKind::Database, self.id.to_string()).await?;
                page.map(Found::Elsewhere).ok_or_else(|| problem.into())
            }
            Err(problem) => Err(problem.into()),
        }
    }
}
