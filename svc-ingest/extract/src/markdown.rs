//! A Markdown writer for extractors.

use crate::model::MAX_TEXT_BYTES;

/// A Markdown buffer. It ignores writes beyond the limit, as the document is rejected in the end anyway.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    text: String,
}

impl Markdown {
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Whether the limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.text.len() > MAX_TEXT_BYTES
    }

    /// A heading of level 1 to 6.
    pub(crate) fn heading(&mut self, level: usize, text: &str) {
        let text = one_line(text);
        if !text.is_empty() {
            self.block(&format!("{} {text}", "#".repeat(level.clamp(1, 6))));
        }
    }

    /// A paragraph of one or several lines. Text that would be a heading or a fence is escaped.
    pub(crate) fn paragraph(&mut self, text: &str) {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(escape_start);
        let lines: Vec<String> = lines.collect();
        if !lines.is_empty() {
            self.block(&lines.join("\n"));
        }
    }

    /// A list item, with levels from 0. Items are not separated by empty lines.
    pub(crate) fn item(&mut self, depth: usize, marker: &str, text: &str) {
        let text = one_line(text);
        if text.is_empty() || self.is_full() {
            return;
        }
        if !self.ends_in_item() {
            self.separate();
        }
        let indent = "    ".repeat(depth.min(8));
        self.text.push_str(&format!("{indent}{marker} {text}\n"));
    }

    /// A table whose first row has the column names. A single column is written as text: it is usually a frame.
    pub(crate) fn table(&mut self, rows: &[Vec<String>]) {
        let rows: Vec<&Vec<String>> =
            rows.iter().filter(|row| row.iter().any(|cell| !cell.trim().is_empty())).collect();
        let columns = rows.iter().map(|row| row.len()).max().unwrap_or_default();
        if columns == 1 {
            rows.iter().copied().flatten().for_each(|cell| self.paragraph(cell));
            return;
        }
        self.separate();
        for (index, row) in rows.into_iter().enumerate() {
            if self.is_full() {
                return;
            }
            let cells =
                (0..columns).map(|column| row.get(column).map(|cell| in_cell(cell)).unwrap_or_default());
            let cells: Vec<String> = cells.collect();
            self.text.push_str(&format!("| {} |\n", cells.join(" | ")));
            if index == 0 {
                self.text.push_str(&format!("|{}\n", " --- |".repeat(columns)));
            }
        }
    }

    /// A code block, in a fence that is longer than any in the code.
    pub(crate) fn code(&mut self, language: &str, code: &str) {
        let longest = code
            .lines()
            .map(|line| line.chars().take_while(|mark| *mark == '`').count())
            .max()
            .unwrap_or_default();
        let fence = "`".repeat(longest.max(2) + 1);
        self.block(&format!("{fence}{language}\n{}\n{fence}", code.trim_end()));
    }

    /// A block of finished Markdown.
    pub(crate) fn block(&mut self, markdown: &str) {
        if markdown.trim().is_empty() || self.is_full() {
            return;
        }
        self.separate();
        self.text.push_str(markdown);
        self.text.push('\n');
    }

    fn separate(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    fn ends_in_item(&self) -> bool {
        let last = self.text.lines().next_back().unwrap_or_default().trim_start();
        let ordered =
            last.split_once(". ").is_some_and(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
        last.starts_with("- ") || ordered
    }
}

/// Collapses white space to one line.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn in_cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

fn escape_start(line: &str) -> String {
    let escaped = line.starts_with('#') || line.starts_with("```") || line.starts_with("~~~");
    if escaped { format!("\\{line}") } else { line.to_owned() }
}

/// A link, or only its text if the URL is not safe to follow.
pub(crate) fn link(text: &str, address: &str) -> String {
    let followed = ["http://", "https://", "mailto:"].iter().any(|scheme| address.starts_with(scheme));
    let plain = !address
        .contains(|character: char| character.is_whitespace() || matches!(character, '(' | ')' | '<' | '>'));
    if followed && plain && !text.trim().is_empty() && text.trim() != address {
        format!("[{}]({address})", text.trim())
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_apart_and_items_together() {
        let mut text = Markdown::default();
        text.heading(2, "A\n heading");
        text.paragraph("# of things\n\n more ");
        text.item(0, "-", "one");
        text.item(1, "1.", "deep");
        text.paragraph("end");
        text.table(&[vec!["a".into(), "b|c".into()], vec![" ".into()], vec!["1\n2".into()]]);
        text.code("sh", "```\nx\n");
        let expected = "## A heading\n\n\\# of things\nmore\n\n- one\n    1. deep\n\nend\n\n\
                        | a | b\\|c |\n| --- | --- |\n| 1 2 |  |\n\n````sh\n```\nx\n````\n";
        assert_eq!(text.into_text(), expected);
    }

    #[test]
    fn only_addresses_that_may_be_followed_are_links() {
        assert_eq!(link("a", "https://b.c/d"), "[a](https://b.c/d)");
        assert_eq!(link("a", "javascript:alert(1)"), "a");
        assert_eq!(link("https://b.c/", "https://b.c/"), "https://b.c/");
    }
}
