//! The dependencies that every service gets when it is opened.

use std::sync::Arc;

use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::identity::Verifier;
use crate::ids::IdSource;

/// Clock, randomness, ids and the identity verifier; cheap to clone.
#[derive(Clone)]
pub struct Ambient {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// New ids.
    pub ids: IdSource,
    /// Verifies identities.
    pub verifier: Verifier,
}

crate::debug_fields!(Ambient);

impl Ambient {
    /// An ambient on that clock, randomness and verifier.
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>, verifier: Verifier) -> Self {
        let ids = IdSource::new(Arc::clone(&clock), Arc::clone(&entropy));
        Self { clock, entropy, ids, verifier }
    }
}
