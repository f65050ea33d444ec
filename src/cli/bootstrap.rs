//! Options about the first account.

use cairn_chassis::debug_fields;
use clap::Args;

/// The first account; it is made when there is none yet.
#[derive(Clone, Args)]
pub(crate) struct BootstrapOptions {
    /// The owner's email.
    #[arg(long, env = "CAIRN_BOOTSTRAP_EMAIL", value_name = "EMAIL")]
    pub(crate) bootstrap_email: Option<String>,
    /// The owner's password; better set by the environment than on the command line.
    #[arg(long, env = "CAIRN_BOOTSTRAP_PASSWORD", hide_env_values = true, value_name = "PASSWORD")]
    pub(crate) bootstrap_password: Option<String>,
    /// The first token; better set by the environment than on the command line.
    #[arg(long, env = "CAIRN_BOOTSTRAP_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) bootstrap_token: Option<String>,
    /// The plan of new workspaces.
    #[arg(long, env = "CAIRN_DEFAULT_PLAN", value_name = "PLAN", default_value = "selfhosted")]
    pub(crate) default_plan: String,
}

debug_fields!(BootstrapOptions { bootstrap_email });
