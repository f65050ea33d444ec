//! Options about the search engine outside of this process.

use std::fmt;

use cairn_index::qdrant::Config;
use clap::Args;

/// Where the search index is.
#[derive(Clone, Args)]
pub(crate) struct QdrantOptions {
    /// Keep the search index in Qdrant, at its gRPC address such as http://qdrant:6334 or https://…; several retrieval
    /// services can share it. Default: in the data folder.
    #[arg(long, env = "CAIRN_QDRANT_URL", hide_env_values = true, value_name = "URL")]
    qdrant_url: Option<String>,
    /// The API key of Qdrant, better set by the environment; it must allow to write and to make collections.
    #[arg(long, env = "CAIRN_QDRANT_API_KEY", hide_env_values = true, value_name = "KEY")]
    qdrant_api_key: Option<String>,
    /// What the names of collections begin with; another one for each deployment that shares a Qdrant.
    #[arg(long, env = "CAIRN_QDRANT_PREFIX", value_name = "PREFIX", default_value = "cairn")]
    qdrant_prefix: String,
}

/// Without the address and the key.
impl fmt::Debug for QdrantOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("QdrantOptions").field("prefix", &self.qdrant_prefix).finish_non_exhaustive()
    }
}

impl QdrantOptions {
    /// Where Qdrant is; none when the index is kept in the data folder.
    pub(crate) fn config(&self) -> anyhow::Result<Option<Config>> {
        // An empty variable is how a compose file leaves an option out.
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let Some(url) = given(&self.qdrant_url) else { return Ok(None) };
        let api_key = given(&self.qdrant_api_key);
        let config = Config { url, api_key, prefix: self.qdrant_prefix.clone() };
        config.check()?;
        Ok(Some(config))
    }
}
