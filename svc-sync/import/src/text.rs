//! Texts of files: how their bytes are read, and how they are compared.

use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE};
use unicode_normalization::UnicodeNormalization as _;

/// The most text of a file.
pub const MAX_TEXT_BYTES: usize = 5 * 1024 * 1024;

/// The text of a file, and whether it was clean: UTF-8, or UTF-16 with its byte order mark, without NUL characters. The mark
/// goes; line ends stay as they are.
pub(crate) fn decode(bytes: Vec<u8>) -> (String, bool) {
    const MARK: &[u8] = b"\xEF\xBB\xBF";
    let wide = if bytes.starts_with(b"\xFF\xFE") { Some(UTF_16LE) } else { None };
    let wide = if bytes.starts_with(b"\xFE\xFF") { Some(UTF_16BE) } else { wide };
    let (mut text, is_clean) = match wide {
        Some(encoding) => {
            let (text, _, has_errors) = encoding.decode(&bytes);
            (text.into_owned(), !has_errors)
        }
        None if bytes.starts_with(MARK) => {
            let (text, has_errors) = UTF_8.decode_with_bom_removal(&bytes);
            (text.into_owned(), !has_errors)
        }
        None => match String::from_utf8(bytes) {
            Ok(text) => (text, true),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
        },
    };
    let has_nul = text.contains('\0');
    if has_nul {
        text.retain(|char| char != '\0');
    }
    (text, is_clean && !has_nul)
}

/// The form in which names are compared without regard to case: upper, then lower case of each character, so that 'ß'
/// meets 'SS'; composed.
pub(crate) fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> (String, bool) {
        decode(bytes.to_vec())
    }

    #[test]
    fn a_text_is_utf_8_or_utf_16_by_its_mark_or_read_lossily() {
        assert_eq!(read("a\r\nä".as_bytes()), ("a\r\nä".to_owned(), true));
        assert_eq!(read(b"\xFF\xFEh\0i\0"), ("hi".to_owned(), true));
        assert_eq!(read(b"\xFE\xFF\0h\0i"), ("hi".to_owned(), true));
        assert_eq!(read(b"caf\xE9"), ("caf\u{FFFD}".to_owned(), false));
        assert_eq!(read(b"\xFF\xFE\0\xD8"), ("\u{FFFD}".to_owned(), false));
    }

    #[test]
    fn a_mark_goes_and_nul_goes_with_a_warning() {
        assert_eq!(read(b"\xEF\xBB\xBFtext"), ("text".to_owned(), true));
        assert_eq!(read(b"te\0xt"), ("text".to_owned(), false));
    }

    #[test]
    fn names_that_differ_in_case_or_form_fold_to_one() {
        assert_eq!(fold("NOTE.md"), fold("note.MD"));
        assert_eq!(fold("Straße"), fold("STRASSE"));
        assert_eq!(fold("e\u{301}"), fold("É"));
    }
}
