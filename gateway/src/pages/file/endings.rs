//! Line endings. Browsers submit every line break of a text area as CR LF, whatever the text had; unchanged lines
//! must stay byte-identical.

use crate::pages::text::compare;

/// A typed text, with the original line endings of unchanged lines.
pub(super) fn restore_endings(before: &str, typed: &str) -> String {
    let typed = plain(typed);
    if !before.contains('\r') {
        return typed;
    }
    let old_lines = lines(before);
    let usual = usual(&old_lines);
    let (old, new_lines) = (plain(before), lines(&typed));
    let comparison = compare(&old, &typed);
    let mut text = String::with_capacity(typed.len() + new_lines.len());
    for (index, line) in new_lines.iter().enumerate() {
        match comparison.was(index).and_then(|old| old_lines.get(old)) {
            Some(same) => text.push_str(same),
            None => match line.strip_suffix('\n') {
                Some(words) => {
                    text.push_str(words);
                    text.push_str(usual);
                }
                None => text.push_str(line),
            },
        }
    }
    text
}

/// The text with LF line endings, as in a text area.
pub(super) fn plain(text: &str) -> String {
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text.to_owned() }
}

/// The lines with their endings: LF, CR LF, or CR.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = match rest.find(['\r', '\n']) {
            Some(at) if rest.get(at..).is_some_and(|end| end.starts_with("\r\n")) => at + 2,
            Some(at) => at + 1,
            None => rest.len(),
        };
        let (line, after) = rest.split_at(end);
        lines.push(line);
        rest = after;
    }
    lines
}

/// The most frequent line ending.
fn usual(lines: &[&str]) -> &'static str {
    let count = |end: &str| lines.iter().filter(|line| line.ends_with(end)).count();
    let with_both = count("\r\n");
    if with_both * 2 > lines.len() {
        "\r\n"
    } else if count("\r") * 2 > lines.len() {
        "\r"
    } else {
        "\n"
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An unedited text as a browser submits it.
    fn sent(text: &str) -> String {
        plain(text).replace('\n', "\r\n")
    }

    #[test]
    fn lines_that_are_new_end_as_the_others_do() {
        assert_eq!(restore_endings("a\r\nb\r\n", "a\r\nx\r\nb\r\n"), "a\r\nx\r\nb\r\n");
        assert_eq!(restore_endings("a\nb\n", "a\r\nx\r\nb\r\n"), "a\nx\nb\n");
        assert_eq!(restore_endings("", "a\r\n"), "a\n");
        assert_eq!(restore_endings("a\rb\rc\r", "a\r\nb\r\nd\r\n"), "a\rb\rd\r");
    }

    proptest! {
        #[test]
        fn what_nobody_touched_stays_as_it_was(text in "(a|b|\\r\\n|\\n|\\r| ){0,30}") {
            prop_assert_eq!(restore_endings(&text, &sent(&text)), text);
        }
    }
}
