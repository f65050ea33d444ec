//! Opens the configured embedder, and the one that made existing vectors.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cairn_chassis::clock::Clock;
use cairn_chassis::outbound::Network;

use super::endpoint::{Connection, EndpointConfig};
use super::{
    DEFAULT_QUERY_LIMIT, Embedder, EmbedderIdentity, Error, ModelName, QueryEmbedder, StaticRows, TextKind,
};

/// Which embedder to use, and how searches use it.
#[derive(Debug, Clone)]
pub struct Config {
    /// The embedder.
    pub choice: Choice,
    /// The timeout for the vectors of a search, which is then answered by words alone.
    pub query_limit: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { choice: Choice::BuiltIn, query_limit: DEFAULT_QUERY_LIMIT }
    }
}

/// The prefix of a transformer's origin; its folder follows.
pub(super) const TRANSFORMER_ORIGIN: &str = "candle:";

/// The default hub.
pub const DEFAULT_HUB: &str = "https://huggingface.co";

/// An embedder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// The rows in the binary.
    #[default]
    BuiltIn,
    /// A transformer in this process, from a folder.
    Folder(PathBuf),
    /// A transformer in this process that is downloaded when it is missing.
    Fetched(FetchedModel),
    /// An endpoint that speaks OpenAI's `/embeddings`.
    Endpoint(EndpointConfig),
}

/// A model that may be downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedModel {
    /// Where models are fetched from, such as `https://huggingface.co`.
    pub hub: String,
    /// Its name there: owner and model, with a slash between.
    pub name: String,
    /// The folder of fetched models.
    pub models: PathBuf,
    /// Private networks that may be called, when the hub is a mirror there.
    pub allowed: Vec<Network>,
}

impl FetchedModel {
    /// Whether the text is the name of a model rather than a path.
    pub fn is_name(text: &str) -> bool {
        text.contains('/') && ModelName::parse(text).is_some()
    }

    /// The folder of the model, whether it exists or not.
    pub fn folder(&self) -> PathBuf {
        self.models.join(self.name.replace('/', "--"))
    }
}

/// Opens embedders.
#[derive(Debug)]
pub struct Embedders {
    query_limit: Duration,
    clock: Arc<dyn Clock>,
    built_in: Arc<dyn Embedder>,
    configured: Configured,
}

/// The configured embedder, as far as it can be opened.
#[derive(Debug)]
enum Configured {
    Open(Arc<dyn Embedder>),
    #[cfg(feature = "transformer")]
    Fetched {
        model: FetchedModel,
        guard: cairn_chassis::outbound::Guard,
    },
    Endpoint(Box<Connection>),
}

impl Embedders {
    /// Opens the embedder of the configuration. Blocks: runs off the async threads.
    ///
    /// # Errors
    /// When the embedder can never be used, such as a folder without a model.
    pub fn open(config: Config, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let built_in: Arc<dyn Embedder> = Arc::new(StaticRows::open()?);
        let configured = match config.choice {
            Choice::BuiltIn => Configured::Open(Arc::clone(&built_in)),
            Choice::Folder(folder) => Configured::Open(open_folder(folder)?),
            Choice::Fetched(model) => open_fetched(model)?,
            Choice::Endpoint(config) => Configured::Endpoint(Box::new(Connection::new(config, &clock)?)),
        };
        Ok(Self { query_limit: config.query_limit, clock, built_in, configured })
    }

    /// The same embedder for searches: with timeout, circuit breaker and cache.
    pub fn queries(&self, embedder: Arc<dyn Embedder>) -> QueryEmbedder {
        QueryEmbedder::new(embedder, self.query_limit, &self.clock)
    }

    /// The embedder of an empty index: it is always available and immediate.
    pub fn first(&self) -> Arc<dyn Embedder> {
        Arc::clone(&self.built_in)
    }

    /// The embedder that made the vectors of a generation. Where it can no longer be opened, one that always fails: the
    /// generation is then searched by words. Blocks: runs off the async threads.
    pub fn of(&self, identity: &EmbedderIdentity) -> Arc<dyn Embedder> {
        let made = |embedder: &Arc<dyn Embedder>| EmbedderIdentity::of(embedder.as_ref()).fits(identity);
        if let Configured::Open(embedder) = &self.configured
            && made(embedder)
        {
            return Arc::clone(embedder);
        }
        if let Configured::Endpoint(connection) = &self.configured
            && let Some(endpoint) = connection.of(identity)
        {
            return Arc::new(endpoint);
        }
        if made(&self.built_in) {
            return Arc::clone(&self.built_in);
        }
        reopened(identity).filter(made).unwrap_or_else(|| Arc::new(MissingEmbedder(identity.clone())))
    }

    /// The configured embedder; none when it made the current generation.
    ///
    /// # Errors
    /// When it cannot be used now.
    pub async fn configured(&self, current: &EmbedderIdentity) -> Result<Option<Arc<dyn Embedder>>, Error> {
        match &self.configured {
            Configured::Open(embedder) => Ok(Some(Arc::clone(embedder))),
            #[cfg(feature = "transformer")]
            Configured::Fetched { model, guard } => {
                let folder = model.fetch(guard).await?;
                let opened = tokio::task::spawn_blocking(move || open_folder(folder)).await;
                opened.map_err(|error| Error::Unavailable { reason: error.to_string() })?.map(Some)
            }
            // No probe is needed for a known model.
            Configured::Endpoint(connection) if connection.made(current) => Ok(None),
            Configured::Endpoint(connection) => Ok(Some(Arc::new(connection.embedder().await?))),
        }
    }
}

#[cfg(feature = "transformer")]
fn open_folder(folder: PathBuf) -> Result<Arc<dyn Embedder>, Error> {
    Ok(Arc::new(super::transformer::Transformer::open(&folder)?))
}

/// Opens a model that exists; one that must be downloaded is opened later, in the background.
#[cfg(feature = "transformer")]
fn open_fetched(model: FetchedModel) -> Result<Configured, Error> {
    if model.folder().is_dir() {
        return open_folder(model.folder()).map(Configured::Open);
    }
    let guard = cairn_chassis::outbound::Guard::new(&model.allowed);
    let guard = guard.map_err(|error| Error::Model { reason: error.to_string() })?;
    Ok(Configured::Fetched { model, guard })
}

#[cfg(feature = "transformer")]
fn reopened(identity: &EmbedderIdentity) -> Option<Arc<dyn Embedder>> {
    open_folder(folder_of(identity)?).ok()
}

#[cfg(not(feature = "transformer"))]
pub(super) const NO_TRANSFORMER_FEATURE: &str = "this binary was built without the feature `transformer`";

#[cfg(not(feature = "transformer"))]
fn open_folder(_: PathBuf) -> Result<Arc<dyn Embedder>, Error> {
    Err(Error::Model { reason: NO_TRANSFORMER_FEATURE.to_owned() })
}

#[cfg(not(feature = "transformer"))]
fn open_fetched(_: FetchedModel) -> Result<Configured, Error> {
    Err(Error::Model { reason: NO_TRANSFORMER_FEATURE.to_owned() })
}

/// The folder of the transformer that made the vectors of a generation, where one did. The folder need not exist.
pub fn folder_of(identity: &EmbedderIdentity) -> Option<PathBuf> {
    identity.origin.strip_prefix(TRANSFORMER_ORIGIN).map(PathBuf::from)
}

#[cfg(not(feature = "transformer"))]
fn reopened(_: &EmbedderIdentity) -> Option<Arc<dyn Embedder>> {
    None
}

/// An embedder that made vectors once and can no longer be opened.
#[derive(Debug)]
struct MissingEmbedder(EmbedderIdentity);

#[async_trait]
impl Embedder for MissingEmbedder {
    fn name(&self) -> &str {
        &self.0.embedder
    }

    fn dimensions(&self) -> usize {
        self.0.dimensions
    }

    fn origin(&self) -> &str {
        &self.0.origin
    }

    async fn embed(&self, _: TextKind, _: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let reason = "another embedder is configured than the one that made the index".to_owned();
        Err(Error::Unavailable { reason })
    }
}
