//! Counts in Redis, shared by all gateways of a mesh. The URL type always exists; the engine needs the feature
//! `redis`.

#[cfg(feature = "redis")]
mod engine;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::RateLimiter;
use crate::ConfigError;

/// A Redis URL: `redis://`, `rediss://` (TLS) or `unix://`; several cluster nodes are separated by commas.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl(String);

impl From<String> for RedisUrl {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Omits the password.
impl fmt::Debug for RedisUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RedisUrl(…)")
    }
}

impl RedisUrl {
    /// Creates the engine. It connects with the first request, and fails an operation that takes longer than
    /// `patience`.
    #[cfg(feature = "redis")]
    pub(super) fn open(&self, patience: Duration) -> Result<Arc<dyn RateLimiter>, ConfigError> {
        Ok(Arc::new(engine::Redis::new(self, patience)?))
    }

    /// Fails: the feature is not compiled in.
    #[cfg(not(feature = "redis"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub(super) fn open(&self, _: Duration) -> Result<Arc<dyn RateLimiter>, ConfigError> {
        Err(ConfigError::RedisLeftOut)
    }
}

#[cfg(test)]
#[cfg(not(feature = "redis"))]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_refused_at_the_start() {
        let refused = RedisUrl::from("redis://h".to_owned()).open(Duration::ZERO).unwrap_err();
        assert!(refused.to_string().contains("without the feature `redis`"), "{refused}");
    }
}
