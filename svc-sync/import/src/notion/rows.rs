//! Matches the rows of a database with their pages: by title, and for duplicate titles by the other properties.

use std::collections::HashMap;

use csv::StringRecord;

use super::names::{bare, heading};
use super::table::Table;

/// Pairs of rows and pages that are scored by similarity.
const MAX_PAIRS: usize = 10_000;

/// The properties at the top of a row's page, and the range of their lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Properties<'a> {
    /// By column.
    pub(super) values: Vec<(usize, &'a str)>,
    /// From the first property line to the start of the text; empty without properties.
    pub(super) range: std::ops::Range<usize>,
}

/// Parses `Column: value` lines after the heading.
pub(super) fn properties<'a>(text: &'a str, columns: &[String]) -> Properties<'a> {
    let (_, begin) = heading(text);
    let mut found = Properties { values: Vec::new(), range: begin..begin };
    let mut place = begin;
    for line in text.get(begin..).unwrap_or_default().split_inclusive('\n') {
        let end = place + line.len();
        if line.trim().is_empty() {
            // Blank lines before the first property belong to the heading, those after the last to the properties.
            if found.values.is_empty() {
                found.range = end..end;
            } else {
                found.range.end = end;
            }
        } else if found.values.is_empty() || found.range.end == place {
            let is_behind_blank =
                !found.values.is_empty() && text.get(..place).is_some_and(|before| before.ends_with("\n\n"));
            match value(line, columns).filter(|_| !is_behind_blank) {
                Some(value) => {
                    found.values.push(value);
                    found.range.end = end;
                }
                None => break,
            }
        }
        place = end;
    }
    if found.values.is_empty() { Properties { values: Vec::new(), range: begin..begin } } else { found }
}

fn value<'a>(line: &'a str, columns: &[String]) -> Option<(usize, &'a str)> {
    let of = |(place, column): (usize, &String)| {
        let value = line.strip_prefix(column.as_str())?.strip_prefix(':')?;
        (value.trim().is_empty() || value.starts_with(' ')).then(|| (column.len(), place, value.trim()))
    };
    let found = columns.iter().enumerate().filter_map(of).max_by_key(|(length, ..)| *length);
    found.map(|(_, place, value)| (place, value))
}

/// A page in a database's folder.
#[derive(Debug)]
pub(super) struct Candidate {
    /// The file in the archive.
    pub(super) file: usize,
    pub(super) title: String,
}

/// Finds the page of each row. `read` returns the text of a file.
pub(super) fn pages(
    table: &Table,
    candidates: &[Candidate],
    mut read: impl FnMut(usize) -> Option<String>,
) -> HashMap<usize, usize> {
    let key = |title: &str| if title.is_empty() { bare("Untitled") } else { bare(title) };
    let mut groups: HashMap<String, (Vec<usize>, Vec<&Candidate>)> = HashMap::new();
    for candidate in candidates {
        groups.entry(key(&candidate.title)).or_default().1.push(candidate);
    }
    for (row, record) in table.rows.iter().enumerate() {
        if let Some((rows, _)) = groups.get_mut(&key(Table::cell(record, 0))) {
            rows.push(row);
        }
    }
    let mut matched = HashMap::new();
    for (rows, pages) in groups.into_values() {
        if let ([row], [page]) = (rows.as_slice(), pages.as_slice()) {
            matched.insert(*row, page.file);
            continue;
        }
        if rows.is_empty() {
            continue;
        }
        matched.extend(by_properties(table, rows, &pages, &mut read));
    }
    matched
}

/// A page with parsed properties.
struct ParsedPage {
    file: usize,
    values: Vec<(usize, String)>,
}

fn by_properties(
    table: &Table,
    rows: Vec<usize>,
    pages: &[&Candidate],
    read: &mut impl FnMut(usize) -> Option<String>,
) -> Vec<(usize, usize)> {
    let mut known: Vec<ParsedPage> = pages
        .iter()
        .map(|page| {
            let text = read(page.file).unwrap_or_default();
            let mut values: Vec<(usize, String)> = properties(&text, &table.columns)
                .values
                .into_iter()
                .map(|(column, value)| (column, value.to_owned()))
                .collect();
            values.retain(|(column, value)| *column > 0 && is_comparable(value));
            values.sort_unstable();
            ParsedPage { file: page.file, values }
        })
        .collect();
    // Fast path: most rows have exactly the properties of their pages.
    let mut by_values: HashMap<Vec<(usize, String)>, Vec<usize>> = HashMap::new();
    for row in rows.into_iter().rev() {
        by_values.entry(values_of(table, row)).or_default().push(row);
    }
    let mut matched = Vec::new();
    known.retain(|page| match by_values.get_mut(&page.values).and_then(Vec::pop) {
        Some(row) => {
            matched.push((row, page.file));
            false
        }
        None => true,
    });
    let mut left: Vec<usize> = by_values.into_values().flatten().collect();
    left.sort_unstable();
    if known.len().saturating_mul(left.len()) > MAX_PAIRS {
        matched.extend(left.into_iter().zip(known.iter().map(|page| page.file)));
        return matched;
    }
    for page in known {
        let equal = |row: &usize| {
            let record = table.rows.get(*row);
            let is_equal = |(column, value): &&(usize, String)| {
                record.is_some_and(|record| Table::cell(record, *column) == value)
            };
            page.values.iter().filter(is_equal).count()
        };
        // The first of those with the best score.
        let best = left.iter().rev().max_by_key(|row| equal(row)).copied();
        if let Some(row) = best {
            left.retain(|other| *other != row);
            matched.push((row, page.file));
        }
    }
    matched
}

fn values_of(table: &Table, row: usize) -> Vec<(usize, String)> {
    let none = StringRecord::new();
    let record = table.rows.get(row).unwrap_or(&none);
    let values = (1..table.columns.len()).map(|column| (column, Table::cell(record, column).to_owned()));
    values.filter(|(_, value)| is_comparable(value)).collect()
}

/// Relative paths differ between the table and the page.
fn is_comparable(value: &str) -> bool {
    !value.is_empty() && !value.contains(['(', '%', '/']) && !value.contains('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<String> {
        ["Name", "Status", "Status: now", "Due"].map(str::to_owned).to_vec()
    }

    #[test]
    fn properties_are_the_lines_behind_the_heading() {
        let text = "# A\n\nStatus: Done\nStatus: now: Later\nDue: May 2, 2023\n\nStatus: in the text\n";
        let found = properties(text, &columns());
        assert_eq!(found.values, [(1, "Done"), (2, "Later"), (3, "May 2, 2023")]);
        assert_eq!(&text[found.range], "Status: Done\nStatus: now: Later\nDue: May 2, 2023\n\n");
        assert_eq!(properties("# A\n\ntext\nStatus: Done", &columns()).range, 4..4);
        assert_eq!(properties("# A\n\nStatus: Done", &columns()).range, 5..17);
        assert_eq!(properties("Status: Done\ntext", &columns()).range, 0..13);
    }

    fn matched(csv: &str, pages: &[(&str, &str)]) -> Vec<(usize, usize)> {
        let table = Table::read(csv).unwrap();
        let candidates: Vec<Candidate> = pages
            .iter()
            .enumerate()
            .map(|(file, (title, _))| Candidate { file, title: (*title).to_owned() })
            .collect();
        let found = super::pages(&table, &candidates, |file| Some(pages[file].1.to_owned()));
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn pages_are_found_by_title() {
        assert_eq!(
            matched("Name\nOne\nTwo: a/b\nThree", &[("Two- a-b", ""), ("One", ""), ("Template", "")]),
            [(0, 1), (1, 0)]
        );
        assert_eq!(matched("Name,A\n,x\n", &[("Untitled", "")]), [(0, 0)]);
    }

    #[test]
    fn where_titles_repeat_the_properties_tell() {
        let csv = "Name,Status,Due\nA,Done,1\nA,Open,2\nA,Open,3\n";
        let pages = [
            ("A", "# A\n\nStatus: Open\nDue: 3\n"),
            ("A", "# A\n\nStatus: Done\nDue: 1"),
            ("A", "# A\n\nStatus: Open\nDue: 9"),
        ];
        assert_eq!(matched(csv, &pages), [(0, 1), (1, 2), (2, 0)]);
    }

    #[test]
    fn many_rows_of_one_title_take_no_time() {
        let csv = format!("Name,A\n{}", "x,1\n".repeat(20_000));
        let pages = vec![("x", "# x\n\nA: 2"); 5_000];
        assert_eq!(matched(&csv, &pages).len(), 5_000);
    }
}
