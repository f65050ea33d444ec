//! Fake bulk operations of svc-content.

use cairn_proto::common::v1::ErrorReason;
use cairn_proto::content::v1 as content;
use cairn_proto::content::v1::batch_service_server::BatchService;
use cairn_proto::domain::TrashKind;
use tonic::{Request, Response, Status};

use super::FILE;
use super::console::HOSTILE;

type Answered<T> = Result<Response<T>, Status>;

/// Of three items it changes one, finds one unchanged, and skips one.
pub(super) struct Batches;

#[tonic::async_trait]
impl BatchService for Batches {
    async fn batch_write(
        &self,
        _: Request<content::BatchWriteRequest>,
    ) -> Answered<content::BatchWriteResponse> {
        Err(Status::unimplemented("nobody here writes batches"))
    }

    async fn change_items(
        &self,
        request: Request<content::ChangeItemsRequest>,
    ) -> Answered<content::ChangeItemsResponse> {
        let is_written = !request.get_ref().dry_run;
        let skipped = content::SkippedItem {
            kind: TrashKind::File.into(),
            item_id: FILE.into(),
            reason: ErrorReason::ValidationError.into(),
            message: HOSTILE.into(),
        };
        Ok(Response::new(content::ChangeItemsResponse {
            selected_count: 3,
            changed_count: 1,
            unchanged_count: 1,
            item_count: 1,
            skipped: vec![skipped],
            write_id: is_written.then(|| "1800000000000000.7".to_owned()),
            change_position: if is_written { 7 } else { 0 },
        }))
    }

    async fn read_states(
        &self,
        _: Request<content::ReadStatesRequest>,
    ) -> Answered<content::ReadStatesResponse> {
        Err(Status::unimplemented("nobody here compares"))
    }
}
