//! The output of a script, limited in size.

use std::collections::HashMap;

use crate::Read;
use crate::block::Block;
use crate::context::{Halt, Stop};
use crate::tree::Node;

/// Collects all output and all error messages.
pub(crate) struct Sink {
    held: Block,
    limit: usize,
    full: bool,
}

/// The result of a script.
pub(crate) struct Written {
    pub(crate) output: String,
    pub(crate) truncated: bool,
    pub(crate) reads: Vec<Read>,
}

impl Sink {
    pub(crate) fn new(limit: usize) -> Self {
        Self { held: Block::default(), limit, full: false }
    }

    pub(crate) fn take(&mut self, block: &Block) -> Result<(), Halt> {
        let room = self.limit.saturating_sub(self.held.len());
        // One byte more than fits is enough to detect the overflow.
        self.held.carry(&block.as_chunk(), 0..block.len().min(room + 1));
        self.measure()
    }

    pub(crate) fn complain(&mut self, text: &str) -> Result<(), Halt> {
        self.held.text(text.as_bytes());
        self.measure()
    }

    fn measure(&mut self) -> Result<(), Halt> {
        if self.held.len() > self.limit {
            self.full = true;
            return Err(Halt::Stop(Stop::Output));
        }
        Ok(())
    }

    /// Finishes the output, with a last message if there is one.
    pub(crate) fn finish(mut self, farewell: Option<String>) -> Written {
        let truncated = self.full || self.held.len() + farewell.as_ref().map_or(0, String::len) > self.limit;
        let mut last_words = farewell.unwrap_or_default();
        if truncated {
            let notice = self.notice();
            // The notice of truncation is the last line; the message of an early stop precedes it, if both fit.
            last_words.push_str(&notice);
            if last_words.len() > self.limit {
                last_words = notice;
            }
            self.cut(self.limit.saturating_sub(last_words.len()));
        }
        if !last_words.is_empty() && !self.held.is_empty() && !self.held.bytes.ends_with(b"\n") {
            self.held.text(b"\n");
        }
        let reads = reads(&self.held);
        self.held.text(last_words.as_bytes());
        Written { output: in_utf8(self.held.bytes), truncated, reads }
    }

    fn notice(&self) -> String {
        format!(
            "shell: output cut here, at its limit of {} bytes. To see the rest: narrow the command, count with `wc -l`, \
             or page with `tail -n +N FILE | head -n M`.\n",
            self.limit
        )
    }

    /// Truncates to at most this many bytes, at the end of a line. If the last line alone takes more than half of them,
    /// it is cut inside.
    fn cut(&mut self, most: usize) {
        let text = self.held.bytes.get(..most).unwrap_or(&self.held.bytes);
        let at_line = memchr::memrchr(b'\n', text).map_or(0, |at| at + 1);
        if at_line >= most / 2 {
            self.held.truncate(at_line);
            return;
        }
        // One byte is reserved for the line terminator that is added.
        let mut at = text.len().saturating_sub(1);
        while at > 0 && text.get(at).is_some_and(|byte| (*byte & 0xC0) == 0x80) {
            at -= 1;
        }
        self.held.truncate(at);
    }
}

/// The origins of a text, files in the order of their first appearance.
fn reads(text: &Block) -> Vec<Read> {
    let mut order: Vec<(Node, Vec<(u64, u64)>)> = Vec::new();
    let mut places: HashMap<Node, usize> = HashMap::new();
    for span in &text.spans {
        let place = *places.entry(span.node).or_insert_with(|| {
            order.push((span.node, Vec::new()));
            order.len() - 1
        });
        if let Some((_, lines)) = order.get_mut(place) {
            lines.push((span.first, span.last));
        }
    }
    order.into_iter().map(|(node, lines)| Read { node, lines: merged(lines) }).collect()
}

fn merged(mut lines: Vec<(u64, u64)>) -> Vec<std::ops::RangeInclusive<u64>> {
    lines.sort_unstable();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (first, last) in lines {
        match ranges.last_mut() {
            Some(previous) if first <= previous.1 + 1 => previous.1 = previous.1.max(last),
            _ => ranges.push((first, last)),
        }
    }
    ranges.into_iter().map(|(first, last)| first..=last).collect()
}

/// The text, with a `?` for each byte of an incomplete character, which a cut by bytes can leave.
fn in_utf8(mut bytes: Vec<u8>) -> String {
    let mut start = 0;
    while let Some(Err(error)) = bytes.get(start..).map(std::str::from_utf8) {
        let from = start + error.valid_up_to();
        let to = error.error_len().map_or(bytes.len(), |length| from + length);
        if let Some(wrong) = bytes.get_mut(from..to) {
            wrong.fill(b'?');
        }
        start = to;
    }
    String::from_utf8(bytes).unwrap_or_default()
}
