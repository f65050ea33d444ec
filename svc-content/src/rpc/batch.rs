//! `cairn.content.v1.BatchService`.

mod items;

use cairn_chassis::call::Call;
use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::feed::Kind;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::content::v1::batch_item::Write as Sent;
use cairn_proto::content::v1::batch_result::Item;
use cairn_proto::content::v1::batch_service_server::{BatchService, BatchServiceServer};
use cairn_proto::content::v1::{
    self as proto, BatchItem, BatchResult, BatchWriteRequest, BatchWriteResponse, ChangeItemsRequest,
    ChangeItemsResponse, ReadStatesRequest, ReadStatesResponse,
};
use tonic::{Request, Response, Status};

use super::{files, folders, records};
use crate::batch::{Batches, ConditionalWrite, Outcome, Write, check_count};
use crate::folders::FolderDraft;
use crate::model::{DatabaseState, FileState, FolderState, RecordState, StatesRequest};
use crate::records::{RecordDraft, RecordWrite};
use crate::scope::Caller;

pub(crate) fn server(batches: Batches, verifier: Verifier) -> BatchServiceServer<Rpc> {
    BatchServiceServer::new(Rpc { batches, verifier })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    batches: Batches,
    verifier: Verifier,
}

#[tonic::async_trait]
impl BatchService for Rpc {
    async fn batch_write(
        &self,
        request: Request<BatchWriteRequest>,
    ) -> Result<Response<BatchWriteResponse>, Status> {
        let identity = self.verifier.authenticate(request.metadata()).await?;
        let items = request.into_inner().writes;
        check_count(items.len())?;
        let writes = decode(items)?;
        for conditional in &writes {
            identity.require(conditional.write.needs())?;
            if conditional.new_id.is_some() {
                identity.require_service()?;
            }
        }
        let done = self.batches.write(&Caller::try_from(identity)?, writes).await?;
        let results = done.outcomes.into_iter().map(encode).collect();
        let (first_change_position, change_position) = (done.positions.first, done.positions.last);
        Ok(Response::new(BatchWriteResponse { results, first_change_position, change_position }))
    }

    async fn change_items(
        &self,
        request: Request<ChangeItemsRequest>,
    ) -> Result<Response<ChangeItemsResponse>, Status> {
        let identity = self.verifier.authenticate(request.metadata()).await?;
        let call = Call::from_metadata(request.metadata());
        let asked = request.into_inner();
        let dry_run = asked.dry_run;
        let (wanted, action) = items::decode(asked)?;
        for permission in items::needs(&wanted, &action) {
            identity.require(permission)?;
        }
        let caller = Caller { call: Some(call), ..Caller::try_from(identity)? };
        let done = self.batches.change_items(&caller, wanted, action, dry_run).await?;
        Ok(Response::new(items::encode(done)))
    }

    async fn read_states(
        &self,
        request: Request<ReadStatesRequest>,
    ) -> Result<Response<ReadStatesResponse>, Status> {
        let identity = self.verifier.authenticate(request.metadata()).await?;
        identity.require(Permission::Read)?;
        let asked = request.into_inner();
        // Invalid ids are ignored.
        let asked = StatesRequest {
            files: asked.file_ids.iter().filter_map(|id| id.parse().ok()).collect(),
            folders: asked.folder_ids.iter().filter_map(|id| id.parse().ok()).collect(),
            databases: asked.database_ids.iter().filter_map(|id| id.parse().ok()).collect(),
            records: asked.record_ids.iter().filter_map(|id| id.parse().ok()).collect(),
            assets: asked.asset_ids.iter().filter_map(|id| id.parse().ok()).collect(),
        };
        let states = self.batches.states(&Caller::try_from(identity)?, &asked).await?;
        Ok(Response::new(ReadStatesResponse {
            files: states.files.into_iter().map(encode_file).collect(),
            folders: states.folders.into_iter().map(encode_folder).collect(),
            databases: states.databases.into_iter().map(encode_database).collect(),
            records: states.records.into_iter().map(encode_record).collect(),
            asset_ids: states.assets.iter().map(ToString::to_string).collect(),
        }))
    }
}

fn encode_file(state: FileState) -> proto::FileState {
    proto::FileState {
        id: state.id.to_string(),
        in_trash: state.in_trash,
        folder_id: state.folder_id.map(|id| id.to_string()),
        name: state.name,
        version: state.version,
        content_hash: state.content_hash,
        tags: state.tags,
    }
}

fn encode_folder(state: FolderState) -> proto::FolderState {
    proto::FolderState {
        id: state.id.to_string(),
        in_trash: state.in_trash,
        parent_id: state.parent_id.map(|id| id.to_string()),
        name: state.name,
        children: state.children,
    }
}

fn encode_database(state: DatabaseState) -> proto::DatabaseState {
    proto::DatabaseState {
        id: state.id.to_string(),
        in_trash: state.in_trash,
        folder_id: state.folder_id.map(|id| id.to_string()),
        name: state.name,
        version: state.version,
        records: state.records,
    }
}

fn encode_record(state: RecordState) -> proto::RecordState {
    proto::RecordState {
        id: state.id.to_string(),
        database_id: state.database_id.to_string(),
        in_trash: state.in_trash,
        version: state.version,
    }
}

fn decode(items: Vec<BatchItem>) -> Result<Vec<ConditionalWrite>, Problem> {
    let mut writes = Vec::with_capacity(items.len());
    let mut wrong = Vec::new();
    for (place, item) in items.into_iter().enumerate() {
        match item.write {
            Some(sent) => writes.push(ConditionalWrite {
                write: decode_one(sent),
                new_id: item.new_id,
                if_version: item.if_version,
                if_empty: item.if_empty,
                tags: item.tags.map(|tags| tags.tags),
            }),
            None => wrong.push(Violation::new(format!("writes[{place}]"), "required", "say what to write")),
        }
    }
    if wrong.is_empty() { Ok(writes) } else { Err(Problem::validation(wrong)) }
}

fn decode_one(sent: Sent) -> Write {
    match sent {
        Sent::CreateFile(request) => Write::CreateFile(files::decode_draft(request)),
        Sent::UpdateFile(request) => {
            let (id, patch) = files::decode_patch(request);
            Write::UpdateFile(id, patch)
        }
        Sent::DeleteFile(request) => Write::DeleteFile(request.file_id),
        Sent::CreateFolder(request) => {
            Write::CreateFolder(FolderDraft { name: request.name, parent_id: request.parent_id })
        }
        Sent::UpdateFolder(request) => {
            let (id, patch) = folders::decode_patch(request);
            Write::UpdateFolder(id, patch)
        }
        Sent::DeleteFolder(request) => Write::DeleteFolder(request.folder_id),
        Sent::RestoreFileVersion(request) => Write::RestoreVersion(request.file_id, request.version),
        Sent::RestoreItem(request) => {
            let kind = Kind::try_from(request.kind).unwrap_or(Kind::Unspecified);
            Write::RestoreItem(kind, request.item_id)
        }
        Sent::CreateRecord(request) => {
            let (database, draft) = records::decode_draft(request);
            // The id is on the item.
            Write::Record(database, RecordWrite::Create(RecordDraft { new_id: None, ..draft }))
        }
        Sent::UpdateRecord(request) => {
            let (database, record) = (request.database_id.clone(), request.record_id.clone());
            Write::Record(database, RecordWrite::Update(record, records::decode_update(request)))
        }
        Sent::DeleteRecord(request) => {
            Write::Record(request.database_id, RecordWrite::Delete(request.record_id))
        }
        Sent::RestoreRecordVersion(request) => {
            let write = RecordWrite::RestoreVersion(request.record_id, request.version);
            Write::Record(request.database_id, write)
        }
    }
}

fn encode(outcome: Outcome) -> BatchResult {
    match outcome {
        Outcome::File(file) => {
            let (id, item) = (file.id.to_string(), Some(Item::File(files::encode(file))));
            BatchResult { id, item, record_version: 0 }
        }
        Outcome::Folder(folder) => {
            let (id, item) = (folder.id.to_string(), Some(Item::Folder(folders::encode(folder))));
            BatchResult { id, item, record_version: 0 }
        }
        Outcome::Record(id, version) => {
            BatchResult { id: id.to_string(), item: None, record_version: version.unwrap_or_default() }
        }
        Outcome::Deleted(id) | Outcome::Restored(id) => BatchResult { id, item: None, record_version: 0 },
    }
}
