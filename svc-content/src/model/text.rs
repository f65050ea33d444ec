//! How texts are compared.

use unicode_normalization::UnicodeNormalization as _;

/// The form in which names are compared without regard to case: upper, then lower case of each character, so that
/// 'ß' meets 'SS' and every sigma meets every other; composed, as macOS decomposes.
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
