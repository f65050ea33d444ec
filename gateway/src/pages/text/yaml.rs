//! YAML highlighting, line by line: keys, values, comments, and block scalars by indentation.

use super::class::{Class, word};
use super::escape;

/// The state across lines.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The indentation of the line that began a block scalar: deeper lines belong to it.
    block: Option<usize>,
}

impl State {
    pub(super) fn line(&mut self, out: &mut String, line: &str) {
        let indent = line.bytes().take_while(|byte| *byte == b' ').count();
        let (before, words) = line.split_at(indent);
        if let Some(block) = self.block {
            if words.trim().is_empty() || indent > block {
                return word(out, Class::Text, line);
            }
            self.block = None;
        }
        if matches!(line.trim_end(), "---" | "...") {
            return word(out, Class::Literal, line);
        }
        out.push_str(before);
        let marks = list_marks(words);
        let (marks, words) = words.split_at(marks);
        out.push_str(marks);
        if words.starts_with('#') {
            return word(out, Class::Comment, words);
        }
        let key = key_length(words);
        let (key, value) = words.split_at(key);
        word(out, Class::Key, key);
        let value = match value.strip_prefix(':') {
            Some(value) if !key.is_empty() => {
                out.push(':');
                value
            }
            _ => value,
        };
        self.value(out, value, indent);
    }

    fn value(&mut self, out: &mut String, value: &str, indent: usize) {
        let begun = value.trim_start();
        out.push_str(value.get(..value.len() - begun.len()).unwrap_or_default());
        let end = value_length(begun);
        let (value, comment) = begun.split_at(end);
        let trimmed = value.trim_end();
        if matches!(trimmed.as_bytes().first(), Some(b'|' | b'>')) && trimmed.len() <= 3 {
            self.block = Some(indent);
        }
        match class(trimmed) {
            Some(class) => {
                word(out, class, trimmed);
                escape(out, value.get(trimmed.len()..).unwrap_or_default());
            }
            None => escape(out, value),
        }
        word(out, Class::Comment, comment);
    }
}

/// The length of the list markers at the start of a line.
fn list_marks(words: &str) -> usize {
    let mut rest = words;
    while let Some(after) = rest.strip_prefix("- ") {
        rest = after.trim_start_matches(' ');
    }
    words.len() - rest.len()
}

/// The length of the key at the start of a line; 0 without one.
fn key_length(words: &str) -> usize {
    let length = match words.bytes().next() {
        Some(quote @ (b'"' | b'\'')) => match quoted_length(words, quote) {
            Some(length) => length,
            None => return 0,
        },
        Some(b'{' | b'[' | b'*' | b'&' | b'!' | b'|' | b'>') | None => return 0,
        Some(_) => {
            let ends = |(at, _): &(usize, &str)| {
                words.as_bytes().get(at + 1).is_none_or(|byte| byte.is_ascii_whitespace())
            };
            match words.match_indices(':').find(ends) {
                Some((at, _)) => at,
                None => return 0,
            }
        }
    };
    let rest = words.as_bytes().get(length..).unwrap_or_default();
    let is_key = rest.first() == Some(&b':') && rest.get(1).is_none_or(u8::is_ascii_whitespace);
    if is_key && !words.get(..length).unwrap_or_default().contains(" #") { length } else { 0 }
}

fn quoted_length(text: &str, quote: u8) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if quote == b'"' => is_escaped = true,
            byte if byte == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The end of a value, where a trailing comment begins.
fn value_length(value: &str) -> usize {
    let quoted = match value.bytes().next() {
        Some(quote @ (b'"' | b'\'')) => quoted_length(value, quote).unwrap_or(value.len()),
        _ => 0,
    };
    let rest = value.get(quoted..).unwrap_or_default();
    rest.find(" #").map_or(value.len(), |at| quoted + at)
}

fn class(value: &str) -> Option<Class> {
    let first = value.bytes().next()?;
    Some(match first {
        b'"' | b'\'' => Class::Text,
        b'|' | b'>' | b'&' | b'*' | b'!' => Class::Literal,
        b'{' | b'[' | b']' | b'}' => return None,
        _ if is_literal(value) => Class::Literal,
        _ if value.parse::<f64>().is_ok() => Class::Number,
        _ => Class::Text,
    })
}

fn is_literal(value: &str) -> bool {
    ["true", "false", "null", "~", "yes", "no", "on", "off"]
        .iter()
        .any(|known| value.eq_ignore_ascii_case(known))
}
