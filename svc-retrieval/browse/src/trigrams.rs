//! Trigram filters: for each body a bitmap of the hashed trigrams in it, ASCII letters in lower case, that tells whether it may
//! contain a text.
//!
//! A filter has about a fifth of the body's size and outlives the cached body, so that a search for a rare text in a large
//! workspace opens few bodies. There are false positives, and no false negatives.

mod block;
mod filter;

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use self::block::Block;
use self::filter::{Filter, hashes};
use super::bodies::{Key, KeyHash};

/// The overhead of an entry beside its bits, in bytes.
const ENTRY_BYTES: u64 = 136;
/// New filters are pending until the next search, or until they take this fraction (one in 8) of the limit.
const PENDING_SHARE: u64 = 8;

/// The filters of this process, bounded in bytes.
///
/// A search checks thousands of them, so it works on an immutable snapshot without locks. New filters are pending until the next
/// search merges them.
#[derive(Debug)]
pub(crate) struct Filters {
    most_bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: Arc<FilterSet>,
    /// Added and not merged yet.
    pending: Vec<(Key, Filter)>,
    pending_bytes: u64,
}

/// Filters in blocks; a clone shares the blocks (copy-on-write).
#[derive(Debug, Clone, Default)]
struct FilterSet {
    places: HashMap<Key, Place, KeyHash>,
    /// `None` where the number is free.
    blocks: Vec<Option<Arc<Block>>>,
    free: Vec<u32>,
    /// The block with room for one more filter, by the size of its filters in bits.
    open: HashMap<usize, u32>,
    /// For eviction: the oldest block first.
    order: VecDeque<u32>,
    bytes: u64,
}

/// Where a filter is.
#[derive(Debug, Clone, Copy)]
struct Place {
    block: u32,
    column: u8,
}

impl Filters {
    /// No filters yet; `bytes` at most.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { most_bytes: bytes, state: Mutex::default() }
    }

    /// Adds the filter of a body, unless there is one.
    pub(crate) fn note(&self, key: Key, body: &[u8]) {
        let is_kept =
            self.state.lock().unwrap_or_else(PoisonError::into_inner).kept.places.contains_key(&key);
        if is_kept {
            return;
        }
        let filter = Filter::of(body);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.pending_bytes += ENTRY_BYTES + u64::try_from(filter.bits() / 8).unwrap_or(u64::MAX);
        state.pending.push((key, filter));
        if state.pending_bytes >= self.most_bytes / PENDING_SHARE {
            state.merge_pending(self.most_bytes);
        }
    }

    /// A filter for bodies that contain at least one of the texts.
    pub(crate) fn text_filter(&self, texts: &[Vec<u8>]) -> TrigramFilter {
        let holds_all = texts.is_empty() || texts.iter().any(|text| text.len() < 3);
        let trigrams =
            if holds_all { Vec::new() } else { texts.iter().map(|text| hashes(text).collect()).collect() };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.merge_pending(self.most_bytes);
        let kept = Arc::clone(&state.kept);
        TrigramFilter { trigrams, found: vec![Cell::default(); kept.blocks.len()], kept }
    }

    #[cfg(test)]
    fn bytes(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.kept.bytes + state.pending_bytes
    }
}

impl State {
    /// Merges pending filters and evicts the oldest above the limit. Copies what a running search uses.
    fn merge_pending(&mut self, most_bytes: u64) {
        if self.pending.is_empty() {
            return;
        }
        let kept = Arc::make_mut(&mut self.kept);
        for (key, filter) in self.pending.drain(..) {
            // Two scripts may have read the body at the same time.
            if !kept.places.contains_key(&key) {
                kept.add(key, &filter);
            }
        }
        self.pending_bytes = 0;
        // Leave room for the next pending ones.
        while kept.bytes > most_bytes - most_bytes / PENDING_SHARE && kept.evict_oldest() {}
    }
}

impl FilterSet {
    fn block(&self, number: u32) -> Option<&Arc<Block>> {
        self.blocks.get(slot(number))?.as_ref()
    }

    fn add(&mut self, key: Key, filter: &Filter) {
        let bits = filter.bits();
        let open = self.open.get(&bits).copied();
        let with_room = open.filter(|number| self.block(*number).is_some_and(|block| !block.is_full()));
        let number = with_room.unwrap_or_else(|| self.open(bits));
        let Some(block) = self.blocks.get_mut(slot(number)).and_then(Option::as_mut) else { return };
        let column = Arc::make_mut(block).add(key, filter);
        self.places.insert(key, Place { block: number, column });
        self.bytes += ENTRY_BYTES;
    }

    /// Opens a block for filters of that many bits.
    fn open(&mut self, bits: usize) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.blocks.push(None);
            u32::try_from(self.blocks.len() - 1).unwrap_or(u32::MAX)
        });
        let block = Block::of(bits);
        self.bytes += block.bytes();
        if let Some(place) = self.blocks.get_mut(slot(number)) {
            *place = Some(Arc::new(block));
        }
        self.open.insert(bits, number);
        self.order.push_back(number);
        number
    }

    /// Evicts the oldest block; `false` when there is none.
    fn evict_oldest(&mut self) -> bool {
        let Some(number) = self.order.pop_front() else { return false };
        let Some(block) = self.blocks.get_mut(slot(number)).and_then(Option::take) else { return true };
        self.open.retain(|_, open| *open != number);
        self.free.push(number);
        self.bytes -= block.bytes();
        for key in block.keys() {
            self.places.remove(key);
            self.bytes -= ENTRY_BYTES;
        }
        true
    }
}

fn slot(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Rules out bodies that contain none of some texts.
#[derive(Debug)]
pub(crate) struct TrigramFilter {
    kept: Arc<FilterSet>,
    /// The trigrams of each text; empty when a text is too short for the filter.
    trigrams: Vec<Vec<u32>>,
    /// For each block a bitmap of the filters that match, computed at the first use.
    found: Vec<Cell<Option<u64>>>,
}

impl TrigramFilter {
    /// Whether the body may contain one of the texts; always true for a body without a filter.
    pub(crate) fn may_contain(&self, key: &Key) -> bool {
        if self.trigrams.is_empty() {
            return true;
        }
        let Some(place) = self.kept.places.get(key) else { return true };
        let Some(found) = self.found.get(slot(place.block)) else { return true };
        let filters = found.get().unwrap_or_else(|| {
            let block = self.kept.block(place.block);
            let filters = block.map_or(u64::MAX, |block| block.holding(&self.trigrams));
            found.set(Some(filters));
            filters
        });
        filters >> place.column & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(number: u64) -> Key {
        Key::of(&number.to_be_bytes())
    }

    fn may_contain(body: &[u8], texts: &[&[u8]]) -> bool {
        let filters = Filters::new(1 << 20);
        filters.note(key(1), body);
        let texts: Vec<Vec<u8>> = texts.iter().map(|text| text.to_vec()).collect();
        filters.text_filter(&texts).may_contain(&key(1))
    }

    #[test]
    fn what_is_not_there_is_held_back() {
        let body = b"The quick brown fox jumps over the lazy dog";
        assert!(may_contain(body, &[b"BROWN FOX"]));
        assert!(!may_contain(body, &[b"xylophone"]));
        assert!(may_contain(body, &[b"xylophone", b"lazy"]));
        assert!(!may_contain(b"", &[b"abc"]));
        assert!(may_contain(b"", &[b"ab"]), "too short to tell");
        assert!(may_contain(body, &[]), "nothing is asked");
    }

    #[test]
    fn a_body_that_was_never_read_passes() {
        let filters = Filters::new(1 << 20);
        assert!(filters.text_filter(&[b"anything".to_vec()]).may_contain(&key(7)));
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
        assert!(filter.bits() * 2 <= body.len() * 8, "{} bits of {}", filter.bits(), body.len());
        let filters = Filters::new(1 << 20);
        filters.note(key(1), body.as_bytes());
        let absent: Vec<String> = (0..4_000u32)
            .map(|number| format!("q{:08x}", number.wrapping_mul(2_654_435_761)))
            .filter(|text| !body.contains(text.as_str()))
            .collect();
        let passes = |text: &&String| filters.text_filter(&[text.as_bytes().to_vec()]).may_contain(&key(1));
        let (passed, all) = (absent.iter().filter(passes).count(), absent.len());
        assert!(passed * 1_000 <= all, "{passed} of {all} texts pass that are not there");
    }

    #[test]
    fn the_oldest_go_and_the_latest_stay() {
        let filters = Filters::new(256 << 10);
        let body =
            |number: u64| format!("body {number} has text{number} in it ").repeat(1 + number as usize % 60);
        for number in 0..3_000 {
            filters.note(key(number), body(number).as_bytes());
        }
        let text_filter = filters.text_filter(&[b"never there".to_vec()]);
        let passes = |number: &u64| text_filter.may_contain(&key(*number));
        assert!(filters.bytes() <= 256 << 10, "{}", filters.bytes());
        assert!((0..100).all(|number| passes(&number)), "nothing is known of them any more");
        assert!((2_900..3_000).filter(passes).count() < 5, "they are known");
        let there = filters.text_filter(&[b"text2950 ".to_vec()]);
        assert!(there.may_contain(&key(2_950)) && !there.may_contain(&key(2_951)));
        filters.note(key(9_999), b"text2950 ");
        assert!(there.may_contain(&key(9_999)), "a search that has begun knows what it knew then");
        assert!(filters.text_filter(&[b"another".to_vec()]).may_contain(&key(5)), "it went");
        assert!(!filters.text_filter(&[b"another".to_vec()]).may_contain(&key(9_999)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn each_of_many_answers_as_if_it_were_alone(
            bodies in proptest::collection::vec("[abc ]{0,12}( [a-z]{3,9}){0,80}", 1..150),
            looked_for in proptest::collection::vec(("[a-c]{3,4}", any::<prop::sample::Index>()), 1..4),
            searches in any::<prop::sample::Index>(),
        ) {
            let filters = Filters::new(8 << 20);
            let mut earlier = Vec::new();
            for (number, body) in (0..).zip(&bodies) {
                filters.note(key(number), body.as_bytes());
                if number as usize == searches.index(bodies.len()) {
                    earlier.push(filters.text_filter(&[b"abc".to_vec()]));
                }
            }
            let from_body = |index: &prop::sample::Index| bodies[index.index(bodies.len())].bytes().take(9).collect();
            let texts: Vec<Vec<u8>> =
                looked_for.iter().flat_map(|(text, index)| [text.clone().into_bytes(), from_body(index)]).collect();
            let texts: Vec<Vec<u8>> = texts.into_iter().filter(|text| text.len() >= 3).collect();
            let slices: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
            let text_filter = filters.text_filter(&texts);
            for (number, body) in (0..).zip(&bodies) {
                prop_assert_eq!(text_filter.may_contain(&key(number)), may_contain(body.as_bytes(), &slices));
            }
        }
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
            prop_assert!(may_contain(&body, &[b"never there at all", &text]));
        }
    }
}
