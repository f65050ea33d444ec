//! Removes invisible text: it could carry prompt injections that the person who added the document cannot see.

/// Normalizes text from HTML and files: no invisible characters, no trailing spaces, no consecutive empty lines outside of code, and a final
/// newline.
pub(crate) fn markdown(text: &str) -> String {
    let visible = visible(text);
    let mut tidy = String::with_capacity(visible.len());
    let mut empty = 0;
    let mut fence: Option<&str> = None;
    for line in visible.lines() {
        let line = line.trim_end();
        fence = fence_after(fence, line);
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if (empty > 1 && fence.is_none()) || (line.is_empty() && tidy.is_empty()) {
            continue;
        }
        tidy.push_str(line);
        tidy.push('\n');
    }
    let length = tidy.trim_end().len();
    tidy.truncate(length);
    if !tidy.is_empty() {
        tidy.push('\n');
    }
    tidy
}

/// The fence of the code block that is open after this line, if any.
fn fence_after<'a>(open: Option<&'a str>, line: &'a str) -> Option<&'a str> {
    let line = line.trim_start_matches([' ', '>']);
    let marks = line.len() - line.trim_start_matches('`').len();
    let (fence, info) = line.split_at_checked(marks).unwrap_or_default();
    match open {
        None if marks >= 3 => Some(fence),
        None => None,
        Some(open) if marks >= open.len() && info.trim().is_empty() => None,
        Some(open) => Some(open),
    }
}

/// A title on one line of at most 500 characters, without invisible characters; `None` when nothing is left.
pub fn title(text: &str) -> Option<String> {
    const MAX_CHARS: usize = 500;
    let visible = visible(text);
    let words: Vec<&str> = visible.split_whitespace().collect();
    let title: String = words.join(" ").chars().take(MAX_CHARS).collect();
    (!title.is_empty()).then_some(title)
}

/// A whole text without invisible characters, with line feeds as line ends.
pub(crate) fn visible(text: &str) -> String {
    seen(&text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// A text without invisible characters: control characters, bidirectional marks, zero-width characters, tags. Line ends stay as they are.
pub fn seen(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut before = None;
    while let Some(character) = characters.next() {
        match character {
            '\r' => kept.push('\r'),
            _ if is_never_seen(character) => {}
            _ if is_joiner(character) && !shapes(before, character, characters.peek().copied()) => {}
            _ => kept.push(character),
        }
        before = Some(character);
    }
    kept
}

/// Characters that are always invisible.
fn is_never_seen(character: char) -> bool {
    let control = character.is_control() && !matches!(character, '\n' | '\t');
    control
        || matches!(character,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
            | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
            | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
            | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E00FF}' | '\u{E01F0}'..='\u{E0FFF}')
}

/// Joiners and selectors: invisible, but they may shape their neighbours.
fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200C}' | '\u{200D}') || is_variation(character)
}

fn is_variation(character: char) -> bool {
    matches!(character, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

/// Whether a joiner shapes its neighbours, which a single one does in some scripts and in emoji. A run of them, or one in Latin text, is
/// suspicious and removed.
fn shapes(before: Option<char>, joiner: char, after: Option<char>) -> bool {
    let letter = |other: Option<char>| {
        other.is_some_and(|other| !other.is_ascii() && !is_joiner(other) && !is_never_seen(other))
    };
    if is_variation(joiner) {
        return letter(before) || after == Some('\u{20E3}');
    }
    (letter(before) || before.is_some_and(is_variation)) && letter(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_nothing_goes() {
        assert_eq!(visible("a\u{202E}b\u{2066}c\u{200F}"), "abc");
        assert_eq!(visible("pay\u{200B}\u{200C}\u{200D}\u{FEFF}load"), "payload");
        let hidden: String = "ignore".chars().filter_map(|c| char::from_u32(0xE0000 + c as u32)).collect();
        assert_eq!(visible(&format!("seen{hidden}.")), "seen.");
        assert_eq!(visible("a\0b\u{7}c\td"), "abc\td");
        assert_eq!(visible("x\u{FE01}\u{E0101}\u{E0102}y"), "xy");
    }

    #[test]
    fn joiners_stay_where_they_shape_letters_and_emoji() {
        assert_eq!(visible("می\u{200C}خواهم"), "می\u{200C}خواهم");
        assert_eq!(visible("👩\u{200D}💻"), "👩\u{200D}💻");
        assert_eq!(visible("❤\u{FE0F}"), "❤\u{FE0F}");
        assert_eq!(visible("👩\u{200D}\u{200D}\u{200C}💻"), "👩💻");
        assert_eq!(visible("❤\u{FE0F}\u{200D}🔥 1\u{FE0F}\u{20E3}"), "❤\u{FE0F}\u{200D}🔥 1\u{FE0F}\u{20E3}");
    }

    #[test]
    fn empty_lines_are_few_except_in_code() {
        assert_eq!(markdown("\n\na  \n\n\n\nb"), "a\n\nb\n");
        assert_eq!(markdown("````\nx\n\n\n```\n\n\ny\n````\n\n\nz"), "````\nx\n\n\n```\n\n\ny\n````\n\nz\n");
        assert_eq!(markdown(" \n\n"), "");
        assert_eq!(markdown("a\r\nb\rc"), "a\nb\nc\n");
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(title("  A\u{200B}\n  title "), Some("A title".to_owned()));
        assert_eq!(title(" \u{202E} "), None);
    }
}
