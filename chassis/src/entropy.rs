//! Randomness as a parameter: secrets and ids come from an [`Entropy`], so that tests can repeat them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where random bytes come from.
pub trait Entropy: fmt::Debug + Send + Sync {
    /// Fills the buffer with random bytes.
    fn fill(&self, buffer: &mut [u8]);
}

/// The operating system's cryptographic source.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        // A process that goes on without randomness would hand out guessable secrets.
        if getrandom::fill(buffer).is_err() {
            std::process::abort();
        }
    }
}

/// A repeatable stream for tests: never for secrets.
#[derive(Debug)]
pub struct SeededEntropy {
    seed: u64,
    block: AtomicU64,
}

impl SeededEntropy {
    /// A stream that the seed decides.
    pub const fn new(seed: u64) -> Self {
        Self { seed, block: AtomicU64::new(0) }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        let block = self.block.fetch_add(1, Ordering::SeqCst);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed.to_le_bytes()).update(&block.to_le_bytes());
        hasher.finalize_xof().fill(buffer);
    }
}
