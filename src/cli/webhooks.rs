//! Webhooks: how often a delivery is tried.

use std::time::Duration;

use clap::Args;

/// Of one wait.
const MAX_SECONDS: u64 = 7 * 24 * 60 * 60;

/// When deliveries to webhooks are tried again.
#[derive(Debug, Clone, Args)]
pub(crate) struct WebhookOptions {
    /// Seconds between the tries of a delivery to a webhook, separated by commas; after the last one it is given up. Default:
    /// 5 s, 30 s, 2 min, 10 min, 1 h, 3 h, 6 h and 12 h, a day in all.
    #[arg(
        long,
        env = "CAIRN_WEBHOOK_RETRY_SECONDS",
        value_name = "SECONDS",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u64).range(1..=MAX_SECONDS)
    )]
    webhook_retry_seconds: Vec<u64>,
}

impl WebhookOptions {
    /// The waits; empty: what is usual.
    pub(crate) fn waits(&self) -> Vec<Duration> {
        self.webhook_retry_seconds.iter().copied().map(Duration::from_secs).collect()
    }
}
