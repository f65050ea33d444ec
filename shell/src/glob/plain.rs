//! Globs of literals and stars, which are the most common, matched by substring search.

use super::{Part, SHORT};

/// Literals with stars between them.
#[derive(Debug, Clone)]
pub(super) enum Plain {
    /// Without a star.
    Whole(String),
    Starred {
        start: String,
        /// Between two stars, in this order.
        inner: Vec<String>,
        end: String,
    },
}

impl Plain {
    /// The same glob, if it consists of literals and stars only.
    pub(super) fn of(parts: &[Part]) -> Option<Self> {
        let mut pieces = vec![String::new()];
        for part in parts {
            match part {
                Part::Char(c) => pieces.last_mut()?.push(*c),
                Part::Many => pieces.push(String::new()),
                Part::One | Part::Set { .. } => return None,
            }
        }
        let end = pieces.pop()?;
        let mut pieces = pieces.into_iter();
        let Some(start) = pieces.next() else { return Some(Self::Whole(end)) };
        Some(Self::Starred { start, inner: pieces.collect(), end })
    }

    /// Whether the whole text matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        let (start, inner, end) = match self {
            Self::Whole(whole) => return text == whole,
            Self::Starred { start, inner, end } => (start, inner, end),
        };
        let Some(rest) = within(text, start, end) else { return false };
        let mut rest = rest.as_bytes();
        // The earliest occurrence of a piece leaves the most text for the next ones.
        inner.iter().all(|piece| {
            let after = find(rest, piece.as_bytes()).and_then(|at| rest.get(at + piece.len()..));
            rest = after.unwrap_or_default();
            after.is_some()
        })
    }
}

/// The text between prefix and suffix. An empty slice is not compared: its dangling pointer is unmapped memory, and
/// touching it costs some processors more than all the rest.
fn within<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let text = if start.is_empty() { text } else { text.strip_prefix(start)? };
    if end.is_empty() { Some(text) } else { text.strip_suffix(end) }
}

/// The position of a piece in a text.
fn find(text: &[u8], piece: &[u8]) -> Option<usize> {
    let (first, others) = piece.split_first()?;
    // For short texts the set-up of a linear-time search costs more than the search.
    if text.len() > SHORT {
        return memchr::memmem::find(text, piece);
    }
    memchr::memchr_iter(*first, text)
        .find(|at| text.get(at + 1..).is_some_and(|rest| rest.starts_with(others)))
}
