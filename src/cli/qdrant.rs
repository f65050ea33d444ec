//! Options about the search engine outside of this process.

use std::path::PathBuf;

use cairn_chassis::debug_fields;
use cairn_index::qdrant::Config;
use clap::Args;

use super::given;

/// Where the search index is.
#[derive(Clone, Args)]
pub(crate) struct QdrantOptions {
    /// Keep the search index in Qdrant, at its gRPC address such as http://qdrant:6334 or https://…; several retrieval
    /// services can share it. Default: in the data folder.
    #[arg(long, env = "CAIRN_QDRANT_URL", hide_env_values = true, value_name = "URL")]
    qdrant_url: Option<String>,
    /// The certificate authorities that may have signed the certificate of Qdrant, where its address has https://: a file in
    /// PEM form. Default: those that this machine trusts.
    #[arg(long, env = "CAIRN_QDRANT_CA", value_name = "FILE")]
    qdrant_ca: Option<PathBuf>,
    /// The API key of Qdrant, better set by the environment; it must allow to write and to make collections.
    #[arg(long, env = "CAIRN_QDRANT_API_KEY", hide_env_values = true, value_name = "KEY")]
    qdrant_api_key: Option<String>,
    /// What the names of collections begin with; another one for each deployment that shares a Qdrant.
    #[arg(long, env = "CAIRN_QDRANT_PREFIX", value_name = "PREFIX", default_value = "cairn")]
    qdrant_prefix: String,
}

debug_fields!(QdrantOptions { qdrant_prefix });

impl QdrantOptions {
    /// Where Qdrant is; none when the index is kept in the data folder.
    pub(crate) fn config(&self) -> anyhow::Result<Option<Config>> {
        let Some(url) = given(&self.qdrant_url) else { return Ok(None) };
        let api_key = given(&self.qdrant_api_key);
        let ca = self.qdrant_ca.clone().filter(|ca| !ca.as_os_str().is_empty());
        let config = Config { url, ca, api_key, prefix: self.qdrant_prefix.clone() };
        config.check()?;
        Ok(Some(config))
    }
}
