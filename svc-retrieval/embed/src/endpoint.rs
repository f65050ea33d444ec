//! An endpoint that speaks OpenAI's `/embeddings`, wherever it stands.
//!
//! Calls are batched, tried again with growing pauses while that makes sense, given up for a while when they fail again
//! and again, and counted against spending limits. The address is the operator's word, as that of a database is: it may
//! be private, as a model server on the same machine is, and is not checked as addresses are that users name.

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

/// Texts of a call when nothing else is said: what the strictest of the usual model servers takes.
pub const DEFAULT_BATCH: usize = 32;
/// How long a call may take when nothing else is said: a full batch on a CPU.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an endpoint that fails again and again is left alone when nothing else is said: about what one call with all
/// its retries takes to fail.
pub const DEFAULT_PAUSE: Duration = Duration::from_secs(15);

/// Failures in a row after which the endpoint is left alone: one call with all its retries.
const MOST_FAILURES: u32 = 5;

/// Bytes of texts in one call. Endpoints limit tokens, too; the strictest that is widely used takes 100 000.
const MOST_BYTES: usize = 256 * 1024;

/// How often a text that is refused is cut in half before it is given up.
const MOST_CUTS: usize = 4;

/// What an endpoint is asked when its vectors' length is not known, or to tell whether it refuses everything.
const PROBE: &str = "dimensions";

/// Which endpoint, and how it is used.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointConfig {
    /// What stands before `/embeddings`, such as `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// What the endpoint knows us by.
    pub key: Option<String>,
    /// The length of vectors that is asked for; what the model gives when absent.
    pub dimensions: Option<usize>,
    /// The most texts of a call.
    pub batch: usize,
    /// How long a call may take.
    pub timeout: Duration,
    /// How long it is left alone when it fails again and again.
    pub pause: Duration,
    /// The most tokens.
    pub spending: Spending,
    /// Where it is kept what was spent today; nowhere when absent.
    pub spent_file: Option<PathBuf>,
}

// Without the key.
cairn_chassis::debug_fields!(EndpointConfig { base_url, model });

impl EndpointConfig {
    /// The name of its embedder. The address is no part of it: a model that moves is the same model.
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

/// The means to ask an endpoint, shared by all embedders there: what one spends the other cannot.
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
        let threshold = Threshold { failures: MOST_FAILURES, pause: config.pause };
        let breaker = Breaker::new(threshold, Arc::clone(clock));
        let budget = Budget::new(config.spending, Arc::clone(clock), config.spent_file.clone());
        Ok(Self { config, shared: Arc::new(Shared { caller, breaker, budget }) })
    }

    /// The configured embedder; the endpoint is asked how long its vectors are.
    pub(super) async fn embedder(&self) -> Result<Endpoint, Error> {
        let probed = self.shared.ask(&self.config.model, self.config.dimensions, &[PROBE]).await;
        let vectors = probed.map_err(Failure::into_error)?;
        let dimensions = vectors.first().map_or(0, Vec::len);
        if self.config.dimensions.is_some_and(|wanted| wanted != dimensions) {
            return Err(Error::Refused { reason: format!("its vectors have {dimensions} dimensions") });
        }
        Ok(self.known(self.config.model.clone(), dimensions))
    }

    /// Whether it is the configured embedder, as far as can be told without asking it, that made those vectors.
    pub(super) fn made(&self, identity: &EmbedderIdentity) -> bool {
        self.config.made(identity)
    }

    /// The embedder that made those vectors, when it is a model of this endpoint. Nothing is asked.
    pub(super) fn of(&self, identity: &EmbedderIdentity) -> Option<Endpoint> {
        let model = identity.embedder.strip_prefix("openai-")?;
        let is_known = self.config.made(identity) || identity.origin == self.config.origin();
        is_known.then(|| self.known(model.to_owned(), identity.dimensions))
    }

    fn known(&self, model: String, dimensions: usize) -> Endpoint {
        let (name, origin) = (format!("openai-{model}"), self.config.origin());
        // Asked for only where the model's own length is not what is wanted: many servers do not know the field.
        let asked = self.config.dimensions.map(|_| dimensions);
        Endpoint {
            name,
            origin,
            model,
            dimensions,
            asked,
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
    asked: Option<usize>,
    batch: usize,
    shared: Arc<Shared>,
}

impl Shared {
    /// One call for all of the texts, within the budget, when the breaker lets it through; with retries.
    async fn ask(
        &self,
        model: &str,
        dimensions: Option<usize>,
        texts: &[&str],
    ) -> Result<Vec<Vec<f32>>, Failure> {
        let tokens = estimate(texts);
        self.budget.take(tokens).map_err(Failure::Other)?;
        let taken = Taken { budget: &self.budget, tokens };
        let answer = self.caller.call(model, dimensions, texts, &self.breaker).await?;
        taken.used(answer.tokens);
        Ok(answer.vectors)
    }
}

/// Tokens that were taken; given back when the call fails or nobody waits for it any more.
struct Taken<'a> {
    budget: &'a Budget,
    tokens: u64,
}

impl Taken<'_> {
    fn used(mut self, told: Option<u64>) {
        let used = told.unwrap_or(self.tokens);
        self.budget.correct(self.tokens, used);
        metrics::counter!("cairn_embedder_tokens_total").increment(used);
        self.tokens = 0;
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if self.tokens > 0 {
            self.budget.correct(self.tokens, 0);
        }
    }
}

impl Endpoint {
    /// Vectors of texts that are not blank.
    async fn vectors(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        match self.shared.ask(&self.model, self.asked, texts).await {
            Ok(vectors) => self.checked(vectors),
            Err(Failure::Text(reason)) => self.one_by_one(texts, reason).await,
            Err(failure) => Err(failure.into_error()),
        }
    }

    /// Something in the texts is refused. Each goes alone, so that one document does not hold up all others.
    async fn one_by_one(&self, texts: &[&str], reason: String) -> Result<Vec<Vec<f32>>, Error> {
        // Unless whatever is asked is refused: then it is the configuration.
        if let Err(failure) = self.shared.ask(&self.model, self.asked, &[PROBE]).await {
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

    /// One text, cut until it is taken: it may be longer than the model reads.
    async fn one(&self, text: &str) -> Result<Vec<f32>, Error> {
        let mut rest = text;
        for _ in 0..=MOST_CUTS {
            match self.shared.ask(&self.model, self.asked, &[rest]).await {
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

    /// Texts in calls that the endpoint takes.
    fn batches<'t>(&self, texts: &'t [&'t str]) -> Vec<&'t [&'t str]> {
        let mut batches = Vec::new();
        let mut rest = texts;
        while !rest.is_empty() {
            let mut bytes = 0_usize;
            let fitting = rest.iter().take(self.batch).take_while(|text| {
                bytes += text.len();
                bytes <= MOST_BYTES
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

    /// Both kinds alike: what a model is sent before a text is configured at the server.
    async fn embed(&self, _: TextKind, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let asked: Vec<&str> = texts.iter().copied().filter(|text| !text.trim().is_empty()).collect();
        let mut vectors = Vec::with_capacity(asked.len());
        for batch in self.batches(&asked) {
            vectors.extend(self.vectors(batch).await?);
        }
        let mut vectors = vectors.into_iter();
        let zero = || vec![0.0; self.dimensions];
        let given = texts.iter().map(|text| if text.trim().is_empty() { None } else { vectors.next() });
        Ok(given.map(|vector| vector.unwrap_or_else(zero)).collect())
    }
}
