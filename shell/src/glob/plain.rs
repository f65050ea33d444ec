//! Globs of plain text and stars, as most are, looked for as text.

use super::{Part, SHORT};

/// Plain text, and stars between its pieces.
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
    /// The same glob, if it has plain text and stars only.
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

    /// Whether the whole text is what the glob says.
    pub(super) fn matches(&self, text: &str) -> bool {
        let (start, inner, end) = match self {
            Self::Whole(whole) => return text == whole,
            Self::Starred { start, inner, end } => (start, inner, end),
        };
        let Some(rest) = within(text, start, end) else { return false };
        let mut rest = rest.as_bytes();
        // A piece is best found as early as can be: that leaves the most for the next ones.
        inner.iter().all(|piece| {
            let after = find(rest, piece.as_bytes()).and_then(|at| rest.get(at + piece.len()..));
            rest = after.unwrap_or_default();
            after.is_some()
        })
    }
}

/// What is between the start and the end of a text. An empty one is not compared: it is nowhere in memory, and to look
/// there costs some processors more than all the rest.
fn within<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let text = if start.is_empty() { text } else { text.strip_prefix(start)? };
    if end.is_empty() { Some(text) } else { text.strip_suffix(end) }
}

/// Where a piece is in a text.
fn find(text: &[u8], piece: &[u8]) -> Option<usize> {
    let (first, others) = piece.split_first()?;
    // Names are over before a search that is never slow is set up.
    if text.len() > SHORT {
        return memchr::memmem::find(text, piece);
    }
    memchr::memchr_iter(*first, text)
        .find(|at| text.get(at + 1..).is_some_and(|rest| rest.starts_with(others)))
}
