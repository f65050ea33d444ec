//! One document that somebody asks for by its id.

use std::time::Duration;

use cairn_providers::{Entry, ExternalId, Fault};
use tokio::time::Instant;

use super::read::Bounds;
use super::{Live, unavailable_reason};
use crate::Error;
use crate::model::{LiveText, Source};
use crate::runs::{Unread, next};

/// One document is waited for so long.
const MOST_TIME: Duration = Duration::from_secs(10);
/// When a source that rests, or a provider that failed, may be worth another try.
const TRY_AGAIN: Duration = Duration::from_secs(30);

impl Live {
    /// What a provider has under an id just now, and how many requests that took. `entry` is what is known of it before.
    pub(crate) async fn fetch(&self, source: &Source, entry: &Entry) -> Result<(LiveText, u32), Error> {
        if let Some(why) = unavailable_reason(source) {
            return Err(Error::ProviderUnavailable { why: why.to_owned(), again: TRY_AGAIN });
        }
        let connection = self.connect(source).await?;
        let bounds = Bounds {
            until: Instant::now() + MOST_TIME,
            bytes: cairn_providers::MOST_BODY_BYTES,
            // The provider has bounds of its own.
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
                Error::ProviderUnavailable { why: failure.message, again: TRY_AGAIN }
            }
            Unread::Failure(failure) => Error::NoText { id: id.to_string(), why: failure.message },
            Unread::Fault(Fault::Budget) => {
                Error::BudgetUsedUp { limit: source.daily_budget, again: next::tomorrow(now).since(now) }
            }
            Unread::Fault(Fault::Waiting { until }) => {
                Error::ProviderUnavailable { why: "it asks to wait".to_owned(), again: until.since(now) }
            }
            Unread::Fault(fault) => Error::ProviderUnavailable { why: fault.to_string(), again: TRY_AGAIN },
        }
    }
}
