//! Cuts any document into passages and reads any text as a search: Markdown, JSON, YAML, the syntax of queries, words.
//!
//! To run it: `tests/fuzz/run.sh passages`.
#![no_main]

use cairn_index::ParsedQuery;
use cairn_index::chunk::{Chunk, Format, index_text, split};
use cairn_index::words::{self, AnalysedQuery, Language, Languages, Stems};
use libfuzzer_sys::fuzz_target;

/// No passage is longer ([`split`]).
const MAX_BYTES: usize = 8 * 1024;

fuzz_target!(|text: &str| {
    for format in [Format::Markdown, Format::Json, Format::Yaml, Format::Text] {
        check_passages(format, text);
    }
    check_words(text);
    check_query(text);
});

/// Every line that is not blank is in a passage, in the order of the document, and stands in it as it was written.
fn check_passages(format: Format, document: &str) {
    let content = document.strip_prefix('\u{feff}').unwrap_or(document);
    let lines: Vec<&str> = content.split_inclusive('\n').collect();
    let passages = split(format, document);
    let mut is_covered = vec![false; lines.len()];
    let (mut last_end, mut before): (usize, Option<&Chunk>) = (0, None);
    for passage in &passages {
        let (start, end) = (passage.start_line as usize, passage.end_line as usize);
        assert!(1 <= start && start <= end && end <= lines.len(), "{start}..={end} of {}", lines.len());
        assert!(passage.text.len() <= MAX_BYTES && !passage.text.trim().is_empty());
        let text = lines[start - 1..end].concat();
        let body = text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(&text);
        let is_piece = body.len() > MAX_BYTES;
        let goes_on = is_piece
            && before.is_some_and(|before| {
                (before.start_line, before.end_line) == (passage.start_line, passage.end_line)
            });
        assert!(goes_on || start > last_end, "{format:?}: line {start} after {last_end}");
        if is_piece {
            assert!(start == end && body.contains(&passage.text));
        } else {
            assert_eq!(passage.text, body, "{format:?}");
        }
        let above: usize = passage.heading_path.iter().map(|heading| heading.len() + 1).sum();
        let header = passage.table_header.len() + usize::from(!passage.table_header.is_empty());
        let indexed = index_text("notes/a.md", passage);
        assert_eq!(indexed.len(), "a\n".len() + above + header + passage.text.len());
        is_covered[start - 1..end].fill(true);
        (last_end, before) = (end, Some(passage));
    }
    for (line, is_covered) in lines.iter().zip(is_covered) {
        assert!(is_covered || line.trim().is_empty(), "{format:?}: {line:?} is in no passage");
    }
}

/// A text gives the same words between spaces, and a language.
fn check_words(text: &str) {
    assert_eq!(words::split(&format!(" {text} ")), words::split(text));
    let _: Language = words::detect(text);
}

/// What a search asks for is made of what was written, and what is looked up has a place in each row.
fn check_query(text: &str) {
    let query = ParsedQuery::parse(text);
    let parts = query.words().iter().chain(query.phrases()).chain(query.excluded());
    for part in parts {
        assert!(text.contains(part.as_str()) && part.contains(char::is_alphanumeric), "{part:?} of {text:?}");
    }
    assert!(query.text().len() <= text.len());
    let languages = Languages::from(words::detect(text)).with(Language::German);
    let analysed = AnalysedQuery::new(&query, languages);
    for phrase in analysed.phrases.iter().chain(&analysed.excluded) {
        assert!(!phrase.rows.is_empty());
        for row in &phrase.rows {
            assert!(row.first().is_some_and(|(place, _)| *place == 0), "{phrase:?}");
            assert!(row.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{phrase:?}");
        }
    }
    assert!(analysed.prefix.is_none_or(|prefix| !prefix.text.is_empty()));
    let searched = words::SearchableText {
        title: "",
        path: text,
        tags: &[],
        container: None,
        headings: &[],
        table_header: "",
        text,
        language: words::detect(text),
    };
    let tokens = searched.tokens(&mut Stems::default());
    assert!(tokens.windows(2).all(|pair| pair[0].position <= pair[1].position));
}
