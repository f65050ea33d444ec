//! Rate limits of tokens and source addresses, per minute, hour and day.
//!
//! [`crate::guard`] admits requests of `/api/v1` (and `/mcp` what its body counts as), [`Limits`] picks the key and
//! the quota ([`plans`]), and an engine counts: [`memory`] in this process, [`redis`] for all gateways of a mesh,
//! with [`limiter`] falling back from the second to the first while Redis is down. Windows begin at full minutes,
//! hours and days, UTC.

mod admission;
#[cfg(test)]
mod contract;
pub(crate) mod headers;
mod limiter;
mod memory;
mod plans;
mod redis;
mod sign_in;
#[cfg(test)]
mod simulation;
mod source;
mod window;

use std::fmt;
use std::sync::Arc;

pub(crate) use self::admission::{Limits, Refusal};
use self::plans::Plans;
pub use self::redis::RedisUrl;
use self::source::TrustedProxies;
pub(crate) use self::window::{Counted, Quota, Window, WindowState};
use crate::{Config, ConfigError};

/// The key that requests are counted under: a token, a source address, an account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key(Arc<str>);

impl Key {
    fn new(kind: &str, id: impl fmt::Display) -> Self {
        Self(format!("{kind}:{id}").into())
    }

    /// For a principal with a textual id.
    fn of(kind: &str, id: &str) -> Self {
        Self([kind, ":", id].concat().into())
    }
}

/// The engine could not be reached.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreachable(String);

/// The configuration of rate limits.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    plans: Plans,
    proxies: TrustedProxies,
    /// The shared engine of several gateways.
    shared: Option<Arc<dyn RateLimiter>>,
}

impl Settings {
    /// Reads the plans, the trusted proxies and the Redis URL, which is not connected yet.
    ///
    /// # Errors
    /// When one of them is invalid.
    pub(crate) fn read(config: &Config) -> Result<Self, ConfigError> {
        let shared = config.redis.as_ref().map(|url| url.open(config.redis_timeout)).transpose()?;
        let plans = config.plans.as_deref().map_or_else(|| Ok(Plans::default()), Plans::read)?;
        Ok(Self { plans, proxies: TrustedProxies::new(&config.trusted_proxies)?, shared })
    }
}

/// A counting engine, exact under concurrency.
#[tonic::async_trait]
trait RateLimiter: fmt::Debug + Send + Sync {
    /// Takes the units from every window of the quota, or from none if one has no room. Zero units only report the
    /// windows.
    async fn take(&self, key: &Key, quota: Quota, units: u32) -> Result<Counted, Unreachable>;

    /// Refunds units to the current windows.
    async fn refund(&self, key: &Key, quota: Quota, units: u32) -> Result<(), Unreachable>;
}
