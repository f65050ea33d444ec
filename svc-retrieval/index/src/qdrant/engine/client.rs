//! The client: writes, and the mapping of errors.

use qdrant_client::qdrant::points_update_operation::Operation;
use qdrant_client::qdrant::{
    PointsUpdateOperation, UpdateBatchPoints, UpdateStatus, WriteOrdering, WriteOrderingType,
};
use tonic::{Code, Status};

use super::api::{self, Api};
use super::{Config, Error};

/// A client of Qdrant; cheap to clone.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) api: Api,
}

impl Client {
    /// A client that connects on first use. Must be called within a runtime.
    pub(super) fn new(config: &Config) -> Result<Self, crate::Error> {
        Ok(Self { api: Api::new(config)? })
    }

    /// Applies operations in order. When this returns, they are visible to every later search.
    pub(super) async fn update(&self, collection: &str, operations: Vec<Operation>) -> Result<(), Error> {
        let operations =
            operations.into_iter().map(|operation| PointsUpdateOperation { operation: Some(operation) });
        let request = UpdateBatchPoints {
            collection_name: collection.to_owned(),
            wait: Some(true),
            operations: operations.collect(),
            // All replicas of a shard must apply conditional writes in the same order.
            ordering: Some(WriteOrdering { r#type: WriteOrderingType::Medium.into() }),
            timeout: None,
        };
        let answer = self.api.update_points_batch(request).await?;
        let done = |status| status == i32::from(UpdateStatus::Completed);
        if answer.result.iter().all(|result| done(result.status)) {
            return Ok(());
        }
        Err(Error::Unreachable("a write was accepted and not finished in time".to_owned()))
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let message = api::reason(&status);
        match status.code() {
            Code::Unauthenticated | Code::PermissionDenied => Self::Refused,
            Code::NotFound => Self::Gone,
            Code::InvalidArgument
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented => Self::Rejected(message),
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss => Self::Unreachable(message),
        }
    }
}
