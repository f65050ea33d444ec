//! Marks of Markdown: its headings according to CommonMark.

use std::collections::HashSet;
use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag};

use super::lines::Lines;
use super::outline::Mark;

/// The header of a table and its delimiter row.
const TABLE_HEADER_LINES: usize = 2;

/// The headings outside of quotes and lists. Also keeps the lines of code blocks, tables and HTML together.
pub(super) fn marks(lines: &mut Lines<'_>) -> Vec<Mark> {
    let front_matter = front_matter(lines);
    let offset = lines.text(0..front_matter).len();
    lines.glue(0..front_matter);

    let body = lines.content().get(offset..).unwrap_or_default();
    let options = Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES;
    let mut marks: Vec<Mark> = Vec::new();
    let mut heading: Option<Mark> = None;
    let mut lists: Vec<Range<usize>> = Vec::new();
    let mut items: HashSet<usize> = HashSet::new();
    let mut depth: usize = 0;
    for (event, span) in Parser::new_ext(body, options).into_offset_iter() {
        let range = line_range(lines, offset, span);
        if let Event::Start(tag) = event {
            if let Tag::Heading { level, .. } = tag
                && depth == 0
            {
                heading = Some(Mark {
                    line: range.start,
                    title_lines: range.len(),
                    level: number(level),
                    label: Some(String::new()),
                });
            } else if matches!(tag, Tag::CodeBlock(_) | Tag::HtmlBlock) {
                lines.glue(range);
            } else if matches!(tag, Tag::Table(_)) {
                lines.glue(range.clone());
                lines.add_table(range, TABLE_HEADER_LINES);
            } else if matches!(tag, Tag::List(_)) && lists.last().is_none_or(|last| last.end <= range.start) {
                lists.push(range);
            } else if matches!(tag, Tag::Item) {
                items.insert(range.start);
            }
            depth += 1;
        } else if let Event::End(_) = event {
            depth = depth.saturating_sub(1);
            if depth == 0
                && let Some(mark) = heading.take()
            {
                push(&mut marks, mark);
            }
        } else if let Some(label) = heading.as_mut().and_then(|mark| mark.label.as_mut()) {
            read_label(event, label);
        }
    }
    glue_items(lines, &lists, &items);
    marks
}

/// Keeps the lines of a list item together, up to a blank line.
fn glue_items(lines: &mut Lines<'_>, lists: &[Range<usize>], items: &HashSet<usize>) {
    for line in lists.iter().cloned().flat_map(|list| list.skip(1)) {
        if !items.contains(&line) && !lines.is_blank(line) && !lines.is_blank(line - 1) {
            lines.glue(line - 1..line + 1);
        }
    }
}

fn push(marks: &mut Vec<Mark>, mut mark: Mark) {
    // Headings that are separated only by a bare `\r` are on one line here.
    if marks.last().is_some_and(|last| last.line == mark.line) {
        return;
    }
    mark.label = mark.label.map(|label| label.trim().to_owned()).filter(|label| !label.is_empty());
    marks.push(mark);
}

fn read_label(event: Event<'_>, label: &mut String) {
    if let Event::Text(text) | Event::Code(text) = event {
        label.push_str(&text);
    } else if let Event::SoftBreak | Event::HardBreak = event {
        label.push(' ');
    }
}

fn line_range(lines: &Lines<'_>, offset: usize, span: Range<usize>) -> Range<usize> {
    let first = lines.at_offset(offset + span.start);
    // A block's span includes its line break.
    let last = lines.at_offset((offset + span.end).saturating_sub(1));
    first..last.max(first) + 1
}

/// The number of lines of YAML front matter. The parser's own extension would also treat two thematic breaks further down as front
/// matter, and drop the headings between them.
fn front_matter(lines: &Lines<'_>) -> usize {
    let line = |line: usize| lines.text(line..line + 1).trim_end();
    if line(0) != "---" || lines.is_blank(1) {
        return 0;
    }
    let closing = lines.all().skip(1).find(|&index| matches!(line(index), "---" | "..."));
    closing.map_or(0, |closing| closing + 1)
}

fn number(level: HeadingLevel) -> usize {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

#[cfg(test)]
mod tests {
    use crate::chunk::{Chunk, Format, split};

    fn words(count: usize) -> String {
        vec!["word"; count].join(" ")
    }

    fn outline(chunks: &[Chunk]) -> Vec<(u32, u32, String)> {
        chunks
            .iter()
            .map(|chunk| (chunk.start_line, chunk.end_line, chunk.heading_path.join(" > ")))
            .collect()
    }

    fn split_outline(content: &str) -> Vec<(u32, u32, String)> {
        outline(&split(Format::Markdown, content))
    }

    #[test]
    fn sections_carry_their_heading_path() {
        let body = words(60);
        let content = format!("# Guide\n\n## `Set` *up*\n\n{body}\n\nUse\n===\n{body}\n### Deep\n{body}\n");
        let expected = [(1, 5, "Guide > Set up"), (7, 9, "Use"), (10, 11, "Use > Deep")];
        assert_eq!(split_outline(&content), expected.map(|(start, end, path)| (start, end, path.to_owned())));
    }

    #[test]
    fn small_siblings_are_merged_under_what_they_share() {
        let (small, large) = (words(20), words(80));
        let content =
            format!("# T\n{large}\n## A\n{small}\n## B\n{small}\n## C\n{small}\n## D\n{large}\n## E\nx");
        let expected = [(1, 2, "T"), (3, 8, "T"), (9, 10, "T > D"), (11, 12, "T > E")];
        assert_eq!(split_outline(&content), expected.map(|(start, end, path)| (start, end, path.to_owned())));
    }

    #[test]
    fn a_small_section_is_not_merged_across_its_parent() {
        let content = format!("# A\n{}\n## A1\nx\n# B\ny\n", words(80));
        let expected = [(1, 2, "A"), (3, 4, "A > A1"), (5, 6, "B")];
        assert_eq!(split_outline(&content), expected.map(|(start, end, path)| (start, end, path.to_owned())));
    }

    #[test]
    fn hashes_in_code_quotes_html_and_front_matter_are_no_headings() {
        let content = "---\n# comment\ntitle: x\n---\n\n```sh\n# comment\n```\n\n    # indented\n\n> # quote\n\n<pre>\n# html\n\n# more\n</pre>\n";
        assert_eq!(split_outline(content), [(1, 18, String::new())]);
    }

    #[test]
    fn a_rule_at_the_top_is_no_front_matter() {
        let body = words(60);
        let content = format!("---\n\n# One\n{body}\n\n---\n\n# Two\n{body}\n");
        let expected = [(1, 6, "One"), (8, 9, "Two")];
        assert_eq!(split_outline(&content), expected.map(|(start, end, path)| (start, end, path.to_owned())));
    }

    #[test]
    fn a_long_section_is_split_between_blocks_and_never_in_a_fence_or_table() {
        let paragraph = words(120);
        let code = vec!["let x = 1;"; 60].join("\n\n");
        let row = "| cell cell cell cell | cell cell cell |\n".repeat(30);
        let content = format!(
            "# T\n\n{paragraph}\n\n{paragraph}\n\n```rust\n{code}\n```\n\n{paragraph}\n\n| a | b |\n|---|---|\n{row}"
        );
        let chunks = split(Format::Markdown, &content);
        assert!(chunks.len() >= 4, "{:?}", outline(&chunks));
        for chunk in &chunks {
            assert_eq!(chunk.text.matches("```").count() % 2, 0, "{}", chunk.text);
            assert_eq!(chunk.text.contains("| cell"), chunk.text.contains("|---|"), "{}", chunk.text);
            assert_eq!(chunk.heading_path, ["T"]);
        }
    }

    #[test]
    fn a_huge_table_repeats_its_header() {
        let rows: String =
            (0..200).map(|row| format!("| part {row} | {row} euros and some cents |\n")).collect();
        let content = format!("# Prices\n\nOf parts.\n\n| Part | Price |\n|------|------:|\n{rows}");
        let chunks = split(Format::Markdown, &content);
        assert!(chunks.len() >= 4, "{:?}", outline(&chunks));
        let lines: Vec<&str> = content.lines().collect();
        for (place, chunk) in chunks.iter().enumerate() {
            let expected = if place == 0 { "" } else { "| Part | Price |\n|------|------:|" };
            assert_eq!(chunk.table_header, expected, "{}", chunk.text);
            // The line range excludes the repeated header.
            let own = &lines[chunk.start_line as usize - 1..chunk.end_line as usize];
            assert_eq!(chunk.text, own.join("\n"));
        }
    }

    #[test]
    fn a_long_header_is_not_repeated() {
        let header = format!("| {} |\n|---|\n", "column ".repeat(200));
        let rows = "| some words in a row |\n".repeat(200);
        let chunks = split(Format::Markdown, &format!("{header}{rows}"));
        assert!(chunks.len() > 2 && chunks.iter().all(|chunk| chunk.table_header.is_empty()));
    }

    #[test]
    fn a_long_list_is_cut_between_its_items() {
        let item = format!("- item {}\n  {}\n  - inner {}\n", words(8), words(9), words(7));
        let chunks = split(Format::Markdown, &format!("# T\n\n{}", item.repeat(40)));
        assert!(chunks.len() >= 4, "{:?}", outline(&chunks));
        for chunk in &chunks {
            let first = chunk.text.lines().find(|line| !line.is_empty() && !line.starts_with('#')).unwrap();
            assert!(first.trim_start().starts_with('-'), "{}", chunk.text);
        }
    }

    #[test]
    fn a_huge_fence_is_cut_at_line_ends() {
        let code = vec!["some code of five words"; 400].join("\n");
        let chunks = split(Format::Markdown, &format!("# T\n\n```\n{code}\n```\n"));
        assert!(chunks.len() >= 8, "{}", chunks.len());
        assert!(chunks.iter().all(|chunk| chunk.text.split_whitespace().count() <= 251));
    }

    #[test]
    fn a_long_heading_is_cut_in_the_path() {
        let chunks = split(Format::Markdown, &format!("# {}\n\nbody", "é".repeat(5000)));
        assert!(chunks.iter().all(|chunk| chunk.heading_path.concat().len() <= 256));
    }
}
