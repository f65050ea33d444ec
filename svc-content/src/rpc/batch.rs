//! `cairn.content.v1.BatchService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::identity::Verifier;
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::content::v1::batch_item::Write as Sent;
use cairn_proto::content::v1::batch_result::Item;
use cairn_proto::content::v1::batch_service_server::{BatchService, BatchServiceServer};
use cairn_proto::content::v1::{BatchItem, BatchResult, BatchWriteRequest, BatchWriteResponse};
use tonic::{Request, Response, Status};

use super::{files, folders};
use crate::batch::{Batches, Outcome, Write, check_count};
use crate::folders::FolderDraft;
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
        for write in &writes {
            identity.require(write.needs())?;
        }
        let done = self.batches.write(&Caller::try_from(identity)?, writes).await?;
        let results = done.outcomes.into_iter().map(encode).collect();
        let (first_change_position, change_position) = (done.positions.first, done.positions.last);
        Ok(Response::new(BatchWriteResponse { results, first_change_position, change_position }))
    }
}

fn decode(items: Vec<BatchItem>) -> Result<Vec<Write>, Problem> {
    let mut writes = Vec::with_capacity(items.len());
    let mut wrong = Vec::new();
    for (place, item) in items.into_iter().enumerate() {
        match item.write {
            Some(sent) => writes.push(decode_one(sent)),
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
    }
}

fn encode(outcome: Outcome) -> BatchResult {
    match outcome {
        Outcome::File(file) => {
            BatchResult { id: file.id.to_string(), item: Some(Item::File(files::encode(file))) }
        }
        Outcome::Folder(folder) => {
            BatchResult { id: folder.id.to_string(), item: Some(Item::Folder(folders::encode(folder))) }
        }
        Outcome::Deleted(id) => BatchResult { id, item: None },
    }
}
