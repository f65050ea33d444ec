//! An endpoint that speaks OpenAI's `/embeddings`, wherever it stands.
//!
//! Calls are batched, retried with exponential backoff, guarded by a circuit breaker, and counted against spending limits. The
//! address is configured by the operator, as that of a database is: it may be private, as a model server on the same machine is,
//! and is not checked like addresses that users provide.

mod budget;
mod call;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cairn_chassis::clock::Clock;

pub use self::budget::Spending;
use self::budget::{Budget, estimate};
use self::call::{Caller, Failure};
use super::vector::normalise;
use super::{Embedder, EmbedderIdentity, Error, TextKind};
use cairn_chassis::breaker::{Breaker, Threshold};

/// The default batch size: what the strictest of the usual model servers takes.
pub const DEFAULT_BATCH: usize = 32;
/// The default timeout of a call: a full batch on a CPU.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The default time for which the circuit breaker stays open: about what one call with all its retries takes to fail.
pub const DEFAULT_PAUSE: Duration = Duration::from_secs(15);

/// Consecutive failures that open the circuit breaker: one call with all its retries.
const MAX_FAILURES: u32 = 5;

/// Bytes of texts in one call. Endpoints limit tokens, too; the strictest that is widely used takes 100 000.
const MAX_BYTES: usize = 256 * 1024;

/// How often a rejected text is halved before it is given up.
const MAX_CUTS: usize = 4;

/// The text of a probe: for the length of vectors, or to find out whether the endpoint rejects everything.
const PROBE: &str = "dimensions";

/// The configuration of an endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointConfig {
    /// The URL without `/embeddings`, such as `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// The API key.
    pub key: Option<String>,
    /// The requested length of vectors; the model's own when absent.
    pub dimensions: Option<usize>,
    /// Texts of a call, at most.
    pub batch: usize,
    /// The timeout of a call.
    pub timeout: Duration,
    /// How long the circuit breaker stays open.
    pub pause: Duration,
    /// Token limits.
    pub spending: Spending,
    /// The file of the tokens that were spent today; not persisted when absent.
    pub spent_file: Option<PathBuf>,
}

// Without the key.
cairn_chassis::debug_fields!(EndpointConfig { base_url, model });

impl EndpointConfig {
    /// The name of its embedder. Without the address: a model that moves to another server is the same model.
    fn name(&self) -> String {
        format!("openai-{}", self.model)
    }

    fn origin(&self) -> String {
        format!("openai:{}", self.base_url)
    }

    fn made(&self, identity: &EmbedderIdentity) -> bool {
        identity.embedder == self.name() && self.dimensions.is_none_or(|wanted| wanted == identity.dimensions)
    }
}

/// A client of an endpoint, shared by all embedders there, which therefore share one budget and one breaker.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    config: EndpointConfig,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    caller: Caller,
    breaker: Breaker,
    budget: Budget,
}

impl Connection {
    pub(super) fn new(config: EndpointConfig, clock: &Arc<dyn Clock>) -> Result<Self, Error> {
        let caller = Caller::new(&config)?;
        let threshold = Threshold { failures: MAX_FAILURES, pause: config.pause };
        let breaker = Breaker::new(threshold, Arc::clone(clock));
        let budget = Budget::new(config.spending, Arc::clone(clock), config.spent_file.clone());
        Ok(Self { config, shared: Arc::new(Shared { caller, breaker, budget }) })
    }

    /// The configured embedder; probes the endpoint for the length of its vectors.
    pub(super) async fn embedder(&self) -> Result<Endpoint, Error> {
        let probed = self.shared.request(&self.config.model, self.config.dimensions, &[PROBE]).await;
        let vectors = probed.map_err(Failure::into_error)?;
        let dimensions = vectors.first().map_or(0, Vec::len);
        if self.config.dimensions.is_some_and(|wanted| wanted != dimensions) {
            return Err(Error::Refused { reason: format!("its vectors have {dimensions} dimensions") });
        }
        Ok(self.model(self.config.model.clone(), dimensions))
    }

    /// Whether the configured embedder made those vectors, as far as the configuration tells.
    pub(super) fn made(&self, identity: &EmbedderIdentity) -> bool {
        self.config.made(identity)
    }

    /// The embedder that made those vectors, when it is a model of this endpoint. Makes no call.
    pub(super) fn of(&self, identity: &EmbedderIdentity) -> Option<Endpoint> {
        let model = identity.embedder.strip_prefix("openai-")?;
        let is_known = self.config.made(identity) || identity.origin == self.config.origin();
        is_known.then(|| self.model(model.to_owned(), identity.dimensions))
    }

    fn model(&self, model: String, dimensions: usize) -> Endpoint {
        let (name, origin) = (format!("openai-{model}"), self.config.origin());
        // Sent only where a length is configured: many servers do not know the field.
        let requested_dimensions = self.config.dimensions.map(|_| dimensions);
        Endpoint {
            name,
            origin,
            model,
            dimensions,
            requested_dimensions,
            batch: self.config.batch.max(1),
            shared: Arc::clone(&self.shared),
        }
    }
}

/// A model at an endpoint.
#[derive(Debug)]
pub(super) struct Endpoint {
    name: String,
    origin: String,
    model: String,
    dimensions: usize,
    requested_dimensions: Option<usize>,
    batch: usize,
    shared: Arc<Shared>,
}

impl Shared {
    /// Embeds all texts in one call, within the budget and through the breaker, with retries.
    async fn request(
        &self,
        model: &str,
        dimensions: Option<usize>,
        texts: &[&str],
    ) -> Result<Vec<Vec<f32>>, Failure> {
        let tokens = estimate(texts);
        self.budget.take(tokens).map_err(Failure::Other)?;
        let reservation = Reservation { budget: &self.budget, tokens };
        let answer = self.caller.call(model, dimensions, texts, &self.breaker).await?;
        reservation.settle(answer.tokens);
        Ok(answer.vectors)
    }
}

/// Tokens that are reserved for a call; released when the call fails or is cancelled.
struct Reservation<'a> {
    budget: &'a Budget,
    tokens: u64,
}

impl Reservation<'_> {
    fn settle(mut self, reported: Option<u64>) {
        let used = reported.unwrap_or(self.tokens);
        self.budget.correct(self.tokens, used);
        metrics::counter!("cairn_embedder_tokens_total").increment(used);
        self.tokens = 0;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.tokens > 0 {
            self.budget.correct(self.tokens, 0);
        }
    }
}

impl Endpoint {
    /// Vectors of texts that are not blank.
    async fn vectors(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        match self.shared.request(&self.model, self.requested_dimensions, texts).await {
            Ok(vectors) => self.checked(vectors),
            Err(Failure::Text(reason)) => self.one_by_one(texts, reason).await,
            Err(failure) => Err(failure.into_error()),
        }
    }

    /// The endpoint rejects one of the texts. Sends each alone, so that one document does not block all others.
    async fn one_by_one(&self, texts: &[&str], reason: String) -> Result<Vec<Vec<f32>>, Error> {
        // If the probe is rejected, too, the configuration is wrong.
        if let Err(failure) = self.shared.request(&self.model, self.requested_dimensions, &[PROBE]).await {
            return Err(match &failure {
                Failure::Text(_) => Error::Refused { reason },
                Failure::Passing { .. } | Failure::Other(_) => failure.into_error(),
            });
        }
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            vectors.push(self.one(text).await?);
        }
        Ok(vectors)
    }

    /// Embeds one text, halved until it is accepted: it may be longer than the model's context.
    async fn one(&self, text: &str) -> Result<Vec<f32>, Error> {
        let mut rest = text;
        for _ in 0..=MAX_CUTS {
            match self.shared.request(&self.model, self.requested_dimensions, &[rest]).await {
                Ok(vectors) => {
                    return Ok(self.checked(vectors)?.into_iter().next().unwrap_or_default());
                }
                Err(Failure::Text(_)) => {
                    rest = rest.get(..rest.floor_char_boundary(rest.len() / 2)).unwrap_or_default()
                }
                Err(failure) => return Err(failure.into_error()),
            }
        }
        tracing::warn!(bytes = text.len(), "the embedder refuses a text; it is found by its words only");
        Ok(vec![0.0; self.dimensions])
    }

    fn checked(&self, mut vectors: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>, Error> {
        for vector in &mut vectors {
            if vector.len() != self.dimensions {
                let reason =
                    format!("a vector of {} dimensions where {} are expected", vector.len(), self.dimensions);
                return Err(Error::Refused { reason });
            }
            normalise(vector);
        }
        Ok(vectors)
    }

    /// Splits texts into batches within the limits.
    fn batches<'t>(&self, texts: &'t [&'t str]) -> Vec<&'t [&'t str]> {
        let mut batches = Vec::new();
        let mut rest = texts;
        while !rest.is_empty() {
            let mut bytes = 0_usize;
            let fitting = rest.iter().take(self.batch).take_while(|text| {
                bytes += text.len();
                bytes <= MAX_BYTES
            });
            let (batch, behind) = rest.split_at(fitting.count().max(1));
            batches.push(batch);
            rest = behind;
        }
        batches
    }
}

#[async_trait]
impl Embedder for Endpoint {
    fn name(&self) -> &str {
        &self.name
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn origin(&self) -> &str {
        &self.origin
    }

    /// Sends texts of both kinds unchanged: prefixes are configured at the server.
    async fn embed(&self, _: TextKind, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let sent: Vec<&str> = texts.iter().copied().filter(|text| !text.trim().is_empty()).collect();
        let mut vectors = Vec::with_capacity(sent.len());
        for batch in self.batches(&sent) {
            vectors.extend(self.vectors(batch).await?);
        }
        let mut vectors = vectors.into_iter();
        let zero = || vec![0.0; self.dimensions];
        let given = texts.iter().map(|text| if text.trim().is_empty() { None } else { vectors.next() });
        Ok(given.map(|vector| vector.unwrap_or_else(zero)).collect())
    }
}
