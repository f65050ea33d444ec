//! Resolves a document URL: the document and the visitor's workspace that has it.

use axum::extract::{FromRequestParts, RawPathParams};
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::DocumentKind;
use cairn_proto::ids::DocumentId;
use http::request::Parts;

use super::outside::Document;
use crate::app::App;
use crate::error::Error;
use crate::operations::locations;
use crate::pages::viewer;
use crate::pages::visitor::Visitor;

/// A document and its visitor, in the document's workspace.
#[derive(Debug)]
pub(super) struct LocatedDocument {
    pub(super) visitor: Visitor,
    pub(super) id: DocumentId,
    kind: DocumentKind,
}

impl FromRequestParts<App> for LocatedDocument {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let visitor = Visitor::from_request_parts(parts, app).await?;
        let path = RawPathParams::from_request_parts(parts, app).await.map_err(|_| no_document())?;
        let named = path.iter().find(|(name, _)| *name == "id").and_then(|(_, id)| id.parse().ok());
        let id: DocumentId = named.ok_or_else(no_document)?;
        let among = visitor.workspaces.iter().map(|workspace| workspace.id.clone()).collect();
        let found = locations::locate_document_among(&visitor.person, among, id).await;
        let is_nowhere = |problem: &Problem| problem.reason == Reason::NotFound;
        let (workspace, kind) =
            found.map_err(|problem| if is_nowhere(&problem) { no_document() } else { problem })?;
        let visitor = visitor.enter(parts, workspace).await?;
        Ok(Self { visitor: viewer::through(visitor, parts).await?, id, kind })
    }
}

fn no_document() -> Problem {
    Problem::not_found("there is no such document, or it is nothing that you may see")
}

impl LocatedDocument {
    /// Whether it was ingested by a program or person: such a document can be deleted here.
    pub(super) fn is_ingested(&self) -> bool {
        self.kind == DocumentKind::Ingested
    }

    /// The document with its retained text.
    pub(super) async fn document(&self) -> Result<Document, Error> {
        let found = if self.is_ingested() {
            Document::ingested(&self.visitor.context()?, self.id).await
        } else {
            Document::of_source(&self.visitor.person, self.id).await
        };
        Ok(found?)
    }
}
