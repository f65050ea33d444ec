//! Which bodies may hold a text: for each body a filter of the trigrams in it, their ASCII letters in lower case.
//!
//! A filter is about a fifth of its body and stays when the body is evicted, so that a rare text in a large workspace
//! opens only what may hold it. A filter may let a body through that does not hold the text, and never holds one back
//! that does.

mod block;
mod filter;

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use self::block::Block;
use self::filter::{Filter, hashes};
use super::bodies::{Key, KeyHash};

/// What an entry takes beside its bits.
const ENTRY_BYTES: u64 = 136;
/// Filters wait until the next search, and at most for one part in so many of all.
const WAITING_SHARE: u64 = 8;

/// The filters of this process, bounded in bytes.
///
/// A search asks thousands of them, so it asks what nobody changes, and without a lock for each. What is noted meanwhile
/// waits and is brought in when the next search begins.
#[derive(Debug)]
pub(crate) struct Filters {
    most_bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: Arc<Kept>,
    /// Noted and not brought in yet.
    waiting: Vec<(Key, Filter)>,
    waiting_bytes: u64,
}

/// Filters in blocks. A copy shares the blocks.
#[derive(Debug, Clone, Default)]
struct Kept {
    places: HashMap<Key, Place, KeyHash>,
    /// None where the number is free.
    blocks: Vec<Option<Arc<Block>>>,
    free: Vec<u32>,
    /// The block with room for one more filter of so many bits.
    open: HashMap<usize, u32>,
    /// The oldest block first.
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

    /// Makes the filter of a body, unless there is one.
    pub(crate) fn note(&self, key: Key, body: &[u8]) {
        let is_kept =
            self.state.lock().unwrap_or_else(PoisonError::into_inner).kept.places.contains_key(&key);
        if is_kept {
            return;
        }
        let filter = Filter::of(body);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting_bytes += ENTRY_BYTES + u64::try_from(filter.bits() / 8).unwrap_or(u64::MAX);
        state.waiting.push((key, filter));
        if state.waiting_bytes >= self.most_bytes / WAITING_SHARE {
            state.bring_in(self.most_bytes);
        }
    }

    /// A filter for bodies that have at least one of the texts.
    pub(crate) fn text_filter(&self, texts: &[Vec<u8>]) -> TrigramFilter {
        let holds_all = texts.is_empty() || texts.iter().any(|text| text.len() < 3);
        let trigrams =
            if holds_all { Vec::new() } else { texts.iter().map(|text| hashes(text).collect()).collect() };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.bring_in(self.most_bytes);
        let kept = Arc::clone(&state.kept);
        TrigramFilter { trigrams, found: vec![Cell::default(); kept.blocks.len()], kept }
    }

    #[cfg(test)]
    fn bytes(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.kept.bytes + state.waiting_bytes
    }
}

impl State {
    /// Keeps what waits, and lets go of the oldest while it is too much. What a search uses is copied.
    fn bring_in(&mut self, most_bytes: u64) {
        if self.waiting.is_empty() {
            return;
        }
        let kept = Arc::make_mut(&mut self.kept);
        for (key, filter) in self.waiting.drain(..) {
            // Two scripts may have read the body at the same time.
            if !kept.places.contains_key(&key) {
                kept.add(key, &filter);
            }
        }
        self.waiting_bytes = 0;
        // The next ones wait beside what is kept.
        while kept.bytes > most_bytes - most_bytes / WAITING_SHARE && kept.let_go() {}
    }
}

impl Kept {
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

    /// Begins a block for filters of so many bits.
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

    /// Lets go of the oldest block, and tells whether there was one.
    fn let_go(&mut self) -> bool {
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

/// Holds back bodies that are known to have none of some texts.
#[derive(Debug)]
pub(crate) struct TrigramFilter {
    kept: Arc<Kept>,
    /// Of each text; none when a text is too short to tell.
    trigrams: Vec<Vec<u32>>,
    /// Which filters of each block hold one of the texts, when one of them has been asked.
    found: Vec<Cell<Option<u64>>>,
}

impl TrigramFilter {
    /// Whether the body may have one of the texts; of a body that nobody has read yet it always may.
    pub(crate) fn lets_through(&self, key: &Key) -> bool {
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

    fn lets_through(body: &[u8], texts: &[&[u8]]) -> bool {
        let filters = Filters::new(1 << 20);
        filters.note(key(1), body);
        let texts: Vec<Vec<u8>> = texts.iter().map(|text| text.to_vec()).collect();
        filters.text_filter(&texts).lets_through(&key(1))
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
        assert!(filters.text_filter(&[b"anything".to_vec()]).lets_through(&key(7)));
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
        let passes = |text: &&String| filters.text_filter(&[text.as_bytes().to_vec()]).lets_through(&key(1));
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
        let passes = |number: &u64| text_filter.lets_through(&key(*number));
        assert!(filters.bytes() <= 256 << 10, "{}", filters.bytes());
        assert!((0..100).all(|number| passes(&number)), "nothing is known of them any more");
        assert!((2_900..3_000).filter(passes).count() < 5, "they are known");
        let there = filters.text_filter(&[b"text2950 ".to_vec()]);
        assert!(there.lets_through(&key(2_950)) && !there.lets_through(&key(2_951)));
        filters.note(key(9_999), b"text2950 ");
        assert!(there.lets_through(&key(9_999)), "a search that has begun knows what it knew then");
        assert!(filters.text_filter(&[b"another".to_vec()]).lets_through(&key(5)), "it went");
        assert!(!filters.text_filter(&[b"another".to_vec()]).lets_through(&key(9_999)));
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
                prop_assert_eq!(text_filter.lets_through(&key(number)), lets_through(body.as_bytes(), &slices));
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
            prop_assert!(lets_through(&body, &[b"never there at all", &text]));
        }
    }
}
