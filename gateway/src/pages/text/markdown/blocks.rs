//! The blocks of a text, each with its lines; cited ones are highlighted.

use std::fmt::Write as _;
use std::ops::Range;

use pulldown_cmark::{Alignment, BlockQuoteKind};

use super::super::code;
use super::super::front_matter::FrontMatter;
use super::super::links::anchor;
use super::super::{Lines, escape};
use super::{Depth, Heading, MAX_DEPTH, Writer, alert};

/// A heading whose text is being written.
#[derive(Debug)]
pub(super) struct OpenHeading {
    /// The offset of its text in the output.
    at: usize,
    level: u8,
    range: Range<usize>,
    pub(super) text: String,
}

/// A code block being read.
#[derive(Debug)]
pub(super) struct Code {
    language: String,
    range: Range<usize>,
    pub(super) text: String,
}

impl Code {
    pub(super) const fn new(language: String, range: Range<usize>) -> Self {
        Self { language, range, text: String::new() }
    }
}

/// A table being written.
#[derive(Debug)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    column: usize,
    is_head: bool,
}

impl Table {
    pub(super) const fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, column: 0, is_head: true }
    }
}

impl Writer<'_> {
    /// The start tag of a block.
    pub(super) fn block(&mut self, tag: &str, range: Range<usize>, attributes: &str) {
        let lines = self.places.lines(&range);
        let _ = write!(self.out, "<{tag}{attributes} data-l=\"{lines}\"");
        let place = self.mark(lines);
        if let Some(line) = place {
            let _ = write!(self.out, " id=\"L{line}\"");
        }
        self.out.push('>');
    }

    /// Marks a cited block; returns the line to scroll to if it is the first.
    fn mark(&mut self, lines: Lines) -> Option<usize> {
        let cited = self.style.cited.filter(|cited| cited.meet(lines))?;
        self.out.push_str(" data-cited aria-current=\"true\"");
        let is_first = !std::mem::replace(&mut self.is_marked, true);
        is_first.then_some(cited.first)
    }

    pub(super) fn open_block(
        &mut self,
        tag: &str,
        range: Range<usize>,
        attributes: &str,
        close: &'static str,
    ) {
        self.block(tag, range, attributes);
        self.push(close, Depth::None);
    }

    pub(super) fn open_quote(&mut self, kind: Option<BlockQuoteKind>, range: Range<usize>) {
        if self.blocks >= MAX_DEPTH {
            return self.push("", Depth::None);
        }
        let lines = self.places.lines(&range);
        match kind.map(alert) {
            None => {
                let _ = writeln!(self.out, "<blockquote data-l=\"{lines}\">");
                self.push("</blockquote>\n", Depth::Block);
            }
            Some((class, name)) => {
                let _ = writeln!(
                    self.out,
                    "<div class=\"alert {class}\" data-l=\"{lines}\"><p><b>{name}</b></p>"
                );
                self.push("</div>\n", Depth::Block);
            }
        }
    }

    pub(super) fn open_list(&mut self, start: Option<u64>) {
        if self.blocks >= MAX_DEPTH {
            return self.push("", Depth::None);
        }
        match start {
            None => {
                self.out.push_str("<ul>\n");
                self.push("</ul>\n", Depth::Block);
            }
            Some(start) => {
                match start {
                    1 => self.out.push_str("<ol>\n"),
                    // Browsers count in 32 bits.
                    start => {
                        let _ = writeln!(self.out, "<ol start=\"{}\">", start.min(1_000_000_000));
                    }
                }
                self.push("</ol>\n", Depth::Block);
            }
        }
    }

    pub(super) fn open_item(&mut self, range: Range<usize>) {
        let own_end = self.own_ends.get(self.items).copied().unwrap_or(range.end);
        self.items += 1;
        let is_in_list = self.open.last().is_some_and(|open| matches!(open.close, "</ul>\n" | "</ol>\n"));
        if !is_in_list {
            return self.push("", Depth::None);
        }
        self.block("li", range.start..own_end.max(range.start + 1), "");
        self.push("</li>\n", Depth::None);
    }

    pub(super) fn open_row(&mut self, range: Range<usize>) {
        if let Some(table) = &mut self.table {
            table.column = 0;
            table.is_head = false;
        }
        self.open_block("tr", range, "", "</tr>\n");
    }

    pub(super) fn open_cell(&mut self) {
        let Some(table) = &mut self.table else { return self.push("", Depth::None) };
        let alignment = table.alignments.get(table.column).copied().unwrap_or(Alignment::None);
        table.column += 1;
        let class = match alignment {
            Alignment::None => "",
            Alignment::Left => " class=\"left\"",
            Alignment::Center => " class=\"center\"",
            Alignment::Right => " class=\"right\"",
        };
        let (tag, scope, close) =
            if table.is_head { ("th", " scope=\"col\"", "</th>") } else { ("td", "", "</td>") };
        let _ = write!(self.out, "<{tag}{scope}{class}>");
        self.push(close, Depth::None);
    }

    pub(super) fn open_heading(&mut self, level: u8, range: Range<usize>) {
        // Heading levels are contiguous, as screen readers navigate by them.
        let level = (level + self.style.top_level - 1).min(self.last_level + 1).min(6);
        self.last_level = level;
        self.heading = Some(OpenHeading { at: self.out.len(), level, range, text: String::new() });
        self.push("", Depth::None);
    }

    pub(super) fn close_heading(&mut self) {
        let Some(heading) = self.heading.take() else { return };
        let inner = self.out.split_off(heading.at);
        let lines = self.places.lines(&heading.range);
        let text = heading.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let id = self.fresh_id(format!("{}{}", self.style.ids, anchor(&text)));
        let level = heading.level;
        let _ = write!(self.out, "<h{level} id=\"{id}\" data-l=\"{lines}\"");
        let place = self.mark(lines);
        self.out.push('>');
        if let Some(line) = place {
            let _ = write!(self.out, "<span id=\"L{line}\"></span>");
        }
        self.out.push_str(&inner);
        let _ = writeln!(self.out, "</h{level}>");
        self.outline.push(Heading { level, text, id });
    }

    /// An unused id.
    fn fresh_id(&mut self, id: String) -> String {
        let count = self.ids.entry(id.clone()).or_default();
        *count += 1;
        match *count {
            1 => id,
            // No heading text yields an id with a dot.
            count => format!("{id}.{count}"),
        }
    }

    pub(super) fn write_code(&mut self) {
        let Some(block) = self.code.take() else { return };
        self.block("pre", block.range, " tabindex=\"0\"");
        self.out.push_str("<code>");
        code::write(&mut self.out, &block.language, &block.text);
        self.out.push_str("</code></pre>\n");
    }

    pub(super) fn front_matter(&mut self, front: &FrontMatter<'_>) {
        let last = self.style.first_line - 1;
        let lines = Lines { first: last + 1 - front.lines, last };
        let _ = write!(self.out, "<table class=\"front\" data-l=\"{lines}\"");
        if let Some(line) = self.mark(lines) {
            let _ = write!(self.out, " id=\"L{line}\"");
        }
        self.out.push_str("><tbody>\n");
        for (name, value) in &front.entries {
            self.out.push_str("<tr><th scope=\"row\">");
            escape(&mut self.out, name);
            self.out.push_str("</th><td>");
            escape(&mut self.out, value);
            self.out.push_str("</td></tr>\n");
        }
        self.out.push_str("</tbody></table>\n");
    }

    /// The number of a footnote.
    fn footnote(&mut self, label: &str) -> usize {
        let next = self.footnotes.len() + 1;
        *self.footnotes.entry(label.to_owned()).or_insert(next)
    }

    pub(super) fn refer(&mut self, label: &str) {
        let (number, ids) = (self.footnote(label), self.style.ids);
        if self.links > 0 {
            let _ = write!(self.out, "<sup>{number}</sup>");
            return;
        }
        let id =
            if self.referred.insert(number) { format!(" id=\"{ids}fnref-{number}\"") } else { String::new() };
        let _ = write!(
            self.out,
            "<sup><a href=\"#{ids}fn-{number}\"{id} aria-label=\"Footnote {number}\">{number}</a></sup>"
        );
    }

    pub(super) fn define(&mut self, label: &str) {
        let (number, ids) = (self.footnote(label), self.style.ids);
        if !self.defined.insert(number) || self.blocks >= MAX_DEPTH {
            return self.push("", Depth::None);
        }
        let _ = write!(self.out, "<div class=\"footnote\" id=\"{ids}fn-{number}\"><sup>{number}</sup>");
        if self.referred.contains(&number) {
            let _ = write!(
                self.out,
                " <a href=\"#{ids}fnref-{number}\" aria-label=\"Back to footnote {number}\">↩</a>"
            );
        }
        self.out.push('\n');
        self.push("</div>\n", Depth::Block);
    }
}
