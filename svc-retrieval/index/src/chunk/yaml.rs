//! Marks of YAML: its keys and list items, recognised by indentation.
//!
//! There is no parser, since much YAML is a template that is not valid YAML before it is rendered.

use super::lines::Lines;
use super::outline::Mark;

/// One mark for each line that starts with a key, a list item or a new document.
pub(super) fn marks(lines: &Lines<'_>) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    let mut block_scalar: Option<usize> = None;
    for index in lines.all() {
        let line = lines.text(index..index + 1).trim_end();
        let indent = line.len() - line.trim_start_matches(' ').len();
        let is_content = block_scalar.is_some_and(|parent| indent > parent);
        if line.is_empty() || is_content {
            continue;
        }
        let entry = Entry::read(line, indent);
        block_scalar = entry.block_scalar;
        if let Some((level, label)) = entry.mark {
            let after = marks.last().map_or(0, |last| last.line + 1);
            let first = with_comments(lines, index, indent, after);
            marks.push(Mark { line: first, title_lines: index - first + 1, level, label });
        }
    }
    marks
}

/// The parts of one line that matter here.
struct Entry {
    mark: Option<(usize, Option<String>)>,
    /// If a block scalar follows, the column beyond which its lines are indented.
    block_scalar: Option<usize>,
}

impl Entry {
    fn read(line: &str, indent: usize) -> Self {
        let (_, text) = line.split_at(indent);
        if line == "---" || line.starts_with("--- ") {
            return Self { mark: Some((0, None)), block_scalar: None };
        }
        if text.starts_with('#') {
            return Self { mark: None, block_scalar: None };
        }
        let inner = text.trim_start_matches("- ");
        let is_item = inner.len() < text.len() || text == "-";
        let key = split_key(inner);
        let value = key.map_or(inner, |(_, value)| value);
        let mark = if is_item {
            // A list may have the same indentation as its key and is still the key's value.
            Some((2 * indent + 2, None))
        } else {
            key.map(|(label, _)| (2 * indent + 1, Some(label.to_owned())))
        };
        let column = if key.is_some() { line.len() - inner.len() } else { indent };
        Self { mark, block_scalar: opens_block_scalar(value).then_some(column) }
    }
}

/// The key at the start of a line, without quotes, and the text after its colon.
fn split_key(text: &str) -> Option<(&str, &str)> {
    let (key, rest) = match text.chars().next()? {
        quote @ ('"' | '\'') => text.get(1..)?.split_once(quote)?,
        '{' | '[' | '}' | ']' | ',' | '|' | '>' | '%' | '@' | '`' => return None,
        _ => {
            let end = text.find(": ").or_else(|| text.ends_with(':').then(|| text.len() - 1))?;
            text.split_at(end)
        }
    };
    let value = rest.trim_start().strip_prefix(':')?;
    let is_separate = value.is_empty() || value.starts_with(' ');
    (is_separate && !key.is_empty() && !key.contains(" #")).then_some((key.trim_end(), value.trim_start()))
}

fn opens_block_scalar(value: &str) -> bool {
    let header = value.split(" #").next().unwrap_or(value).trim_end();
    let indicators = header.strip_prefix('|').or_else(|| header.strip_prefix('>'));
    indicators.is_some_and(|rest| rest.chars().all(|character| matches!(character, '+' | '-' | '1'..='9')))
}

/// The first of the comment lines directly above a line, which belong to it.
fn with_comments(lines: &Lines<'_>, index: usize, indent: usize, after: usize) -> usize {
    let is_comment = |line: &usize| {
        let text = lines.text(*line..*line + 1);
        text.find(|character| character != ' ') == Some(indent) && text.trim_start().starts_with('#')
    };
    (after..index).rev().take_while(is_comment).last().unwrap_or(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{Format, split};

    fn found(content: &str) -> Vec<(usize, usize, Option<String>)> {
        marks(&Lines::new(content)).into_iter().map(|mark| (mark.line, mark.level, mark.label)).collect()
    }

    fn label(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn marks_keys_items_and_documents() {
        let content = "a: 1\n\"b c\":\n- d: 2\n  e: http://x\n---\nf : # note\n  {g: 1}\nplain text\n";
        let expected = [
            (0, 1, label("a")),
            (1, 1, label("b c")),
            (2, 2, None),
            (3, 5, label("e")),
            (4, 0, None),
            (5, 1, label("f")),
        ];
        assert_eq!(found(content), expected);
    }

    #[test]
    fn a_block_scalar_has_no_keys() {
        let content = "run: |-  # shell\n  echo: x\n\n  - y: z\nlist:\n  - |\n    k: v\n  - text: >\n      k: v\nend: 1";
        let lines: Vec<usize> = found(content).into_iter().map(|(line, ..)| line).collect();
        assert_eq!(lines, [0, 4, 5, 7, 9]);
    }

    #[test]
    fn a_comment_belongs_to_the_key_below() {
        assert_eq!(found("a: 1\n# about b\n# more\nb: 2\n"), [(0, 1, label("a")), (1, 1, label("b"))]);
    }

    #[test]
    fn a_large_mapping_is_cut_at_its_keys() {
        let block = |key: &str| format!("{key}:\n{}", "  - one two three four five six\n".repeat(30));
        let content = format!("# about\nroot:\n  x: 1\n{}{}", block("first"), block("second"));
        let chunks = split(Format::Yaml, &content);
        let outline: Vec<_> = chunks
            .iter()
            .map(|chunk| (chunk.start_line, chunk.end_line, chunk.heading_path.join(".")))
            .collect();
        let expected = [(1, 3, "root"), (4, 34, "first"), (35, 65, "second")];
        assert_eq!(outline, expected.map(|(start, end, path)| (start, end, path.to_owned())));
    }
}
