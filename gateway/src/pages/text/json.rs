//! JSON highlighting, line by line: its strings do not span lines.

use super::class::{Class, word};
use super::escape;

pub(super) fn line(out: &mut String, line: &str) {
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => text_length(rest),
            '-' | '0'..='9' => {
                length_while(rest, |byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            }
            'a'..='z' | 'A'..='Z' => length_while(rest, |byte| byte.is_ascii_alphanumeric()),
            first => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        match (first, token) {
            ('"', _) if after.trim_start().starts_with(':') => word(out, Class::Key, token),
            ('"', _) => word(out, Class::Text, token),
            ('-' | '0'..='9', _) => word(out, Class::Number, token),
            (_, "true" | "false" | "null") => word(out, Class::Literal, token),
            _ => escape(out, token),
        }
        rest = after;
    }
}

fn length_while(text: &str, is_part: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is_part(*byte)).count().max(1)
}

/// The length of a quoted string with its quotes; up to the end of the line if unterminated.
fn text_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
