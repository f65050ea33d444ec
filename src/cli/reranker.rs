//! Options about a second look at what a search found.

use std::sync::Arc;

use anyhow::Context as _;
use cairn_chassis::debug_fields;
use cairn_chassis::outbound::{Guard, Network};
use cairn_retrieval::rerank::{Endpoint, EndpointConfig, Reranker};
use clap::Args;

use super::given;

/// The reranker that reads the best chunks again before they are answered.
#[derive(Clone, Args)]
pub(crate) struct RerankerOptions {
    /// A reranker's address in the form of Cohere's and Jina's, such as <https://api.jina.ai/v1/rerank>. It gets the
    /// query and the best chunks of each search. Default: none.
    #[arg(long, env = "CAIRN_RERANKER", value_name = "URL")]
    pub(crate) reranker: Option<String>,
    /// The model that the reranker is asked for. Default: the one that it has.
    #[arg(long, env = "CAIRN_RERANKER_MODEL", value_name = "NAME")]
    pub(crate) reranker_model: Option<String>,
    /// The reranker's key, sent as a bearer token; better set by the environment. Default: none.
    #[arg(long, env = "CAIRN_RERANKER_KEY", hide_env_values = true, value_name = "SECRET")]
    pub(crate) reranker_key: Option<String>,
}

debug_fields!(RerankerOptions { reranker });

impl RerankerOptions {
    /// The reranker, when one is named; `allowed` are the networks inside that it may stand in.
    pub(crate) fn open(&self, allowed: &[Network]) -> anyhow::Result<Option<Arc<dyn Reranker>>> {
        let Some(url) = given(&self.reranker) else { return Ok(None) };
        let config =
            EndpointConfig { url, model: given(&self.reranker_model), key: given(&self.reranker_key) };
        let guard = Guard::new(allowed).context("outgoing calls cannot be set up")?;
        let endpoint = Endpoint::new(guard, config)
            .context("the reranker cannot be used; see --reranker and --outbound-allow in --help")?;
        Ok(Some(Arc::new(endpoint)))
    }
}
