//! Finds matches in a text and prints them.

use std::ops::Range;

use super::options::{Dialect, Options, Show};
use crate::block::{Chunk, newlines};
use crate::context::{Context, Halt};
use crate::out::Out;
use crate::pattern::Pattern;

/// A search through a sequence of inputs.
pub(super) struct Search {
    name: String,
    named: bool,
    /// Selected lines of the current input.
    selected: u64,
    /// Lines of earlier chunks of the current input.
    lines_before: u64,
    /// How much of the current chunk is counted in `lines_before`.
    counted: usize,
    /// Context lines that are still to be shown after the last selected one.
    trailing: usize,
    /// The end of what was shown of the current chunk.
    shown: usize,
    /// Whether any line was shown, so that a gap needs a separator.
    shown_any: bool,
    is_binary: bool,
    /// Whether the current chunk contains a NUL; determined when a line of it is to be shown.
    has_nul: Option<bool>,
    /// Whether any input had a selected line.
    found: bool,
    with_context: bool,
}

impl Search {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            name: String::new(),
            named: false,
            selected: 0,
            lines_before: 0,
            counted: 0,
            trailing: 0,
            shown: 0,
            shown_any: false,
            is_binary: false,
            has_nul: None,
            found: false,
            with_context: options.show == Show::Lines && (options.before > 0 || options.after > 0),
        }
    }

    pub(super) fn open(&mut self, name: &str, named: bool) {
        name.clone_into(&mut self.name);
        self.named = named;
        self.selected = 0;
        self.lines_before = 0;
        self.trailing = 0;
        self.is_binary = false;
    }

    /// Whether the rest of the current input cannot change the result.
    pub(super) fn has_enough(&self, options: &Options) -> bool {
        let one_is_enough = matches!(options.show, Show::Files { .. } | Show::Nothing) || self.is_binary;
        options.most.is_some_and(|most| self.selected >= most) || (one_is_enough && self.selected > 0)
    }

    /// Whether no further input can change the result.
    pub(super) fn is_over(&self, options: &Options) -> bool {
        options.show == Show::Nothing && self.found
    }

    pub(super) fn found(&self) -> bool {
        self.found
    }

    /// Reads a chunk of the current input.
    pub(super) fn read(
        &mut self,
        ctx: &Context<'_>,
        pattern: &Pattern,
        options: &Options,
        chunk: &Chunk<'_>,
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        self.counted = 0;
        self.shown = 0;
        self.has_nul = None;
        let mut lines = SelectedLines { ctx, pattern, chunk, invert: options.invert, next: 0, hit: None };
        while !self.has_enough(options) {
            let Some(line) = lines.next()? else { break };
            self.select(ctx, pattern, options, chunk, line, out)?;
        }
        self.show_trailing(options, chunk, chunk.bytes.len(), out)?;
        if options.numbers && !chunk.is_whole() {
            let rest = chunk.bytes.get(self.counted..).unwrap_or_default();
            self.lines_before += newlines(rest);
        }
        Ok(())
    }

    /// Ends the current input: prints counts and names.
    pub(super) fn close(&mut self, options: &Options, out: &mut Out<'_>) -> Result<(), Halt> {
        match options.show {
            Show::Counts => {
                if self.selected > 0 || options.dialect == Dialect::Grep {
                    if self.named {
                        out.text(format!("{}:", self.name));
                    }
                    out.text(format!("{}\n", self.selected));
                }
            }
            Show::Files { matching } => {
                if (self.selected > 0) == matching {
                    out.text(format!("{}\n", self.name));
                }
            }
            Show::Lines | Show::Matches | Show::Nothing => {}
        }
        out.flow()
    }

    fn select(
        &mut self,
        ctx: &Context<'_>,
        pattern: &Pattern,
        options: &Options,
        chunk: &Chunk<'_>,
        line: Range<usize>,
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        self.selected += 1;
        self.found = true;
        if !matches!(options.show, Show::Lines | Show::Matches) {
            return Ok(());
        }
        let has_nul = || memchr::memchr(0, chunk.bytes).is_some();
        if !options.binary_is_text && *self.has_nul.get_or_insert_with(has_nul) {
            return self.meet_binary(options, out);
        }
        if options.show == Show::Matches {
            return self.show_matches(ctx, pattern, options, chunk, line, out);
        }
        if self.with_context {
            self.show_trailing(options, chunk, line.start, out)?;
            self.show_leading(options, chunk, line.start, out)?;
        }
        self.show_line(options, chunk, line, b':', out)?;
        self.trailing = options.after;
        Ok(())
    }

    fn meet_binary(&mut self, options: &Options, out: &mut Out<'_>) -> Result<(), Halt> {
        self.is_binary = true;
        if options.skips_binary {
            self.found = false;
            return Ok(());
        }
        out.text(match options.dialect {
            Dialect::Grep => format!("grep: {}: binary file matches\n", self.name),
            Dialect::Rg if self.named => format!("{}: binary file matches (found \"\\0\" byte)\n", self.name),
            Dialect::Rg => "binary file matches (found \"\\0\" byte)\n".to_owned(),
        });
        out.flow()
    }

    fn prefix(&mut self, options: &Options, chunk: &Chunk<'_>, line: usize, mark: u8, out: &mut Out<'_>) {
        if self.named {
            out.text(&self.name);
            out.text([mark]);
        }
        if options.numbers {
            let passed = chunk.bytes.get(self.counted..line).unwrap_or_default();
            self.lines_before += newlines(passed);
            self.counted = self.counted.max(line);
            out.text((self.lines_before + 1).to_string());
            out.text([mark]);
        }
    }

    fn show_line(
        &mut self,
        options: &Options,
        chunk: &Chunk<'_>,
        line: Range<usize>,
        mark: u8,
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        self.prefix(options, chunk, line.start, mark, out);
        let ended = chunk.bytes.get(..line.end).is_some_and(|text| text.ends_with(b"\n"));
        self.shown = line.end;
        self.shown_any = true;
        out.carry(chunk, line)?;
        if !ended {
            out.text("\n");
        }
        out.flow()
    }

    fn show_matches(
        &mut self,
        ctx: &Context<'_>,
        pattern: &Pattern,
        options: &Options,
        chunk: &Chunk<'_>,
        line: Range<usize>,
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        if options.invert {
            return Ok(());
        }
        let end = line.start + chunk.line(line.clone()).len();
        if !pattern.is_quick(end - line.start) {
            let name = options.dialect.name();
            return out.complain(&format!(
                "{name}: {}: a line is too long for -o with so large a pattern",
                self.name
            ));
        }
        let mut from = line.start;
        while from <= end {
            // Finding the end of a match may examine the rest of the line.
            ctx.meter.charge_bytes(1 + end - from)?;
            let Some(found) = pattern.find(chunk.bytes, from..end) else { break };
            if found.is_empty() {
                from = found.end + 1;
                continue;
            }
            from = found.end;
            self.prefix(options, chunk, line.start, b':', out);
            out.carry(chunk, found)?;
            out.text("\n");
            out.flow()?;
        }
        Ok(())
    }

    /// Shows the pending context lines after the last selected one, up to a position.
    fn show_trailing(
        &mut self,
        options: &Options,
        chunk: &Chunk<'_>,
        until: usize,
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        while self.trailing > 0 && self.shown < until {
            let line = line_at(chunk.bytes, self.shown);
            self.show_line(options, chunk, line, b'-', out)?;
            self.trailing -= 1;
        }
        Ok(())
    }

    /// Shows the context lines before a selected one, after a separator if lines were skipped.
    fn show_leading(
        &mut self,
        options: &Options,
        chunk: &Chunk<'_>,
        line: usize,
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        let mut start = line;
        for _ in 0..options.before {
            if start <= self.shown {
                break;
            }
            let before = chunk.bytes.get(..start - 1).unwrap_or_default();
            start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        }
        let start = start.max(self.shown);
        if self.shown_any && (start > self.shown || self.shown == 0) {
            out.text("--\n");
        }
        self.shown = start;
        while self.shown < line {
            let before = line_at(chunk.bytes, self.shown);
            self.show_line(options, chunk, before, b'-', out)?;
        }
        Ok(())
    }
}

/// The start of the line at a position.
fn line_start(text: &[u8], place: usize) -> usize {
    memchr::memrchr(b'\n', text.get(..place).unwrap_or_default()).map_or(0, |at| at + 1)
}

/// The line that begins here, with its terminator.
fn line_at(text: &[u8], start: usize) -> Range<usize> {
    let rest = text.get(start..).unwrap_or_default();
    start..memchr::memchr(b'\n', rest).map_or(text.len(), |at| start + at + 1)
}

/// Iterates over the selected lines of a chunk: those that match, or with `invert` those that do not.
struct SelectedLines<'a> {
    ctx: &'a Context<'a>,
    pattern: &'a Pattern,
    chunk: &'a Chunk<'a>,
    invert: bool,
    /// The start of the first line that has not been examined.
    next: usize,
    /// With `invert`: the next matching line, which may be past the end.
    hit: Option<Range<usize>>,
}

impl SelectedLines<'_> {
    fn next(&mut self) -> Result<Option<Range<usize>>, Halt> {
        if !self.invert {
            let found = self.find()?;
            self.next = found.as_ref().map_or(self.chunk.bytes.len(), |line| line.end);
            return Ok(found);
        }
        let length = self.chunk.bytes.len();
        loop {
            if self.next >= length {
                return Ok(None);
            }
            let hit = match &self.hit {
                Some(hit) if hit.start >= self.next => hit.clone(),
                _ => {
                    let found = self.find()?.unwrap_or(length..length);
                    self.hit = Some(found.clone());
                    found
                }
            };
            if hit.start == self.next {
                self.next = hit.end;
                continue;
            }
            let line = line_at(self.chunk.bytes, self.next);
            self.next = line.end;
            return Ok(Some(line));
        }
    }

    /// The first matching line, from `next` on.
    fn find(&self) -> Result<Option<Range<usize>>, Halt> {
        let text = self.chunk.bytes;
        let mut from = self.next;
        while from < text.len() {
            let mut to = text.len();
            let window = self.pattern.window();
            if to - from > window {
                self.ctx.check()?;
                to = line_at(text, from + window).end;
            }
            let hit = if self.pattern.is_quick(to - from) {
                self.pattern.hit(text, from..to)
            } else {
                // It ends within a very long line.
                let long = line_start(text, to - 1).max(from);
                match self.pattern.hit(text, from..long) {
                    Some(hit) => Some(hit),
                    None => self.pattern.hit_patiently(text, long..to, || self.ctx.check())?,
                }
            };
            if let Some(place) = hit {
                let start = line_start(text, place);
                // There is no line after the last terminator.
                return Ok((start < text.len()).then(|| line_at(text, start)));
            }
            from = to;
        }
        Ok(None)
    }
}
