//! Who counts the requests of a connection.

use std::fmt;

use async_trait::async_trait;
use cairn_chassis::clock::Timestamp;

use crate::Fault;

/// The account of one connection's requests, kept by whoever owns the connection, for all replicas together.
#[async_trait]
pub trait Ledger: fmt::Debug + Send + Sync {
    /// Takes one request from the account, before it is sent.
    ///
    /// # Errors
    /// [`Fault::Budget`] when nothing is left, [`Fault::Waiting`] while the provider wants to be left alone,
    /// [`Fault::Unavailable`] when the account cannot be read.
    async fn reserve(&self) -> Result<(), Fault>;

    /// Notes that the provider wants to be left alone until then, for every call on this connection.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] when it cannot be written down.
    async fn hold(&self, until: Timestamp) -> Result<(), Fault>;
}
