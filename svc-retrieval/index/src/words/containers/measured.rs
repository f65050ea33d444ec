//! Measures the gain of folder names in search on a local tree of Markdown files:
//!
//! ```sh
//! CAIRN_TREE=FOLDER cargo test -p cairn-index --lib containers::measured -- --ignored --nocapture
//! ```
//!
//! Questions are generated from passages: the last heading with the name of the folder, and the heading with the first words of the
//! passage. The relevant document is the one with the passage. The former questions need names, the latter should not lose by them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::*;
use crate::chunk::{Format, split as cut, stem};
use crate::contract::WORKSPACE;
use crate::embedded::{Index, LexicalQuery};
use crate::words::detect;
use crate::{Batch, IndexedChunk, IndexedDocument, ParsedQuery};

/// Words of a passage per question.
const WORDS: usize = 6;
/// The maximum number of sampled questions of each kind.
const MAX_QUESTIONS: usize = 2_000;
const DOCUMENTS_PER_BATCH: usize = 500;

#[derive(Default)]
struct Tree {
    documents: Vec<IndexedDocument>,
    containers: Vec<Container>,
    /// Each with its relevant document.
    named: Vec<(String, Uuid)>,
    plain: Vec<(String, Uuid)>,
}

#[test]
#[ignore = "needs data: CAIRN_TREE names a folder"]
fn the_names_of_folders_on_data_at_hand() {
    let root = PathBuf::from(std::env::var("CAIRN_TREE").expect("CAIRN_TREE names a folder"));
    let mut tree = Tree::default();
    tree.read(&root, &root, None);
    let (index, before) = (filled(&tree, false), filled(&tree, true));
    let names = Arc::new(ContainerNames::new(tree.containers));
    println!(
        "{} documents, {} folders; mean reciprocal rank of the first ten",
        tree.documents.len(),
        names.containers.len()
    );
    for (kind, questions) in [("with the folder's name", &tree.named), ("without it", &tree.plain)] {
        let step = questions.len().div_ceil(MAX_QUESTIONS).max(1);
        let asked: Vec<_> = questions.iter().step_by(step).collect();
        let mean = |index: &Index, names: Option<&Arc<ContainerNames>>| {
            let ranks = asked.iter().map(|(question, right)| reciprocal_rank(index, question, *right, names));
            ranks.sum::<f32>() / asked.len().max(1) as f32
        };
        println!(
            "{} questions {kind}: no names {:.3}, names as words of chunks {:.3}, names {:.3}",
            asked.len(),
            mean(&index.1, None),
            mean(&before.1, None),
            mean(&index.1, Some(&names)),
        );
    }
}

fn reciprocal_rank(index: &Index, question: &str, right: Uuid, names: Option<&Arc<ContainerNames>>) -> f32 {
    let mut words = ParsedQuery::parse(question);
    if let Some(names) = names {
        words = words.with_container_names(Arc::clone(names), None);
    }
    let query =
        LexicalQuery { workspace: WORKSPACE, words: &words, containers: None, documents: None, limit: 10 };
    let found = index.search(&query).unwrap();
    let place = found.iter().position(|hit| hit.chunk.document == right);
    place.map_or(0.0, |place| 1.0 / (place as f32 + 1.0))
}

/// With or without the names of folders.
fn filled(tree: &Tree, with_paths: bool) -> (tempfile::TempDir, Index) {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), "measured", 2).unwrap();
    for documents in tree.documents.chunks(DOCUMENTS_PER_BATCH) {
        let mut documents = documents.to_vec();
        if !with_paths {
            documents.iter_mut().for_each(|document| document.path = String::new());
        }
        index.apply(Batch { documents, ..Batch::default() }).unwrap();
    }
    (folder, index)
}

impl Tree {
    fn read(&mut self, root: &Path, folder: &Path, parent: Option<(Uuid, &str)>) {
        let mut entries: Vec<PathBuf> =
            fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') {
                let id = Uuid::from_u128(1 + self.containers.len() as u128);
                let parent = parent.map(|(id, _)| id);
                self.containers.push(Container { id, parent, name: name.clone(), is_holder: false });
                self.read(root, &path, Some((id, &name)));
            } else if name.ends_with(".md")
                && let Ok(content) = fs_err::read_to_string(&path)
            {
                let place = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                self.add(&place, &name, &content, parent);
            }
        }
    }

    fn add(&mut self, place: &str, name: &str, content: &str, parent: Option<(Uuid, &str)>) {
        let id = Uuid::from_u128(1_000_000 + self.documents.len() as u128);
        let mut seen: HashMap<String, usize> = HashMap::new();
        let chunks = cut(Format::Markdown, content);
        for chunk in &chunks {
            let (Some(heading), Some((_, folder))) = (chunk.heading_path.last(), parent) else { continue };
            if *seen.entry(heading.clone()).and_modify(|times| *times += 1).or_default() == 0 {
                let body = chunk.text.split_whitespace().filter(|word| word.contains(char::is_alphabetic));
                let words: Vec<&str> = body.skip(heading.split_whitespace().count()).take(WORDS).collect();
                self.named.push((format!("{folder} {heading}"), id));
                self.plain.push((format!("{heading} {}", words.join(" ")), id));
            }
        }
        let chunk = |chunk: crate::chunk::Chunk| IndexedChunk {
            text: chunk.text,
            heading_path: chunk.heading_path,
            table_header: chunk.table_header,
            start_line: chunk.start_line,
            end_line: chunk.end_line,
            embedding: vec![0.0; 2],
            pieces: Vec::new(),
        };
        self.documents.push(IndexedDocument {
            workspace: WORKSPACE,
            document: id,
            container: parent.map(|(id, _)| id),
            holder: None,
            kind: "KIND_FILE".to_owned(),
            title: stem(name).to_owned(),
            path: format!("/{place}"),
            tags: Vec::new(),
            language: detect(content),
            content_hash: String::new(),
            updated_at: 0,
            chunks: chunks.into_iter().map(chunk).collect(),
        });
    }
}
