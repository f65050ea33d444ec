//! An interruptible search through a very long line.

use std::ops::Range;

use regex_automata::hybrid::dfa::{Config, DFA};
use regex_automata::nfa::thompson::NFA;
use regex_automata::{Input, MatchKind};

/// The limit of the lazy DFA's state cache.
const CACHE_BYTES: usize = 4 << 20;
/// Steps between two checks of the clock.
const STEPS: usize = 1024;

/// A position in a matching line. `go_on` is called regularly.
pub(super) fn hit<E>(
    nfa: &NFA,
    text: &[u8],
    within: Range<usize>,
    mut go_on: impl FnMut() -> Result<(), E>,
) -> Result<Option<usize>, E> {
    let config = Config::new()
        .match_kind(MatchKind::LeftmostFirst)
        .cache_capacity(CACHE_BYTES)
        .skip_cache_capacity_check(true)
        .unicode_word_boundary(true);
    let Ok(automaton) = DFA::builder().configure(config).build_from_nfa(nfa.clone()) else { return Ok(None) };
    let mut cache = automaton.create_cache();
    let input = Input::new(text).span(within.clone());
    let Ok(mut state) = automaton.start_state_forward(&mut cache, &input) else { return Ok(None) };
    let line = text.get(within.clone()).unwrap_or_default();
    for (step, byte) in line.iter().enumerate() {
        if step % STEPS == 0 {
            go_on()?;
        }
        let Ok(next) = automaton.next_state(&mut cache, state, *byte) else { return Ok(None) };
        if next.is_match() {
            return Ok(Some(within.start + step));
        }
        if next.is_dead() || next.is_quit() {
            return Ok(None);
        }
        state = next;
    }
    // After the line terminator, only the next line could match.
    if line.ends_with(b"\n") {
        return Ok(None);
    }
    let end = automaton.next_eoi_state(&mut cache, state);
    Ok(end.is_ok_and(|end| end.is_match()).then_some(within.end))
}
