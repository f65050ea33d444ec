//! Parses link targets: schemes, fragments, percent-encoding.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use unicode_normalization::UnicodeNormalization as _;

/// RFC 3986, "unreserved": everything else of a heading is encoded.
const HEADING: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Fragments of attachments are read by viewers: `page=3&zoom=50`.
const PARAMETERS: &AsciiSet = &HEADING.remove(b'=').remove(b'&').remove(b',').remove(b':');

/// A relative target, in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Relative {
    /// Percent-decoded once, in NFC.
    pub(crate) path: String,
    /// As written, in NFC; differs from `path` if it contains percent signs.
    pub(crate) raw: String,
    /// Decoded.
    pub(crate) fragment: Option<String>,
}

/// Parses a Markdown target; `None` for one with a scheme or a host, and for a fragment of the same text.
pub(crate) fn relative(target: &str) -> Option<Relative> {
    if target.is_empty() || target.starts_with('#') || target.starts_with("//") || has_scheme(target) {
        return None;
    }
    let (path, fragment) = match target.split_once('#') {
        Some((path, fragment)) => (path, Some(decoded(fragment).into_owned())),
        None => (target, None),
    };
    Some(Relative { path: decoded(path).nfc().collect(), raw: path.nfc().collect(), fragment })
}

/// Percent-decodes once; unchanged if the result is not UTF-8.
pub(crate) fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8().unwrap_or(Cow::Borrowed(text))
}

/// RFC 3986, section 3.1. A single letter is a Windows drive.
pub(crate) fn has_scheme(target: &str) -> bool {
    let Some((scheme, _)) = target.split_once(':') else { return false };
    scheme.len() > 1
        && scheme.starts_with(|char: char| char.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Resolves a path relative to a folder. `..` stops at the root.
pub(crate) fn joined(folder: &str, target: &str) -> String {
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => _ = names.pop(),
            name => names.push(name),
        }
    }
    names.join("/")
}

/// A heading or a block as a fragment.
pub(crate) fn heading(text: &str) -> String {
    match text.strip_prefix('^') {
        Some(block) => format!("^{}", utf8_percent_encode(block, HEADING)),
        None => utf8_percent_encode(text, HEADING).to_string(),
    }
}

/// The fragment of an attachment.
pub(crate) fn parameters(text: &str) -> String {
    utf8_percent_encode(text, PARAMETERS).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_target_has_a_path_and_a_fragment_both_decoded_once() {
        let target = relative("../a%20b%2520c.md#Head%20line").unwrap();
        assert_eq!(target.path, "../a b%20c.md");
        assert_eq!(target.raw, "../a%20b%2520c.md");
        assert_eq!(target.fragment.as_deref(), Some("Head line"));
        assert_eq!(relative("100%.md").unwrap().path, "100%.md");
        assert_eq!(relative("%FF.md").unwrap().path, "%FF.md");
    }

    #[test]
    fn targets_with_a_scheme_and_places_in_the_same_text_are_not_relative() {
        for target in ["https://a.b/c", "mailto:a@b.c", "obsidian://open", "//host/a", "#Heading", ""] {
            assert_eq!(relative(target), None, "{target}");
        }
        assert!(relative("a b: c.md").is_some());
    }

    #[test]
    fn fragments_are_encoded_and_blocks_keep_their_mark() {
        assert_eq!(heading("A (b) ä"), "A%20%28b%29%20%C3%A4");
        assert_eq!(heading("^block-1"), "^block-1");
        assert_eq!(parameters("page=3"), "page=3");
    }
}
