//! The self-chosen names of clients.

const MAX_NAME_CHARS: usize = 100;

/// Sanitizes a name for display, so that it cannot alter the text around it. `None` if nothing is left.
pub(super) fn displayable(name: &str) -> Option<String> {
    let is_plain = |character: &char| !character.is_control() && !is_formatting(*character);
    let plain: String = name.chars().filter(is_plain).collect();
    let shown: String =
        plain.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_NAME_CHARS).collect();
    (!shown.is_empty()).then_some(shown)
}

/// Invisible and bidirectional control characters.
const fn is_formatting(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_change_the_page_around_it() {
        assert_eq!(displayable("  Claude \t Code ").as_deref(), Some("Claude Code"));
        assert_eq!(displayable("a\u{202e}b\u{200b}c\n").as_deref(), Some("abc"));
        assert_eq!(displayable("\u{200b} \n"), None);
        assert_eq!(displayable(&"é".repeat(200)).unwrap().chars().count(), MAX_NAME_CHARS);
    }
}
