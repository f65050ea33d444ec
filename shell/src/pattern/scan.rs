//! Quickly proves that a text has no match: several parts of it are run through one automaton in an interleaved loop,
//! so that the lookups are independent of each other (instruction-level parallelism).

use std::collections::HashMap;

use regex_automata::MatchKind;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_syntax::hir::Hir;

/// Building a larger automaton takes too long.
const MAX_AUTOMATON_BYTES: usize = 512 << 10;
/// The table has as many entries as a `u16` can index, so lookups need no bounds check.
const ENTRIES: usize = 1 << 16;
/// The state after a match, which is absorbing.
const HIT: u16 = 0;
/// The number of interleaved parts. More of them exceed the registers.
const LANES: usize = 4;
/// Bytes that are loaded at once.
const WORD: usize = 8;

/// The automaton of a pattern that is confined to lines.
pub(super) struct Scan {
    /// The equivalence class of each byte.
    classes: [u8; 256],
    /// The transitions: states are offsets of their rows, indexed by class.
    table: Box<[u16; ENTRIES]>,
    /// The state at the start of a line.
    fresh: u16,
    /// The state within a line when no match has begun.
    idle: u16,
}

impl Scan {
    /// Builds the automaton, if it is small enough.
    pub(super) fn new(hir: &Hir) -> Option<Self> {
        let config = thompson::Config::new()
            .utf8(false)
            .which_captures(WhichCaptures::None)
            .nfa_size_limit(Some(MAX_AUTOMATON_BYTES));
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(hir).ok()?;
        let config = dense::Config::new()
            .match_kind(MatchKind::LeftmostFirst)
            .start_kind(StartKind::Unanchored)
            .accelerate(false)
            .dfa_size_limit(Some(MAX_AUTOMATON_BYTES))
            .determinize_size_limit(Some(MAX_AUTOMATON_BYTES));
        let automaton = dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()?;
        Self::tabled(&automaton)
    }

    /// Converts the automaton into a table, if it fits.
    fn tabled(automaton: &dense::DFA<Vec<u32>>) -> Option<Self> {
        let mut classes = [0; 256];
        // A representative of each class.
        let mut bytes = Vec::new();
        for (byte, class) in (0..=u8::MAX).zip(&mut classes) {
            *class = automaton.byte_classes().get(byte);
            if usize::from(*class) == bytes.len() {
                bytes.push(byte);
            }
        }
        // A power of two, so that the class is in the lower bits of an index.
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

    /// A position before which no match begins; `None` if there is no match at all. There may be none after it either.
    /// The text begins at the start of a line.
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

    /// The state at a position if no match has begun before it.
    fn start(&self, text: &[u8], place: usize) -> u16 {
        let before = place.checked_sub(1).and_then(|before| text.get(before));
        if before.is_none_or(|byte| *byte == b'\n') { self.fresh } else { self.idle }
    }

    fn step(&self, state: u16, byte: u8) -> u16 {
        let class = self.classes.get(usize::from(byte)).map_or(0, |class| u16::from(*class));
        self.table.get(usize::from(state | class)).copied().unwrap_or(HIT)
    }

    /// Runs parts of a text, each of that length, from their initial states.
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

    /// Whether a match that begins before this text ends in it. One that begins in it belongs to the next part.
    fn hits_across(&self, mut state: u16, text: &[u8]) -> bool {
        for byte in text {
            // Matches do not cross lines.
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

/// The states that are in the table so far.
struct States {
    places: HashMap<StateID, u16>,
    /// States whose rows are not filled in yet.
    waiting: Vec<(StateID, u16)>,
    /// The row length.
    width: usize,
}

impl States {
    /// The row of a state; `None` if the table is full.
    fn place(&mut self, automaton: &dense::DFA<Vec<u32>>, state: StateID) -> Option<u16> {
        // A quit state counts as a match, which the search then verifies.
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
