use std::sync::{Arc, LazyLock};

use cairn_chassis::clock::Timestamp;
use cairn_index::chunk::{self, Format};
use cairn_index::words::Languages;
use cairn_index::{ChunkId, Hit, StoredChunk};
use cairn_proto::document::v1::ConfirmedDocument;
use cairn_proto::retrieval::v1::SearchContextRequest;
use uuid::Uuid;

use super::*;
use crate::search::evidence::Evidence;
use crate::search::page::Page;
use crate::search::request::SearchRequest;

static ROWS: LazyLock<StaticRows> = LazyLock::new(|| StaticRows::open().unwrap());

/// The highlights of a document with one result.
fn marked(path: &str, content: &str, question: &str) -> Vec<(u32, u32, Vec<String>)> {
    let format = if path.ends_with(".md") { Format::Markdown } else { Format::Text };
    let stored = (0..).zip(chunk::split(format, content)).map(|(ordinal, chunk)| StoredChunk {
        id: ChunkId { document: Uuid::from_u128(1), ordinal },
        container: None,
        kind: String::new(),
        title: String::new(),
        heading_path: chunk.heading_path,
        table_header: chunk.table_header,
        text: chunk.text + chunk.gap.as_deref().unwrap_or_default(),
        start_line: chunk.start_line,
        end_line: chunk.end_line,
        content_hash: String::new(),
        updated_at: 0,
    });
    let document = Arc::new(ConfirmedDocument { path: path.to_owned(), ..ConfirmedDocument::default() });
    let found = |chunk: StoredChunk| {
        let hit = Hit { chunk: chunk.id, score: 0.5 };
        Evidence::new(hit, chunk, Arc::clone(&document), Timestamp::from_micros(0))
    };
    let evidence: Vec<Evidence> = stored.map(found).collect();
    let asked = SearchContextRequest { query: question.to_owned(), ..SearchContextRequest::default() };
    let page = Page::of(&evidence, &SearchRequest::try_from(asked).unwrap());
    assert_eq!(page.passages.len(), 1);
    let words = QuestionWords::uncounted(question, Languages::default());
    let marking = Marking::new(&ROWS, &words, question);
    let places = marking.highlights(&page.passages[0]).into_iter();
    places.map(|place| (place.start_line, place.end_line, place.heading_path)).collect()
}

const GUIDE: &str = "# Guide\n\nWhat operators do with this service, day by day.\n\n## Keys\n\n### Rotation\n\n\
    Tokens are rotated every ninety days by whoever is on call.\n\n### Loss\n\nA lost token is revoked at once, and its owner is told.\n\n\
    ## Backups\n\nThe database is copied every night to another region.\n";

fn path(headings: &[&str]) -> Vec<String> {
    headings.iter().map(|heading| (*heading).to_owned()).collect()
}

#[test]
fn a_line_is_marked_under_its_own_headings() {
    let places = marked("/guide.md", GUIDE, "who revokes a lost token");
    assert_eq!(places[0], (11, 13, path(&["Guide", "Keys", "Loss"])));
    let places = marked("/guide.md", GUIDE, "how often is a backup copied");
    assert_eq!(places[0].2, path(&["Guide", "Backups"]));
}

#[test]
fn where_no_word_stands_meaning_tells() {
    let places = marked("/guide.md", GUIDE, "replicating storage nightly");
    assert_eq!((places.len(), &places[0].2), (1, &path(&["Guide", "Backups"])));
}

#[test]
fn there_is_always_a_place() {
    assert_eq!(marked("/guide.md", GUIDE, "検索").len(), 1);
    assert_eq!(marked("/a.txt", "x", "y"), [(1, 1, Vec::new())]);
}

#[test]
fn at_most_three_places_are_marked_and_none_twice() {
    let line = "The walrus of tank four sleeps on the shore of the lake at noon.\n\n";
    let places = marked("/walrus.txt", &line.repeat(5), "walrus shore");
    assert_eq!(places.len(), 3);
    let one_line = "The walrus sleeps on the shore of the lake. The walrus wakes on the shore of the lake.";
    assert_eq!(marked("/walrus.txt", one_line, "walrus shore").len(), 1);
}

#[test]
fn a_comment_in_code_is_no_heading() {
    let code = "# Settings of the service, read at its start\nlimit = 10\n\n# Retries of a failed call are made twice as slow each time\nretries = 3\n";
    let places = marked("/settings.py", code, "how are retries made slow");
    assert!(places[0].0 <= 4 && places[0].1 >= 4 && places[0].2.is_empty(), "{places:?}");
}
