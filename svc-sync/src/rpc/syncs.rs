//! `cairn.sync.v1.SyncService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording;
use cairn_proto::domain::{ConflictPolicy, FileType};
use cairn_proto::sync::v1::sync_service_server::{SyncService, SyncServiceServer};
use cairn_proto::sync::v1::{self as proto, ItemKind};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use crate::manifest::Sent;
use crate::model::{Kind, Run};
use crate::scope::Caller;
use crate::syncs::{Draft, RunView, Syncs};

pub(crate) fn server(syncs: Syncs, verifier: Verifier) -> SyncServiceServer<Rpc> {
    SyncServiceServer::new(Rpc { syncs, verifier })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    syncs: Syncs,
    verifier: Verifier,
}

impl Rpc {
    async fn caller(&self, metadata: &MetadataMap, needed: Permission) -> Result<Caller, Problem> {
        self.verifier.authorize(metadata, needed).await
    }
}

#[tonic::async_trait]
impl SyncService for Rpc {
    async fn preview_sync(
        &self,
        request: Request<proto::PreviewSyncRequest>,
    ) -> Result<Response<proto::PreviewSyncResponse>, Status> {
        let caller = self.caller(request.metadata(), Permission::Write).await?;
        let shown = self.syncs.preview(&caller, decode(request.into_inner())?).await?;
        Ok(Response::new(proto::PreviewSyncResponse { run: Some(encode(shown)) }))
    }

    async fn get_sync(
        &self,
        request: Request<proto::GetSyncRequest>,
    ) -> Result<Response<proto::GetSyncResponse>, Status> {
        let caller = self.caller(request.metadata(), Permission::Read).await?;
        let shown = self.syncs.get(&caller, &request.get_ref().run_id).await?;
        Ok(Response::new(proto::GetSyncResponse { run: Some(encode(shown)) }))
    }

    async fn list_syncs(
        &self,
        request: Request<proto::ListSyncsRequest>,
    ) -> Result<Response<proto::ListSyncsResponse>, Status> {
        let caller = self.caller(request.metadata(), Permission::Read).await?;
        let asked = request.get_ref();
        let page = self.syncs.list(&caller, &asked.name, asked.page_size, &asked.page_token).await?;
        let runs = page.runs.into_iter().map(encode_run).collect();
        let (next_page_token, total_size) = (page.next, page.total);
        Ok(Response::new(proto::ListSyncsResponse { runs, next_page_token, total_size }))
    }

    async fn start_sync(
        &self,
        request: Request<proto::StartSyncRequest>,
    ) -> Result<Response<proto::StartSyncResponse>, Status> {
        let caller = self.caller(request.metadata(), Permission::Write).await?;
        let shown = self.syncs.start(&caller, &request.get_ref().run_id).await?;
        Ok(Response::new(proto::StartSyncResponse { run: Some(encode(shown)) }))
    }

    async fn cancel_sync(
        &self,
        request: Request<proto::CancelSyncRequest>,
    ) -> Result<Response<proto::CancelSyncResponse>, Status> {
        let caller = self.caller(request.metadata(), Permission::Write).await?;
        let shown = self.syncs.cancel(&caller, &request.get_ref().run_id).await?;
        Ok(Response::new(proto::CancelSyncResponse { run: Some(encode(shown)) }))
    }

    async fn roll_back_sync(
        &self,
        request: Request<proto::RollBackSyncRequest>,
    ) -> Result<Response<proto::RollBackSyncResponse>, Status> {
        let caller = self.caller(request.metadata(), Permission::Delete).await?;
        let shown = self.syncs.roll_back(&caller, &request.get_ref().run_id).await?;
        Ok(Response::new(proto::RollBackSyncResponse { run: Some(encode(shown)) }))
    }

    async fn delete_sync(
        &self,
        request: Request<proto::DeleteSyncRequest>,
    ) -> Result<Response<proto::DeleteSyncResponse>, Status> {
        let caller = self.caller(request.metadata(), Permission::Write).await?;
        self.syncs.delete(&caller, &request.get_ref().run_id).await?;
        Ok(Response::new(proto::DeleteSyncResponse {}))
    }
}

fn decode(request: proto::PreviewSyncRequest) -> Result<Draft, Problem> {
    let mut wrong = Vec::new();
    let policy = match request.conflict_policy {
        0 => ConflictPolicy::default(),
        number => ConflictPolicy::from_number(number).unwrap_or_else(|| {
            let known = wording::one_of(&ConflictPolicy::NAMES);
            wrong.push(Violation::new("conflictPolicy", "invalid", known));
            ConflictPolicy::default()
        }),
    };
    let mut documents = Vec::with_capacity(request.documents.len());
    for (place, sent) in request.documents.into_iter().enumerate() {
        let file_type = FileType::from_number(sent.file_type);
        if file_type.is_none() && sent.file_type != 0 {
            let path = format!("documents[{place}].fileType");
            wrong.push(Violation::new(path, "invalid", wording::one_of(&FileType::NAMES)));
        }
        let (path, content, hash) = (sent.path, sent.content, sent.content_hash);
        documents.push(Sent { path, content, hash, file_type });
    }
    if !wrong.is_empty() {
        return Err(Problem::validation(wrong));
    }
    Ok(Draft { name: request.name, documents, policy, prune: request.prune, folder: request.folder_id })
}

fn encode(shown: RunView) -> proto::Run {
    let warnings = shown.warnings.into_iter();
    let prunable = shown.would_prune.into_iter();
    let results = shown.results.into_iter();
    let changes = shown.changes.into_iter();
    proto::Run {
        warnings: warnings
            .map(|warning| proto::SyncWarning {
                path: warning.path,
                code: warning.code,
                message: warning.message,
            })
            .collect(),
        would_prune: prunable
            .map(|item| proto::PrunableItem {
                kind: kind(item.kind).into(),
                id: item.id.to_string(),
                path: item.path,
            })
            .collect(),
        results: results
            .map(|outcome| proto::SyncResult {
                path: outcome.path,
                action: outcome.action.into(),
                file_id: outcome.file.map(|id| id.to_string()),
                error: outcome.error,
            })
            .collect(),
        changes: changes.map(|(path, action)| proto::PlannedChange { path, action: action.into() }).collect(),
        place: shown.place,
        ..encode_run(shown.run)
    }
}

fn encode_run(run: Run) -> proto::Run {
    let time = |at: Option<Timestamp>| at.map(Timestamp::to_proto);
    proto::Run {
        id: run.id.to_string(),
        status: run.shown().into(),
        name: run.name,
        workspace_id: run.workspace.to_string(),
        conflict_policy: run.policy.into(),
        prune: run.prune,
        counters: Some(proto::Counters {
            created: run.counters.created,
            updated: run.counters.updated,
            skipped: run.counters.skipped,
            conflicts: run.counters.conflicts,
            pruned: run.counters.pruned,
        }),
        total: run.total,
        processed: run.counters.processed,
        would_create: run.would.created,
        would_update: run.would.updated,
        would_skip: run.would.skipped,
        would_conflict: run.would.conflicts,
        created_at: Some(run.created_at.to_proto()),
        started_at: time(run.started_at),
        finished_at: time(run.finished_at),
        rollback_until: time(run.rollback_until),
        error: run.error,
        folder_id: run.folder.map(|id| id.to_string()),
        by: super::author(run.requester),
        ..proto::Run::default()
    }
}

const fn kind(kind: Kind) -> ItemKind {
    match kind {
        Kind::Folder => ItemKind::Folder,
        // A sync writes nothing else.
        Kind::File | Kind::Asset | Kind::Database | Kind::Record => ItemKind::File,
    }
}
