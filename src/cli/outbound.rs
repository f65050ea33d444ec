//! Options about outbound requests to addresses that users name.

use clap::Args;

/// Where the services go when somebody names an address.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutboundOptions {
    /// Networks inside that may be reached all the same, over http too, such as 10.1.0.0/16, separated by commas.
    /// Default: public hosts over https only.
    #[arg(long, env = "CAIRN_OUTBOUND_ALLOW", value_name = "NETWORKS", value_delimiter = ',')]
    pub(crate) outbound_allow: Vec<cairn_chassis::outbound::Network>,
}
