//! Counts the requests of a connection.

use std::fmt;

use async_trait::async_trait;
use cairn_chassis::clock::Timestamp;

use crate::Fault;

/// The request count and rate limit state of one connection, shared by all replicas. Implemented by the owner of the connection.
#[async_trait]
pub trait Ledger: fmt::Debug + Send + Sync {
    /// Reserves one request before it is sent.
    ///
    /// # Errors
    /// [`Fault::Budget`] when the budget is used up, [`Fault::Waiting`] while rate limited, [`Fault::Unavailable`] when the ledger cannot be
    /// read.
    async fn reserve(&self) -> Result<(), Fault>;

    /// Records that the connection is rate limited until then, for all of its calls.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] when the ledger cannot be written.
    async fn hold(&self, until: Timestamp) -> Result<(), Fault>;
}
