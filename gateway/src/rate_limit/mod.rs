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

/// What is counted together: one token, one source address, one account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key(Arc<str>);

impl Key {
    fn new(kind: &str, id: impl fmt::Display) -> Self {
        Self(format!("{kind}:{id}").into())
    }

    /// The same of somebody who is known by text.
    fn of(kind: &str, id: &str) -> Self {
        Self([kind, ":", id].concat().into())
    }
}

/// Where the counts are kept could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreachable(String);

/// What the configuration says of limits.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    plans: Plans,
    proxies: TrustedProxies,
    /// Where several gateways count together.
    shared: Option<Arc<dyn RateLimiter>>,
}

impl Settings {
    /// Reads the plans, the trusted proxies and the address of Redis, which is not contacted yet.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub(crate) fn read(config: &Config) -> Result<Self, ConfigError> {
        let shared = config.redis.as_ref().map(|url| url.open(config.redis_timeout)).transpose()?;
        let plans = config.plans.as_deref().map_or_else(|| Ok(Plans::default()), Plans::read)?;
        Ok(Self { plans, proxies: TrustedProxies::new(&config.trusted_proxies)?, shared })
    }
}

/// An engine that counts, exactly under concurrency.
#[tonic::async_trait]
trait RateLimiter: fmt::Debug + Send + Sync {
    /// Takes the units from every window of the quota, or from none of them when one has no room. No units take
    /// nothing, and tell how the windows stand.
    async fn take(&self, key: &Key, quota: Quota, units: u32) -> Result<Counted, Unreachable>;

    /// Puts units back into the windows that run now.
    async fn refund(&self, key: &Key, quota: Quota, units: u32) -> Result<(), Unreachable>;
}
