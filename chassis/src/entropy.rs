//! Randomness as a parameter: secrets and ids come from an [`Entropy`], so that tests are reproducible.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random bytes.
pub trait Entropy: fmt::Debug + Send + Sync {
    /// Fills the buffer with random bytes.
    fn fill(&self, buffer: &mut [u8]);
}

/// The cryptographic generator of the OS. Every request needs an id, so small amounts are taken from a block that each thread
/// buffers: a system call costs more than the rest of creating an id.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        if buffer.len() > SMALL_BYTES {
            return fill_from_system(buffer);
        }
        BLOCK.with_borrow_mut(|block| {
            buffer.iter_mut().for_each(|byte| *byte = block.next());
        });
    }
}

const BLOCK_BYTES: usize = 512;
/// The random bytes of an id. Passwords, keys, nonces and tokens are larger, and never come from the buffer.
const SMALL_BYTES: usize = 10;

thread_local! {
    static BLOCK: RefCell<Block> = const { RefCell::new(Block { bytes: [0; BLOCK_BYTES], taken: BLOCK_BYTES }) };
}

/// Buffered random bytes, each of which is used once.
struct Block {
    bytes: [u8; BLOCK_BYTES],
    taken: usize,
}

impl Block {
    fn next(&mut self) -> u8 {
        if self.taken >= BLOCK_BYTES {
            fill_from_system(&mut self.bytes);
            self.taken = 0;
        }
        let next = self.bytes.get_mut(self.taken).map(std::mem::take).unwrap_or_default();
        self.taken += 1;
        next
    }
}

fn fill_from_system(buffer: &mut [u8]) {
    // A process that continued without randomness would issue guessable secrets.
    if getrandom::fill(buffer).is_err() {
        std::process::abort();
    }
}

/// A deterministic generator for tests: never for secrets.
#[derive(Debug)]
pub struct SeededEntropy {
    seed: u64,
    block: AtomicU64,
}

impl SeededEntropy {
    /// A generator with that seed.
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn nothing_is_handed_out_twice_and_nothing_is_empty() {
        let mut seen = HashSet::new();
        for length in [10, SMALL_BYTES, SMALL_BYTES + 1, 32] {
            for _ in 0..BLOCK_BYTES {
                let mut bytes = vec![0; length];
                OsEntropy.fill(&mut bytes);
                // Ten zeros in a row come once in 2 to the 80th.
                assert!(bytes.iter().any(|byte| *byte != 0));
                assert!(seen.insert(bytes), "{length} bytes came twice");
            }
        }
    }
}
