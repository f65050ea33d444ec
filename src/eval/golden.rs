//! Parses golden questions: questions of a workspace's users, with the location of each answer.

use serde::Deserialize;

use super::collection::parse_lines;
use super::judgement::{Expected, Question};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    question: String,
    expect: Vec<String>,
}

/// The questions of a JSONL text; errors call it `name`. Every expectation has the same gain.
pub(super) fn parse(text: &str, name: &str) -> anyhow::Result<Vec<Question>> {
    let lines: Vec<Line> = parse_lines(text, name)?;
    anyhow::ensure!(!lines.is_empty(), "{name} has no questions");
    Ok(lines.into_iter().map(question).collect())
}

fn question(line: Line) -> Question {
    let expected = line.expect.iter().map(|expectation| expected(expectation)).collect();
    Question { id: line.question.clone(), text: line.question, expected }
}

/// A path or an id, followed by `:7` or `:7-12` for lines.
fn expected(expectation: &str) -> Expected {
    let (document, lines) = match expectation.rsplit_once(':').map(|(before, range)| (before, lines(range))) {
        Some((before, Some(lines))) => (before, Some(lines)),
        Some((_, None)) | None => (expectation, None),
    };
    Expected { document: document.to_owned(), lines, gain: 1.0 }
}

fn lines(range: &str) -> Option<(u32, u32)> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let lines = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (1 <= lines.0 && lines.0 <= lines.1).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expectation: &str, document: &str, lines: Option<(u32, u32)>) {
        assert_eq!(expected(expectation), Expected { document: document.to_owned(), lines, gain: 1.0 });
    }

    #[test]
    fn an_expectation_is_a_document_or_lines_of_it() {
        check("/a b.md", "/a b.md", None);
        check("/a.md:7", "/a.md", Some((7, 7)));
        check("/a.md:7-12", "/a.md", Some((7, 12)));
        check(
            "0192f0c1-0000-7000-8000-000000000000:1-2",
            "0192f0c1-0000-7000-8000-000000000000",
            Some((1, 2)),
        );
    }

    #[test]
    fn what_is_no_range_of_lines_belongs_to_the_path() {
        for odd in ["/a:b.md", "/a.md:", "/a.md:0", "/a.md:9-3", "/a.md:1-x"] {
            check(odd, odd, None);
        }
    }

    #[test]
    fn reads_a_line_for_each_question() {
        let text = "{\"question\": \"Why?\", \"expect\": [\"/a.md\", \"/b.md:3\"]}\n\n";
        let questions = parse(text, "golden.jsonl").unwrap();
        assert_eq!(questions.len(), 1);
        assert_eq!(questions[0].text, "Why?");
        assert_eq!(questions[0].expected.len(), 2);
    }

    #[test]
    fn says_what_is_wrong_with_a_line() {
        let wrong = |text| format!("{:#}", parse(text, "golden.jsonl").unwrap_err());
        assert!(wrong("").contains("golden.jsonl has no questions"));
        assert!(
            wrong("{\"question\": \"Why?\", \"expects\": []}")
                .contains("golden.jsonl, line 1: unknown field")
        );
    }
}
