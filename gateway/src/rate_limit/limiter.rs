//! Chooses the engine: Redis if configured, and this process's own windows while Redis is down.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::breaker::{Breaker, Threshold};
use cairn_chassis::clock::Clock;

use super::memory::Memory;
use super::{Counted, Key, Quota, RateLimiter, Unreachable};

/// After a failure Redis is skipped for this long, then probed by one request at a time.
const PAUSE: Duration = Duration::from_secs(1);

/// Requests counted in this process because Redis did not answer.
const FALLBACKS: &str = "cairn_rate_limit_fallbacks_total";
/// 1 while Redis answers.
const REDIS_UP: &str = "cairn_rate_limit_redis_up";

/// Counts in Redis, with this process as fallback.
#[derive(Debug)]
pub(super) struct Limiter {
    shared: Option<Shared>,
    own: Memory,
}

#[derive(Debug)]
struct Shared {
    engine: Arc<dyn RateLimiter>,
    breaker: Breaker,
}

impl Limiter {
    pub(super) fn new(shared: Option<Arc<dyn RateLimiter>>, clock: Arc<dyn Clock>) -> Self {
        let own = Memory::new(Arc::clone(&clock));
        let shared = shared.map(|engine| {
            let breaker = Breaker::new(Threshold { failures: 1, pause: PAUSE }, clock);
            Shared { engine, breaker }
        });
        if shared.is_some() {
            metrics::counter!(FALLBACKS).absolute(0);
        }
        Self { shared, own }
    }

    /// As [`RateLimiter::take`].
    pub(super) async fn take(&self, key: &Key, quota: Quota, units: u32) -> Counted {
        let Some(shared) = &self.shared else { return self.own.count(key, quota, units) };
        match shared.ask(|engine| async move { engine.take(key, quota, units).await }).await {
            Some(counted) => counted,
            None => self.own.count(key, quota, units),
        }
    }

    /// As [`RateLimiter::refund`].
    pub(super) async fn refund(&self, key: &Key, quota: Quota, units: u32) {
        let Some(shared) = &self.shared else { return self.own.put_back(key, quota, units) };
        if shared.ask(|engine| async move { engine.refund(key, quota, units).await }).await.is_none() {
            self.own.put_back(key, quota, units);
        }
    }
}

impl Shared {
    /// Runs an operation on Redis; `None` if it fails or the circuit breaker is open.
    async fn ask<'a, T, F>(&'a self, question: impl FnOnce(&'a dyn RateLimiter) -> F) -> Option<T>
    where
        F: Future<Output = Result<T, Unreachable>> + 'a,
    {
        if !self.breaker.allows() {
            metrics::counter!(FALLBACKS).increment(1);
            return None;
        }
        match question(&*self.engine).await {
            Ok(answer) => {
                self.answered();
                Some(answer)
            }
            Err(why) => {
                self.failed(&why);
                metrics::counter!(FALLBACKS).increment(1);
                None
            }
        }
    }

    fn answered(&self) {
        metrics::gauge!(REDIS_UP).set(1);
        if self.breaker.succeeded() {
            tracing::info!("Redis answers again: rate limits hold across processes");
        }
    }

    fn failed(&self, why: &Unreachable) {
        metrics::gauge!(REDIS_UP).set(0);
        if self.breaker.failed(None) {
            tracing::warn!(%why, "Redis is away: each process counts for itself until it is back");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use cairn_chassis::clock::{ManualClock, Timestamp};

    use super::*;

    /// A Redis that can be made unavailable.
    #[derive(Debug)]
    struct Flaky {
        windows: Memory,
        is_away: AtomicBool,
        asked: AtomicUsize,
    }

    #[tonic::async_trait]
    impl RateLimiter for Flaky {
        async fn take(&self, key: &Key, quota: Quota, units: u32) -> Result<Counted, Unreachable> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            if self.is_away.load(Ordering::SeqCst) {
                return Err(Unreachable("away".to_owned()));
            }
            self.windows.take(key, quota, units).await
        }

        async fn refund(&self, key: &Key, quota: Quota, units: u32) -> Result<(), Unreachable> {
            if self.is_away.load(Ordering::SeqCst) {
                return Err(Unreachable("away".to_owned()));
            }
            self.windows.refund(key, quota, units).await
        }
    }

    #[tokio::test]
    async fn requests_go_on_without_redis_and_return_to_it() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let redis = Arc::new(Flaky {
            windows: Memory::new(Arc::clone(&shared)),
            is_away: AtomicBool::new(false),
            asked: AtomicUsize::new(0),
        });
        let engine: Arc<dyn RateLimiter> = Arc::<Flaky>::clone(&redis);
        let limiter = Limiter::new(Some(engine), shared);
        let (key, quota) = (Key::new("token", "t"), Quota::new(Some(10), None, None));
        let remaining = async || limiter.take(&key, quota, 1).await.tightest().unwrap().remaining;

        assert_eq!((remaining().await, remaining().await), (9, 8));
        redis.is_away.store(true, Ordering::SeqCst);
        assert_eq!((remaining().await, remaining().await), (9, 8), "windows of its own");
        limiter.refund(&key, quota, 1).await;
        assert_eq!(remaining().await, 8);
        assert_eq!(redis.asked.load(Ordering::SeqCst), 3, "nobody asks again at once");

        clock.advance(PAUSE);
        assert_eq!(remaining().await, 7);
        assert_eq!(redis.asked.load(Ordering::SeqCst), 4, "and then one request does");
        redis.is_away.store(false, Ordering::SeqCst);
        assert_eq!(remaining().await, 6);
        clock.advance(PAUSE);
        assert_eq!((remaining().await, remaining().await), (7, 6), "the shared windows again");
    }
}
