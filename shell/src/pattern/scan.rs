//! Finds out quickly that a text has no match: four parts of it are run through one automaton side by side, so that no
//! step has to wait for the one before it.

use regex_automata::MatchKind;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_syntax::hir::Hir;

/// An automaton that is larger takes too long to make, and runs out of the processor's caches.
const LARGEST: usize = 512 << 10;
/// States are looked at after so many steps. A match is not lost in between: it cannot go on after its line, so the
/// automaton stays dead from then on.
const STRIDE: usize = 16;
/// A shorter text is not worth four parts.
const SHORTEST: usize = 512;
const LANES: usize = 4;

pub(super) struct Scan {
    automaton: dense::DFA<Vec<u32>>,
    start: StateID,
}

impl Scan {
    /// The automaton of a pattern that stays within lines, if it is small enough.
    pub(super) fn new(hir: &Hir) -> Option<Self> {
        let config = thompson::Config::new()
            .utf8(false)
            .which_captures(WhichCaptures::None)
            .nfa_size_limit(Some(LARGEST));
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(hir).ok()?;
        let config = dense::Config::new()
            .match_kind(MatchKind::LeftmostFirst)
            .start_kind(StartKind::Unanchored)
            .accelerate(false)
            .dfa_size_limit(Some(LARGEST))
            .determinize_size_limit(Some(LARGEST));
        let automaton = dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()?;
        let start = automaton.start_state(&start::Config::new().look_behind(Some(b'\n'))).ok()?;
        Some(Self { automaton, start })
    }

    /// The start of a line before which nothing matches; none if nothing matches at all. Whether anything matches
    /// after it is not said. The text begins with a line.
    pub(super) fn first_line(&self, text: &[u8]) -> Option<usize> {
        if text.len() < SHORTEST {
            return Some(0);
        }
        let [mut first, mut second, mut third, mut fourth] = [self.start; LANES];
        let (one, two, three, four) = quarters(text);
        let automaton = &self.automaton;
        let mut passed = 0;
        let strides = one.chunks_exact(STRIDE).zip(two.chunks_exact(STRIDE));
        let strides = strides.zip(three.chunks_exact(STRIDE)).zip(four.chunks_exact(STRIDE));
        for (((one, two), three), four) in strides {
            for (((one, two), three), four) in one.iter().zip(two).zip(three).zip(four) {
                first = automaton.next_state(first, *one);
                second = automaton.next_state(second, *two);
                third = automaton.next_state(third, *three);
                fourth = automaton.next_state(fourth, *four);
            }
            if [first, second, third, fourth].into_iter().any(|state| automaton.is_special_state(state)) {
                return Some(line_start(text, passed));
            }
            passed += STRIDE;
        }
        for (state, lane) in [(first, one), (second, two), (third, three), (fourth, four)] {
            let rest = lane.get(passed..).unwrap_or_default();
            let Some(end) = self.run(state, rest) else {
                // What is left of the first part is not known, if this is a later one.
                return Some(line_start(text, passed));
            };
            let end = automaton.next_eoi_state(end);
            if automaton.is_special_state(end) && !automaton.is_dead_state(end) {
                return Some(line_start(text, passed));
            }
        }
        None
    }

    /// The state after a text; none if there may be a match.
    fn run(&self, from: StateID, text: &[u8]) -> Option<StateID> {
        let mut state = from;
        for byte in text {
            state = self.automaton.next_state(state, *byte);
            if self.automaton.is_special_state(state) {
                return None;
            }
        }
        Some(state)
    }
}

fn line_start(text: &[u8], place: usize) -> usize {
    memchr::memrchr(b'\n', text.get(..place).unwrap_or_default()).map_or(0, |at| at + 1)
}

/// The text in four parts of whole lines, about as long as each other; some are empty when lines are long.
fn quarters(text: &[u8]) -> (&[u8], &[u8], &[u8], &[u8]) {
    let quarter = text.len() / LANES;
    let (one, rest) = after_line(text, quarter);
    let (two, rest) = after_line(rest, quarter);
    let (three, four) = after_line(rest, quarter);
    (one, two, three, four)
}

/// Cuts a text after the line that a place is in.
fn after_line(text: &[u8], place: usize) -> (&[u8], &[u8]) {
    let rest = text.get(place..).unwrap_or_default();
    let end = memchr::memchr(b'\n', rest).map_or(text.len(), |at| place + at + 1);
    text.split_at(end)
}
