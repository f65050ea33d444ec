//! The engine on Qdrant, for several replicas without local state.
//!
//! The configuration is always available; the engine itself requires the feature `qdrant`.

mod config;
#[cfg(feature = "qdrant")]
mod engine;
#[cfg(any(feature = "testing", all(test, feature = "qdrant")))]
pub mod fake;

use std::sync::Arc;

use cairn_chassis::clock::Clock;
use cairn_chassis::ids::IdSource;

pub use self::config::Config;
use crate::{EngineFactory, Error};

/// A factory of indexes on a Qdrant server. Does not connect yet.
///
/// # Errors
/// [`Error::Config`] when an option is invalid, or the binary was built without the feature `qdrant`.
#[cfg(feature = "qdrant")]
pub fn open(config: &Config, clock: Arc<dyn Clock>, ids: IdSource) -> Result<Arc<dyn EngineFactory>, Error> {
    Ok(Arc::new(engine::QdrantFactory::open(config, clock, ids)?))
}

/// Fails, since the binary was built without the feature `qdrant`.
///
/// # Errors
/// Always.
#[cfg(not(feature = "qdrant"))]
pub fn open(_: &Config, _: Arc<dyn Clock>, _: IdSource) -> Result<Arc<dyn EngineFactory>, Error> {
    Err(Error::Config(
        "Qdrant is configured, and this binary was built without the feature `qdrant`".to_owned(),
    ))
}
