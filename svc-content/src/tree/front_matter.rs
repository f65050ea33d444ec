//! The fields of a record as the YAML front matter of its page.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;

use crate::model::{Database, Values};
use crate::records::values::shown;

/// The front matter with all fields, and without references if the record has any: a folder-scoped caller may not see them.
pub(super) fn both(database: &Database, values: &Values) -> (String, Option<String>) {
    let whole = render(database, &shown(database, values, |_, _| true));
    let names_others = |property: &crate::model::Property| {
        property.kind.is_reference() && values.contains_key(&property.id.to_string())
    };
    let bare = database.properties.iter().any(names_others).then(|| without_references(database, values));
    (whole, bare)
}

/// The front matter with all fields.
pub(super) fn whole(database: &Database, values: &Values) -> String {
    render(database, &shown(database, values, |_, _| true))
}

/// The front matter without references.
pub(super) fn without_references(database: &Database, values: &Values) -> String {
    render(database, &shown(database, values, |_, _| false))
}

/// Values in the order of the properties; a property without a value is omitted.
fn render(database: &Database, values: &Values) -> String {
    let mut text = String::from("---\n");
    let mut taken = HashSet::new();
    for property in &database.properties {
        let Some(value) = values.get(&property.id.to_string()) else { continue };
        if is_blank(value) {
            continue;
        }
        let mut name = Cow::Borrowed(property.name.as_str());
        let mut number = 1;
        while !taken.insert(name.clone()) {
            number += 1;
            name = Cow::Owned(format!("{} ({number})", property.name));
        }
        text.push_str(&scalar(&name));
        text.push(':');
        write_value(&mut text, value, property.kind == crate::model::PropertyType::Date);
    }
    text.push_str("---\n");
    text
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// Writes a value after its colon, up to the end of its last line.
fn write_value(text: &mut String, value: &Value, is_date: bool) {
    match value {
        Value::String(date) if is_date => text.extend([" ", date, "\n"]),
        Value::String(long) if is_block(long) => {
            text.push_str(" |-\n");
            for line in long.split('\n') {
                if !line.is_empty() {
                    text.push_str("  ");
                }
                text.push_str(line);
                text.push('\n');
            }
        }
        Value::String(short) => text.extend([" ", &scalar(short), "\n"]),
        Value::Array(elements) => {
            text.push('\n');
            for element in elements {
                text.extend(["  - ", &of_element(element), "\n"]);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            // Writing to a String cannot fail.
            let _written = writeln!(text, " {value}");
        }
    }
}

fn of_element(element: &Value) -> Cow<'_, str> {
    match element {
        Value::String(text) => scalar(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Cow::Owned(element.to_string())
        }
    }
}

/// Whether a text can be a literal block, which keeps its lines searchable.
fn is_block(text: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && !is_break(c);
    text.contains('\n')
        && !text.ends_with('\n')
        && !text.starts_with([' ', '\n'])
        && text
            .split('\n')
            .all(|line| line.chars().all(is_plain) && !line.trim_start().is_empty() | line.is_empty())
}

/// Whether a character is a line break in some versions of YAML, or a byte order mark.
const fn is_break(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// A text as a YAML scalar: plain if that round-trips, otherwise in double quotes.
fn scalar(text: &str) -> Cow<'_, str> {
    if is_plain(text) { Cow::Borrowed(text) } else { Cow::Owned(Value::from(text).to_string()) }
}

fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 11] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"];
    let has_plain_start = text.chars().next().is_some_and(|c| c.is_alphabetic() || c == '/');
    has_plain_start
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.chars().any(|c| c.is_control() || is_break(c))
        && !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_yaml_would_read_otherwise_are_quoted() {
        for plain in ["Todo", "https://a.example/b", "naïve: no".get(..5).unwrap(), "a\\b", "/file/1"] {
            assert_eq!(scalar(plain), plain);
        }
        for quoted in
            ["", "yes", "12", "- a", "a: b", "a #b", "a:", " a", "a ", "#a", "\u{1}", "a\nb", "[a]", "~"]
        {
            assert_eq!(scalar(quoted), Value::from(quoted).to_string());
        }
    }

    #[test]
    fn lines_stand_in_blocks_where_they_can() {
        let written = |text: &str| {
            let mut out = String::new();
            write_value(&mut out, &Value::from(text), false);
            out
        };
        assert_eq!(written("one\n\n- two"), " |-\n  one\n\n  - two\n");
        for quoted in ["one\n", " one\ntwo", "\none", "one\r\ntwo", "one\n  \ntwo"] {
            assert_eq!(written(quoted), format!(" {}\n", Value::from(quoted)));
        }
    }
}
