//! Marks of JSON: the members of its objects and the elements of its arrays.

use serde::de::IgnoredAny;

use super::MAX_DEPTH;
use super::outline::Mark;

/// One mark for each line on which a member or an element starts; none if the content is not JSON.
pub(super) fn marks(content: &str) -> Vec<Mark> {
    if serde_json::from_str::<IgnoredAny>(content).is_err() {
        return Vec::new();
    }
    let mut scan = Scan { content, line: 0, open: Vec::new(), at_start: false, marks: Vec::new() };
    let mut offset = 0;
    while let Some(byte) = content.as_bytes().get(offset) {
        offset += scan.read(*byte, offset);
    }
    scan.marks
}

/// A scanner for content that is known to be valid JSON: it only locates tokens.
struct Scan<'a> {
    content: &'a str,
    line: usize,
    open: Vec<Container>,
    /// Whether the next token starts a member or an element.
    at_start: bool,
    marks: Vec<Mark>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

impl Scan<'_> {
    /// Reads the token that starts with a byte and returns its length.
    fn read(&mut self, byte: u8, offset: usize) -> usize {
        match byte {
            b'\n' => self.line += 1,
            b' ' | b'\t' | b'\r' | b':' => {}
            b',' => self.at_start = true,
            b'{' => self.enter(Container::Object),
            b'[' => self.enter(Container::Array),
            b'}' | b']' => {
                self.open.pop();
                self.at_start = false;
            }
            b'"' => return self.read_string(offset),
            _ => self.start_element(),
        }
        1
    }

    fn enter(&mut self, container: Container) {
        self.start_element();
        self.open.push(container);
        self.at_start = true;
    }

    fn read_string(&mut self, offset: usize) -> usize {
        let text = self.content.get(offset..).unwrap_or_default();
        let length = string_length(text);
        if self.at_start && self.open.last() == Some(&Container::Object) {
            let key = text.get(..length).and_then(|literal| serde_json::from_str(literal).ok());
            self.mark(key);
            self.at_start = false;
        } else {
            self.start_element();
        }
        length
    }

    fn start_element(&mut self) {
        if self.at_start && self.open.last() == Some(&Container::Array) {
            self.mark(None);
        }
        self.at_start = false;
    }

    fn mark(&mut self, label: Option<String>) {
        let line_is_free = self.marks.last().is_none_or(|last| last.line < self.line);
        if line_is_free && self.open.len() <= MAX_DEPTH {
            self.marks.push(Mark { line: self.line, title_lines: 1, level: self.open.len(), label });
        }
    }
}

/// The length of the string literal at the start of a text, including its quotes.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{Format, split};

    fn found(content: &str) -> Vec<(usize, usize, Option<String>)> {
        marks(content).into_iter().map(|mark| (mark.line, mark.level, mark.label)).collect()
    }

    #[test]
    fn marks_members_and_elements_once_a_line() {
        let content =
            "{\n \"a\\\"{\": {\n  \"b\": 1, \"c\": \"x\\\\\"\n },\n \"d\": [\n  1,\n  {\"e\": 2}\n ]\n}";
        let label = |text: &str| Some(text.to_owned());
        let expected =
            [(1, 1, label("a\"{")), (2, 2, label("b")), (4, 1, label("d")), (5, 2, None), (6, 2, None)];
        assert_eq!(found(content), expected);
    }

    #[test]
    fn what_is_not_json_has_no_marks() {
        assert_eq!(found("{\"a\": 1,}"), []);
        assert_eq!(found("{\"a\":\n1}\n{\"b\":\n2}"), []);
    }

    #[test]
    fn a_large_object_is_cut_at_its_keys() {
        let value = vec!["\"word word word word word\""; 30].join(",\n    ");
        let content =
            format!("{{\n  \"first\": [\n    {value}\n  ],\n  \"second\": [\n    {value}\n  ]\n}}\n");
        let chunks = split(Format::Json, &content);
        let outline: Vec<_> = chunks
            .iter()
            .map(|chunk| (chunk.start_line, chunk.end_line, chunk.heading_path.join(".")))
            .collect();
        assert_eq!(outline, [(1, 33, "first".to_owned()), (34, 66, "second".to_owned())]);
    }

    #[test]
    fn a_small_document_is_one_chunk() {
        let chunks = split(Format::Json, "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 2\n  }\n}");
        assert_eq!(chunks.len(), 1);
        assert_eq!(chunks.first().unwrap().heading_path, [""; 0]);
    }
}
