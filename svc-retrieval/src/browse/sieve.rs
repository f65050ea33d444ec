//! Which bodies may hold a text: for each body a filter of the trigrams in it, their ASCII letters in lower case.
//!
//! A filter is about a fifth of its body and stays when the body is evicted, so that a rare text in a large workspace
//! opens only what may hold it. A filter may let a body through that does not hold the text, and never holds one back
//! that does.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::bodies::{Key, KeyHash};

/// What an entry takes beside its bits.
const ENTRY_BYTES: u64 = 136;
/// Filters wait until the next search, and at most for one part in so many of all.
const WAITING_SHARE: u64 = 8;
/// A filter's bits are halved while fewer than one in so many is set. So one in eight to one in four ends up set, and a
/// text of eight letters, which has six trigrams, passes a body that does not hold it once in four thousand times or
/// more rarely.
const SPARSE: u64 = 8;
/// Of the largest bodies: a filter of 1 MiB holds every trigram that 5 MB of text have.
const MOST_BITS: usize = 1 << 23;
const WORD_BITS: usize = 64;

/// The trigrams of one body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    /// A power of two of bits, or none when the body is shorter than a trigram.
    words: Arc<[u64]>,
}

impl Filter {
    /// The filter of a body.
    pub(crate) fn of(body: &[u8]) -> Self {
        if body.len() < 3 {
            return Self { words: Arc::default() };
        }
        let bits = body.len().saturating_mul(8).next_power_of_two().clamp(WORD_BITS, MOST_BITS);
        let mut words = vec![0u64; bits / WORD_BITS];
        let mask = mask(&words);
        for hash in hashes(body) {
            let (word, bit) = place(hash, mask);
            if let Some(word) = words.get_mut(word) {
                *word |= bit;
            }
        }
        Self { words: folded(words).into() }
    }

    /// Whether it may hold all of these trigrams.
    fn may_hold(&self, trigrams: &[u32]) -> bool {
        let mask = mask(&self.words);
        trigrams.iter().all(|hash| {
            let (word, bit) = place(*hash, mask);
            self.words.get(word).is_some_and(|word| word & bit != 0)
        })
    }

    /// What it takes, with its place among the others.
    fn bytes(&self) -> u64 {
        ENTRY_BYTES + u64::try_from(size_of_val(&*self.words)).unwrap_or(u64::MAX)
    }
}

/// Lays the upper half over the lower one while that leaves it sparse enough: a place is the hash modulo a power of
/// two, so each bit falls on its own place in the half.
fn folded(mut words: Vec<u64>) -> Vec<u64> {
    let mut set: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
    while words.len() > 1 && set.saturating_mul(SPARSE) < u64::try_from(words.len() * WORD_BITS).unwrap_or(0)
    {
        let upper = words.split_off(words.len() / 2);
        for (lower, upper) in words.iter_mut().zip(upper) {
            *lower |= upper;
        }
        set = words.iter().map(|word| u64::from(word.count_ones())).sum();
    }
    words
}

fn mask(words: &[u64]) -> usize {
    (words.len() * WORD_BITS).wrapping_sub(1)
}

fn place(hash: u32, mask: usize) -> (usize, u64) {
    let at = usize::try_from(hash).unwrap_or_default() & mask;
    (at / WORD_BITS, 1 << (at % WORD_BITS))
}

/// The hashes of a text's trigrams.
fn hashes(text: &[u8]) -> impl Iterator<Item = u32> + '_ {
    text.windows(3).map(|window| {
        let trigram = window.iter().fold(0, |sum, byte| sum << 8 | u32::from(byte.to_ascii_lowercase()));
        mixed(trigram)
    })
}

/// Spreads neighbouring trigrams over all bits (the finalizer of MurmurHash3).
const fn mixed(trigram: u32) -> u32 {
    let mut hash = trigram;
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// The filters of this process, bounded in bytes.
///
/// A search asks thousands of them, so it asks a map that nobody changes, and without a lock for each. What is noted
/// meanwhile waits and is brought in when the next search begins.
#[derive(Debug)]
pub(crate) struct Filters {
    most_bytes: u64,
    state: Mutex<State>,
}

type Map = HashMap<Key, Filter, KeyHash>;

#[derive(Debug, Default)]
struct State {
    kept: Arc<Map>,
    /// The keys of what is kept, the oldest first.
    order: VecDeque<Key>,
    kept_bytes: u64,
    /// Noted and not brought in yet.
    waiting: Vec<(Key, Filter)>,
    waiting_bytes: u64,
}

impl Filters {
    /// No filters yet; `bytes` at most.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { most_bytes: bytes, state: Mutex::default() }
    }

    /// Makes the filter of a body, unless there is one.
    pub(crate) fn note(&self, key: Key, body: &[u8]) {
        let is_kept = self.state.lock().unwrap_or_else(PoisonError::into_inner).kept.contains_key(&key);
        if is_kept {
            return;
        }
        let filter = Filter::of(body);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting_bytes += filter.bytes();
        state.waiting.push((key, filter));
        if state.waiting_bytes >= self.most_bytes / WAITING_SHARE {
            state.bring_in(self.most_bytes);
        }
    }

    /// A sieve for bodies that have at least one of the texts.
    pub(crate) fn sieve(&self, texts: &[Vec<u8>]) -> TextSieve {
        let holds_all = texts.is_empty() || texts.iter().any(|text| text.len() < 3);
        let trigrams =
            if holds_all { Vec::new() } else { texts.iter().map(|text| hashes(text).collect()).collect() };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.bring_in(self.most_bytes);
        TextSieve { filters: Arc::clone(&state.kept), trigrams }
    }

    #[cfg(test)]
    fn bytes(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.kept_bytes + state.waiting_bytes
    }
}

impl State {
    /// Keeps what waits, and lets go of the oldest while it is too much. The map is copied when a search uses it.
    fn bring_in(&mut self, most_bytes: u64) {
        if self.waiting.is_empty() {
            return;
        }
        let kept = Arc::make_mut(&mut self.kept);
        for (key, filter) in self.waiting.drain(..) {
            let bytes = filter.bytes();
            if kept.insert(key, filter).is_none() {
                self.order.push_back(key);
                self.kept_bytes += bytes;
            }
        }
        self.waiting_bytes = 0;
        // The next ones wait beside what is kept.
        while self.kept_bytes > most_bytes - most_bytes / WAITING_SHARE {
            let Some(oldest) = self.order.pop_front() else { return };
            self.kept_bytes -= kept.remove(&oldest).map_or(0, |filter| filter.bytes());
        }
    }
}

/// Holds back bodies that are known to have none of some texts.
#[derive(Debug)]
pub(crate) struct TextSieve {
    filters: Arc<Map>,
    /// Of each text; none when a text is too short to tell.
    trigrams: Vec<Vec<u32>>,
}

impl TextSieve {
    /// Whether the body may have one of the texts; of a body that nobody has read yet it always may.
    pub(crate) fn lets_through(&self, key: &Key) -> bool {
        if self.trigrams.is_empty() {
            return true;
        }
        let Some(filter) = self.filters.get(key) else {
            return true;
        };
        self.trigrams.iter().any(|trigrams| filter.may_hold(trigrams))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(number: u64) -> Key {
        Key::of(&number.to_be_bytes())
    }

    fn lets_through(body: &[u8], texts: &[&[u8]]) -> bool {
        let filters = Filters::new(1 << 20);
        filters.note(key(1), body);
        let texts: Vec<Vec<u8>> = texts.iter().map(|text| text.to_vec()).collect();
        filters.sieve(&texts).lets_through(&key(1))
    }

    #[test]
    fn what_is_not_there_is_held_back() {
        let body = b"The quick brown fox jumps over the lazy dog";
        assert!(lets_through(body, &[b"BROWN FOX"]));
        assert!(!lets_through(body, &[b"xylophone"]));
        assert!(lets_through(body, &[b"xylophone", b"lazy"]));
        assert!(!lets_through(b"", &[b"abc"]));
        assert!(lets_through(b"", &[b"ab"]), "too short to tell");
        assert!(lets_through(body, &[]), "nothing is asked");
    }

    #[test]
    fn a_body_that_was_never_read_passes() {
        let filters = Filters::new(1 << 20);
        assert!(filters.sieve(&[b"anything".to_vec()]).lets_through(&key(7)));
    }

    #[test]
    fn filters_are_bounded_and_outlive_much() {
        let filters = Filters::new(64 << 10);
        for number in 0..1_000 {
            filters.note(key(number), format!("{number} ").repeat(400).as_bytes());
        }
        assert!(filters.bytes() <= 64 << 10, "{}", filters.bytes());
    }

    #[test]
    fn a_filter_is_small_and_rarely_wrong() {
        // Words of random syllables, as different from each other as words of a language are.
        let mut state = 7u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let syllables = ["ba", "ten", "ri", "sol", "ka", "mo", "ver", "lin", "du", "pra", "es", "tor"];
        let mut word = move || -> String {
            (0..2 + random(3))
                .filter_map(|_| syllables.get(usize::try_from(random(12)).ok()?))
                .copied()
                .collect()
        };
        let mut text = |words: usize| (0..words).map(|_| word()).collect::<Vec<_>>().join(" ");
        let body = text(800);
        let filter = Filter::of(body.as_bytes());
        assert!(
            filter.bytes() * 2 <= u64::try_from(body.len()).unwrap(),
            "{} of {}",
            filter.bytes(),
            body.len()
        );
        let absent: Vec<String> = (0..4_000u32)
            .map(|number| format!("q{:08x}", number.wrapping_mul(2_654_435_761)))
            .filter(|text| !body.contains(text.as_str()))
            .collect();
        let passed =
            absent.iter().filter(|text| filter.may_hold(&hashes(text.as_bytes()).collect::<Vec<_>>()));
        let (passed, all) = (passed.count(), absent.len());
        assert!(passed * 1_000 <= all, "{passed} of {all} texts pass that are not there");
    }

    proptest! {
        #[test]
        fn what_is_there_always_passes(
            body in proptest::collection::vec(any::<u8>(), 0..3_000),
            start in any::<prop::sample::Index>(),
            length in 1..40usize,
            upper in any::<bool>(),
        ) {
            let start = start.index(body.len().max(1));
            let mut text: Vec<u8> = body.iter().skip(start).take(length).copied().collect();
            if upper {
                text.make_ascii_uppercase();
            }
            prop_assert!(lets_through(&body, &[b"never there at all", &text]));
        }
    }
}
