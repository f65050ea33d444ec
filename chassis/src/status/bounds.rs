//! What an error may carry: it travels in the trailers of a call, for which callers have little room.

use std::borrow::Cow;

use super::Violation;

/// What an error may weigh in the trailers of a call, all in all.
pub const MOST_ERROR_BYTES: usize = 8 * 1024;
/// One more than is shown to people, so that it can be told that there are more.
pub const MOST_VIOLATIONS: usize = 51;

/// What a message may weigh as `grpc-message`, which spells most bytes beyond ASCII as three.
const MOST_MESSAGE: usize = 1_200;
/// What violations may weigh together: with the message, which stands in the details again, and in base64, they stay
/// below [`MOST_ERROR_BYTES`].
const MOST_DETAILS: usize = 3_500;
const MOST_TEXT: usize = 400;
/// Tags and lengths around a violation and its three texts.
const AROUND: usize = 12;
const CUT: &str = "…";

/// The message, cut where it would weigh too much.
pub(super) fn message(text: &str) -> Cow<'_, str> {
    cut(text, MOST_MESSAGE, |character| {
        if matches!(character, ' '..='~') && character != '%' { 1 } else { character.len_utf8() * 3 }
    })
}

/// As many violations as there is room for, from the first; their texts are cut too.
pub(super) fn violations(all: Vec<Violation>) -> impl Iterator<Item = Violation> {
    let mut room = MOST_DETAILS;
    all.into_iter().take(MOST_VIOLATIONS).map(shortened).take_while(move |violation| {
        let weight = violation.path.len() + violation.code.len() + violation.message.len() + AROUND;
        let fits = weight <= room;
        room = room.saturating_sub(weight);
        fits
    })
}

fn shortened(violation: Violation) -> Violation {
    let short = |text: String| match cut(&text, MOST_TEXT, char::len_utf8) {
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
    let room = most - CUT.len() * 3;
    let mut end = 0;
    for (start, weight) in ends {
        if weight <= room {
            end = start;
        }
        if weight > most {
            return Cow::Owned(format!("{}{CUT}", text.get(..end).unwrap_or_default()));
        }
    }
    Cow::Borrowed(text)
}
