//! Patterns of `grep` and `rg`: RE2 syntax, matched line by line.

mod lines;
mod literals;
mod patient;
mod re2;
mod scan;
#[cfg(test)]
mod tests;

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;

use regex_automata::meta::{Cache, Config, Regex};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::prefilter::Prefilter;
use regex_automata::{Input, MatchKind};
use regex_syntax::hir::{Hir, Look};
use regex_syntax::{Parser, ParserBuilder};
use scan::Scan;

/// The limit of the compiled size of a pattern.
const COMPILED_BYTES: usize = 2 << 20;
/// The limit of the lazy DFA's state cache.
const CACHE_BYTES: usize = 4 << 20;
/// Worst-case steps (states times bytes) of a search through one line without a check of the clock: about a second.
const MAX_STEPS: usize = 1 << 29;
/// The same for a search through several lines, which can be interrupted between windows.
const WINDOW_STEPS: usize = 1 << 26;
/// How much text is searched at once, extended to the end of the line.
const WINDOW: usize = 32 << 10;
const MIN_WINDOW: usize = 1 << 10;
/// After this much text, building a scan automaton for the rest pays off.
const SCAN_THRESHOLD: usize = 128 << 10;
/// The literals of a match are counted in this much of the text.
const SAMPLE_BYTES: usize = 16 << 10;
/// With more than one literal per this many bytes, searching for them is slower than a scan.
const MIN_LITERAL_DISTANCE: usize = 256;
/// The maximum length of one scan.
const MAX_SCAN: usize = 64 << 10;
/// A scan of less text does not pay off.
const MIN_SCAN: usize = 512;

const TOO_LARGE: &str =
    "the pattern is too large when compiled: use smaller repetitions, or several patterns with -e";

/// How patterns are interpreted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Syntax {
    /// As literal text instead of regular expressions.
    pub(crate) fixed: bool,
    pub(crate) ignore_case: bool,
    /// Only whole words match.
    pub(crate) words: bool,
    /// Only whole lines match.
    pub(crate) lines: bool,
}

/// One or more alternative patterns.
pub(crate) struct Pattern {
    /// Finds every matching line; also others if there is `exact`.
    rough: Engine,
    /// Decides whether a line matches; without it, `rough` does.
    exact: Option<Engine>,
    /// Every matching line contains one of these literals, ignoring ASCII case.
    required: Option<Vec<Vec<u8>>>,
    hir: Hir,
    /// The compiled NFA, for step-by-step searches.
    nfa: NFA,
    /// `None` if no scan is faster than the search, or none could be built.
    scan: OnceCell<Option<Scan>>,
    searched: Cell<usize>,
    /// The number of literals in the sample, if the search has a literal prefilter.
    literals: Option<Cell<usize>>,
    /// The expected distance to the next match: that to the last one, doubled on each miss.
    reach: Cell<usize>,
}

impl Pattern {
    /// Compiles patterns, or says why that is impossible.
    pub(crate) fn new(patterns: &[String], syntax: Syntax) -> Result<Self, String> {
        let alternatives: Result<Vec<Hir>, String> = patterns
            .iter()
            .flat_map(|pattern| pattern.split('\n'))
            .map(|pattern| parsed(pattern, syntax))
            .collect();
        let mut hir = lines::within_lines(&Hir::alternation(alternatives?))?;
        if syntax.words {
            hir = Hir::concat(vec![
                Hir::look(Look::WordStartHalfUnicode),
                hir,
                Hir::look(Look::WordEndHalfUnicode),
            ]);
        }
        if syntax.lines {
            hir = Hir::concat(vec![Hir::look(Look::StartLF), hir, Hir::look(Look::EndLF)]);
        }
        let required = literals::required(&hir);
        // DFAs do not support word boundaries on non-ASCII text: candidate lines are found without them, and then
        // verified.
        let without = lines::without_words(&hir);
        let exact = if without == hir { None } else { Some(Engine::new(&hir, true)?) };
        let hir = without;
        // A prefilter for a few literals beats any automaton; one for very many does not.
        let start = Prefilter::from_hir_prefix(MatchKind::LeftmostFirst, &hir);
        let slow_start = start.as_ref().is_some_and(|start| !start.is_fast());
        let scans = slow_start || start.is_none();
        let rough = Engine::new(&hir, !slow_start)?;
        let seeks_within = start.is_none() && required.is_some() && rough.regex.is_accelerated();
        let literals = seeks_within.then(Cell::default);
        let config = thompson::Config::new().utf8(false).which_captures(WhichCaptures::None);
        let config = config.nfa_size_limit(Some(COMPILED_BYTES));
        let compiled = thompson::Compiler::new().configure(config).build_from_hir(&hir);
        let nfa = compiled.map_err(|_| TOO_LARGE.to_owned())?;
        let scan = OnceCell::new();
        if !scans {
            let _: Result<(), Option<Scan>> = scan.set(None);
        }
        let (searched, reach) = (Cell::new(0), Cell::new(MAX_SCAN));
        Ok(Self { rough, exact, required, hir, nfa, scan, searched, literals, reach })
    }

    /// Literals of which every matching line contains one, ignoring ASCII case.
    pub(crate) fn required(&self) -> Option<&[Vec<u8>]> {
        self.required.as_deref()
    }

    /// A position in the first matching line. The range begins and ends at line boundaries.
    pub(crate) fn hit(&self, text: &[u8], within: Range<usize>) -> Option<usize> {
        let mut from = within.start;
        loop {
            let place = self.rough_hit(text, from..within.end)?;
            let Some(exact) = &self.exact else { return Some(place) };
            let line = line_around(text, place);
            // For a line that is too long to verify, the rough result is accepted.
            if !self.is_quick(line.len()) || exact.find(text, line.clone()).is_some() {
                return Some(place);
            }
            from = line.end + 1;
            if from >= within.end {
                return None;
            }
        }
    }

    /// A position in a very long line, if it matches. `go_on` is called regularly.
    pub(crate) fn hit_patiently<E>(
        &self,
        text: &[u8],
        line: Range<usize>,
        go_on: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        patient::hit(&self.nfa, text, line, go_on)
    }

    /// Whether a search through this many bytes is fast in the worst case.
    pub(crate) fn is_quick(&self, length: usize) -> bool {
        self.nfa.states().len().saturating_mul(length) <= MAX_STEPS
    }

    /// How much text to search between two checks of the clock.
    pub(crate) fn window(&self) -> usize {
        (WINDOW_STEPS / self.nfa.states().len().max(1)).clamp(MIN_WINDOW, WINDOW)
    }

    /// The memory of the compiled pattern, without its caches.
    pub(crate) fn bytes(&self) -> usize {
        let engines = [Some(&self.rough), self.exact.as_ref()];
        let engines: usize = engines.into_iter().flatten().map(|engine| engine.regex.memory_usage()).sum();
        engines.saturating_add(self.nfa.memory_usage())
    }

    /// A position in the first candidate line.
    fn rough_hit(&self, text: &[u8], within: Range<usize>) -> Option<usize> {
        let hit = match self.scan(text.get(within.clone()).unwrap_or_default()) {
            Some(scan) => self
                .scanned(scan, text, within.clone())
                .and_then(|from| self.rough.hit(text, from..within.end)),
            None => self.rough.hit(text, within.clone()),
        };
        let reach = hit.map_or(self.reach.get().max(within.len()), |place| place - within.start);
        self.reach.set(reach.min(MAX_SCAN));
        hit
    }

    /// The scan automaton, where it pays off.
    fn scan(&self, text: &[u8]) -> Option<&Scan> {
        let searched = self.searched.get();
        if searched < SCAN_THRESHOLD {
            self.searched.set(searched + text.len());
            if let Some(count) = self.literals.as_ref().filter(|_| searched < SAMPLE_BYTES) {
                let sample = text.get(..SAMPLE_BYTES).unwrap_or(text);
                count.set(count.get() + literals::count(self.required().unwrap_or_default(), sample));
            }
            return None;
        }
        if self.literals.as_ref().is_some_and(|count| count.get() < SAMPLE_BYTES / MIN_LITERAL_DISTANCE) {
            return None;
        }
        let scan = self.scan.get_or_init(|| Scan::new(&self.hir)).as_ref();
        scan.filter(|_| self.reach.get().min(text.len()) >= MIN_SCAN)
    }

    /// The position to search from: nothing matches before it. `None` if nothing matches at all.
    fn scanned(&self, scan: &Scan, text: &[u8], within: Range<usize>) -> Option<usize> {
        let mut from = within.start;
        let mut reach = self.reach.get();
        while from < within.end {
            let near = text.get(from..within.end).unwrap_or_default();
            let next = memchr::memchr(b'\n', near.get(reach..).unwrap_or_default());
            let near = next.and_then(|line| near.get(..=reach + line)).unwrap_or(near);
            if let Some(first) = scan.first(near) {
                return Some(from + first);
            }
            from += near.len();
            reach = (reach * 2).min(MAX_SCAN);
        }
        None
    }

    /// The first match in a part of a line.
    pub(crate) fn find(&self, text: &[u8], within: Range<usize>) -> Option<Range<usize>> {
        self.exact.as_ref().unwrap_or(&self.rough).find(text, within)
    }
}

/// The range of the line around a position, without its terminator.
fn line_around(text: &[u8], place: usize) -> Range<usize> {
    let (before, after) = text.split_at_checked(place).unwrap_or((text, &[]));
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    start..memchr::memchr(b'\n', after).map_or(text.len(), |at| place + at)
}

/// A regular expression with its search cache.
struct Engine {
    regex: Regex,
    cache: RefCell<Cache>,
}

impl Engine {
    fn new(hir: &Hir, looks_for_literals: bool) -> Result<Self, String> {
        let config = Config::new()
            .auto_prefilter(looks_for_literals)
            .match_kind(MatchKind::LeftmostFirst)
            .utf8_empty(false)
            .which_captures(WhichCaptures::Implicit)
            .nfa_size_limit(Some(COMPILED_BYTES))
            .hybrid_cache_capacity(CACHE_BYTES);
        let built = Regex::builder().configure(config).build_from_hir(hir);
        let regex = built.map_err(|_| TOO_LARGE.to_owned())?;
        let cache = RefCell::new(regex.create_cache());
        Ok(Self { regex, cache })
    }

    /// Some position in the first match.
    fn hit(&self, text: &[u8], within: Range<usize>) -> Option<usize> {
        let input = Input::new(text).span(within).earliest(true);
        let found = self.regex.search_half_with(&mut self.cache.borrow_mut(), &input);
        found.map(|found| found.offset())
    }

    fn find(&self, text: &[u8], within: Range<usize>) -> Option<Range<usize>> {
        let input = Input::new(text).span(within);
        let found = self.regex.search_with(&mut self.cache.borrow_mut(), &input);
        found.map(|found| found.range())
    }
}

fn parsed(pattern: &str, syntax: Syntax) -> Result<Hir, String> {
    let text = if syntax.fixed { regex_syntax::escape(pattern) } else { re2::translated(pattern)? };
    let mut builder = ParserBuilder::new();
    let mut parser: Parser =
        builder.case_insensitive(syntax.ignore_case).multi_line(true).utf8(false).nest_limit(100).build();
    parser.parse(&text).map_err(|error| {
        let why = match &error {
            regex_syntax::Error::Parse(error) => error.kind().to_string(),
            regex_syntax::Error::Translate(error) => error.kind().to_string(),
            _ => "it does not parse".to_owned(),
        };
        format!("the pattern `{pattern}` is not RE2 syntax: {why}. Escape what is meant as a character with \\, or use -F for plain text")
    })
}
