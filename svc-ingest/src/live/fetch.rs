//! Fetches one document by its id.

use std::time::Duration;

use cairn_providers::{Entry, ExternalId, Fault};
use tokio::time::Instant;

use super::read::Bounds;
use super::{Live, unavailable_reason};
use crate::Error;
use crate::model::{LiveText, Source};
use crate::runs::{Unread, next};

/// The deadline of a fetch.
const MAX_TIME: Duration = Duration::from_secs(10);
/// The retry hint for a source or provider that is unavailable.
const RETRY_AFTER: Duration = Duration::from_secs(30);

impl Live {
    /// Fetches the current text of a document; also returns the number of requests. `entry` is what is known of it before.
    pub(crate) async fn fetch(&self, source: &Source, entry: &Entry) -> Result<(LiveText, u32), Error> {
        if let Some(why) = unavailable_reason(source) {
            return Err(Error::ProviderUnavailable { why: why.to_owned(), again: RETRY_AFTER });
        }
        let connection = self.connect(source).await?;
        let bounds = Bounds {
            until: Instant::now() + MAX_TIME,
            bytes: cairn_providers::MAX_BODY_BYTES,
            // The provider has limits of its own.
            answer_bytes: usize::MAX,
            semaphore: &self.semaphores.fetches,
        };
        let read = self.read(&connection, entry, bounds).await;
        let text = read.map_err(|why| self.refusal(why, source, &entry.id))?;
        Ok((text, connection.call.sent()))
    }

    fn refusal(&self, why: Unread, source: &Source, id: &ExternalId) -> Error {
        let now = self.runner.context.clock.now();
        match why {
            Unread::Gone => Error::NoSourceDocument(id.to_string()),
            Unread::Failure(failure) if failure.may_pass() => {
                Error::ProviderUnavailable { why: failure.message, again: RETRY_AFTER }
            }
            Unread::Failure(failure) => Error::NoText { id: id.to_string(), why: failure.message },
            Unread::Fault(Fault::Budget) => {
                Error::BudgetUsedUp { limit: source.daily_budget, again: next::tomorrow(now).since(now) }
            }
            Unread::Fault(Fault::Waiting { until }) => {
                Error::ProviderUnavailable { why: "it asks to wait".to_owned(), again: until.since(now) }
            }
            Unread::Fault(fault) => Error::ProviderUnavailable { why: fault.to_string(), again: RETRY_AFTER },
        }
    }
}
