//! What every service is handed at its opening.

use std::sync::Arc;

use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::identity::Verifier;
use crate::ids::IdSource;

/// Time, randomness, ids, and the check of identities; cheap to clone.
#[derive(Clone)]
pub struct Ambient {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// New ids.
    pub ids: IdSource,
    /// Checks identities.
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
