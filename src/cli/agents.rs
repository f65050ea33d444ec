//! Options about agents that come without a token.

use clap::Args;

/// Agents that come without a token.
#[derive(Debug, Clone, Args)]
pub(crate) struct AgentOptions {
    /// How many OAuth clients that registered themselves are kept before anybody has used them; further ones are
    /// refused until some are used or a day old.
    #[arg(
        long,
        env = "CAIRN_OAUTH_CLIENTS",
        value_name = "NUMBER",
        default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub(crate) oauth_clients: u32,
}
