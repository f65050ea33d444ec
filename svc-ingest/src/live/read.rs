//! The one way to a body that is not kept.

use cairn_chassis::fair_semaphore::FairSemaphore;
use cairn_providers::{Entry, Fault, Fetched};
use tokio::time::{Instant, timeout_at};

use super::{Connection, Live};
use crate::model::LiveText;
use crate::runs::{Unread, read_live};

/// The limits of one read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds<'a> {
    pub(super) until: Instant,
    /// Bytes of the body, and of its text.
    pub(super) bytes: usize,
    /// Bytes of one response: some providers send more than the document, such as a packfile or a list of pages.
    pub(super) answer_bytes: usize,
    /// Limits concurrent reads.
    pub(super) semaphore: &'a FairSemaphore,
}

impl Live {
    /// Fetches one document from a provider, and extracts its text.
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
                // It came with the search result.
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
