//! Tables in CSV files.

use csv::{ReaderBuilder, StringRecord};

/// svc-content's limit of properties; wider tables are imported as files.
const MAX_COLUMNS: usize = 200;
const MAX_CELLS: usize = 1_000_000;

/// A parsed CSV file.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Unique column names.
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<StringRecord>,
}

impl Table {
    /// Parses a text; `None` if it is not a table, or too large.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let mut records = reader.records();
        let head = records.next()?.ok()?;
        let mut table = Self::default();
        let (mut width, mut cells) = (head.len(), 0);
        for row in records {
            let row = row.ok()?;
            // Even empty rows take memory.
            cells += row.len() + 4;
            width = width.max(row.len());
            if cells > MAX_CELLS || width > MAX_COLUMNS {
                return None;
            }
            table.rows.push(row);
        }
        if width > MAX_COLUMNS {
            return None;
        }
        for place in 0..width {
            let name = head.get(place).unwrap_or_default().trim();
            let name = if name.is_empty() { format!("Column {}", place + 1) } else { shortened(name) };
            table.columns.push(distinct(&table.columns, &name));
        }
        Some(table)
    }

    /// A trimmed value.
    pub(super) fn cell(row: &StringRecord, column: usize) -> &str {
        row.get(column).unwrap_or_default().trim()
    }

    /// The nonempty values of a column.
    pub(super) fn values(&self, column: usize) -> impl Iterator<Item = &str> + Clone {
        self.rows.iter().map(move |row| Self::cell(row, column)).filter(|value| !value.is_empty())
    }
}

fn shortened(name: &str) -> String {
    let clean: String = name.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    crate::archive::shortened(&clean).unwrap_or(clean)
}

/// A name that is not taken.
pub(super) fn distinct(taken: &[String], name: &str) -> String {
    let mut distinct = name.to_owned();
    let mut number = 2;
    while taken.contains(&distinct) {
        distinct = format!("{name} ({number})");
        number += 1;
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_names_and_rows_may_be_short_or_long() {
        let table = Table::read("Name,,Name\n\"a, b\",1\nc,2,3,4\n").unwrap();
        assert_eq!(table.columns, ["Name", "Column 2", "Name (2)", "Column 4"]);
        assert_eq!(Table::cell(&table.rows[0], 0), "a, b");
        assert_eq!(table.values(3).collect::<Vec<_>>(), ["4"]);
    }

    #[test]
    fn what_is_too_large_or_empty_is_no_table() {
        assert!(Table::read("").is_none());
        assert!(Table::read(&"a,".repeat(201)).is_none());
        assert!(Table::read(&format!("a\n{}", "b\n".repeat(MAX_CELLS / 5 + 1))).is_none());
    }
}
