//! Options of the gateway: its public address, who may call it, and rate limits.

use clap::Args;

/// How the gateway presents itself.
#[derive(Debug, Clone, Args)]
pub(crate) struct PublicOptions {
    /// The address that people and agents use, when a proxy stands in front.
    #[arg(long, env = "CAIRN_BASE_URL", value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Further origins that may call /mcp, separated by commas.
    #[arg(long, env = "MCP_ALLOWED_ORIGINS", value_name = "ORIGINS", value_delimiter = ',')]
    pub(crate) allowed_origins: Vec<String>,
    /// Changes of the plans' rate limits: JSON such as {"free": {"minute": 60, "day": null}}, or a file that holds it.
    #[arg(long, env = "CAIRN_PLANS", value_name = "JSON|FILE")]
    pub(crate) plans: Option<String>,
    /// Proxies whose X-Forwarded-For or Forwarded is believed: addresses or networks, separated by commas.
    #[arg(long, env = "CAIRN_TRUSTED_PROXIES", value_name = "NETWORKS", value_delimiter = ',')]
    pub(crate) trusted_proxies: Vec<String>,
    /// Where gateways count rate limits together, such as redis://host:6379; several cluster nodes with commas.
    /// Default: each process counts for itself.
    #[arg(long, env = "CAIRN_REDIS_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) redis_url: Option<cairn_gateway::RedisUrl>,
    /// How long Redis may take to answer before each process counts for itself for a second.
    #[arg(
        long,
        env = "CAIRN_REDIS_TIMEOUT_MS",
        value_name = "MILLISECONDS",
        default_value_t = 200,
        value_parser = clap::value_parser!(u64).range(1..=60_000)
    )]
    pub(crate) redis_timeout_ms: u64,
}
