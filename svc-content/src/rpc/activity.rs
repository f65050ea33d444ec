//! `cairn.content.v1.ActivityService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::content::v1::activity_service_server::{ActivityService, ActivityServiceServer};
use cairn_proto::content::v1::{
    self as proto, ListActivityRequest, ListActivityResponse, ListActorsRequest, ListActorsResponse,
    PlanUndoRequest, PlanUndoResponse, UndoRequest, UndoResponse, UndoSelection,
};
use cairn_proto::domain::UndoAction;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use super::{author, authorize};
use crate::activity::{Action, Activities, ActivityRequest, LeftAlone, Selection, Step, Undos};
use crate::model::ActivityEntry;
use crate::scope::Caller;

pub(crate) fn server(activities: Activities, undos: Undos, verifier: Verifier) -> ActivityServiceServer<Rpc> {
    ActivityServiceServer::new(Rpc { activities, undos, verifier })
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    activities: Activities,
    undos: Undos,
    verifier: Verifier,
}

impl Rpc {
    /// The caller, who needs every permission that an undo may use.
    async fn undoer(&self, metadata: &MetadataMap) -> Result<Caller, Status> {
        let identity = self.verifier.authenticate(metadata).await?;
        identity.require(Permission::Write)?;
        Ok(authorize(&self.verifier, metadata, Permission::Delete).await?)
    }
}

#[tonic::async_trait]
impl ActivityService for Rpc {
    async fn list_activity(
        &self,
        request: Request<ListActivityRequest>,
    ) -> Result<Response<ListActivityResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let page = self.activities.list(&caller, decode(request.into_inner())).await?;
        let entries = page.entries.into_iter().map(encode).collect();
        Ok(Response::new(ListActivityResponse { entries, next_page_token: page.next }))
    }

    async fn list_actors(
        &self,
        request: Request<ListActorsRequest>,
    ) -> Result<Response<ListActorsResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let actors = self.activities.actors(&caller).await?;
        Ok(Response::new(ListActorsResponse { actors: actors.into_iter().map(author).collect() }))
    }

    async fn plan_undo(
        &self,
        request: Request<PlanUndoRequest>,
    ) -> Result<Response<PlanUndoResponse>, Status> {
        let caller = self.undoer(request.metadata()).await?;
        let plan = self.undos.plan(&caller, selection(request.into_inner().selection)).await?;
        let (steps, left_alone) = (encode_steps(plan.steps), encode_left_alone(plan.left_alone));
        Ok(Response::new(PlanUndoResponse { steps, left_alone }))
    }

    async fn undo(&self, request: Request<UndoRequest>) -> Result<Response<UndoResponse>, Status> {
        let caller = self.undoer(request.metadata()).await?;
        let undone = self.undos.execute(&caller, selection(request.into_inner().selection)).await?;
        Ok(Response::new(UndoResponse {
            steps: encode_steps(undone.steps),
            left_alone: encode_left_alone(undone.left_alone),
            has_more: undone.has_more,
            change_position: undone.position,
        }))
    }
}

fn decode(request: ListActivityRequest) -> ActivityRequest {
    ActivityRequest {
        kind: Some(request.kind()).filter(|kind| *kind != Kind::Unspecified),
        page_size: request.page_size,
        page_token: request.page_token,
        principal_id: request.principal_id,
        folder_id: request.folder_id,
        since: request.since.as_ref().map(Timestamp::from_proto),
        until: request.until.as_ref().map(Timestamp::from_proto),
    }
}

fn selection(asked: Option<UndoSelection>) -> Selection {
    let asked = asked.unwrap_or_default();
    Selection {
        principal_id: asked.principal_id,
        entries: asked.entry_ids,
        write: asked.write_id,
        since: asked.since.as_ref().map(Timestamp::from_proto),
        until: asked.until.as_ref().map(Timestamp::from_proto),
    }
}

fn encode_steps(steps: Vec<Step>) -> Vec<proto::UndoStep> {
    let encode = |step: Step| proto::UndoStep {
        action: action(&step).into(),
        kind: step.what.kind.into(),
        item_id: step.what.id,
        name: step.what.name,
        path: step.what.path,
        database_id: step.what.database_id.map(|id| id.to_string()),
    };
    steps.into_iter().map(encode).collect()
}

/// The final state of the item.
fn action(step: &Step) -> UndoAction {
    if step.actions.iter().any(|(action, _)| action.moves_to_trash()) {
        UndoAction::Trash
    } else if step.actions.iter().any(|(action, _)| *action == Action::Restore) {
        UndoAction::Restore
    } else {
        UndoAction::Revert
    }
}

fn encode_left_alone(all: Vec<LeftAlone>) -> Vec<proto::LeftAlone> {
    let encode = |one: LeftAlone| proto::LeftAlone {
        kind: one.what.kind.into(),
        item_id: one.what.id,
        name: one.what.name,
        path: one.what.path,
        database_id: one.what.database_id.map(|id| id.to_string()),
        code: one.code.to_owned(),
        reason: one.reason,
        author: one.by.map(author),
    };
    all.into_iter().map(encode).collect()
}

fn encode(entry: ActivityEntry) -> proto::ActivityEntry {
    let what = entry.what;
    proto::ActivityEntry {
        id: entry.id.to_string(),
        action: what.action().into(),
        kind: what.kind.into(),
        folder_id: what.folder_id.map(|id| id.to_string()),
        database_id: what.database_id.map(|id| id.to_string()),
        author: Some(author(entry.author)),
        channel: Some(entry.channel).filter(|channel| !channel.is_empty()),
        happened_at: Some(entry.id.at.to_proto()),
        change_position: entry.id.position,
        version_before: what.version_before,
        version_after: what.version_after,
        changed: what.changed().into_iter().map(ToOwned::to_owned).collect(),
        former_name: what.former_name().map(ToOwned::to_owned),
        item_count: what.items,
        undoes: entry.undoes.map(|id| id.to_string()),
        write_id: entry.id.write().to_string(),
        item_id: what.item_id,
        name: what.name,
        path: what.path,
    }
}
