//! Property tests: invariants of the chunks of any document.

use proptest::prelude::*;

use super::{Chunk, Format, MAX_BYTES, split};

const FORMATS: [Format; 5] = [Format::Markdown, Format::Json, Format::Yaml, Format::Table, Format::Text];

/// The lines of a document, split independently of the chunker.
fn document_lines(content: &str) -> Vec<&str> {
    let content = content.strip_prefix('\u{feff}').unwrap_or(content);
    content.split_inclusive('\n').collect()
}

fn check(format: Format, content: &str) {
    let lines = document_lines(content);
    let chunks = split(format, content);
    let mut covered = vec![false; lines.len()];
    let mut last_end = 0;
    for (index, chunk) in chunks.iter().enumerate() {
        let (start, end) = (chunk.start_line as usize, chunk.end_line as usize);
        assert!(1 <= start && start <= end && end <= lines.len(), "{start}..={end} of {}", lines.len());
        assert!(chunk.text.len() <= MAX_BYTES);
        assert!(!chunk.text.trim().is_empty());

        let text = lines[start - 1..end].concat();
        let body = text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(&text);
        let is_piece = body.len() > MAX_BYTES;
        let continues = index > 0 && is_piece && same_lines(chunk, &chunks[index - 1]);
        assert!(continues || start > last_end, "{format:?}: line {start} after {last_end}");
        last_end = end;

        if is_piece {
            assert!(start == end && body.contains(&chunk.text));
            assert_eq!(chunk.gap, None);
        } else {
            assert_eq!(chunk.text, body, "{format:?}");
        }
        if let (Some(gap), Some(next)) = (&chunk.gap, chunks.get(index + 1).filter(|next| next.gap.is_some()))
        {
            let both = lines[start - 1..next.end_line as usize].concat();
            assert!(both.starts_with(&format!("{}{gap}{}", chunk.text, next.text)), "{format:?}: {gap:?}");
        }
        covered[start - 1..end].fill(true);
    }
    for (line, covered) in lines.iter().zip(covered) {
        assert!(covered || line.trim().is_empty(), "{format:?}: {line:?} is in no chunk");
    }
}

fn same_lines(left: &Chunk, right: &Chunk) -> bool {
    (left.start_line, left.end_line) == (right.start_line, right.end_line)
}

/// A line of Markdown, YAML, JSON or a table, or a malformed one.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z ]{0,80}",
        2 => Just(String::new()),
        1 => "#{1,7} [a-zé`*]{0,12}",
        1 => "(```|~~~)(rust)?",
        1 => "(---|===|\\.\\.\\.|\\* \\* \\*)",
        1 => "\\| [a-z]{1,4} \\| [a-z]{1,4} \\|",
        1 => Just("|---|---|".to_owned()),
        1 => " {0,5}[-*>] [a-z# ]{0,20}",
        1 => " {0,6}[a-z]{1,5}:( [|>a-z\"#]{0,5})?",
        1 => "<(pre|div|!--|/pre|/div)>?",
        1 => "[{}\\[\\],:\"a1 ]{0,12}",
        1 => "[a-z,;\"]{0,20}",
        1 => "(word ){60,120}",
    ]
}

fn document() -> impl Strategy<Value = String> {
    let line_end = prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n"), Just("\r")];
    prop::collection::vec((line(), line_end), 0..60)
        .prop_map(|lines| lines.into_iter().flat_map(|(line, end)| [line, end.to_owned()]).collect())
}

/// Valid, pretty-printed JSON.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i32>().prop_map(serde_json::Value::from),
        "(\\PC{0,20}|(word ){100})".prop_map(serde_json::Value::from),
    ];
    let value = leaf.prop_recursive(8, 128, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            prop::collection::btree_map("\\PC{0,8}", inner, 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    });
    value.prop_map(|value| serde_json::to_string_pretty(&value).unwrap())
}

proptest! {
    #[test]
    fn any_string_is_covered(content in any::<String>()) {
        FORMATS.iter().for_each(|format| check(*format, &content));
    }

    #[test]
    fn any_document_is_covered(content in document()) {
        FORMATS.iter().for_each(|format| check(*format, &content));
    }

    #[test]
    fn any_json_is_covered(content in json()) {
        FORMATS.iter().for_each(|format| check(*format, &content));
    }

    #[test]
    fn giant_lines_are_covered(lines in prop::collection::vec("[a漢 ]{1,3}", 1..4), times in 1usize..9000) {
        let content = lines.iter().map(|line| line.repeat(times)).collect::<Vec<_>>().join("\n");
        FORMATS.iter().for_each(|format| check(*format, &content));
    }

    #[test]
    fn fences_tables_and_items_stay_whole(blocks in prop::collection::vec(block(), 1..30)) {
        let content: String = blocks.iter().map(|block| format!("{block}\n\n")).collect();
        check(Format::Markdown, &content);
        let chunks = split(Format::Markdown, &content);
        for block in &blocks {
            let whole = chunks.iter().filter(|chunk| chunk.text.contains(block.as_str())).count();
            prop_assert!(whole >= 1, "{block:?} is in no chunk");
        }
    }

    #[test]
    fn rows_of_tables_stay_whole_under_their_header(rows in prop::collection::vec(values(), 1..80)) {
        let rows: Vec<String> = rows.iter().map(row).collect();
        let content = format!("{HEADER}\n{}\n", rows.join("\n"));
        check(Format::Table, &content);
        let chunks = split(Format::Table, &content);
        for (place, chunk) in chunks.iter().enumerate() {
            prop_assert_eq!(&chunk.table_header, if place == 0 { "" } else { HEADER });
            prop_assert_eq!(chunk.text.matches('"').count() % 2, 0, "a row is parted: {}", chunk.text);
        }
    }

    #[test]
    fn chunks_and_what_is_between_them_are_the_document(paragraphs in prop::collection::vec("[a-z]{1,9}( [a-z#*-]{1,9}){0,90}", 1..30)) {
        let content = paragraphs.join("\n\n");
        for format in [Format::Markdown, Format::Text] {
            let chunks = split(format, &content);
            let again: String = chunks
                .iter()
                .map(|chunk| format!("{}{}", chunk.text, chunk.gap.as_deref().unwrap_or_default()))
                .collect();
            prop_assert_eq!(again, format!("{content}\n"));
        }
    }
}

const HEADER: &str = "name;\"what it\nis\"";

/// The values of a row; quoted ones contain line breaks, blank lines and delimiters.
fn values() -> impl Strategy<Value = (String, String)> {
    ("[a-z]{1,9}", "[a-z ;,\n]{0,90}")
}

fn row((name, what): &(String, String)) -> String {
    format!("{name};\"{what}\"")
}

/// A block of Markdown that is never cut, since it is shorter than the limit of blocks.
fn block() -> impl Strategy<Value = String> {
    let code = prop::collection::vec("[a-z(){}=# ]{0,30}", 0..40);
    let rows = prop::collection::vec("[a-z ]{1,20}", 1..40);
    prop_oneof![
        2 => "[a-z]{1,9}( [a-z]{1,9}){0,60}",
        1 => "#{1,4} [a-z]{1,9}",
        2 => code.prop_map(|lines| format!("```rust\n{}\n```", lines.join("\n"))),
        1 => rows.clone().prop_map(|rows| {
            let rows: Vec<String> = rows.iter().map(|row| format!("| {row} | x |")).collect();
            format!("| head | x |\n|---|---|\n{}", rows.join("\n"))
        }),
        1 => rows.prop_map(|rows| rows.iter().map(|row| format!("- {row}")).collect::<Vec<_>>().join("\n")),
    ]
}
