//! Embeds the texts of searches, which cannot wait.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::Clock;
use quick_cache::sync::Cache;

use super::{Embedder, Error, StaticRows};
use cairn_chassis::breaker::{Breaker, Threshold};

/// How long a search waits for the vectors of its texts when nothing else is said. A person notices more, and words
/// alone are a good answer.
pub const DEFAULT_QUERY_LIMIT: Duration = Duration::from_secs(1);

/// Texts whose vectors are remembered: people and agents repeat themselves within minutes. About 6 MiB with vectors of
/// 1 536 numbers.
const REMEMBERED: usize = 1_000;

/// Searches in a row that waited in vain, after which none waits for a while: so that an embedder that is down or slow
/// costs a few searches their second, and not all of them.
const THRESHOLD: Threshold = Threshold { failures: 3, pause: Duration::from_secs(5) };

/// An embedder as a search needs it: bounded in time, and asked once for a text as long as that is remembered.
pub struct QueryEmbedder {
    embedder: Arc<dyn Embedder>,
    limit: Duration,
    breaker: Breaker,
    remembered: Cache<String, Vec<f32>>,
}

/// The vectors of the texts of one search.
#[derive(Debug)]
pub struct EmbeddedQuery {
    /// One for each text, in their order.
    pub vectors: Vec<Vec<f32>>,
    /// Whether the embedder was not asked, since all of them were remembered.
    pub is_remembered: bool,
}

impl QueryEmbedder {
    /// Embeds with `embedder`, within `limit`.
    pub fn new(embedder: Arc<dyn Embedder>, limit: Duration, clock: &Arc<dyn Clock>) -> Self {
        // What costs microseconds is not worth remembering.
        let capacity = if embedder.is_immediate() { 0 } else { REMEMBERED };
        let breaker = Breaker::new(THRESHOLD, Arc::clone(clock));
        Self { embedder, limit, breaker, remembered: Cache::new(capacity) }
    }

    /// The rows that the vectors are sums of, where they are.
    pub fn rows(&self) -> Option<&StaticRows> {
        self.embedder.rows()
    }

    /// The vectors of the texts.
    ///
    /// # Errors
    /// What the embedder says, or [`Error::TooSlow`].
    pub async fn embed(&self, texts: &[&str]) -> Result<EmbeddedQuery, Error> {
        if self.embedder.is_immediate() {
            let vectors = self.embedder.embed(texts).await?;
            return Ok(EmbeddedQuery { vectors, is_remembered: false });
        }
        let mut known: HashMap<&str, Vec<f32>> = HashMap::new();
        let mut unknown = Vec::new();
        for text in texts {
            match self.remembered.get(*text) {
                Some(vector) => drop(known.insert(text, vector)),
                None if !unknown.contains(text) => unknown.push(*text),
                None => {}
            }
        }
        let is_remembered = unknown.is_empty() && !texts.is_empty();
        if !unknown.is_empty() {
            for (text, vector) in unknown.iter().zip(self.asked(&unknown).await?) {
                self.remembered.insert((*text).to_owned(), vector.clone());
                known.insert(text, vector);
            }
        }
        let vectors = texts.iter().map(|text| known.get(text).cloned().unwrap_or_default()).collect();
        Ok(EmbeddedQuery { vectors, is_remembered })
    }

    async fn asked(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        if !self.breaker.lets_through() {
            return Err(Error::Paused);
        }
        let embedding = tokio::time::timeout(self.limit, self.embedder.embed(texts));
        let answered = embedding.await.unwrap_or(Err(Error::TooSlow { limit: self.limit }));
        if answered.is_ok() {
            self.breaker.succeeded();
        } else {
            self.breaker.failed(None);
        }
        answered
    }
}

cairn_chassis::debug_fields!(QueryEmbedder { embedder, limit });
