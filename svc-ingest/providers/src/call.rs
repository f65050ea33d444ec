//! How providers are asked: the one way out.

mod redirect;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::outbound::{Guard, Limits, Refused};
use http::{HeaderValue, Request, Response, StatusCode, header};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use url::Url;

pub(crate) use self::redirect::{MOST_REDIRECTS, target};

use self::redirect::Journey;
use crate::limit::{self, asked_until};
use crate::{Fault, Ledger};

/// From the look-up of the name to the last byte of one answer.
const MOST_TIME: Duration = Duration::from_secs(60);

/// The requests of one run or one question: each is taken from the [`Ledger`] first, goes through the guard, and is
/// bounded in time and size. Clones count together.
#[derive(Clone)]
pub struct Call {
    guard: Guard,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    sent: Arc<AtomicU32>,
    deadline: Option<Instant>,
    /// Of one answer, whatever is asked for.
    most_bytes: usize,
}

cairn_chassis::debug_fields!(Call { sent, deadline });

/// Where an answer came from after the redirects, as an extension of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinalUrl(pub Url);

impl Call {
    /// Calls on one connection.
    pub fn new(guard: Guard, ledger: Arc<dyn Ledger>, clock: Arc<dyn Clock>) -> Self {
        Self { guard, ledger, clock, sent: Arc::default(), deadline: None, most_bytes: usize::MAX }
    }

    /// The same, which ends at that moment with [`Fault::Unavailable`].
    #[must_use]
    pub fn with_deadline(&self, deadline: Instant) -> Self {
        let deadline = self.deadline.map_or(deadline, |before| before.min(deadline));
        Self { deadline: Some(deadline), ..self.clone() }
    }

    /// The same, in which no answer has more bytes than that: a larger one is [`Fault::TooLarge`].
    #[must_use]
    pub fn with_most_bytes(&self, most_bytes: usize) -> Self {
        Self { most_bytes: self.most_bytes.min(most_bytes), ..self.clone() }
    }

    /// How many requests were sent, redirects and those without an answer included.
    pub fn sent(&self) -> u32 {
        self.sent.load(Ordering::Relaxed)
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Sends a request and judges the status: 2xx and 304 pass. The last address stands in [`FinalUrl`].
    ///
    /// # Errors
    /// What [`Call::exchange`] gives, and what the status means.
    pub async fn send(&self, request: Request<Bytes>, most_bytes: usize) -> Result<Response<Bytes>, Fault> {
        let response = self.exchange(request, most_bytes).await?;
        judge(response.status())?;
        Ok(response)
    }

    /// Sends a request and reads the JSON of a good answer.
    ///
    /// # Errors
    /// What [`Call::send`] gives, and [`Fault::Broken`] when it is no such JSON.
    pub async fn json<T: DeserializeOwned>(
        &self,
        request: Request<Bytes>,
        most_bytes: usize,
    ) -> Result<T, Fault> {
        let response = self.send(request, most_bytes).await?;
        read_json(response.body())
    }

    /// Sends a request; any status is an answer but those that ask to wait. Redirects are followed, at most five, with
    /// credentials only as long as they stay at the first origin. The last address stands in [`FinalUrl`].
    ///
    /// # Errors
    /// [`Fault::Waiting`] when the provider asks for it, which is written down for the whole connection then;
    /// what the ledger says; [`Fault::Address`], [`Fault::TooLarge`], [`Fault::Unavailable`], and [`Fault::Broken`] for
    /// redirects that lead nowhere.
    pub async fn exchange(
        &self,
        request: Request<Bytes>,
        most_bytes: usize,
    ) -> Result<Response<Bytes>, Fault> {
        let mut journey = Journey::new(request)?;
        loop {
            let response = self.exchange_once(journey.request()?, most_bytes).await?;
            if !journey.goes_on(&response)? {
                let mut response = response;
                response.extensions_mut().insert(FinalUrl(journey.into_url()));
                return Ok(response);
            }
        }
    }

    /// The same without following a redirect.
    ///
    /// # Errors
    /// As [`Call::exchange`].
    pub async fn exchange_once(
        &self,
        mut request: Request<Bytes>,
        most_bytes: usize,
    ) -> Result<Response<Bytes>, Fault> {
        // What we do not go to is not counted either.
        self.guard.check(&request.uri().to_string()).map_err(|_| Fault::Address)?;
        // An answer that is packed could grow without bound when it is unpacked.
        let identity = HeaderValue::from_static("identity");
        request.headers_mut().entry(header::ACCEPT_ENCODING).or_insert(identity);
        let exchanged = async {
            self.reserve().await?;
            let limits = Limits { time: MOST_TIME, bytes: most_bytes.min(self.most_bytes) };
            self.guard.send(request, limits).await.map_err(fault_of)
        };
        let response = self.in_time(exchanged).await?;
        match asked_until(response.status(), response.headers(), self.clock.now()) {
            Some(until) => Err(self.hold(until).await),
            None => Ok(response),
        }
    }

    /// Keeps the connection still for so long, at least a second and at most an hour: for providers that say in their
    /// own way that it is too much. Gives what the provider's caller is to be told.
    pub async fn hold_for(&self, wait: Duration) -> Fault {
        self.hold(self.clock.now().plus(wait.clamp(limit::SHORTEST, limit::LONGEST))).await
    }

    /// Waits before the next request, because a host wants time between two; the deadline ends it.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] when the deadline comes first.
    pub(crate) async fn pause(&self, wait: Duration) -> Result<(), Fault> {
        let waited = async {
            tokio::time::sleep(wait).await;
            Ok(())
        };
        self.in_time(waited).await
    }

    /// Takes one request from the account and counts it.
    pub(crate) async fn reserve(&self) -> Result<(), Fault> {
        self.ledger.reserve().await?;
        self.sent.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn hold(&self, until: Timestamp) -> Fault {
        match self.ledger.hold(until).await {
            Ok(()) => Fault::Waiting { until },
            Err(fault) => fault,
        }
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        match self.deadline {
            None => work.await,
            Some(deadline) => {
                tokio::time::timeout_at(deadline, work).await.unwrap_or(Err(Fault::Unavailable))
            }
        }
    }
}

/// What a status means when it is no success.
///
/// # Errors
/// What it means.
pub(crate) fn judge(status: StatusCode) -> Result<(), Fault> {
    match status.as_u16() {
        200..=299 | 304 => Ok(()),
        401 => Err(Fault::Credentials),
        403 => Err(Fault::Forbidden),
        404 | 410 => Err(Fault::Gone),
        408 | 425 | 500..=599 => Err(Fault::Unavailable),
        400..=499 => Err(Fault::Refused),
        _ => Err(Fault::broken("the provider answers with a status that makes no sense here")),
    }
}

/// The JSON of an answer.
///
/// # Errors
/// [`Fault::Broken`]; the parser's own words would quote the provider.
pub(crate) fn read_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(body)
        .map_err(|_| Fault::broken("the provider's answer is not the JSON that it should be"))
}

fn fault_of(refused: Refused) -> Fault {
    match refused {
        Refused::Url | Refused::NotPublic => Fault::Address,
        Refused::Unreachable | Refused::TimedOut => Fault::Unavailable,
        Refused::TooLarge(most) => Fault::TooLarge(u64::try_from(most).unwrap_or(u64::MAX)),
        Refused::Status(_) | Refused::ContentType => {
            Fault::broken("the provider answers with something else than was asked for")
        }
    }
}

#[cfg(test)]
mod tests;
