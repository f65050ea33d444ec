//! The one way to a body that is not kept.

use cairn_chassis::fair_semaphore::FairSemaphore;
use cairn_providers::{Entry, Fault, Fetched};
use tokio::time::{Instant, timeout_at};

use super::{Connection, Live};
use crate::model::LiveText;
use crate::runs::{Unread, read_live};

/// What reading one document may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds<'a> {
    pub(super) until: Instant,
    /// Of the body, and of its text.
    pub(super) bytes: usize,
    /// Of one answer of the provider: some send more than the document, a packed repository or a list of pages.
    pub(super) answer_bytes: usize,
    /// How many are read at once.
    pub(super) semaphore: &'a FairSemaphore,
}

impl Live {
    /// Asks a provider for one document, and takes the text out of what it sends.
    pub(super) async fn read(
        &self,
        connection: &Connection<'_>,
        entry: &Entry,
        bounds: Bounds<'_>,
    ) -> Result<LiveText, Unread> {
        let reading = async {
            let place = bounds.semaphore.acquire(connection.source.workspace).await;
            let _permit = place.map_err(|_| Unread::Fault(Fault::Unavailable))?;
            let answer = match &entry.body {
                // The search brought it along.
                Some(body) => Ok(Fetched::Body(body.clone())),
                None => {
                    let call =
                        connection.call.with_deadline(bounds.until).with_most_bytes(bounds.answer_bytes);
                    connection.provider.fetch(&call, &entry.id, None).await
                }
            };
            let kind = connection.source.provider;
            read_live(&self.extractor, kind, answer, entry, bounds.bytes).await
        };
        let read = timeout_at(bounds.until, reading).await;
        let read = read.unwrap_or(Err(Unread::Fault(Fault::Unavailable)));
        if let Err(Unread::Fault(fault)) = &read {
            self.record_fault(connection.source, fault).await;
        }
        read
    }
}
