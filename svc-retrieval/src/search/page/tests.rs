use std::sync::Arc;

use cairn_chassis::clock::Timestamp;
use cairn_index::chunk::{self, Format};
use cairn_index::{ChunkId, Hit, StoredChunk};
use cairn_proto::document::v1::ConfirmedDocument;
use cairn_proto::retrieval::v1::SearchContextRequest;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

/// The chunks of a document as an index keeps them.
fn stored(document: u128, content: &str) -> Vec<StoredChunk> {
    let chunks = chunk::split(Format::Markdown, content);
    (0..)
        .zip(chunks)
        .map(|(ordinal, chunk)| StoredChunk {
            id: ChunkId { document: Uuid::from_u128(document), ordinal },
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
        })
        .collect()
}

fn found(chunk: StoredChunk, score: f32) -> Evidence {
    let hit = Hit { chunk: chunk.id, score };
    Evidence::new(hit, chunk, Arc::new(ConfirmedDocument::default()), Timestamp::from_micros(0))
}

fn request() -> SearchRequest {
    let asked = SearchContextRequest { query: "q".to_owned(), ..SearchContextRequest::default() };
    SearchRequest::try_from(asked).unwrap()
}

fn pool(chunks: Vec<(StoredChunk, f32)>) -> Vec<Evidence> {
    let mut pool: Vec<Evidence> = chunks.into_iter().map(|(chunk, score)| found(chunk, score)).collect();
    pool.sort_by(Evidence::order);
    pool
}

/// The lines of a document by their numbers from 1, without the last one's end.
fn lines(content: &str, start: u32, end: u32) -> String {
    let lines: Vec<&str> = content.split_inclusive('\n').collect();
    let text = lines[start as usize - 1..end as usize].concat();
    text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(&text).to_owned()
}

fn check_lines(content: &str, page: &Page<'_>) {
    for passage in &page.passages {
        let cited = lines(content, passage.start_line(), passage.end_line());
        assert_eq!(passage.content(), cited);
        assert_eq!(passage.content().len(), passage.length());
    }
}

/// Sections that are too long to be chunked together, with blank lines of all kinds between.
fn sections(names: &[&str]) -> String {
    let section = |name: &&str| {
        format!(
            "## About {name}\n\n{}\n\n \t\n\r\n{name} ends here.\n\n\n",
            format!("{name} matters. ").repeat(30)
        )
    };
    format!("# Guide\n\n{}", names.iter().map(section).collect::<String>())
}

#[test]
fn neighbours_are_merged_line_by_line() {
    let content = sections(&["alpha", "beta", "gamma"]);
    let chunks = stored(1, &content);
    assert_eq!(chunks.len(), 3);
    let scores = [0.5, 0.9, 0.1];
    let evidence = pool(chunks.into_iter().zip(scores).collect());
    let page = Page::of(&evidence, &request());
    assert_eq!(page.passages.len(), 1, "all three fit together");
    assert_eq!(page.passages[0].best.chunk.id.ordinal, 1);
    assert_eq!(page.passages[0].heading_path(), ["Guide"]);
    check_lines(&content, &page);
}

#[test]
fn only_neighbours_are_merged() {
    let content = sections(&["alpha", "beta", "gamma"]);
    let chunks = stored(1, &content);
    let other = stored(2, &sections(&["delta"])).remove(0);
    let evidence = pool(vec![(chunks[0].clone(), 0.9), (chunks[2].clone(), 0.8), (other, 0.7)]);
    let page = Page::of(&evidence, &request());
    assert_eq!(page.passages.len(), 3);
    check_lines(
        &content,
        &Page { passages: page.passages.into_iter().take(2).collect(), ..Page::of(&[], &request()) },
    );
}

#[test]
fn what_is_long_together_stays_apart() {
    let long = |name: &str| format!("## {name}\n\n{}\n\n", format!("{name} is long. ").repeat(90));
    let content = ["one", "two", "three", "four"].map(long).concat();
    let chunks = stored(1, &content);
    let evidence = pool(chunks.into_iter().map(|chunk| (chunk, 0.5)).collect());
    let page = Page::of(&evidence, &request());
    assert!(page.passages.len() > 1);
    assert!(page.passages.iter().all(|passage| passage.length() <= MAX_MERGED_BYTES));
    check_lines(&content, &page);
}

#[test]
fn pieces_of_a_line_are_never_merged() {
    let giant = (0..3000).map(|number| format!("w{number} ")).collect::<String>();
    let content = format!("before\n{giant}\nafter\n");
    let evidence = pool(stored(1, &content).into_iter().map(|chunk| (chunk, 0.5)).collect());
    let page = Page::of(&evidence, &SearchRequest { limit: 50, ..request() });
    assert_eq!(page.passages.len(), evidence.len());
}

#[test]
fn copies_are_collapsed_and_named() {
    let text = sections(&["alpha"]);
    let copy = text.replace("matters. ", "matters.  ");
    let other = text.replace("alpha ends here", "it ends in 1999 here");
    let evidence = pool(vec![
        (stored(1, &text).remove(0), 0.7),
        (stored(2, &copy).remove(0), 0.9),
        (stored(3, &other).remove(0), 0.8),
        (stored(4, &text).remove(0), 0.6),
    ]);
    let page = Page::of(&evidence, &request());
    let shown: Vec<u128> = page.passages.iter().map(|p| p.best.chunk.id.document.as_u128()).collect();
    assert_eq!(shown, [2, 3], "the best copy stays, and what has another number is none");
    let copies: Vec<u128> = page.passages[0].copies.iter().map(|c| c.chunk.id.document.as_u128()).collect();
    assert_eq!(copies, [1, 4]);
}

#[test]
fn the_budget_takes_whole_chunks_and_merges_only_what_fits() {
    let content = sections(&["alpha", "beta"]);
    let chunks = stored(1, &content);
    let size = chunks[0].text.len();
    let small = stored(2, "A short one.\n").remove(0);
    let evidence = pool(vec![(chunks[0].clone(), 0.9), (chunks[1].clone(), 0.8), (small, 0.7)]);
    let budgeted = SearchRequest { token_budget: Some(size.div_ceil(4) + 10), ..request() };
    let page = Page::of(&evidence, &budgeted);
    let contents: Vec<String> = page.passages.iter().map(Passage::content).collect();
    assert_eq!(contents.len(), 2, "{contents:?}");
    assert_eq!(contents[1], "A short one.");
    assert_eq!(page.over_budget, 1);
    check_lines(
        &content,
        &Page { passages: page.passages.into_iter().take(1).collect(), ..Page::of(&[], &request()) },
    );
}

#[test]
fn the_first_result_too_many_closes_the_page() {
    let names = ["alpha", "beta", "gamma", "delta"];
    let chunks: Vec<_> =
        (1..).zip(names).map(|(document, name)| stored(document, &sections(&[name])).remove(0)).collect();
    let evidence = pool(chunks.into_iter().zip([0.9, 0.8, 0.7, 0.6]).collect());
    let page = Page::of(&evidence, &SearchRequest { limit: 2, ..request() });
    assert_eq!((page.passages.len(), page.closed_at), (2, Some(evidence[2].score())));
    let page = Page::of(&evidence, &SearchRequest { min_score: 0.65, ..request() });
    assert_eq!((page.passages.len(), page.closed_at), (3, None));
}

/// Documents of some sections, which of their chunks were found and how well.
fn any_pool() -> impl Strategy<Value = (Vec<String>, Vec<(usize, usize, f32)>)> {
    let blank = prop_oneof![Just("\n\n"), Just("\n \n\t\n"), Just("\r\n\r\n"), Just("\n\n\n\n")];
    let word = prop_oneof![Just("ant"), Just("bee"), Just("cow"), Just("漢字"), Just("x1")];
    let paragraph =
        (prop::collection::vec(word, 1..120), blank, any::<bool>()).prop_map(|(words, blank, is_headed)| {
            format!("{}{}{blank}", if is_headed { "## H\n" } else { "" }, words.join(" "))
        });
    let document = prop::collection::vec(paragraph, 1..12).prop_map(|paragraphs| paragraphs.concat());
    let hit = (0..3_usize, 0..12_usize, 0.01_f32..1.0);
    (prop::collection::vec(document, 3..=3), prop::collection::vec(hit, 0..20))
}

proptest! {
    #[test]
    fn every_result_is_exactly_its_lines((documents, hits) in any_pool(), limit in 1..8_usize, budget in 0..900_usize) {
        let mut chunks = Vec::new();
        for (document, place, score) in hits {
            let stored = stored(document as u128, &documents[document]);
            if let Some(chunk) = stored.get(place) && !chunks.iter().any(|(known, _): &(StoredChunk, f32)| known.id == chunk.id) {
                chunks.push((chunk.clone(), score));
            }
        }
        let evidence = pool(chunks);
        let asked = SearchRequest { limit, token_budget: (budget > 0).then_some(budget), ..request() };
        let page = Page::of(&evidence, &asked);
        prop_assert!(page.passages.len() <= limit);
        let mut seen = std::collections::HashSet::new();
        for passage in &page.passages {
            let document = &documents[passage.best.chunk.id.document.as_u128() as usize];
            let cited = lines(document, passage.start_line(), passage.end_line());
            prop_assert_eq!(passage.content(), cited);
            prop_assert!(passage.parts.len() == 1 || passage.length() <= MAX_MERGED_BYTES);
            for part in passage.parts.iter().chain(&passage.copies) {
                prop_assert!(seen.insert(part.chunk.id), "no chunk is in two results");
                prop_assert!(part.score() <= passage.best.score());
            }
        }
        prop_assert!(page.passages.is_sorted_by(|one, next| one.best.score() >= next.best.score()));
        let spent: usize = page.passages.iter().map(|passage| passage.content().len()).sum();
        prop_assert!(budget == 0 || spent <= budget * BYTES_PER_TOKEN);
        // Nothing is lost without a word: what has no place is over the budget or behind the limit.
        if page.closed_at.is_none() {
            prop_assert_eq!(seen.len() + page.over_budget, evidence.len());
        }
    }
}
