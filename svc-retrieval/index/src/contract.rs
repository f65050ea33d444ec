//! What every [`LexicalIndex`] must do. Each check gets an empty engine of two dimensions.

use std::collections::HashSet;

use uuid::Uuid;

use crate::words::Language;

use super::{
    Batch, ChunkId, Counts, Cursor, Engine, IndexedChunk, IndexedDocument, LexicalIndex, LexicalQuery,
    ParsedQuery,
};

/// The name of a check and the check.
pub(crate) type Check = (&'static str, fn(&dyn LexicalIndex));

/// All checks.
pub(crate) const CHECKS: &[Check] = &[
    ("finds words in every part", finds_words_in_every_part),
    ("ranks and orders", ranks_and_orders),
    ("stems and ignores case", stems_and_ignores_case),
    ("requires phrases", requires_phrases),
    ("leaves out exclusions", leaves_out_exclusions),
    ("finds nothing without words", finds_nothing_without_words),
    ("finds stop words where there is nothing else", finds_stop_words_where_there_is_nothing_else),
    ("finds names in every spelling", finds_names_in_every_spelling),
    ("finds words of every script and language", finds_words_of_every_script_and_language),
    ("replaces a document whole", replaces_a_document_whole),
    ("deletes before it adds", deletes_before_it_adds),
    ("keeps workspaces apart", keeps_workspaces_apart),
    ("scores by what is searched alone", scores_by_what_is_searched_alone),
    ("filters by container", filters_by_container),
    ("filters by document", filters_by_document),
    ("returns stored chunks in order", returns_stored_chunks_in_order),
    ("keeps cursors", keeps_cursors),
    ("forgets a workspace", forgets_a_workspace),
    ("tells which chunks are excluded", tells_which_chunks_are_excluded),
];

/// The name of a check and the check.
pub(crate) type EngineCheck = (&'static str, fn(&dyn Engine));

/// The checks of what an engine of words and meaning does beyond both.
pub(crate) const ENGINE_CHECKS: &[EngineCheck] =
    &[("gives what was embedded with its vector", gives_what_was_embedded_with_its_vector)];

pub(crate) const WORKSPACE: Uuid = Uuid::from_u128(1);
const OTHER_WORKSPACE: Uuid = Uuid::from_u128(2);

pub(crate) fn id(document: u128, ordinal: u32) -> ChunkId {
    ChunkId { document: Uuid::from_u128(document), ordinal }
}

/// A document at the root whose chunks hold the given texts.
pub(crate) fn document(number: u128, texts: &[&str]) -> IndexedDocument {
    let chunk = |text: &&str| IndexedChunk {
        text: (*text).to_owned(),
        heading_path: Vec::new(),
        start_line: 1,
        end_line: 1,
        embedding: vec![1.0, 0.0],
    };
    IndexedDocument {
        workspace: WORKSPACE,
        document: Uuid::from_u128(number),
        container: None,
        kind: "file".to_owned(),
        title: String::new(),
        path: String::new(),
        language: Language::English,
        content_hash: "hash".to_owned(),
        updated_at: 0,
        chunks: texts.iter().map(chunk).collect(),
    }
}

pub(crate) fn add(index: &dyn LexicalIndex, documents: Vec<IndexedDocument>) {
    index.apply(Batch { documents, ..Batch::default() }).unwrap();
}

pub(crate) fn found(index: &dyn LexicalIndex, text: &str) -> Vec<ChunkId> {
    found_within(index, text, None)
}

fn found_within(index: &dyn LexicalIndex, text: &str, containers: Option<&HashSet<Uuid>>) -> Vec<ChunkId> {
    let words = ParsedQuery::parse(text);
    let query = LexicalQuery { workspace: WORKSPACE, words: &words, containers, documents: None, limit: 10 };
    let hits = index.search(&query).unwrap();
    assert!(hits.is_sorted_by(|a, b| a.score > b.score || (a.score == b.score && a.chunk < b.chunk)));
    hits.into_iter().map(|hit| hit.chunk).collect()
}

fn finds_words_in_every_part(index: &dyn LexicalIndex) {
    let mut first = document(1, &["the body speaks of apples"]);
    first.title = "orchard guide".to_owned();
    first.chunks[0].heading_path = vec!["Growing".to_owned(), "Pruning".to_owned()];
    add(index, vec![first, document(2, &["something else"])]);
    for word in ["apples", "orchard", "growing", "pruning", "nothing apples"] {
        assert_eq!(found(index, word), [id(1, 0)], "{word}");
    }
    assert_eq!(found(index, "pears"), []);
}

fn ranks_and_orders(index: &dyn LexicalIndex) {
    let filler = document(9, &["unrelated text of the same length"]);
    add(index, vec![document(1, &["cache", "cache eviction"]), document(2, &["cache"]), filler]);
    assert_eq!(found(index, "eviction cache"), [id(1, 1), id(1, 0), id(2, 0)]);
    let words = ParsedQuery::parse("cache");
    let query = |limit| LexicalQuery {
        workspace: WORKSPACE,
        words: &words,
        containers: None,
        documents: None,
        limit,
    };
    assert_eq!(index.search(&query(2)).unwrap().len(), 2);
    assert!(index.search(&query(0)).unwrap().is_empty());
}

fn stems_and_ignores_case(index: &dyn LexicalIndex) {
    add(index, vec![document(1, &["Deployments are being CONFIGURED"])]);
    for word in ["deployment", "Configure", "configuring"] {
        assert_eq!(found(index, word), [id(1, 0)], "{word}");
    }
}

fn requires_phrases(index: &dyn LexicalIndex) {
    let mut titled = document(3, &["about nothing"]);
    titled.title = "rate limit".to_owned();
    add(index, vec![document(1, &["the rate limit of reads"]), document(2, &["limit the rate"]), titled]);
    assert_eq!(HashSet::from_iter(found(index, "\"rate limit\"")), HashSet::from([id(1, 0), id(3, 0)]));
    assert_eq!(found(index, "reads \"rate limit\"").first(), Some(&id(1, 0)));
    assert_eq!(found(index, "reads \"limit rate\""), []);
    assert_eq!(found(index, "\"limit of reads\""), [id(1, 0)]);
    assert_eq!(found(index, "\"limit reads\""), []);
}

fn leaves_out_exclusions(index: &dyn LexicalIndex) {
    add(index, vec![document(1, &["red apple", "green apple"]), document(2, &["apple pie with cream"])]);
    assert_eq!(found(index, "apple -green -\"pie with cream\""), [id(1, 0)]);
    assert_eq!(found(index, "apple -\"pie cream\"").len(), 3);
    assert_eq!(found(index, "\"red apple\" -red"), []);
    assert_eq!(found(index, "apple -the").len(), 3);
}

fn finds_nothing_without_words(index: &dyn LexicalIndex) {
    add(index, vec![document(1, &["some text, not the other"])]);
    for text in ["", "-other", "\"\"", "\"to be\"", "- * (", "-\""] {
        assert_eq!(found(index, text), [], "{text:?}");
    }
}

fn finds_stop_words_where_there_is_nothing_else(index: &dyn LexicalIndex) {
    add(index, vec![document(1, &["to be or not to be"]), document(2, &["be quick, or not"])]);
    assert_eq!(found(index, "\"to be or not to be\""), [id(1, 0)]);
    assert_eq!(HashSet::from_iter(found(index, "to be")), HashSet::from([id(1, 0), id(2, 0)]));
    assert_eq!(found(index, "what is quick"), [id(2, 0)]);
    assert_eq!(found(index, "be -to"), [id(2, 0)]);
}

fn finds_names_in_every_spelling(index: &dyn LexicalIndex) {
    let texts =
        ["call getUserName now", "call get_user_name now", "the user has a name", "tokio 1.2.3 and C++"];
    add(index, vec![document(1, &texts)]);
    for name in ["getUserName", "get_user_name", "get-user-name", "getusername", "GetUserName()"] {
        assert_eq!(
            HashSet::from_iter(found(index, name).into_iter().take(2)),
            HashSet::from([id(1, 0), id(1, 1)]),
            "{name}"
        );
    }
    assert_eq!(found(index, "user name").len(), 3);
    assert_eq!(found(index, "\"user name\"").len(), 2);
    assert_eq!(found(index, "\"getUserName now\"").len(), 2);
    assert_eq!(found(index, "user -getUserName"), [id(1, 2)]);
    for text in ["1.2.3", "v1.2.3", "\"1.2.3\"", "C++", "\"1.2.3 and c++\""] {
        assert_eq!(found(index, text), [id(1, 3)], "{text}");
    }
    assert_eq!(found(index, "123"), []);
    assert_eq!(found(index, "\"c\""), []);
}

fn finds_words_of_every_script_and_language(index: &dyn LexicalIndex) {
    let german = |number, text| {
        let mut german = document(number, &[text]);
        german.language = Language::German;
        german
    };
    add(
        index,
        vec![
            document(1, &["検索拡張生成の仕組み", "การค้นหาเอกสาร", "a résumé of Müller's work"]),
            german(2, "die Häuser der Städte"),
            german(3, "Straßenbahnen fahren täglich"),
        ],
    );
    for (text, chunk) in [
        ("検索", id(1, 0)),
        ("拡張生成", id(1, 0)),
        ("\"仕組み\"", id(1, 0)),
        ("組", id(1, 0)),
        ("ค้นหา", id(1, 1)),
        ("resume", id(1, 2)),
        ("RÉSUMÉ", id(1, 2)),
        ("muller", id(1, 2)),
        ("Haus", id(2, 0)),
        ("häuser", id(2, 0)),
        ("Stadt", id(2, 0)),
        ("strassenbahn", id(3, 0)),
        ("\"fahren täglich\"", id(3, 0)),
    ] {
        assert_eq!(found(index, text), [chunk], "{text}");
    }
    assert_eq!(found(index, "fahren Häuser -Haus"), [id(3, 0)]);
}

fn replaces_a_document_whole(index: &dyn LexicalIndex) {
    add(index, vec![document(1, &["alpha", "beta", "gamma"]), document(2, &["alpha"])]);
    add(index, vec![document(1, &["beta"])]);
    // Which is better depends on whether words of what was replaced still count as frequent.
    assert_eq!(HashSet::from_iter(found(index, "alpha beta gamma")), HashSet::from([id(1, 0), id(2, 0)]));
    assert_eq!(found(index, "alpha"), [id(2, 0)]);
    assert_eq!(index.counts(WORKSPACE).unwrap(), Counts { documents: 2, chunks: 2 });
    add(index, vec![document(1, &[])]);
    assert_eq!(index.counts(WORKSPACE).unwrap(), Counts { documents: 1, chunks: 1 });
    add(index, vec![document(2, &["old"]), document(2, &["new"])]);
    assert_eq!(found(index, "old new"), [id(2, 0)]);
}

fn deletes_before_it_adds(index: &dyn LexicalIndex) {
    add(index, vec![document(1, &["alpha"]), document(2, &["alpha"])]);
    let deletions = [1, 2, 3].map(|number| (WORKSPACE, Uuid::from_u128(number))).to_vec();
    let documents = vec![document(2, &["alpha again"])];
    index.apply(Batch { documents, deletions, cursors: Vec::new() }).unwrap();
    assert_eq!(found(index, "alpha"), [id(2, 0)]);
}

fn keeps_workspaces_apart(index: &dyn LexicalIndex) {
    let mut other = document(2, &["alpha"]);
    other.workspace = OTHER_WORKSPACE;
    add(index, vec![document(1, &["alpha"]), other]);
    assert_eq!(found(index, "alpha"), [id(1, 0)]);
    assert!(index.chunks(WORKSPACE, &[id(2, 0)]).unwrap().is_empty());
    let words = ParsedQuery::parse("-alpha");
    assert!(index.excluded(WORKSPACE, &words, &[id(2, 0)]).unwrap().is_empty());
    let deletions = vec![(WORKSPACE, Uuid::from_u128(2))];
    index.apply(Batch { deletions, ..Batch::default() }).unwrap();
    assert_eq!(index.counts(OTHER_WORKSPACE).unwrap(), Counts { documents: 1, chunks: 1 });
    assert_eq!(index.counts(Uuid::from_u128(3)).unwrap(), Counts::default());
}

fn scores_by_what_is_searched_alone(index: &dyn LexicalIndex) {
    let scores = |containers: Option<&HashSet<Uuid>>| -> Vec<f32> {
        let words = ParsedQuery::parse("cache eviction");
        let query =
            LexicalQuery { workspace: WORKSPACE, words: &words, containers, documents: None, limit: 10 };
        index.search(&query).unwrap().into_iter().map(|hit| hit.score).collect()
    };
    let [visible, hidden] = [11, 12].map(Uuid::from_u128);
    let scope = HashSet::from([visible]);
    let within = |container, number, text: &str| IndexedDocument {
        container: Some(container),
        ..document(number, &[text])
    };
    add(
        index,
        vec![within(visible, 1, "cache eviction of pages"), within(visible, 2, "nothing of the kind")],
    );
    let (before, before_scoped) = (scores(None), scores(Some(&scope)));
    assert_eq!(before, before_scoped);

    // Neither what another workspace holds, nor what it held,
    let foreign =
        |number, text: &str| IndexedDocument { workspace: OTHER_WORKSPACE, ..document(number, &[text]) };
    add(
        index,
        vec![foreign(3, "eviction"), foreign(4, "cache cache cache and many other words"), foreign(5, "x")],
    );
    assert_eq!(scores(None), before);
    add(index, vec![foreign(3, "something else"), document(6, &[])]);
    assert_eq!((scores(None), scores(Some(&scope))), (before.clone(), before_scoped.clone()));

    // nor what the caller cannot see of the own one.
    add(index, vec![within(hidden, 7, "eviction and eviction again"), document(8, &["cache"])]);
    assert_eq!(scores(Some(&scope)), before_scoped);
    assert_ne!(scores(None), before);
}

fn filters_by_container(index: &dyn LexicalIndex) {
    let [folder, source, unused] = [11, 12, 13].map(Uuid::from_u128);
    let mut in_folder = document(1, &["alpha"]);
    in_folder.container = Some(folder);
    let mut in_source = document(2, &["alpha"]);
    in_source.container = Some(source);
    add(index, vec![in_folder.clone(), in_source, document(3, &["alpha"])]);
    assert_eq!(found_within(index, "alpha", Some(&HashSet::from([folder]))), [id(1, 0)]);
    assert_eq!(
        found_within(index, "alpha", Some(&HashSet::from([folder, source, unused]))),
        [id(1, 0), id(2, 0)]
    );
    assert_eq!(found_within(index, "alpha", Some(&HashSet::new())), []);
    in_folder.container = Some(unused);
    add(index, vec![in_folder]);
    assert_eq!(found_within(index, "alpha", Some(&HashSet::from([folder]))), []);
}

fn filters_by_document(index: &dyn LexicalIndex) {
    let folder = Uuid::from_u128(11);
    let inside = IndexedDocument { container: Some(folder), ..document(1, &["cache", "cache eviction"]) };
    add(index, vec![inside, document(2, &["cache"]), document(3, &["cache"])]);
    let words = ParsedQuery::parse("cache");
    let within = |containers: Option<&HashSet<Uuid>>, documents: &[u128]| -> HashSet<ChunkId> {
        let documents = documents.iter().copied().map(Uuid::from_u128).collect();
        let documents = Some(&documents);
        let query = LexicalQuery { workspace: WORKSPACE, words: &words, containers, documents, limit: 10 };
        index.search(&query).unwrap().iter().map(|hit| hit.chunk).collect()
    };
    assert_eq!(within(None, &[1, 3, 9]), HashSet::from([id(1, 0), id(1, 1), id(3, 0)]));
    assert_eq!(within(Some(&HashSet::from([folder])), &[1, 3]), HashSet::from([id(1, 0), id(1, 1)]));
    assert_eq!(within(None, &[9]), HashSet::new());
}

fn returns_stored_chunks_in_order(index: &dyn LexicalIndex) {
    let mut first = document(1, &["one\n\n  two", "three"]);
    first.title = "Guide".to_owned();
    first.container = Some(Uuid::from_u128(11));
    first.updated_at = -5;
    first.chunks[0].heading_path = vec!["Top".to_owned(), "Sub".to_owned()];
    first.chunks[0].start_line = 3;
    first.chunks[0].end_line = 5;
    add(index, vec![first.clone(), document(2, &["other"])]);
    let chunks = index.chunks(WORKSPACE, &[id(2, 0), id(1, 9), id(1, 0), id(1, 1)]).unwrap();
    let order: Vec<ChunkId> = chunks.iter().map(|chunk| chunk.id).collect();
    assert_eq!(order, [id(2, 0), id(1, 0), id(1, 1)]);
    let stored = &chunks[1];
    assert_eq!(stored.text, "one\n\n  two");
    assert_eq!(stored.heading_path, first.chunks[0].heading_path);
    assert_eq!((stored.start_line, stored.end_line), (3, 5));
    assert_eq!((&stored.title, &stored.kind), (&first.title, &first.kind));
    assert_eq!((stored.container, &stored.content_hash), (first.container, &first.content_hash));
    assert_eq!(stored.updated_at, -5);
    assert_eq!(chunks[2].heading_path, Vec::<String>::new());
}

fn keeps_cursors(index: &dyn LexicalIndex) {
    assert_eq!(index.cursor("content", WORKSPACE), 0);
    let cursor = |feed: &str, workspace, position| Cursor { feed: feed.to_owned(), workspace, position };
    let cursors = vec![cursor("content", WORKSPACE, 5), cursor("ingest", WORKSPACE, 2)];
    index.apply(Batch { cursors, ..Batch::default() }).unwrap();
    let cursors = vec![cursor("content", WORKSPACE, 6), cursor("content", OTHER_WORKSPACE, 1)];
    index.apply(Batch { cursors, ..Batch::default() }).unwrap();
    assert_eq!(index.cursor("content", WORKSPACE), 6);
    assert_eq!(index.cursor("ingest", WORKSPACE), 2);
    assert_eq!(index.cursors()["content"].len(), 2);
}

fn forgets_a_workspace(index: &dyn LexicalIndex) {
    add(index, vec![document(1, &["kept zebra"])]);
    let foreign = IndexedDocument { workspace: OTHER_WORKSPACE, ..document(2, &["lost zebra"]) };
    let cursor = |workspace| Cursor { feed: "content".to_owned(), workspace, position: 7 };
    let cursors = vec![cursor(OTHER_WORKSPACE), cursor(WORKSPACE)];
    index.apply(Batch { documents: vec![foreign], cursors, ..Batch::default() }).unwrap();
    assert_eq!(index.counts(OTHER_WORKSPACE).unwrap().chunks, 1);

    index.forget(OTHER_WORKSPACE).unwrap();
    assert_eq!(index.counts(OTHER_WORKSPACE).unwrap(), Counts::default());
    assert_eq!((index.cursor("content", OTHER_WORKSPACE), index.cursor("content", WORKSPACE)), (0, 7));
    assert_eq!(found(index, "zebra"), [id(1, 0)]);
}

fn tells_which_chunks_are_excluded(index: &dyn LexicalIndex) {
    add(index, vec![document(1, &["red apple", "green apple", "green pear"]), document(2, &["green"])]);
    let candidates = [id(1, 0), id(1, 1), id(1, 2), id(7, 0)];
    let excluded = |text| index.excluded(WORKSPACE, &ParsedQuery::parse(text), &candidates).unwrap();
    assert_eq!(excluded("-green"), HashSet::from([id(1, 1), id(1, 2)]));
    assert_eq!(excluded("fruit -\"green apple\" -red"), HashSet::from([id(1, 0), id(1, 1)]));
    assert_eq!(excluded("green"), HashSet::new());
    assert_eq!(excluded("-the"), HashSet::new());
}

fn gives_what_was_embedded_with_its_vector(index: &dyn Engine) {
    let mut first = document(1, &["one", "two", "three"]);
    first.title = "Guide".to_owned();
    first.chunks[0].heading_path = vec!["Top".to_owned()];
    first.chunks[0].embedding = vec![0.6, -0.8];
    first.chunks[1].embedding = vec![0.0, 0.0];
    let embedded = |document| {
        let mut chunks = index.embedded(WORKSPACE, Uuid::from_u128(document)).unwrap();
        chunks.sort_by(|a, b| a.text.cmp(&b.text));
        chunks
    };
    assert_eq!(embedded(1), []);
    add(index, vec![first.clone(), document(2, &["other"])]);
    let texts: Vec<String> = embedded(1).into_iter().map(|chunk| chunk.text).collect();
    assert_eq!(texts, ["one", "three"]);
    let one = &embedded(1)[0];
    assert_eq!((one.title.as_str(), &one.heading_path), ("Guide", &first.chunks[0].heading_path));
    assert!((one.embedding[0] - 0.6).abs() < 0.001 && (one.embedding[1] + 0.8).abs() < 0.001);

    // Stored again it stays what it was.
    let before = embedded(1);
    first.chunks[0].embedding.clone_from(&before[0].embedding);
    add(index, vec![first]);
    assert_eq!(embedded(1), before);
    assert_eq!(index.embedded(OTHER_WORKSPACE, Uuid::from_u128(1)).unwrap(), []);
}
