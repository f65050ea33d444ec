//! Infers the property types of a table's columns. The inferred types are defaults, which people can correct before anything is
//! written.

use std::collections::HashSet;

use super::values::is_web_address;
use crate::model::{Day, PropertyType, fold};

/// A select column has at most this many distinct values.
const MAX_CHOICES: usize = 12;
/// Each value of a select column occurs at least this often on average.
const MIN_REPEATS: usize = 3;
/// Longer texts are sentences, not options.
const MAX_CHOICE_CHARS: usize = 40;
/// A longer number is an identifier, and would lose digits as a floating-point number.
const MAX_DIGITS: usize = 15;

/// The most specific type that fits all cells; empty ones fit any.
pub(super) fn kind<'a>(cells: impl Iterator<Item = &'a str>) -> PropertyType {
    let cells: Vec<&str> = cells.map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let all = |fits: fn(&str) -> bool| cells.iter().all(|cell| fits(cell));
    if cells.is_empty() {
        PropertyType::Text
    } else if all(is_boolean) {
        PropertyType::Boolean
    } else if all(is_number) {
        PropertyType::Number
    } else if all(|cell| Day::read(cell).is_some()) {
        PropertyType::Date
    } else if all(is_web_address) {
        PropertyType::Url
    } else if are_choices(&cells) {
        PropertyType::Select
    } else {
        PropertyType::Text
    }
}

fn is_boolean(cell: &str) -> bool {
    ["true", "false", "yes", "no"].iter().any(|word| cell.eq_ignore_ascii_case(word))
}

/// Plain decimals. A leading zero or plus means a code or a phone number, which must stay text.
fn is_number(cell: &str) -> bool {
    let digits = cell.strip_prefix('-').unwrap_or(cell);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_code = whole != "0" && whole.starts_with('0');
    are_digits(whole) && are_digits(fraction) && !is_code && whole.len() + fraction.len() <= MAX_DIGITS
}

fn are_choices(cells: &[&str]) -> bool {
    let mut choices = HashSet::new();
    for cell in cells {
        if cell.contains(char::is_control) || cell.chars().count() > MAX_CHOICE_CHARS {
            return false;
        }
        choices.insert(fold(cell));
        if choices.len() > MAX_CHOICES {
            return false;
        }
    }
    choices.len() * MIN_REPEATS <= cells.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_look_like_what_all_of_their_cells_are() {
        for (cells, expected) in [
            (&[][..], PropertyType::Text),
            (&["", " "], PropertyType::Text),
            (&["yes", "", "NO"], PropertyType::Boolean),
            (&["1", "-2.50", "0", " 0.5 "], PropertyType::Number),
            (&["1", "x"], PropertyType::Text),
            (&["01067"], PropertyType::Text),
            (&["+49351"], PropertyType::Text),
            (&["1e5"], PropertyType::Text),
            (&["1234567890123456"], PropertyType::Text),
            (&["1,5"], PropertyType::Text),
            (&["NaN"], PropertyType::Text),
            (&["2026-11-23", "2026-11-20T12:00:00Z"], PropertyType::Date),
            (&["2026-13-01"], PropertyType::Text),
            (&["https://example.com/a"], PropertyType::Url),
            (&["example.com"], PropertyType::Text),
            (&["Open", "open", "OPEN"], PropertyType::Select),
            (&["Open", "Done", "Open", "Done", "Open", "Done"], PropertyType::Select),
            (&["Open", "Done", "Open", "Done", "Open"], PropertyType::Text),
            (&["a\nb", "a\nb", "a\nb"], PropertyType::Text),
        ] {
            assert_eq!(kind(cells.iter().copied()), expected, "{cells:?}");
        }
    }
}
