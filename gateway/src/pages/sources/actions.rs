//! Actions on a source from its page.

use cairn_chassis::status::Problem;
use cairn_proto::ids::{DocumentId, SourceId, WorkspaceId};
use serde_json::json;

use super::runs::is_of_its_state;
use super::{address, all, show};
use crate::extract::PathIds;
use crate::operations::sources::{self, SyncSource, UpdateSource};
use crate::pages::Answer;
use crate::pages::form::{self, Form};
use crate::pages::notice::Notice;
use crate::pages::visitor::Visitor;

/// `POST /w/{id}/sources/{source}/sync`.
pub(super) async fn sync(visitor: Visitor, PathIds(_, id): PathIds<WorkspaceId, SourceId>) -> Answer {
    let queued = sources::sync(&visitor.person, id, SyncSource::default()).await;
    answer(&visitor, id, queued, &Notice::RunQueued).await
}

/// `POST /w/{id}/sources/{source}/retry`: retries a failed document.
pub(super) async fn retry(
    visitor: Visitor,
    PathIds(_, id): PathIds<WorkspaceId, SourceId>,
    form: Form,
) -> Answer {
    let missing = || Problem::not_found("there is no such document, or it is nothing that you may see");
    let document: DocumentId = form.text("document").parse().map_err(|_| missing())?;
    let tried = sources::retry(&visitor.person, document).await;
    answer(&visitor, id, tried, &Notice::Retried).await
}

/// `POST /w/{id}/sources/{source}/pause`: ends the current run, and queues no other.
pub(super) async fn pause(visitor: Visitor, PathIds(_, id): PathIds<WorkspaceId, SourceId>) -> Answer {
    set_paused(&visitor, id, true, &Notice::Paused).await
}

/// `POST /w/{id}/sources/{source}/resume`: queues a run.
pub(super) async fn resume(visitor: Visitor, PathIds(_, id): PathIds<WorkspaceId, SourceId>) -> Answer {
    set_paused(&visitor, id, false, &Notice::Resumed).await
}

async fn set_paused(visitor: &Visitor, id: SourceId, paused: bool, notice: &Notice) -> Answer {
    let input = form::input::<UpdateSource>(json!({"paused": paused}))?;
    let changed = sources::update(&visitor.person, id, input).await;
    answer(visitor, id, changed, notice).await
}

/// Redirects to the page of the source; an action that its state does not allow is reported there.
async fn answer<T>(visitor: &Visitor, id: SourceId, done: Result<T, Problem>, notice: &Notice) -> Answer {
    match done {
        Ok(_) => Ok(visitor.done(&address(visitor.here()?.id, id), notice)),
        Err(problem) if is_of_its_state(&problem) => show::show_page(visitor, id, Some(&problem)).await,
        Err(problem) => Err(problem.into()),
    }
}

/// `POST /w/{id}/sources/{source}/disconnect`: permanently, with everything kept of it.
pub(super) async fn disconnect(visitor: Visitor, PathIds(_, id): PathIds<WorkspaceId, SourceId>) -> Answer {
    sources::disconnect(&visitor.person, id).await?;
    Ok(visitor.done(&all(visitor.here()?.id), &Notice::Disconnected))
}
