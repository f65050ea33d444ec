//! Size limits of errors, which are sent in the trailers of a call: clients limit the size of headers.

use std::borrow::Cow;

use super::Violation;

/// The limit of an error in the trailers of a call.
pub const MAX_ERROR_BYTES: usize = 8 * 1024;
/// One more than the gateway lists, so that it can tell that there are more.
pub const MAX_VIOLATIONS: usize = 51;

/// The limit of a message in `grpc-message`, where percent-encoding triples bytes that are not ASCII.
const MAX_MESSAGE: usize = 1_200;
/// The limit of all violations: together with the message, which the details repeat, and in base64, they stay below
/// [`MAX_ERROR_BYTES`].
const MAX_DETAILS: usize = 3_500;
const MAX_TEXT: usize = 400;
/// The protobuf tags and lengths of a violation and its three texts.
const OVERHEAD: usize = 12;
const ELLIPSIS: &str = "…";

/// The message, truncated to its limit.
pub(super) fn message(text: &str) -> Cow<'_, str> {
    cut(text, MAX_MESSAGE, |character| {
        if matches!(character, ' '..='~') && character != '%' { 1 } else { character.len_utf8() * 3 }
    })
}

/// The first violations that fit into the limit, with truncated texts.
pub(super) fn violations(all: Vec<Violation>) -> impl Iterator<Item = Violation> {
    let mut room = MAX_DETAILS;
    all.into_iter().take(MAX_VIOLATIONS).map(shortened).take_while(move |violation| {
        let weight = violation.path.len() + violation.code.len() + violation.message.len() + OVERHEAD;
        let fits = weight <= room;
        room = room.saturating_sub(weight);
        fits
    })
}

fn shortened(violation: Violation) -> Violation {
    let short = |text: String| match cut(&text, MAX_TEXT, char::len_utf8) {
        Cow::Borrowed(_) => text,
        Cow::Owned(cut) => cut,
    };
    Violation { path: short(violation.path), code: short(violation.code), message: short(violation.message) }
}

/// The beginning of a text that weighs at most so much, with a mark where something is missing.
fn cut(text: &str, most: usize, weigh: impl Fn(char) -> usize) -> Cow<'_, str> {
    let ends = text.char_indices().scan(0, |weight, (start, character)| {
        *weight += weigh(character);
        Some((start, *weight))
    });
    let room = most - ELLIPSIS.len() * 3;
    let mut end = 0;
    for (start, weight) in ends {
        if weight <= room {
            end = start;
        }
        if weight > most {
            return Cow::Owned(format!("{}{ELLIPSIS}", text.get(..end).unwrap_or_default()));
        }
    }
    Cow::Borrowed(text)
}
