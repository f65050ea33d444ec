//! The connection: calls with one collection's name, and what their errors mean.

use qdrant_client::QdrantError;
use qdrant_client::qdrant::points_update_operation::Operation;
use qdrant_client::qdrant::{
    PointsUpdateOperation, UpdateBatchPoints, UpdateStatus, WriteOrdering, WriteOrderingType,
};
use tonic::Code;

use super::tuning::{CALL_TIMEOUT, CONNECT_TIMEOUT};
use super::{Config, Error};

/// A client of Qdrant; cheap to clone.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) api: qdrant_client::Qdrant,
}

impl Client {
    /// A client that connects when it is first used.
    pub(super) fn new(config: &Config) -> Result<Self, crate::Error> {
        config.check()?;
        let mut options = qdrant_client::Qdrant::from_url(&config.url)
            .timeout(CALL_TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .keep_alive_while_idle()
            // The check would print to the output of this process.
            .skip_compatibility_check();
        options.set_api_key(config.api_key.as_deref().unwrap_or_default());
        if config.api_key.is_none() {
            options.api_key = None;
        }
        let api = options
            .build()
            .map_err(|_| crate::Error::Config("the address of Qdrant cannot be used".to_owned()))?;
        Ok(Self { api })
    }

    /// Applies operations one after the other; what is reported as done is found by every search that begins then.
    pub(super) async fn update(&self, collection: &str, operations: Vec<Operation>) -> Result<(), Error> {
        let operations =
            operations.into_iter().map(|operation| PointsUpdateOperation { operation: Some(operation) });
        let request = UpdateBatchPoints {
            collection_name: collection.to_owned(),
            wait: Some(true),
            operations: operations.collect(),
            // All replicas of a shard take conditional writes in one order.
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

impl From<QdrantError> for Error {
    fn from(error: QdrantError) -> Self {
        let status = match error {
            QdrantError::ResponseError { status } | QdrantError::ResourceExhaustedError { status, .. } => {
                status
            }
            QdrantError::Io(error) => return Self::Unreachable(error.to_string()),
            QdrantError::InvalidUri(_) => return Self::Rejected("the address cannot be used".to_owned()),
            QdrantError::ConversionError(_) | QdrantError::NoSnapshotFound(_) => {
                return Self::Answer("the client could not read it");
            }
        };
        let message = status.message().to_owned();
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
