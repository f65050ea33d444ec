//! Resolves a memory URL: the memory and the visitor's workspace that has it.

use axum::extract::FromRequestParts;
use axum::response::Response;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::TrashKind;
use cairn_proto::ids::MemoryId;
use http::request::Parts;

use crate::answers::ResolvedMemory;
use crate::app::App;
use crate::error::Error;
use crate::operations::memories;
use crate::pages::file;
use crate::pages::visitor::Visitor;

/// A memory and its visitor, in the memory's workspace.
#[derive(Debug)]
pub(super) struct LocatedMemory {
    pub(super) visitor: Visitor,
    pub(super) id: MemoryId,
}

impl FromRequestParts<App> for LocatedMemory {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let (visitor, id) = file::located(parts, app, TrashKind::Memory, no_memory).await?;
        Ok(Self { visitor, id: MemoryId(id.0) })
    }
}

fn no_memory() -> Problem {
    Problem::not_found("there is no such memory, or it is nothing that you may see")
}

/// A memory, or the page shown instead.
pub(super) enum Found {
    Live(Box<ResolvedMemory>),
    Elsewhere(Response),
}

impl LocatedMemory {
    /// The memory with the current contents of its members; for a trashed one the page that says so.
    pub(super) async fn memory(&self) -> Result<Found, Error> {
        let context = self.visitor.context()?;
        match memories::get(&context, self.id.to_string(), None).await {
            Ok(memory) => Ok(Found::Live(Box::new(memory))),
            Err(problem) if problem.reason == Reason::NotFound => {
                let page = file::trashed(&self.visitor, TrashKind::Memory, self.id.to_string()).await?;
                page.map(Found::Elsewhere).ok_or_else(|| problem.into())
            }
            Err(problem) => Err(problem.into()),
        }
    }
}
