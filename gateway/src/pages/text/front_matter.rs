//! Front matter: keys and values before a text, between two lines of `---`.

/// Longer front matter is treated as text.
const MAX_LINES: usize = 200;
/// The delimiter line.
pub(super) const FENCE: &str = "---";

/// The front matter of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FrontMatter<'a> {
    /// Keys with their raw values, including continuation lines.
    pub(super) entries: Vec<(&'a str, String)>,
    /// Its length in bytes, with both delimiters.
    pub(super) bytes: usize,
    /// Its number of lines.
    pub(super) lines: usize,
}

/// The front matter at the start of a text.
pub(super) fn of(text: &str) -> Option<FrontMatter<'_>> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next()?;
    if first.trim_end() != FENCE {
        return None;
    }
    let (mut bytes, mut entries) = (first.len(), Vec::<(&str, String)>::new());
    for (index, line) in lines.take(MAX_LINES).enumerate() {
        bytes += line.len();
        let written = line.trim_end();
        if ends(written) {
            return (!entries.is_empty()).then_some(FrontMatter { entries, bytes, lines: index + 2 });
        }
        match named(written) {
            Some((name, value)) => entries.push((name, value.to_owned())),
            None if written.trim().is_empty() || written.starts_with('#') => {}
            None => {
                // Neither a key nor a continuation line.
                let (_, value) = entries.last_mut()?;
                if !value.is_empty() {
                    value.push('\n');
                }
                value.push_str(written);
            }
        }
    }
    None
}

/// Whether a line ends it.
pub(super) fn ends(line: &str) -> bool {
    let line = line.trim_end();
    line == FENCE || line == "..."
}

/// The key at the start of a line, and its value.
pub(super) fn named(line: &str) -> Option<(&str, &str)> {
    if line.starts_with([' ', '\t', '-', '#', '[', '{', '"', '\'']) {
        return None;
    }
    let (name, value) = line.split_once(':')?;
    (!name.is_empty() && (value.is_empty() || value.starts_with([' ', '\t']))).then(|| (name, value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_read_as_they_are_written() {
        let text = "---\ntitle: A: b\ntags:\n  - x\n  - y\n# why\nempty:\n---\n# Text\n";
        let read = of(text).unwrap();
        let entries: Vec<(&str, &str)> =
            read.entries.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(entries, [("title", "A: b"), ("tags", "  - x\n  - y"), ("empty", "")]);
        assert_eq!((&text[read.bytes..], read.lines), ("# Text\n", 8));
        assert_eq!(of("---\r\na: 1\r\n...\r\nrest").unwrap().lines, 3);
    }

    #[test]
    fn other_texts_have_none() {
        for text in
            ["", "---", "---\n---\n", "---\nwords\n---\n", "---\na: 1\n", "a: 1\n---\n", "--- x\na: 1\n---\n"]
        {
            assert_eq!(of(text), None, "{text:?}");
        }
        assert_eq!(of(&format!("---\n{}---\n", "a: 1\n".repeat(MAX_LINES + 1))), None);
    }
}
