//! Embeds the texts of searches, within the time that a search can wait.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::Clock;
use quick_cache::sync::Cache;

use super::{Embedder, Error, StaticRows, TextKind};
use cairn_chassis::breaker::{Breaker, Threshold};

/// How long a search waits for the vectors of its texts when nothing else is said. A person notices more, and words
/// alone are a good answer.
pub const DEFAULT_QUERY_LIMIT: Duration = Duration::from_secs(1);

/// Texts whose vectors are cached: people and agents repeat themselves within minutes. About 6 MiB with vectors of
/// 1 536 numbers.
const CACHED_TEXTS: usize = 1_000;

/// Timeouts and failures in a row after which the circuit breaker opens for a while: so that an embedder that is down or slow
/// costs a few searches their second, and not all of them.
const THRESHOLD: Threshold = Threshold { failures: 3, pause: Duration::from_secs(5) };

/// An embedder for searches: with a timeout, a circuit breaker, and a cache of recent texts.
pub struct QueryEmbedder {
    embedder: Arc<dyn Embedder>,
    limit: Duration,
    breaker: Breaker,
    cache: Cache<(TextKind, String), Vec<f32>>,
}

/// The vectors of the texts of one search.
#[derive(Debug)]
pub struct EmbeddedQuery {
    /// One for each text, in their order.
    pub vectors: Vec<Vec<f32>>,
    /// Whether all of them came from the cache.
    pub is_cached: bool,
}

impl QueryEmbedder {
    /// Embeds with `embedder`, within `limit`.
    pub fn new(embedder: Arc<dyn Embedder>, limit: Duration, clock: &Arc<dyn Clock>) -> Self {
        // A vector that costs microseconds is not worth caching.
        let capacity = if embedder.is_immediate() { 0 } else { CACHED_TEXTS };
        let breaker = Breaker::new(THRESHOLD, Arc::clone(clock));
        Self { embedder, limit, breaker, cache: Cache::new(capacity) }
    }

    /// The rows that the vectors are sums of, where they are.
    pub fn rows(&self) -> Option<&StaticRows> {
        self.embedder.rows()
    }

    /// The vectors of texts of one kind.
    ///
    /// # Errors
    /// Those of the embedder, [`Error::TooSlow`], or [`Error::Paused`] while the circuit breaker is open.
    pub async fn embed(&self, kind: TextKind, texts: &[&str]) -> Result<EmbeddedQuery, Error> {
        if self.embedder.is_immediate() {
            let vectors = self.embedder.embed(kind, texts).await?;
            return Ok(EmbeddedQuery { vectors, is_cached: false });
        }
        let mut found: HashMap<&str, Vec<f32>> = HashMap::new();
        let mut missing = Vec::new();
        for text in texts {
            match self.cache.get(&(kind, (*text).to_owned())) {
                Some(vector) => drop(found.insert(text, vector)),
                None if !missing.contains(text) => missing.push(*text),
                None => {}
            }
        }
        let is_cached = missing.is_empty() && !texts.is_empty();
        if !missing.is_empty() {
            for (text, vector) in missing.iter().zip(self.request(kind, &missing).await?) {
                self.cache.insert((kind, (*text).to_owned()), vector.clone());
                found.insert(text, vector);
            }
        }
        let vectors = texts.iter().map(|text| found.get(text).cloned().unwrap_or_default()).collect();
        Ok(EmbeddedQuery { vectors, is_cached })
    }

    async fn request(&self, kind: TextKind, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        if !self.breaker.allows() {
            return Err(Error::Paused);
        }
        let embedding = tokio::time::timeout(self.limit, self.embedder.embed(kind, texts));
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use cairn_chassis::clock::SystemClock;

    use super::*;

    /// Gives each kind another vector, and counts its calls.
    #[derive(Debug, Default)]
    struct ByKind(AtomicUsize);

    #[async_trait]
    impl Embedder for ByKind {
        fn name(&self) -> &'static str {
            "by-kind"
        }

        fn dimensions(&self) -> usize {
            1
        }

        async fn embed(&self, kind: TextKind, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let value = if kind == TextKind::Query { 1.0 } else { -1.0 };
            Ok(texts.iter().map(|_| vec![value]).collect())
        }
    }

    #[tokio::test]
    async fn a_text_is_cached_apart_for_each_kind() {
        let embedder = Arc::new(ByKind::default());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let shared = Arc::clone(&embedder) as Arc<dyn Embedder>;
        let queries = QueryEmbedder::new(shared, DEFAULT_QUERY_LIMIT, &clock);
        for (kind, expected, is_cached, calls) in [
            (TextKind::Query, 1.0, false, 1),
            (TextKind::Passage, -1.0, false, 2),
            (TextKind::Query, 1.0, true, 2),
            (TextKind::Passage, -1.0, true, 2),
        ] {
            let embedded = queries.embed(kind, &["heron", "heron"]).await.unwrap();
            assert_eq!(embedded.vectors, [[expected], [expected]]);
            assert_eq!((embedded.is_cached, embedder.0.load(Ordering::Relaxed)), (is_cached, calls));
        }
    }
}
