//! Parses the front matter of notes: its end, tags and aliases.

use serde_norway::Value;

/// Bytes of front matter that are parsed: untrusted YAML with aliases can expand a hundredfold.
const MAX_BYTES: usize = 32 * 1024;
const MAX_ALIASES: usize = 100;

/// The front matter of a note.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FrontMatter {
    /// The offset of the text after it.
    pub(super) end: usize,
    /// Without `#`, as they are written.
    pub(super) tags: Vec<String>,
    pub(super) aliases: Vec<String>,
    /// Whether it is not a YAML mapping.
    pub(super) is_invalid: bool,
}

/// Reads the front matter of a text; a text without one has an empty one that ends where it begins.
pub(super) fn read(text: &str) -> FrontMatter {
    let Some((yaml, end)) = split(text) else { return FrontMatter::default() };
    let invalid = FrontMatter { end, is_invalid: true, ..FrontMatter::default() };
    if yaml.len() > MAX_BYTES {
        return invalid;
    }
    let fields = match serde_norway::from_str::<Value>(yaml) {
        Ok(Value::Mapping(fields)) => fields,
        Ok(Value::Null) => return FrontMatter { end, ..FrontMatter::default() },
        _ => return invalid,
    };
    let mut read = FrontMatter { end, ..FrontMatter::default() };
    for (key, value) in &fields {
        match key.as_str().map(str::to_ascii_lowercase).as_deref() {
            Some("tags" | "tag") => read.tags.extend(tags(value)),
            Some("aliases" | "alias") => read.aliases.extend(aliases(value)),
            _ => {}
        }
    }
    read.aliases.truncate(MAX_ALIASES);
    read
}

/// The YAML of a front matter, and where the text behind it begins.
fn split(text: &str) -> Option<(&str, usize)> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == "---" && line.ends_with('\n'))?;
    let mut place = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            return Some((text.get(first.len()..place)?, place + line.len()));
        }
        place += line.len();
    }
    None
}

/// A list, or a text with commas or blanks.
fn tags(value: &Value) -> Vec<String> {
    let parted = |text: &str| {
        let parts = text.split(|char: char| char == ',' || char.is_whitespace());
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    match value.as_sequence() {
        Some(items) => items.iter().filter_map(scalar).collect(),
        None => scalar(value).as_deref().map(parted).unwrap_or_default(),
    }
}

/// A list, or a text with commas.
fn aliases(value: &Value) -> Vec<String> {
    let trimmed = |text: String| text.trim().to_owned();
    if let Some(items) = value.as_sequence() {
        return items.iter().filter_map(scalar).map(trimmed).collect();
    }
    let Some(text) = scalar(value) else { return Vec::new() };
    let parts = text.split(',').filter(|_| text.contains(','));
    parts.chain([text.as_str()]).map(|part| part.trim().to_owned()).collect()
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        Value::Null | Value::Sequence(_) | Value::Mapping(_) | Value::Tagged(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags_of(yaml: &str) -> Vec<String> {
        read(&format!("---\n{yaml}\n---\ntext")).tags
    }

    #[test]
    fn tags_are_a_list_or_parted_by_commas_or_blanks() {
        for yaml in ["tags: [a, b/c]", "tags:\n  - a\n  - b/c", "tags: a, b/c", "tag: a b/c", "Tags: a,b/c"] {
            assert_eq!(tags_of(yaml), ["a", "b/c"], "{yaml}");
        }
        assert_eq!(tags_of("tags:"), [""; 0]);
    }

    #[test]
    fn aliases_are_a_list_or_a_text() {
        assert_eq!(read("---\naliases: [One, Two words]\n---\n").aliases, ["One", "Two words"]);
        assert_eq!(read("---\nalias: One\n---\n").aliases, ["One"]);
        assert_eq!(read("---\naliases: A, B\n---\n").aliases, ["A", "B", "A, B"]);
    }

    #[test]
    fn it_ends_at_its_second_line_of_dashes() {
        let text = "---\r\na: 1\r\n---\r\nrest";
        assert_eq!(&text[read(text).end..], "rest");
        assert_eq!(read("---\n---\nrest"), FrontMatter { end: 8, ..FrontMatter::default() });
        for text in ["text\n---\na: 1\n---\n", "---\nno end", "----\na: 1\n---\n", " ---\n---\n", "---"] {
            assert_eq!(read(text), FrontMatter::default(), "{text}");
        }
    }

    #[test]
    fn what_is_no_mapping_is_invalid_and_still_no_text() {
        for yaml in ["a: [", "- a", "a: 1\na: 2", "\"", &"a".repeat(MAX_BYTES + 1)] {
            let text = format!("---\n{yaml}\n---\nrest");
            let read = read(&text);
            assert!(read.is_invalid && &text[read.end..] == "rest", "{yaml}");
        }
    }

    #[test]
    fn names_that_multiply_themselves_are_refused_quickly() {
        let mut yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..200 {
            let inner = format!("*a{}", level - 1);
            yaml += &format!("a{level}: &a{level} [{}]\n", [inner.as_str(); 9].join(", "));
        }
        assert!(read(&format!("---\n{yaml}---\n")).is_invalid);
    }
}
