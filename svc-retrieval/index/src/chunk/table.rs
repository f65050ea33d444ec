//! Delimited tables (CSV, TSV): a row may span several lines and is never split.

use std::ops::Range;

use csv::{ByteRecord, Position, ReaderBuilder, Terminator};

use super::lines::Lines;

/// The supported delimiters; the first one wins a tie.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Keeps the lines of each row together, and adds the table with its first row as the header. A file with one column is no table.
pub(super) fn scan(lines: &mut Lines<'_>) {
    let rows = rows(lines);
    let Some(header) = rows.first().filter(|header| header.values > 1) else { return };
    let (start, length) = (header.lines.start, header.lines.len());
    for row in rows {
        lines.glue(row.lines);
    }
    lines.add_table(start..lines.all().end, length);
}

struct Row {
    /// Without blank lines before and after it.
    lines: Range<usize>,
    values: usize,
}

fn rows(lines: &Lines<'_>) -> Vec<Row> {
    let content = lines.content();
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter(content))
        // The same line break as in `Lines`; a `\r` may precede it.
        .terminator(Terminator::Any(b'\n'))
        .from_reader(content.as_bytes());
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut record = ByteRecord::new();
    // The reader accepts any text, so errors do not occur.
    while reader.read_byte_record(&mut record).unwrap_or(false) {
        let offset = record.position().map_or(0, Position::byte);
        let first = lines.at_offset(usize::try_from(offset).unwrap_or(usize::MAX));
        found.push((first, record.len()));
    }
    let ends = found.iter().skip(1).map(|(next, _)| *next).chain([lines.all().end]);
    let rows = found.iter().zip(ends);
    let rows = rows.map(|((first, values), end)| Row { lines: lines.trim(*first..end), values: *values });
    rows.filter(|row| !row.lines.is_empty()).collect()
}

/// The most frequent delimiter of the first row, outside of quotes.
fn delimiter(content: &str) -> u8 {
    let mut is_quoted = false;
    let mut counts = DELIMITERS.map(|delimiter| (delimiter, 0_usize));
    for byte in content.trim_start().bytes() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' if !is_quoted => break,
            _ if !is_quoted => {
                for (delimiter, count) in &mut counts {
                    *count += usize::from(*delimiter == byte);
                }
            }
            _ => {}
        }
    }
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(delimiter, _)| delimiter)
}

#[cfg(test)]
mod tests {
    use crate::chunk::{Chunk, Format, split};

    const ROWS: usize = 200;

    /// Checks the header and the line ranges of all chunks of a table.
    #[track_caller]
    fn check(content: &str, header: &str) -> Vec<Chunk> {
        let chunks = split(Format::Table, content);
        assert!(chunks.len() >= 4, "{} passages", chunks.len());
        let lines: Vec<&str> = content.split('\n').collect();
        for (place, chunk) in chunks.iter().enumerate() {
            assert_eq!(chunk.table_header, if place == 0 { "" } else { header }, "{}", chunk.text);
            let own = lines[chunk.start_line as usize - 1..chunk.end_line as usize].join("\n");
            assert_eq!(chunk.text, own.trim_end_matches('\r'));
            assert!(chunk.heading_path.is_empty());
        }
        chunks
    }

    fn rows(row: impl Fn(usize) -> String) -> String {
        (0..ROWS).map(row).collect()
    }

    #[test]
    fn a_long_table_repeats_its_header() {
        for (between, end) in [(",", "\n"), (";", "\r\n"), ("\t", "\n"), ("|", "\n")] {
            let row = |cells: [&str; 3]| format!("{}{end}", cells.join(between));
            let body = rows(|number| row([&number.to_string(), "a part of it", "12.50 euros and some"]));
            let content = format!("{}{body}", row(["number", "part", "price"]));
            check(&content, &["number", "part", "price"].join(between));
        }
    }

    #[test]
    fn quoted_values_hold_line_ends_and_blank_lines() {
        let body = rows(|number| format!("{number},\"first line, {number}\n\nsaid \"\"so\"\"\"\n"));
        let header = "number,\"what\nit is\"";
        let chunks = check(&format!("{header}\n{body}"), header);
        for chunk in &chunks {
            assert_eq!(chunk.text.matches('"').count() % 2, 0, "a row is parted: {}", chunk.text);
        }
        // Blank lines before the header do not belong to it.
        let chunks = split(Format::Table, &format!("\n\n{header}\n{body}"));
        assert_eq!((chunks[0].start_line, chunks[1].table_header.as_str()), (3, header));
    }

    #[test]
    fn one_column_is_text() {
        let words = "some words and more of them, ".repeat(5);
        let content = format!("notes\n{}", rows(|_| format!("\"{words}\"\n")));
        let chunks = split(Format::Table, &content);
        assert!(chunks.len() > 2 && chunks.iter().all(|chunk| chunk.table_header.is_empty()));
        assert_eq!(chunks, split(Format::Text, &content));
    }

    #[test]
    fn a_quote_without_its_partner_keeps_no_line_from_being_cut() {
        let body = rows(|number| format!("{number},\"a part that has no end, {number}\n"));
        let chunks = split(Format::Table, &format!("number,part\n{body}"));
        assert!(chunks.len() >= 4, "{} passages", chunks.len());
        assert_eq!(chunks.last().map(|chunk| chunk.end_line), Some(201));
    }

    #[test]
    fn a_small_table_is_one_passage() {
        let chunks = split(Format::Table, "a,b\n1,2\n3,4\n");
        assert_eq!(chunks.len(), 1);
        assert_eq!((chunks[0].text.as_str(), chunks[0].table_header.as_str()), ("a,b\n1,2\n3,4", ""));
    }
}
