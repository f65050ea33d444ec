//! Concurrency limits and shutdown.

use std::time::Duration;

use clap::Args;

/// How much a process takes on, and how it ends.
#[derive(Debug, Clone, Args)]
pub(crate) struct EndingOptions {
    /// How many requests may be under way at once over public HTTP and gRPC; more are refused with 503 and Retry-After.
    #[arg(
        long,
        env = "CAIRN_MAX_REQUESTS",
        value_name = "COUNT",
        default_value_t = 512,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) max_requests: u32,
    /// How much work may be under way at once, in units of a file that is read (a search counts 10); what finds no room waits
    /// for a moment, fairly between workspaces, and is then refused with 503 and Retry-After. 256 for each core and at most
    /// three quarters of --max-requests when not set; 0 lets everything in.
    #[arg(
        long,
        env = "CAIRN_CAPACITY",
        value_name = "UNITS",
        value_parser = clap::value_parser!(u32).range(..=1_000_000)
    )]
    pub(crate) capacity: Option<u32>,
    /// Seconds from the signal to end until nothing more is accepted. Readiness and gRPC health say no from the signal on,
    /// so that balancers send nobody by then.
    #[arg(
        long,
        env = "CAIRN_SHUTDOWN_DELAY_SECONDS",
        value_name = "SECONDS",
        default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(0..=600)
    )]
    pub(crate) shutdown_delay_seconds: u32,
    /// Seconds that requests under way may take after that; what takes longer is cut off.
    #[arg(
        long,
        env = "CAIRN_DRAIN_LIMIT_SECONDS",
        value_name = "SECONDS",
        default_value_t = 35,
        value_parser = clap::value_parser!(u32).range(1..=3_600)
    )]
    pub(crate) drain_limit_seconds: u32,
}

impl EndingOptions {
    /// From the signal until no new request is accepted.
    pub(crate) fn delay(&self) -> Duration {
        Duration::from_secs(u64::from(self.shutdown_delay_seconds))
    }

    /// From then until requests in flight are cut off.
    pub(crate) fn drain_limit(&self) -> Duration {
        Duration::from_secs(u64::from(self.drain_limit_seconds))
    }

    /// The maximum number of requests in flight.
    pub(crate) fn max_requests(&self) -> usize {
        usize::try_from(self.max_requests).unwrap_or(usize::MAX)
    }
}
