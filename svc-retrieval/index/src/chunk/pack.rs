//! Turns a section into chunks: splits long sections at the least disruptive places.

use std::ops::Range;

use super::lines::Lines;
use super::outline::Section;
use super::{Chunk, MAX_BLOCK_WORDS, MAX_BYTES, MAX_WORDS};

/// Appends the chunks of a section.
pub(super) fn pack(lines: &Lines<'_>, section: &Section, chunks: &mut Vec<Chunk>) {
    let range = section.range.clone();
    if fits(lines, range.clone(), MAX_WORDS) {
        push_chunk(lines, range, &section.path, chunks);
        return;
    }
    let words = lines.words(range.clone());
    // Parts of even size: filling each up to the limit would leave a short rest at the end.
    let target = words / words.div_ceil(MAX_WORDS).max(1);
    let mut open: Option<Range<usize>> = None;
    for block in blocks(lines, range) {
        open = Some(match open {
            Some(part)
                if lines.words(part.clone()) < target && fits(lines, part.start..block.end, MAX_WORDS) =>
            {
                part.start..block.end
            }
            Some(part) => {
                push_chunk(lines, part, &section.path, chunks);
                block
            }
            None => block,
        });
    }
    if let Some(part) = open {
        push_chunk(lines, part, &section.path, chunks);
    }
}

fn fits(lines: &Lines<'_>, range: Range<usize>, max_words: usize) -> bool {
    lines.words(range.clone()) <= max_words && lines.text(range).len() <= MAX_BYTES
}

/// The smallest parts that a range may be split into: paragraphs, or for long ones their blocks or lines.
fn blocks(lines: &Lines<'_>, range: Range<usize>) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let is_gap = |line| lines.is_blank(line) && !lines.is_glued(line);
    for paragraph in runs(range, |line| is_gap(line) || is_gap(line - 1)) {
        if lines.words(paragraph.clone()) == 0 {
            continue;
        }
        if fits(lines, paragraph.clone(), MAX_BLOCK_WORDS) {
            blocks.push(paragraph);
            continue;
        }
        for block in runs(paragraph, |line| !lines.is_glued(line)) {
            if fits(lines, block.clone(), MAX_BLOCK_WORDS) {
                blocks.push(block);
            } else {
                blocks.extend(runs(block, |_| true));
            }
        }
    }
    blocks
}

/// Splits a range before each line that starts a run; `starts_run` is not called for the first line.
fn runs(range: Range<usize>, starts_run: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut start = range.start;
    for line in range.clone().skip(1) {
        if starts_run(line) {
            runs.push(start..line);
            start = line;
        }
    }
    if start < range.end {
        runs.push(start..range.end);
    }
    runs
}

fn push_chunk(lines: &Lines<'_>, range: Range<usize>, path: &[String], chunks: &mut Vec<Chunk>) {
    let range = lines.trim(range);
    let text = lines.text(range.clone());
    let pieces = pieces(text);
    let is_whole = pieces == [text];
    let table_header = lines.header_of(range.start);
    for piece in pieces {
        chunks.push(Chunk {
            text: piece.to_owned(),
            heading_path: path.to_vec(),
            table_header: table_header.to_owned(),
            start_line: line_number(range.start + 1),
            end_line: line_number(range.end),
            gap: is_whole.then(String::new),
        });
    }
}

fn line_number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

/// Splits a text that exceeds the limit, which is a giant line, after whitespace if there is any in the second half of a piece.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > MAX_BYTES {
        let (window, _) = rest.split_at(rest.floor_char_boundary(MAX_BYTES));
        let blank = window.char_indices().rev().find(|(_, character)| character.is_whitespace());
        let cut = match blank {
            Some((offset, character)) if offset > MAX_BYTES / 2 => offset + character.len_utf8(),
            _ => window.len(),
        };
        let (piece, following) = rest.split_at(cut);
        pieces.push(piece);
        rest = following;
    }
    pieces.push(rest);
    pieces.retain(|piece| !piece.trim().is_empty());
    pieces
}
