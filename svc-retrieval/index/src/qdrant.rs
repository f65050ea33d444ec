//! The engine on Qdrant, for several replicas that keep nothing on their own disk.
//!
//! Its options can always be read; the engine itself is there with the feature `qdrant`.

mod config;
#[cfg(feature = "qdrant")]
mod engine;
#[cfg(any(feature = "testing", all(test, feature = "qdrant")))]
pub mod stand_in;

use std::sync::Arc;

use cairn_chassis::clock::Clock;
use cairn_chassis::ids::IdSource;

pub use self::config::Config;
use crate::{EngineFactory, Error};

/// The generations on that Qdrant. Nothing is contacted yet.
///
/// # Errors
/// [`Error::Config`] when an option cannot be used, or the feature `qdrant` is not in this binary.
#[cfg(feature = "qdrant")]
pub fn open(config: &Config, clock: Arc<dyn Clock>, ids: IdSource) -> Result<Arc<dyn EngineFactory>, Error> {
    Ok(Arc::new(engine::QdrantFactory::open(config, clock, ids)?))
}

/// Says that the feature `qdrant` is not in this binary.
///
/// # Errors
/// Always.
#[cfg(not(feature = "qdrant"))]
pub fn open(_: &Config, _: Arc<dyn Clock>, _: IdSource) -> Result<Arc<dyn EngineFactory>, Error> {
    Err(Error::Config(
        "Qdrant is configured, and this binary was built without the feature `qdrant`".to_owned(),
    ))
}
