//! What is applied is found before it is committed, and nothing about it changes when it is.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

use super::super::testing::{add, found};
use super::super::{Index, LexicalQuery};
use super::{applied, copy_of, nearest, open};
use crate::contract::{WORKSPACE, document, id};
use crate::vectors::VectorQuery;
use crate::{Batch, ChunkId, Cursor, Hit, IndexedDocument, ParsedQuery};

const OTHER_WORKSPACE: Uuid = Uuid::from_u128(2);
const WORDS: [&str; 5] = ["alpha", "beta", "gamma", "delta", "epsilon"];
const QUERIES: [&str; 6] = [
    "alpha",
    "beta epsilon alpha",
    "\"alpha beta\"",
    "gamma \"beta alpha\"",
    "alpha -delta",
    "beta gamma -\"alpha beta\" -epsilon",
];
/// More than any of the indexes holds.
const ALL: usize = 10_000;

#[test]
fn a_small_batch_is_found_without_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let index = open(folder.path());
    let commit = || fs_err::read(folder.path().join("segments/meta.json")).unwrap();
    let before = commit();
    applied(&index, document(1, &["alpha", "beta"]), 3);
    assert_eq!(found(&index, "alpha"), [id(1, 0)]);
    assert_eq!(nearest(&index, [1.0, 0.0]), [id(1, 0), id(1, 1)]);
    assert_eq!(index.cursor("content", WORKSPACE), 3);
    assert_eq!(commit(), before);
    drop(index);
    assert_eq!(open(folder.path()).cursor("content", WORKSPACE), 3);
}

#[test]
fn only_what_is_there_is_to_be_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let index = open(folder.path());
    let key = |number: u128| index.fields.document_term(WORKSPACE, id(number, 0).document);
    let held = || index.current_view.load().existing_keys(vec![key(1), key(2)]).unwrap();
    assert_eq!(held(), []);
    add(&index, vec![document(1, &["alpha", "beta"])]);
    assert_eq!(held(), [key(1)]);
    index.flush().unwrap();
    assert_eq!(held(), [key(1)]);
    add(&index, vec![document(1, &["gamma"]), document(2, &["alpha"])]);
    assert_eq!(held(), [key(1), key(2)]);
    let deletions = vec![(WORKSPACE, id(1, 0).document)];
    index.apply(Batch { deletions, ..Batch::default() }).unwrap();
    assert_eq!(held(), [key(2)]);
    index.flush().unwrap();
    assert_eq!(held(), [key(2)]);
    assert_eq!(found(&index, "gamma"), []);
}

#[test]
fn many_or_large_batches_are_committed() {
    let folder = tempfile::tempdir().unwrap();
    let index = open(folder.path());
    let committed = || open(copy_of(folder.path()).path()).counts(WORKSPACE).unwrap().documents;
    for number in 1..=40 {
        add(&index, vec![document(number, &["alpha"])]);
    }
    assert!(committed() >= 20);
    assert!(index.current_view.load().parts().len() < 30);
    add(&index, (100..400).map(|number| document(number, &["alpha"])).collect());
    assert_eq!(committed(), 340);
}

#[test]
fn a_failed_commit_takes_the_index_back_to_the_last_one() {
    let folder = tempfile::tempdir().unwrap();
    let index = open(folder.path());
    applied(&index, document(1, &["alpha"]), 1);
    index.flush().unwrap();
    applied(&index, document(2, &["alpha"]), 2);
    let (segments, elsewhere) = (folder.path().join("segments"), folder.path().join("elsewhere"));
    fs_err::rename(&segments, &elsewhere).unwrap();
    index.flush().unwrap_err();
    assert_eq!(index.cursor("content", WORKSPACE), 1);
    assert_eq!(found(&index, "alpha"), [id(1, 0)]);
    assert_eq!(nearest(&index, [1.0, 0.0]), [id(1, 0)]);
    fs_err::rename(&elsewhere, &segments).unwrap();
    applied(&index, document(2, &["alpha"]), 2);
    index.flush().unwrap();
    assert_eq!(found(&index, "alpha"), [id(1, 0), id(2, 0)]);
}

#[test]
fn maintenance_commits_and_rests() {
    let folder = tempfile::tempdir().unwrap();
    let index = open(folder.path());
    applied(&index, document(1, &["alpha"]), 1);
    index.maintain().unwrap();
    assert_eq!(open(copy_of(folder.path()).path()).cursor("content", WORKSPACE), 1);
    for _ in 0..=crate::tuning::IDLE_ROUNDS {
        index.maintain().unwrap();
    }
    assert_eq!(found(&index, "alpha"), [id(1, 0)]);
    assert_eq!(nearest(&index, [1.0, 0.0]), [id(1, 0)]);
}

#[test]
fn a_batch_does_not_wait_for_the_merges_of_a_writer_that_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let index = open(folder.path());
    applied(&index, document(1, &["alpha"]), 1);
    index.flush().unwrap();
    // Nobody commits yet, so that applying a batch here cannot deadlock.
    let closing = index.take_writer().unwrap();
    applied(&index, document(2, &["alpha"]), 2);
    assert_eq!(found(&index, "alpha"), [id(1, 0), id(2, 0)]);
    std::thread::scope(|scope| {
        // It needs another writer, which tantivy refuses while there is this one.
        let commit = scope.spawn(|| index.flush());
        closing.wait().unwrap();
        commit.join().unwrap().unwrap();
    });
    drop(index);
    assert_eq!(open(folder.path()).cursor("content", WORKSPACE), 2);
}

#[derive(Debug, Clone)]
enum Step {
    Put(IndexedDocument),
    Many(Vec<IndexedDocument>),
    Delete(Uuid, Uuid),
    Flush,
    Release,
    /// The process is killed and started again; the feed is read from the cursor on.
    Kill,
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(&WORDS), 1..9).prop_map(|words| words.join(" "))
}

fn any_document() -> impl Strategy<Value = IndexedDocument> {
    let texts = proptest::collection::vec(text(), 1..4);
    (0..2_u128, 1..8_u128, texts, 0..3_u128, -9..9_i8).prop_map(
        |(workspace, number, texts, container, turn)| {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let mut document = document(number + workspace * 100, &texts);
            document.workspace = if workspace == 0 { WORKSPACE } else { OTHER_WORKSPACE };
            document.container = (container > 0).then(|| Uuid::from_u128(container));
            for (chunk, place) in document.chunks.iter_mut().zip(0_u8..) {
                chunk.embedding = vec![f32::from(turn), 1.0 + f32::from(place)];
            }
            document
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let put = || any_document().prop_map(Step::Put);
    prop_oneof![
        6 => put(),
        2 => any_document().prop_map(|one| Step::Delete(one.workspace, one.document)),
        1 => proptest::collection::vec(any_document(), 90..100).prop_map(Step::Many),
        2 => Just(Step::Flush),
        1 => Just(Step::Release),
        2 => Just(Step::Kill),
    ]
}

/// An index, and the feed that it follows.
struct Followed {
    folder: TempDir,
    index: Index,
    feed: Vec<Batch>,
}

impl Followed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let index = open(folder.path());
        Self { folder, index, feed: Vec::new() }
    }

    fn append(&mut self, mut batch: Batch) {
        let position = u64::try_from(self.feed.len()).unwrap() + 1;
        batch.cursors = vec![Cursor { feed: "content".to_owned(), workspace: WORKSPACE, position }];
        self.feed.push(batch);
        self.follow();
    }

    fn follow(&self) {
        let position = self.index.cursor("content", WORKSPACE);
        for batch in &self.feed[usize::try_from(position).unwrap()..] {
            self.index.apply(batch.clone()).unwrap();
        }
        assert_eq!(self.index.cursor("content", WORKSPACE), u64::try_from(self.feed.len()).unwrap());
    }

    fn kill(&mut self) {
        let left = copy_of(self.folder.path());
        self.index = open(left.path());
        self.folder = left;
        self.follow();
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Put(document) => self.append(Batch { documents: vec![document], ..Batch::default() }),
            Step::Many(documents) => self.append(Batch { documents, ..Batch::default() }),
            Step::Delete(workspace, document) => {
                self.append(Batch { deletions: vec![(workspace, document)], ..Batch::default() });
            }
            Step::Flush => self.index.flush().unwrap(),
            Step::Release => self.index.release_memory().unwrap(),
            Step::Kill => self.kill(),
        }
    }

    /// One index that was given what is left of it all at once.
    fn at_once(&self, folder: &Path) -> Index {
        let mut left = BTreeMap::new();
        for batch in &self.feed {
            for key in &batch.deletions {
                left.remove(key);
            }
            for document in &batch.documents {
                left.insert((document.workspace, document.document), document.clone());
            }
        }
        let index = open(folder);
        add(&index, left.into_values().collect());
        index.flush().unwrap();
        index
    }
}

fn by_chunk(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_by_key(|hit| hit.chunk);
    hits
}

fn assert_same_hits(found: Vec<Hit>, expected: Vec<Hit>, what: &str) {
    let chunks = |hits: &[Hit]| -> Vec<ChunkId> { hits.iter().map(|hit| hit.chunk).collect() };
    let (found, expected) = (by_chunk(found), by_chunk(expected));
    assert_eq!(chunks(&found), chunks(&expected), "{what}");
    for (found, expected) in found.iter().zip(&expected) {
        let apart = (found.score - expected.score).abs();
        assert!(apart <= 1e-4 * expected.score.abs().max(1.0), "{what}: {found:?} is not {expected:?}");
    }
}

fn assert_same(index: &Index, expected: &Index) {
    let containers = HashSet::from([Uuid::from_u128(1)]);
    for workspace in [WORKSPACE, OTHER_WORKSPACE] {
        assert_eq!(index.counts(workspace).unwrap(), expected.counts(workspace).unwrap());
        let vector =
            VectorQuery { workspace, vector: &[1.0, 0.5], containers: None, documents: None, limit: ALL };
        let candidates = expected.vectors().search(&vector).unwrap();
        assert_same_hits(index.vectors().search(&vector).unwrap(), candidates.clone(), "by meaning");
        let candidates: Vec<ChunkId> = candidates.into_iter().map(|hit| hit.chunk).collect();
        assert_eq!(
            index.chunks(workspace, &candidates).unwrap(),
            expected.chunks(workspace, &candidates).unwrap()
        );
        for text in QUERIES {
            let words = ParsedQuery::parse(text);
            for containers in [None, Some(&containers)] {
                let query =
                    LexicalQuery { workspace, words: &words, containers, documents: None, limit: ALL };
                assert_same_hits(index.search(&query).unwrap(), expected.search(&query).unwrap(), text);
            }
            let excluded = |index: &Index| index.excluded(workspace, &words, &candidates).unwrap();
            assert_eq!(excluded(index), excluded(expected), "{text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_gives_what_one_index_gives(steps in proptest::collection::vec(step(), 1..30)) {
        let mut followed = Followed::new();
        for step in steps {
            followed.take(step);
        }
        let folder = tempfile::tempdir().unwrap();
        assert_same(&followed.index, &followed.at_once(folder.path()));
        followed.index.flush().unwrap();
        assert_same(&followed.index, &followed.at_once(tempfile::tempdir().unwrap().path()));
    }
}
