mod recent;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;
use uuid::Uuid;

use super::testing::{add, found};
use super::{EmbeddedEngine, Index, LexicalQuery};
use crate::contract::{self, WORKSPACE, document, id};
use crate::vectors::VectorQuery;
use crate::{Batch, ChunkId, Counts, Cursor, Error, IndexedDocument, ParsedQuery};

const EMBEDDER: &str = "test";

fn open(folder: &Path) -> Index {
    Index::open(folder, EMBEDDER, 2).unwrap()
}

/// A document with the cursor that a feed would have after it.
fn applied(index: &Index, document: IndexedDocument, position: u64) {
    let cursors = vec![Cursor { feed: "content".to_owned(), workspace: WORKSPACE, position }];
    index.apply(Batch { documents: vec![document], deletions: Vec::new(), cursors }).unwrap();
}

/// A folder with one document at position 7, closed.
fn filled() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    applied(&open(folder.path()), document(1, &["alpha", "beta"]), 7);
    folder
}

#[track_caller]
fn assert_empty(index: &Index) {
    assert_eq!(index.cursors().len(), 0);
    assert_eq!(index.counts(WORKSPACE).unwrap(), Counts::default());
    assert_eq!(found(index, "alpha"), []);
    applied(index, document(1, &["alpha"]), 1);
    assert_eq!(found(index, "alpha"), [id(1, 0)]);
}

fn nearest(index: &Index, vector: [f32; 2]) -> Vec<ChunkId> {
    let query =
        VectorQuery { workspace: WORKSPACE, vector: &vector, containers: None, documents: None, limit: 10 };
    index.vectors().search(&query).unwrap().into_iter().map(|hit| hit.chunk).collect()
}

fn engine(folder: &Path, dimensions: usize) -> EmbeddedEngine {
    let index = Index::open(folder, EMBEDDER, dimensions).unwrap();
    EmbeddedEngine::new(Arc::new(index), EmbeddedEngine::permits())
}

#[tokio::test]
async fn keeps_the_contract() {
    for (name, check) in contract::CHECKS {
        println!("{name}");
        let folder = tempfile::tempdir().unwrap();
        check(&engine(folder.path(), 2)).await;
    }
}

#[tokio::test]
async fn finds_what_an_exact_search_finds() {
    let folder = tempfile::tempdir().unwrap();
    let recall = contract::recall(&engine(folder.path(), contract::RECALL_DIMENSIONS)).await;
    assert!(recall >= 0.98, "recall {recall}");
}

#[test]
fn reopens_with_text_vectors_and_cursors() {
    let folder = filled();
    let index = open(folder.path());
    assert_eq!(index.cursor("content", WORKSPACE), 7);
    assert_eq!(found(&index, "beta"), [id(1, 1)]);
    assert_eq!(nearest(&index, [1.0, 0.0]), [id(1, 0), id(1, 1)]);
}

#[test]
fn another_embedder_or_dimension_wipes() {
    for (embedder, dimensions) in [("other", 2), (EMBEDDER, 3)] {
        let folder = filled();
        let index = Index::open(folder.path(), embedder, dimensions).unwrap();
        assert_eq!(index.cursors().len(), 0);
        assert_eq!(index.counts(WORKSPACE).unwrap(), Counts::default());
    }
    assert!(matches!(Index::open(Path::new("unused"), EMBEDDER, 0), Err(Error::NoDimensions)));
}

#[test]
fn another_schema_version_wipes() {
    let folder = filled();
    let meta = folder.path().join("segments/meta.json");
    let text = fs_err::read_to_string(&meta).unwrap();
    let other = text.replace(r#"{\"schema\":"#, r#"{\"schema\":9"#);
    assert_ne!(text, other);
    fs_err::write(&meta, other).unwrap();
    assert_empty(&open(folder.path()));
}

#[test]
fn damage_of_any_file_by_a_restart_wipes_or_does_no_harm() {
    let files = fs_err::read_dir(filled().path().join("segments")).unwrap().count();
    for number in 0..files {
        for damage in [Damage::Cut, Damage::Empty, Damage::Gone] {
            let folder = filled();
            let mut paths: Vec<_> = fs_err::read_dir(folder.path().join("segments"))
                .unwrap()
                .map(|f| f.unwrap().path())
                .collect();
            paths.sort();
            damage.inflict(&paths[number]);
            fs_err::write(folder.path().join("boot"), "an earlier run").unwrap();
            let index = open(folder.path());
            let whole = index.cursor("content", WORKSPACE) == 7;
            let documents = index.counts(WORKSPACE).unwrap().documents;
            assert_eq!(documents, u64::from(whole), "{damage:?} {}", paths[number].display());
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Damage {
    Cut,
    Empty,
    Gone,
}

impl Damage {
    fn inflict(self, path: &Path) {
        let content = fs_err::read(path).unwrap();
        match self {
            Self::Cut => fs_err::write(path, &content[..content.len() / 2]).unwrap(),
            Self::Empty => fs_err::write(path, "").unwrap(),
            Self::Gone => fs_err::remove_file(path).unwrap(),
        }
    }
}

#[test]
fn after_a_restart_of_the_machine_lost_bytes_wipe() {
    let folder = filled();
    let segments = fs_err::read_dir(folder.path().join("segments")).unwrap();
    let store =
        segments.map(|f| f.unwrap().path()).find(|path| path.extension().is_some_and(|e| e == "store"));
    let store = store.unwrap();
    let mut content = fs_err::read(&store).unwrap();
    content[..8].fill(0);
    fs_err::write(&store, content).unwrap();
    fs_err::write(folder.path().join("boot"), "an earlier run").unwrap();
    assert_empty(&open(folder.path()));
}

#[test]
fn after_a_restart_of_the_machine_whole_files_stay() {
    let folder = filled();
    fs_err::write(folder.path().join("boot"), "an earlier run").unwrap();
    assert_eq!(open(folder.path()).cursor("content", WORKSPACE), 7);
}

#[test]
fn a_copy_of_the_files_at_any_moment_opens() {
    // What a kill leaves behind: the files as they were, without any closing.
    let folder = tempfile::tempdir().unwrap();
    let index = open(folder.path());
    for number in 1..=60 {
        applied(&index, document(u128::from(number), &["alpha", "beta"]), number);
        if number % 7 == 0 {
            index.flush().unwrap();
        }
        let copy = copy_of(folder.path());
        let copied = open(copy.path());
        let position = copied.cursor("content", WORKSPACE);
        assert!(position <= number && position >= number / 7 * 7, "{position} of {number}");
        assert_eq!(copied.counts(WORKSPACE).unwrap().documents, position);
    }
}

/// The files as they were at one moment. A copy during which a merge ended holds files of two moments, which no kill
/// leaves behind, and is made again.
fn copy_of(folder: &Path) -> tempfile::TempDir {
    let commit = || fs_err::read(folder.join("segments/meta.json")).unwrap();
    loop {
        let before = commit();
        let copy = tempfile::tempdir().unwrap();
        copy_folder(folder, copy.path());
        if commit() == before {
            return copy;
        }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs_err::create_dir(to.join("segments")).unwrap();
    fs_err::copy(from.join("boot"), to.join("boot")).unwrap();
    for file in fs_err::read_dir(from.join("segments")).unwrap() {
        let file = file.unwrap();
        // What is removed meanwhile belongs to no commit any more.
        let _gone_meanwhile = fs_err::copy(file.path(), to.join("segments").join(file.file_name()));
    }
}

#[test]
fn a_folder_has_one_owner() {
    let folder = filled();
    let first = open(folder.path());
    assert!(matches!(Index::open(folder.path(), EMBEDDER, 2), Err(Error::InUse)));
    drop(first);
    assert_eq!(open(folder.path()).cursor("content", WORKSPACE), 7);
}

#[test]
fn a_wrong_embedding_changes_nothing() {
    let folder = filled();
    let index = open(folder.path());
    let mut wrong = document(1, &["gamma"]);
    wrong.chunks[0].embedding = vec![1.0];
    let error = index.apply(Batch { documents: vec![wrong], ..Batch::default() }).unwrap_err();
    assert!(matches!(error, Error::Dimensions { expected: 2, given: 1 }));
    assert_eq!(found(&index, "alpha gamma"), [id(1, 0)]);
}

#[test]
fn vectors_follow_apply_loaded_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let index = open(folder.path());
    add(&index, vec![document(1, &["a1", "b1"]), document(2, &["c1"])]);
    assert_eq!(nearest(&index, [1.0, 0.0]), [id(1, 0), id(1, 1), id(2, 0)]);
    let mut turned = document(1, &["d1"]);
    turned.chunks[0].embedding = vec![0.0, 1.0];
    add(&index, vec![turned]);
    assert_eq!(nearest(&index, [0.0, 1.0]), [id(1, 0), id(2, 0)]);
    index.release_memory().unwrap();
    assert_eq!(nearest(&index, [0.0, 1.0]), [id(1, 0), id(2, 0)]);
    let deletions = vec![(WORKSPACE, Uuid::from_u128(1))];
    index.apply(Batch { deletions, ..Batch::default() }).unwrap();
    assert_eq!(nearest(&index, [0.0, 1.0]), [id(2, 0)]);
}

#[test]
fn many_small_commits_leave_few_segments() {
    let folder = tempfile::tempdir().unwrap();
    let index = open(folder.path());
    for number in 1..=100 {
        applied(&index, document(number, &["alpha"]), u64::try_from(number).unwrap());
        index.flush().unwrap();
    }
    index.release_memory().unwrap();
    add(&index, Vec::new());
    let segments = index.reader.searcher().segment_readers().len();
    assert!(segments <= 20, "{segments} segments");
    assert_eq!(index.counts(WORKSPACE).unwrap(), Counts { documents: 100, chunks: 100 });
    assert_eq!(index.cursor("content", WORKSPACE), 100);
}

#[test]
fn a_search_never_sees_half_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let index = open(folder.path());
    let sizes = [["alpha"; 3].as_slice(), ["alpha"; 5].as_slice()];
    add(&index, vec![document(1, sizes[0])]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..40 {
                add(&index, vec![document(1, sizes[turn % 2])]);
                if turn % 10 == 9 {
                    index.release_memory().unwrap();
                }
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            for count in [found(&index, "alpha").len(), nearest(&index, [1.0, 0.0]).len()] {
                assert!(count == 3 || count == 5, "{count}");
            }
        }
    });
}

#[test]
fn files_that_no_commit_names_are_removed() {
    let folder = filled();
    let stray = folder.path().join("segments/00000000000000000000000000000000.idx");
    fs_err::write(&stray, "left by a kill").unwrap();
    fs_err::write(folder.path().join("segments/3.unfinished"), "too").unwrap();
    let index = open(folder.path());
    applied(&index, document(2, &["beta"]), 8);
    index.flush().unwrap();
    assert!(!stray.exists());
    assert!(!folder.path().join("segments/3.unfinished").exists());
    assert_eq!(found(&index, "beta").len(), 2);
}

#[test]
fn no_query_fails() {
    let folder = tempfile::tempdir().unwrap();
    let index = open(folder.path());
    add(&index, vec![document(1, &["alpha beta", "to be or not", "beta \"alpha\" -x"])]);
    let texts = prop_oneof![any::<String>(), r#"([-"a]|alpha|beta|to|be| ){0,12}"#];
    let mut runner = TestRunner::deterministic();
    for _ in 0..1_000 {
        let text = texts.new_tree(&mut runner).unwrap().current();
        let words = ParsedQuery::parse(&text);
        let query =
            LexicalQuery { workspace: WORKSPACE, words: &words, containers: None, documents: None, limit: 5 };
        assert!(index.search(&query).is_ok(), "{text:?}");
        assert!(index.excluded(WORKSPACE, &words, &[id(1, 0)]).is_ok(), "{text:?}");
    }
}
