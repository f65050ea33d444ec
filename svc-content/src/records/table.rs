//! CSV tables: the header, the rows, and the conversion of cells to property values.

use cairn_chassis::wording::{self, Unit};
use csv::{ReaderBuilder, StringRecord};
use serde_json::{Value, json};

use crate::Error;
use crate::model::{Property, PropertyType};

/// The maximum size of a table.
pub(crate) const MAX_BYTES: usize = 2 * 1024 * 1024;
/// The same as the maximum of a batch.
pub(crate) const MAX_ROWS: usize = 1_000;
/// The same as the maximum number of properties of a database.
const MAX_COLUMNS: usize = 200;
/// The delimiters that spreadsheets write.
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];
/// Leading characters that make spreadsheets evaluate a text as a formula; an export escapes them with an apostrophe.
const FORMULAS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// A parsed table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// The header row.
    pub(crate) head: Vec<String>,
    /// The rows below the header.
    pub(crate) rows: Vec<StringRecord>,
}

impl Table {
    /// Parses a table in UTF-8 with any of the usual delimiters.
    ///
    /// # Errors
    /// A violation of `csv` if it cannot be parsed, or exceeds a limit.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let invalid = |code: &str, message: String| Err(Error::invalid("csv", code, message));
        if bytes.len() > MAX_BYTES {
            return invalid("too_long", wording::at_most(MAX_BYTES, Unit::Bytes));
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return invalid("invalid", "must be UTF-8: save the table as 'CSV UTF-8'".to_owned());
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter(text))
            .from_reader(text.as_bytes());
        let mut table = Self::default();
        for (place, row) in reader.records().enumerate() {
            let Ok(row) = row else {
                return invalid("invalid", format!("cannot be read at row {}", place + 1));
            };
            if row.len() > MAX_COLUMNS {
                return invalid("too_many", format!("may have at most {MAX_COLUMNS} columns"));
            }
            if place == 0 {
                table.head = row.iter().map(|name| plain(name.trim()).to_owned()).collect();
            } else if table.rows.len() == MAX_ROWS {
                return invalid(
                    "too_many",
                    format!("may have at most {MAX_ROWS} rows below its head: divide it"),
                );
            } else {
                table.rows.push(row);
            }
        }
        if table.head.iter().all(String::is_empty) {
            return invalid("required", "needs a first row with the names of its columns".to_owned());
        }
        Ok(table)
    }
}

/// The delimiter that is most frequent in the first line, outside of quotes.
fn delimiter(text: &str) -> u8 {
    let mut is_quoted = false;
    let mut counts = DELIMITERS.map(|delimiter| (delimiter, 0_usize));
    for byte in text.bytes() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' | b'\r' if !is_quoted => break,
            _ if !is_quoted => {
                for (delimiter, count) in &mut counts {
                    *count += usize::from(*delimiter == byte);
                }
            }
            _ => {}
        }
    }
    // On a tie the first one wins: `max_by_key` returns the last maximum of the reversed list.
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(delimiter, _)| delimiter)
}

/// The comma-separated parts of a cell.
pub(super) fn parts(text: &str) -> Vec<&str> {
    text.split(',').map(|part| plain(part.trim())).filter(|part| !part.is_empty()).collect()
}

/// A text without the apostrophe that an export escapes formulas with.
pub(super) fn plain(text: &str) -> &str {
    text.strip_prefix('\'').filter(|rest| rest.starts_with(FORMULAS)).unwrap_or(text)
}

/// Converts a cell to a value as in a request; `None` for an empty one. A cell that does not fit the type stays a text, which
/// validation then rejects.
pub(crate) fn value(property: &Property, cell: &str) -> Option<Value> {
    let trimmed = cell.trim();
    if trimmed.is_empty() {
        return None;
    }
    let text = plain(trimmed);
    Some(match property.kind {
        PropertyType::Text => json!(plain(cell)),
        PropertyType::Number => number(trimmed).unwrap_or_else(|| json!(text)),
        PropertyType::Boolean => match trimmed.to_ascii_lowercase().as_str() {
            "true" | "yes" => json!(true),
            "false" | "no" => json!(false),
            _ => json!(text),
        },
        PropertyType::Date | PropertyType::Url | PropertyType::Select => json!(text),
        // An option may have a comma in its name.
        PropertyType::MultiSelect if property.option_named(text).is_some() => json!([text]),
        PropertyType::MultiSelect | PropertyType::Relation => json!(parts(text)),
        PropertyType::FileReference | PropertyType::AssetReference => {
            if property.config.multiple {
                json!(parts(text))
            } else {
                json!(text)
            }
        }
    })
}

fn number(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(json!(whole));
    }
    let number: f64 = text.parse().ok()?;
    serde_json::Number::from_f64(number).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use cairn_proto::ids::PropertyId;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::model::PropertySettings;

    fn read(text: &str) -> Vec<Vec<String>> {
        let table = Table::read(text.as_bytes()).unwrap();
        let row = |row: &StringRecord| row.iter().map(ToOwned::to_owned).collect::<Vec<_>>();
        std::iter::once(table.head.clone()).chain(table.rows.iter().map(row)).collect()
    }

    #[test]
    fn tables_are_read_with_any_of_their_delimiters() {
        let expected = [vec!["Name", "a;b"], vec!["x, y", "1"]];
        assert_eq!(read("Name,a;b\n\"x, y\",1\n"), expected);
        assert_eq!(read("\u{feff} Name ;\"a;b\"\r\nx, y;1\r\n"), expected);
        assert_eq!(read("Name\ta\nx, y\t1"), [vec!["Name", "a"], vec!["x, y", "1"]]);
        assert_eq!(read("'=Name\n'=1\n\n"), [vec!["=Name"], vec!["'=1"]]);
        assert_eq!(read("a,b\n1\n1,2,3"), [vec!["a", "b"], vec!["1"], vec!["1", "2", "3"]]);
    }

    #[test]
    fn what_is_no_table_is_refused() {
        let code = |bytes: &[u8]| match Table::read(bytes) {
            Err(Error::Invalid(broken)) => format!("{} {}", broken[0].path, broken[0].code),
            other => panic!("{other:?}"),
        };
        assert_eq!(code(b""), "csv required");
        assert_eq!(code(b",,\n1,2,3"), "csv required");
        assert_eq!(code(b"a\n\xff"), "csv invalid");
        assert_eq!(code(&vec![b'a'; MAX_BYTES + 1]), "csv too_long");
        assert_eq!(code("a\n".repeat(MAX_ROWS + 2).as_bytes()), "csv too_many");
        assert_eq!(code(",".repeat(MAX_COLUMNS).as_bytes()), "csv too_many");
    }

    #[test]
    fn cells_become_values_of_their_properties() {
        let of = |kind: PropertyType, cell: &str| {
            let id = PropertyId(Uuid::from_u128(1));
            let (name, config) = (String::new(), PropertySettings::default());
            value(&Property { id, name, kind, is_primary: false, config }, cell).unwrap_or_default()
        };
        assert_eq!(of(PropertyType::Text, " '=1 "), json!(" '=1 "));
        assert_eq!(
            (of(PropertyType::Text, "'=1"), of(PropertyType::Text, "'tis")),
            (json!("=1"), json!("'tis"))
        );
        assert_eq!(
            (of(PropertyType::Number, " -3 "), of(PropertyType::Number, "1.5")),
            (json!(-3), json!(1.5))
        );
        assert_eq!(
            (of(PropertyType::Number, "NaN"), of(PropertyType::Number, "1,5")),
            (json!("NaN"), json!("1,5"))
        );
        assert_eq!(
            (of(PropertyType::Boolean, "YES"), of(PropertyType::Boolean, "?")),
            (json!(true), json!("?"))
        );
        assert_eq!(of(PropertyType::MultiSelect, "a, b,,"), json!(["a", "b"]));
        assert_eq!(of(PropertyType::FileReference, "x"), json!("x"));
        assert_eq!(of(PropertyType::Date, "  "), Value::Null);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(table) = Table::read(&bytes) {
                prop_assert!(!table.head.is_empty());
            }
        }
    }
}
