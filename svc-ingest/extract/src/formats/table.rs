//! Converts delimiter-separated values to a table.

use csv::{ReaderBuilder, Trim};

use crate::charset;
use crate::markdown::Markdown;
use crate::model::{Failure, Format, Raw, Text};

/// Possible delimiters.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Lines that are sampled to detect the delimiter.
const LINES: usize = 20;
/// Rows per write.
const MAX_ROWS: usize = 1_000_000;

pub(crate) fn read(raw: &Raw) -> Result<Text, Failure> {
    let text = charset::decode(&raw.bytes, raw.mime.as_deref(), None);
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .delimiter(delimiter(&text))
        .from_reader(text.as_bytes());
    let records = reader.records().take(MAX_ROWS).map(|record| {
        let record = record.map_err(|_| Failure::broken("CSV"))?;
        Ok(record.iter().map(str::to_owned).collect::<Vec<_>>())
    });
    let rows = records.collect::<Result<Vec<_>, Failure>>()?;
    let mut out = Markdown::default();
    out.table(&rows);
    Ok(Text { format: Format::Markdown, content: out.into_text(), title: None })
}

/// Detects the delimiter: the one that occurs most often in every sampled line.
fn delimiter(text: &str) -> u8 {
    let count = |delimiter: u8| {
        let lines = text.lines().filter(|line| !line.trim().is_empty()).take(LINES);
        lines.map(|line| line.bytes().filter(|byte| *byte == delimiter).count()).min().unwrap_or_default()
    };
    // The first one wins ties: a comma if none occurs.
    DELIMITERS.into_iter().rev().max_by_key(|delimiter| count(*delimiter)).unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> String {
        read(&Raw::file("a.csv", text.to_owned())).unwrap().content
    }

    #[test]
    fn whatever_stands_between_them_values_become_cells() {
        let expected = "| name | n |\n| --- | --- |\n| a | 1 |\n";
        for text in
            ["name,n\na,1\n", "name;n\r\na;1\r\n", "name\tn\na\t1", "name|n\na|1", "\u{feff}name,n\na,1"]
        {
            assert_eq!(table(text), expected, "{text:?}");
        }
    }

    #[test]
    fn quoted_values_hold_anything_and_short_rows_are_filled_up() {
        let text = table("a,b,c\n\"x, \"\"y\"\"\nz\",2|3\n");
        assert_eq!(text, "| a | b | c |\n| --- | --- | --- |\n| x, \"y\" z | 2\\|3 |  |\n");
        assert_eq!(table("one\ntwo\n"), "one\n\ntwo\n");
    }
}
