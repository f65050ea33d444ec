//! Outbound calls: all requests of providers go through here.

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

pub(crate) use self::redirect::{MAX_REDIRECTS, target};

use self::redirect::RedirectChain;
use crate::limit::{self, asked_until};
use crate::{Fault, Ledger};

/// Deadline of one request, from DNS lookup to the last byte of the response.
const MAX_TIME: Duration = Duration::from_secs(60);

/// The requests of one run or one question. Each is first reserved in the [`Ledger`], passes the guard, and is bounded in time and size.
/// Clones share their count.
#[derive(Clone)]
pub struct Call {
    guard: Guard,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    sent: Arc<AtomicU32>,
    deadline: Option<Instant>,
    /// Bytes of any response.
    most_bytes: usize,
}

cairn_chassis::debug_fields!(Call { sent, deadline });

/// The URL of a response after redirects, as an extension of the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinalUrl(pub Url);

impl Call {
    /// Calls on one connection.
    pub fn new(guard: Guard, ledger: Arc<dyn Ledger>, clock: Arc<dyn Clock>) -> Self {
        Self { guard, ledger, clock, sent: Arc::default(), deadline: None, most_bytes: usize::MAX }
    }

    /// With a deadline, after which requests end with [`Fault::Unavailable`].
    #[must_use]
    pub fn with_deadline(&self, deadline: Instant) -> Self {
        let deadline = self.deadline.map_or(deadline, |before| before.min(deadline));
        Self { deadline: Some(deadline), ..self.clone() }
    }

    /// With a size limit for responses: a larger one is [`Fault::TooLarge`].
    #[must_use]
    pub fn with_most_bytes(&self, most_bytes: usize) -> Self {
        Self { most_bytes: self.most_bytes.min(most_bytes), ..self.clone() }
    }

    /// The number of requests sent, including redirects and those without a response.
    pub fn sent(&self) -> u32 {
        self.sent.load(Ordering::Relaxed)
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Sends a request and checks the status: 2xx and 304 pass. [`FinalUrl`] has the URL after redirects.
    ///
    /// # Errors
    /// Those of [`Call::exchange`], and the fault of the status.
    pub async fn send(&self, request: Request<Bytes>, most_bytes: usize) -> Result<Response<Bytes>, Fault> {
        let response = self.exchange(request, most_bytes).await?;
        judge(response.status())?;
        Ok(response)
    }

    /// Sends a request and parses the JSON of a successful response.
    ///
    /// # Errors
    /// Those of [`Call::send`], and [`Fault::Broken`] when the JSON has another shape.
    pub async fn json<T: DeserializeOwned>(
        &self,
        request: Request<Bytes>,
        most_bytes: usize,
    ) -> Result<T, Fault> {
        let response = self.send(request, most_bytes).await?;
        read_json(response.body())
    }

    /// Sends a request and returns the response with any status, except rate limiting. Follows at most five redirects, with credentials
    /// only while they stay at the first origin. [`FinalUrl`] has the URL after redirects.
    ///
    /// # Errors
    /// [`Fault::Waiting`] when rate limited, which is recorded for the whole connection; those of the ledger; [`Fault::Address`],
    /// [`Fault::TooLarge`], [`Fault::Unavailable`], and [`Fault::Broken`] for invalid redirects.
    pub async fn exchange(
        &self,
        request: Request<Bytes>,
        most_bytes: usize,
    ) -> Result<Response<Bytes>, Fault> {
        let mut redirects = RedirectChain::new(request)?;
        loop {
            let response = self.exchange_once(redirects.request()?, most_bytes).await?;
            if !redirects.follow(&response)? {
                let mut response = response;
                response.extensions_mut().insert(FinalUrl(redirects.into_url()));
                return Ok(response);
            }
        }
    }

    /// Like [`Call::exchange`], without following redirects.
    ///
    /// # Errors
    /// As [`Call::exchange`].
    pub async fn exchange_once(
        &self,
        mut request: Request<Bytes>,
        most_bytes: usize,
    ) -> Result<Response<Bytes>, Fault> {
        // Blocked addresses are not counted.
        self.guard.check(&request.uri().to_string()).map_err(|_| Fault::Address)?;
        // No compression: it would allow decompression bombs.
        let identity = HeaderValue::from_static("identity");
        request.headers_mut().entry(header::ACCEPT_ENCODING).or_insert(identity);
        let exchanged = async {
            self.reserve().await?;
            let limits = Limits { time: MAX_TIME, bytes: most_bytes.min(self.most_bytes) };
            self.guard.send(request, limits).await.map_err(fault_of)
        };
        let response = self.in_time(exchanged).await?;
        match asked_until(response.status(), response.headers(), self.clock.now()) {
            Some(until) => Err(self.hold(until).await),
            None => Ok(response),
        }
    }

    /// Pauses the connection for that long, clamped to between a second and an hour, for providers that signal rate limits in their own way.
    /// Returns the fault for the caller.
    pub async fn hold_for(&self, wait: Duration) -> Fault {
        self.hold(self.clock.now().plus(wait.clamp(limit::MIN_WAIT, limit::MAX_WAIT))).await
    }

    /// Waits before the next request, for hosts with a crawl delay.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] when the deadline is earlier.
    pub(crate) async fn pause(&self, wait: Duration) -> Result<(), Fault> {
        let waited = async {
            tokio::time::sleep(wait).await;
            Ok(())
        };
        self.in_time(waited).await
    }

    /// Reserves one request in the ledger and counts it.
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

/// Maps an error status to its fault.
///
/// # Errors
/// The fault of the status.
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

/// Parses the JSON of a response.
///
/// # Errors
/// [`Fault::Broken`], without the parser's message, which would quote the provider.
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
