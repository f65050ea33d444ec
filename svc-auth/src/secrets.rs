//! Secrets: generated from entropy, shown once, stored as digests.

use cairn_chassis::entropy::Entropy;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The SHA-256 of a secret. Secrets are random and long, so a plain hash is sufficient, and a lookup by hash leaks
/// nothing through its timing.
pub(crate) type Digest = [u8; 32];

/// The digest of a secret.
pub(crate) fn digest(secret: &str) -> Digest {
    Sha256::digest(secret.as_bytes()).into()
}

/// Compares two secrets in constant time.
pub(crate) fn same(one: &str, other: &str) -> bool {
    digest(one).ct_eq(&digest(other)).into()
}

/// `N` random bytes in hexadecimal.
pub(crate) fn random_hex<const N: usize>(entropy: &dyn Entropy) -> String {
    let mut bytes = [0_u8; N];
    entropy.fill(&mut bytes);
    hex::encode(bytes)
}

/// The last four characters, which are stored so that people can tell secrets apart.
pub(crate) fn last_four(secret: &str) -> &str {
    let start = secret.char_indices().rev().nth(3).map_or(0, |(at, _)| at);
    secret.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use cairn_chassis::entropy::SeededEntropy;

    use super::*;

    #[test]
    fn equal_means_equal() {
        assert!(same("mesh", "mesh"));
        for other in ["", "mes", "mesh ", "Mesh"] {
            assert!(!same("mesh", other), "{other}");
        }
    }

    #[test]
    fn random_text_has_its_length_and_is_not_repeated() {
        let entropy = SeededEntropy::new(1);
        let first = random_hex::<32>(&entropy);
        assert_eq!(first.len(), 64);
        assert_ne!(first, random_hex::<32>(&entropy));
    }

    #[test]
    fn the_last_four_of_short_texts_are_all_of_them() {
        assert_eq!(last_four("abcdef"), "cdef");
        assert_eq!(last_four("äöü"), "äöü");
        assert_eq!(last_four(""), "");
    }
}
