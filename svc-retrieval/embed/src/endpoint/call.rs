//! One call of an endpoint, with retries.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use cairn_chassis::outbound::{Guard, Limits, Network, Refused};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use serde::{Deserialize, Serialize};

use super::EndpointConfig;
use crate::Error;
use cairn_chassis::breaker::Breaker;

/// The size limit of a response: 64 texts with vectors of 4 096 numbers, twenty characters each, three times over.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Characters of an error that are logged.
const MAX_REASON_CHARACTERS: usize = 200;

/// Attempts after the first.
const RETRIES: usize = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(8);
/// The longest `Retry-After` that is waited for within a call; a longer one opens the circuit breaker.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(20);

/// Why a call failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Transient; the endpoint may have said when to retry.
    Passing { reason: String, retry_after: Option<Duration> },
    /// The endpoint rejects the text.
    Text(String),
    /// Permanent: not retried.
    Other(Error),
}

impl Failure {
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Passing { reason, .. } => Error::Unavailable { reason },
            Self::Text(reason) => Error::Refused { reason },
            Self::Other(error) => error,
        }
    }
}

/// A parsed response: a vector for each text, and the tokens that the endpoint counted.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) vectors: Vec<Vec<f32>>,
    pub(super) tokens: Option<u64>,
}

#[derive(Debug, Serialize)]
struct EmbeddingsRequest<'a> {
    model: &'a str,
    input: &'a [&'a str],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

#[derive(Debug, Deserialize)]
struct EmbeddingsResponse {
    data: Vec<Row>,
    usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
struct Row {
    index: Option<usize>,
    /// `f64` as in JSON, so that values that overflow `f32` are told apart from malformed responses.
    embedding: Vec<f64>,
}

#[derive(Debug, Deserialize)]
struct Usage {
    total_tokens: Option<u64>,
}

const ADDRESS_RULE: &str = "the endpoint's address is an http or https URL with a host, and without user name, password \
                            or fragment";

fn bearer(key: &str) -> Result<HeaderValue, Error> {
    let value = HeaderValue::from_str(&format!("Bearer {key}"));
    let mut value = value.map_err(|_| {
        let reason = "the endpoint's key has characters that no header can hold".to_owned();
        Error::Model { reason }
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Makes the calls.
#[derive(Debug)]
pub(super) struct Caller {
    guard: Guard,
    address: String,
    key: Option<HeaderValue>,
    limits: Limits,
}

impl Caller {
    pub(super) fn new(config: &EndpointConfig) -> Result<Self, Error> {
        // All addresses are allowed, since the operator configured it; redirects are still not followed, so that the key is not leaked.
        let everywhere: Vec<Network> =
            ["0.0.0.0/0", "::/0"].iter().filter_map(|all| all.parse().ok()).collect();
        let guard = Guard::new(&everywhere).map_err(|error| Error::Model { reason: error.to_string() })?;
        let address = format!("{}/embeddings", config.base_url.trim_end_matches('/'));
        guard.check(&address).map_err(|_| Error::Model { reason: ADDRESS_RULE.to_owned() })?;
        Ok(Self {
            guard,
            address,
            key: config.key.as_deref().map(bearer).transpose()?,
            limits: Limits { time: config.timeout, bytes: MAX_ANSWER_BYTES },
        })
    }

    /// Embeds the texts in one call. Each attempt goes through the breaker.
    pub(super) async fn call(
        &self,
        model: &str,
        dimensions: Option<usize>,
        texts: &[&str],
        breaker: &Breaker,
    ) -> Result<Answer, Failure> {
        let body = EmbeddingsRequest { model, input: texts, encoding_format: "float", dimensions };
        let body = serde_json::to_vec(&body).map_err(|error| Failure::Text(error.to_string()))?;
        let pauses = ExponentialBuilder::default()
            .with_min_delay(FIRST_PAUSE)
            .with_max_delay(MAX_PAUSE)
            .with_max_times(RETRIES)
            .with_jitter();
        let attempt = || self.attempt(&body, texts.len(), breaker);
        attempt
            .retry(pauses)
            .sleep(tokio::time::sleep)
            .when(|failure| matches!(failure, Failure::Passing { .. }))
            .adjust(|failure, pause| match failure {
                Failure::Passing { retry_after: Some(wanted), .. } => {
                    pause.filter(|_| *wanted <= MAX_RETRY_AFTER).map(|pause| pause.max(*wanted))
                }
                Failure::Passing { .. } | Failure::Text(_) | Failure::Other(_) => pause,
            })
            .await
    }

    async fn attempt(&self, body: &[u8], texts: usize, breaker: &Breaker) -> Result<Answer, Failure> {
        if !breaker.allows() {
            return Err(Failure::Other(Error::Paused));
        }
        let answered = self.exchange(body, texts).await;
        let outcome = match &answered {
            Ok(_) => {
                breaker.succeeded();
                "ok"
            }
            Err(Failure::Passing { retry_after, .. }) => {
                breaker.failed(*retry_after);
                "unavailable"
            }
            // It is up.
            Err(Failure::Text(_)) => {
                breaker.succeeded();
                "refused"
            }
            Err(Failure::Other(_)) => {
                breaker.failed(None);
                "refused"
            }
        };
        metrics::counter!("cairn_embedder_requests_total", "outcome" => outcome).increment(1);
        answered
    }

    async fn exchange(&self, body: &[u8], texts: usize) -> Result<Answer, Failure> {
        let mut request = Request::post(&self.address)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.to_vec().into())
            .map_err(|error| refused(error.to_string()))?;
        if let Some(key) = &self.key {
            request.headers_mut().insert(header::AUTHORIZATION, key.clone());
        }
        let answer = self.guard.send(request, self.limits).await.map_err(|reason| match reason {
            Refused::Unreachable | Refused::TimedOut => passing(reason.to_string(), None),
            Refused::Url
            | Refused::NotPublic
            | Refused::TooLarge(_)
            | Refused::Status(_)
            | Refused::ContentType => refused(reason.to_string()),
        })?;
        if answer.status() == StatusCode::OK {
            return read(answer.body(), texts);
        }
        Err(failure(answer.status(), answer.headers(), answer.body()))
    }
}

fn passing(reason: String, retry_after: Option<Duration>) -> Failure {
    Failure::Passing { reason, retry_after }
}

fn refused(reason: String) -> Failure {
    Failure::Other(Error::Refused { reason })
}

/// Classifies a status other than 200.
fn failure(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
    let said: String = String::from_utf8_lossy(body).chars().take(MAX_REASON_CHARACTERS).collect();
    let reason = format!("{status}: {said}");
    match status.as_u16() {
        408 | 409 | 425 | 429 | 500.. => passing(reason, retry_after(headers)),
        400 | 413 | 422 => Failure::Text(reason),
        _ => refused(reason),
    }
}

/// Delay in seconds; the form with a date is rare.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn read(body: &[u8], texts: usize) -> Result<Answer, Failure> {
    let answered: EmbeddingsResponse = serde_json::from_slice(body)
        .map_err(|error| passing(format!("an answer that is none: {error}"), None))?;
    if answered.data.len() != texts {
        return Err(refused(format!("{} vectors for {texts} texts", answered.data.len())));
    }
    let mut vectors = vec![Vec::new(); texts];
    for (place, row) in answered.data.into_iter().enumerate() {
        let vector: Vec<f32> = row.embedding.into_iter().map(|value| value as f32).collect();
        let is_number = vector.iter().all(|value| value.is_finite());
        match vectors.get_mut(row.index.unwrap_or(place)) {
            Some(slot) if slot.is_empty() && !vector.is_empty() && is_number => *slot = vector,
            _ => return Err(refused("vectors that cannot be told apart, or are none".to_owned())),
        }
    }
    Ok(Answer { vectors, tokens: answered.usage.and_then(|usage| usage.total_tokens) })
}
