//! Finds out quickly that a text has no match: several parts of it are run through one automaton side by side, so that
//! no step has to wait for the one before it.

use std::collections::HashMap;

use regex_automata::MatchKind;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_syntax::hir::Hir;

/// An automaton that is larger takes too long to make.
const LARGEST: usize = 512 << 10;
/// A table has so many entries, as many as a `u16` can name: so no look-up is out of bounds, and none is checked.
const ENTRIES: usize = 1 << 16;
/// The state after a match. It is never left.
const HIT: u16 = 0;
/// The parts of a text. With more of them, the processor runs out of registers.
const LANES: usize = 4;
/// Bytes that are loaded at once.
const WORD: usize = 8;

/// The automaton of a pattern that stays within lines.
pub(super) struct Scan {
    /// What a byte is to the pattern.
    classes: [u8; 256],
    /// The state after each state, which is where its entries begin, and each class.
    table: Box<[u16; ENTRIES]>,
    /// At the start of a line.
    fresh: u16,
    /// Within a line, when no match has begun.
    idle: u16,
}

impl Scan {
    /// The automaton, if it is small enough.
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
        Self::tabled(&automaton)
    }

    /// Lays an automaton out in a table, if it is no larger than that.
    fn tabled(automaton: &dense::DFA<Vec<u32>>) -> Option<Self> {
        let mut classes = [0; 256];
        // One of each class.
        let mut bytes = Vec::new();
        for (byte, class) in (0..=u8::MAX).zip(&mut classes) {
            *class = automaton.byte_classes().get(byte);
            if usize::from(*class) == bytes.len() {
                bytes.push(byte);
            }
        }
        // A power of two, so that a class is put in the lower bits of a state.
        let width = bytes.len().next_power_of_two();
        let mut states = States { places: HashMap::new(), waiting: Vec::new(), width };
        let after = |byte| start::Config::new().look_behind(Some(byte));
        let fresh = states.place(automaton, automaton.start_state(&after(b'\n')).ok()?)?;
        let idle = states.place(automaton, automaton.start_state(&after(b' ')).ok()?)?;
        let mut table = vec![HIT; ENTRIES];
        while let Some((state, place)) = states.waiting.pop() {
            for (byte, entry) in bytes.iter().zip(table.iter_mut().skip(usize::from(place))) {
                *entry = states.place(automaton, automaton.next_state(state, *byte))?;
            }
        }
        let table = table.into_boxed_slice().try_into().ok()?;
        Some(Self { classes, table, fresh, idle })
    }

    /// A place before which no match begins; none if there is no match at all. There may be none after it either. The
    /// text begins with a line.
    pub(super) fn first(&self, text: &[u8]) -> Option<usize> {
        let length = text.len() / LANES / WORD * WORD;
        let starts: [usize; LANES] = std::array::from_fn(|lane| lane * length);
        let states = self.run_side_by_side(text, length, starts.map(|start| self.start(text, start)));
        let is_ended = text.ends_with(b"\n");
        let mut ends = starts.into_iter().zip(states).map(|(start, state)| {
            let rest = text.get(start + length..).unwrap_or_default();
            (start, state, rest)
        });
        let last = ends.next_back();
        let hit = ends.find(|(_, state, rest)| self.hits_across(*state, rest));
        let hit = hit.or_else(|| last.filter(|(_, state, rest)| self.hits_to_end(*state, rest, is_ended)));
        hit.map(|(start, ..)| start)
    }

    /// The state at a place if no match has begun before it.
    fn start(&self, text: &[u8], place: usize) -> u16 {
        let before = place.checked_sub(1).and_then(|before| text.get(before));
        if before.is_none_or(|byte| *byte == b'\n') { self.fresh } else { self.idle }
    }

    fn step(&self, state: u16, byte: u8) -> u16 {
        let class = self.classes.get(usize::from(byte)).map_or(0, |class| u16::from(*class));
        self.table.get(usize::from(state | class)).copied().unwrap_or(HIT)
    }

    /// Runs the parts of a text, each of that length, from their states.
    fn run_side_by_side(&self, text: &[u8], length: usize, mut states: [u16; LANES]) -> [u16; LANES] {
        let lanes: [&[[u8; WORD]]; LANES] = std::array::from_fn(|lane| {
            text.get(lane * length..(lane + 1) * length).unwrap_or_default().as_chunks().0
        });
        for place in 0..length / WORD {
            let mut words = lanes.map(|lane| lane.get(place).map_or(0, |word| u64::from_le_bytes(*word)));
            for _ in 0..WORD {
                for (state, word) in states.iter_mut().zip(&mut words) {
                    let [byte, ..] = word.to_le_bytes();
                    *state = self.step(*state, byte);
                    *word >>= u8::BITS;
                }
            }
        }
        states
    }

    /// Whether a match that begins before this text ends in it. What begins in it is the matter of the next part.
    fn hits_across(&self, mut state: u16, text: &[u8]) -> bool {
        for byte in text {
            // No match leaves its line.
            if [HIT, self.idle, self.fresh].contains(&state) {
                break;
            }
            state = self.step(state, *byte);
        }
        state == HIT
    }

    /// Whether a match ends in the rest of the text, which may end within its last line.
    fn hits_to_end(&self, state: u16, rest: &[u8], is_ended: bool) -> bool {
        let state = rest.iter().fold(state, |state, byte| self.step(state, *byte));
        state == HIT || (!is_ended && self.step(state, b'\n') == HIT)
    }
}

/// The states that a table has so far.
struct States {
    places: HashMap<StateID, u16>,
    /// Whose entries are to be filled in.
    waiting: Vec<(StateID, u16)>,
    /// How many entries each has.
    width: usize,
}

impl States {
    /// Where the entries of a state begin; none if the table is full.
    fn place(&mut self, automaton: &dense::DFA<Vec<u32>>, state: StateID) -> Option<u16> {
        // What is wrong with a state that gives up is found out by a search.
        if automaton.is_match_state(state) || automaton.is_quit_state(state) {
            return Some(HIT);
        }
        if let Some(place) = self.places.get(&state) {
            return Some(*place);
        }
        let place = (self.places.len() + 1) * self.width;
        if place + self.width > ENTRIES {
            return None;
        }
        let place = u16::try_from(place).ok()?;
        self.places.insert(state, place);
        self.waiting.push((state, place));
        Some(place)
    }
}
