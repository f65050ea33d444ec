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

/// A pattern that compiles to more is refused.
const COMPILED_BYTES: usize = 2 << 20;
/// What a search may remember of the states that it has been in.
const CACHE_BYTES: usize = 4 << 20;
/// Steps that a search of one line may take at worst, states times bytes, without a look at the clock: about a second.
const MOST_STEPS: usize = 1 << 29;
/// The same of a search through several lines, which can be cut.
const WINDOW_STEPS: usize = 1 << 26;
/// So much text is searched at once, and the line that goes on behind it.
const WINDOW: usize = 32 << 10;
const LEAST_WINDOW: usize = 1 << 10;
/// After so much text it pays to make an automaton for the rest.
const SCANNED_BEFORE: usize = 128 << 10;
/// In so much of the text, the literals are counted that a match has in it.
const SAMPLED: usize = 16 << 10;
/// Where there is one in fewer bytes than this, looking for them takes longer than a scan.
const FREQUENT: usize = 256;
/// A scan goes no further at once.
const FURTHEST: usize = 64 << 10;
/// A scan over less is not worth it.
const NEAREST: usize = 512;

const TOO_LARGE: &str =
    "the pattern is too large when compiled: use smaller repetitions, or several patterns with -e";

/// How patterns are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// As text, not as regular expressions.
    pub(crate) fixed: bool,
    pub(crate) ignore_case: bool,
    /// Only whole words match.
    pub(crate) words: bool,
    /// Only whole lines match.
    pub(crate) lines: bool,
}

/// One or more patterns, of which one has to match.
pub(crate) struct Pattern {
    /// Finds every line that matches; more than those when there is `exact`.
    rough: Engine,
    /// Whether a line matches. Without it, `rough` says so.
    exact: Option<Engine>,
    /// A line that matches has one of these texts in it, whatever the case of its ASCII letters.
    required: Option<Vec<Vec<u8>>>,
    hir: Hir,
    /// What it compiles to, for what is searched step by step.
    nfa: NFA,
    /// None where no scan is faster than the search, or none could be made.
    scan: OnceCell<Option<Scan>>,
    searched: Cell<usize>,
    /// How many literals a sample has that the search looks for within a match, if it does.
    literals: Option<Cell<usize>>,
    /// How far the next match is supposed to be: as far as the last one was, or further when it is not found there.
    reach: Cell<usize>,
}

impl Pattern {
    /// Compiles patterns, or tells why that cannot be.
    pub(crate) fn new(patterns: &[String], reading: Reading) -> Result<Self, String> {
        let alternatives: Result<Vec<Hir>, String> = patterns
            .iter()
            .flat_map(|pattern| pattern.split('\n'))
            .map(|pattern| parsed(pattern, reading))
            .collect();
        let mut hir = lines::within_lines(&Hir::alternation(alternatives?))?;
        if reading.words {
            hir = Hir::concat(vec![
                Hir::look(Look::WordStartHalfUnicode),
                hir,
                Hir::look(Look::WordEndHalfUnicode),
            ]);
        }
        if reading.lines {
            hir = Hir::concat(vec![Hir::look(Look::StartLF), hir, Hir::look(Look::EndLF)]);
        }
        let required = literals::required(&hir);
        // Among letters that are not ASCII, automata do not see where words begin and end: lines are found without
        // that, and then looked at closely.
        let without = lines::without_words(&hir);
        let exact = if without == hir { None } else { Some(Engine::new(&hir, true)?) };
        let hir = without;
        // Looking for some literals is faster than any automaton, looking for very many is slower.
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
        let (searched, reach) = (Cell::new(0), Cell::new(FURTHEST));
        Ok(Self { rough, exact, required, hir, nfa, scan, searched, literals, reach })
    }

    /// Texts of which a line that matches has one, whatever the case of their ASCII letters.
    pub(crate) fn required(&self) -> Option<&[Vec<u8>]> {
        self.required.as_deref()
    }

    /// A place in the first line that matches. The range begins with a line and ends with one.
    pub(crate) fn hit(&self, text: &[u8], within: Range<usize>) -> Option<usize> {
        let mut from = within.start;
        loop {
            let place = self.rough_hit(text, from..within.end)?;
            let Some(exact) = &self.exact else { return Some(place) };
            let line = line_around(text, place);
            // Of a line that is too long for a close look, the rough one is believed.
            if !self.is_quick(line.len()) || exact.find(text, line.clone()).is_some() {
                return Some(place);
            }
            from = line.end + 1;
            if from >= within.end {
                return None;
            }
        }
    }

    /// A place in a very long line, if it matches. `go_on` is asked now and then.
    pub(crate) fn hit_patiently<E>(
        &self,
        text: &[u8],
        line: Range<usize>,
        go_on: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        patient::hit(&self.nfa, text, line, go_on)
    }

    /// Whether a search through so many bytes cannot take long, whatever they are.
    pub(crate) fn is_quick(&self, length: usize) -> bool {
        self.nfa.states().len().saturating_mul(length) <= MOST_STEPS
    }

    /// How much text to search between two looks at the clock.
    pub(crate) fn window(&self) -> usize {
        (WINDOW_STEPS / self.nfa.states().len().max(1)).clamp(LEAST_WINDOW, WINDOW)
    }

    /// The memory that it takes, without what it remembers of the texts that it meets.
    pub(crate) fn bytes(&self) -> usize {
        let engines = [Some(&self.rough), self.exact.as_ref()];
        let engines: usize = engines.into_iter().flatten().map(|engine| engine.regex.memory_usage()).sum();
        engines.saturating_add(self.nfa.memory_usage())
    }

    /// A place in the first line that matches roughly.
    fn rough_hit(&self, text: &[u8], within: Range<usize>) -> Option<usize> {
        let hit = match self.scan(text.get(within.clone()).unwrap_or_default()) {
            Some(scan) => self
                .scanned(scan, text, within.clone())
                .and_then(|from| self.rough.hit(text, from..within.end)),
            None => self.rough.hit(text, within.clone()),
        };
        let reach = hit.map_or(self.reach.get().max(within.len()), |place| place - within.start);
        self.reach.set(reach.min(FURTHEST));
        hit
    }

    /// What scans a text, where that pays.
    fn scan(&self, text: &[u8]) -> Option<&Scan> {
        let searched = self.searched.get();
        if searched < SCANNED_BEFORE {
            self.searched.set(searched + text.len());
            if let Some(count) = self.literals.as_ref().filter(|_| searched < SAMPLED) {
                let sample = text.get(..SAMPLED).unwrap_or(text);
                count.set(count.get() + literals::count(self.required().unwrap_or_default(), sample));
            }
            return None;
        }
        if self.literals.as_ref().is_some_and(|count| count.get() < SAMPLED / FREQUENT) {
            return None;
        }
        let scan = self.scan.get_or_init(|| Scan::new(&self.hir)).as_ref();
        scan.filter(|_| self.reach.get().min(text.len()) >= NEAREST)
    }

    /// Where to search from: a place before which nothing matches. None if nothing matches at all.
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
            reach = (reach * 2).min(FURTHEST);
        }
        None
    }

    /// The first match in a part of a line.
    pub(crate) fn find(&self, text: &[u8], within: Range<usize>) -> Option<Range<usize>> {
        self.exact.as_ref().unwrap_or(&self.rough).find(text, within)
    }
}

/// Where the line around a place begins, and where its text ends.
fn line_around(text: &[u8], place: usize) -> Range<usize> {
    let (before, after) = text.split_at_checked(place).unwrap_or((text, &[]));
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    start..memchr::memchr(b'\n', after).map_or(text.len(), |at| place + at)
}

/// A regular expression with the memory that it searches with.
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

    /// Some place of the first match.
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

fn parsed(pattern: &str, reading: Reading) -> Result<Hir, String> {
    let text = if reading.fixed { regex_syntax::escape(pattern) } else { re2::translated(pattern)? };
    let mut builder = ParserBuilder::new();
    let mut parser: Parser =
        builder.case_insensitive(reading.ignore_case).multi_line(true).utf8(false).nest_limit(100).build();
    parser.parse(&text).map_err(|error| {
        let why = match &error {
            regex_syntax::Error::Parse(error) => error.kind().to_string(),
            regex_syntax::Error::Translate(error) => error.kind().to_string(),
            _ => "it does not parse".to_owned(),
        };
        format!("the pattern `{pattern}` is not RE2 syntax: {why}. Escape what is meant as a character with \\, or use -F for plain text")
    })
}
