//! The successor of a refresh token.
//!
//! Two processes of one client may refresh concurrently, or a response may get lost: the same token is then presented
//! again and must get the same successor. It cannot be read back, since only its digest is stored. So it is derived
//! from the token that is being rotated, which only the client has, and a salt, which only the storage has. Neither
//! alone reveals the successor: not an old token that leaks later, nor a copy of the storage.

use std::sync::atomic::{AtomicU64, Ordering};

use cairn_chassis::entropy::Entropy;
use cairn_chassis::token_format::Format;

use crate::model::oauth::Salt;

const CONTEXT: &str = "cairn 2026-11 oauth refresh token successor";

/// Derives the successor of a refresh token.
pub(super) fn of(refresh_token: &str, salt: &Salt) -> String {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(salt).update(refresh_token.as_bytes());
    Format::REFRESH_TOKEN.generate(&Derived { hasher, block: AtomicU64::new(0) })
}

/// A byte stream derived from a key.
#[derive(Debug)]
struct Derived {
    hasher: blake3::Hasher,
    block: AtomicU64,
}

impl Entropy for Derived {
    fn fill(&self, buffer: &mut [u8]) {
        let block = self.block.fetch_add(1, Ordering::SeqCst);
        let mut hasher = self.hasher.clone();
        hasher.update(&block.to_le_bytes()).finalize_xof().fill(buffer);
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::entropy::SeededEntropy;

    use super::*;

    #[test]
    fn it_depends_on_the_token_and_the_salt_and_nothing_else() {
        let entropy = SeededEntropy::new(1);
        let (one, other) =
            (Format::REFRESH_TOKEN.generate(&entropy), Format::REFRESH_TOKEN.generate(&entropy));
        let next = of(&one, &[1; 32]);
        assert!(Format::REFRESH_TOKEN.is_well_formed(&next), "{next}");
        assert_eq!(next, of(&one, &[1; 32]));
        assert_ne!(next, of(&one, &[2; 32]));
        assert_ne!(next, of(&other, &[1; 32]));
    }
}
