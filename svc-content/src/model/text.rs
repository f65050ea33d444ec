//! The comparison of texts.

use unicode_normalization::UnicodeNormalization as _;

/// The case-insensitive form of names: upper case, then lower case of each character, so that 'ß' equals 'SS' and all
/// sigmas are equal; in composed form, since macOS decomposes.
pub(crate) fn fold(name: &str) -> String {
    name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_names_meet() {
        for (one, other) in [
            ("README.md", "readme.MD"),
            ("Straße", "STRASSE"),
            ("ΟΔΟΣ", "οδος"),
            ("E\u{301}té", "été"),
            ("İ", "i\u{307}"),
        ] {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        assert_ne!(fold("a"), fold("b"));
    }
}
