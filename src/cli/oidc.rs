//! Options about sign-in by an OpenID Connect provider.

use anyhow::bail;
use cairn_auth::OidcConfig;
use cairn_chassis::debug_fields;
use clap::{Args, ValueEnum};

use super::given;

/// What becomes of people whom nobody invited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SignUp {
    /// They are refused.
    Off,
    /// They get an account.
    On,
}

/// The OpenID Connect provider that people may sign in by.
#[derive(Clone, Args)]
pub(crate) struct OidcOptions {
    /// The OpenID Connect provider that people may sign in by, such as https://accounts.example.com. Default: people
    /// sign in with a password only.
    #[arg(long, env = "CAIRN_OIDC_ISSUER", value_name = "URL")]
    pub(crate) oidc_issuer: Option<String>,
    /// The client that the provider knows this deployment as.
    #[arg(long, env = "CAIRN_OIDC_CLIENT_ID", value_name = "ID")]
    pub(crate) oidc_client_id: Option<String>,
    /// The client's secret, better set by the environment. Default: a public client, without one.
    #[arg(long, env = "CAIRN_OIDC_CLIENT_SECRET", hide_env_values = true, value_name = "SECRET")]
    pub(crate) oidc_client_secret: Option<String>,
    /// What is asked of the provider, with blanks between.
    #[arg(long, env = "CAIRN_OIDC_SCOPES", value_name = "SCOPES", default_value = "openid email profile")]
    pub(crate) oidc_scopes: String,
    /// What the button calls the provider. Default: the host of its address.
    #[arg(long, env = "CAIRN_OIDC_NAME", value_name = "NAME")]
    pub(crate) oidc_name: Option<String>,
    /// Whether people get an account whom nobody invited.
    #[arg(long, env = "CAIRN_OIDC_SIGN_UP", value_name = "WHETHER", value_enum, default_value = "off")]
    pub(crate) oidc_sign_up: SignUp,
}

debug_fields!(OidcOptions { oidc_issuer });

impl OidcOptions {
    /// The provider, when one is named.
    pub(crate) fn config(&self) -> anyhow::Result<Option<OidcConfig>> {
        let (issuer, client_id) = (given(&self.oidc_issuer), given(&self.oidc_client_id));
        let client_secret = given(&self.oidc_client_secret);
        let (issuer, client_id) = match (issuer, client_id) {
            (Some(issuer), Some(client_id)) => (issuer, client_id),
            (None, None) if client_secret.is_none() => return Ok(None),
            _ => bail!("sign-in by OpenID Connect needs both CAIRN_OIDC_ISSUER and CAIRN_OIDC_CLIENT_ID"),
        };
        Ok(Some(OidcConfig {
            name: given(&self.oidc_name).unwrap_or_else(|| host_of(&issuer).to_owned()),
            scopes: self.oidc_scopes.split_whitespace().map(ToOwned::to_owned).collect(),
            sign_up: self.oidc_sign_up == SignUp::On,
            issuer,
            client_id,
            client_secret,
        }))
    }
}

fn host_of(issuer: &str) -> &str {
    let after_scheme = issuer.split_once("://").map_or(issuer, |(_, rest)| rest);
    after_scheme.split('/').next().unwrap_or(after_scheme)
}
