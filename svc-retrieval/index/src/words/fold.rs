//! Accent folding.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The word without accents, for users who do not type them. Combining marks that are part of a script's letters, as in Devanagari or
/// Japanese, are kept.
pub(super) fn fold(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return Cow::Borrowed(word);
    }
    let mut folded = String::with_capacity(word.len());
    let mut strips = false;
    for c in word.nfd() {
        if is_combining_mark(c) {
            if !strips {
                folded.push(c);
            }
            continue;
        }
        strips = has_accents(c);
        match plain(c) {
            Some(letters) => folded.push_str(letters),
            None => folded.push(c),
        }
    }
    let folded: String = folded.nfc().collect();
    if folded == word { Cow::Borrowed(word) } else { Cow::Owned(folded) }
}

/// Whether combining marks on the letter may be omitted: Latin, Greek, Cyrillic, Hebrew, Arabic.
fn has_accents(c: char) -> bool {
    matches!(u32::from(c), 0x41..=0x24f | 0x370..=0x52f | 0x590..=0x6ff | 0x1e00..=0x1fff)
        // й is a distinct letter, not и with an accent.
        && c != 'и'
}

/// Letters without a Unicode decomposition.
fn plain(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'ħ' => "h",
        'ı' => "i",
        'ł' => "l",
        'ŧ' => "t",
        'þ' => "th",
        'ς' => "σ",
        _ => return None,
    })
}
