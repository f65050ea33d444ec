use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use cairn_embed::{self as embed, Embedder, TextKind};
use cairn_index::embedded::{EmbeddedEngine, Index};
use cairn_index::{Batch, Engine as _};
use cairn_proto::document::v1::{Document, DocumentRef, Format};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use super::Cutter;

const WORKSPACE: WorkspaceId = WorkspaceId(Uuid::from_u128(1));
const DOCUMENT: Uuid = Uuid::from_u128(7);

/// Counts the texts that it embeds.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

#[async_trait]
impl Embedder for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn dimensions(&self) -> usize {
        2
    }

    async fn embed(&self, _: TextKind, texts: &[&str]) -> Result<Vec<Vec<f32>>, embed::Error> {
        self.0.fetch_add(texts.len(), Ordering::Relaxed);
        Ok(texts.iter().map(|text| vec![text.len() as f32, 7.0]).collect())
    }
}

struct Fixture {
    _folder: tempfile::TempDir,
    engine: EmbeddedEngine,
    cutter: Cutter,
    embedder: Counting,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let index = Arc::new(Index::open(folder.path(), "counting", 2).unwrap());
        let engine = EmbeddedEngine::new(index, EmbeddedEngine::permits());
        Self { _folder: folder, engine, cutter: Cutter::default(), embedder: Counting::default() }
    }

    /// How many texts are embedded to index the document as it is now.
    async fn index(&self, document: &Document) -> usize {
        let before = self.embedder.0.load(Ordering::Relaxed);
        let mut cut = self.cutter.cut(&self.engine, WORKSPACE, vec![document.clone()]).await.unwrap();
        cut.embed(&self.embedder).await.unwrap();
        let documents = cut.into_documents(2);
        self.engine.apply(Batch { documents, ..Batch::default() }).await.unwrap();
        self.embedder.0.load(Ordering::Relaxed) - before
    }

    async fn vectors(&self) -> Vec<(u32, Vec<f32>)> {
        let vectors =
            self.engine.vectors(WORKSPACE.0, vec![DOCUMENT]).await.unwrap().remove(&DOCUMENT).unwrap();
        vectors.into_iter().map(|(place, vector)| (place, vector.to_f32())).collect()
    }
}

fn guide() -> Document {
    let section = |name: &str| format!("## {name}\n\n{}\n\n", format!("{name} words ").repeat(60).trim());
    Document {
        r#ref: Some(DocumentRef { kind: Kind::File.into(), id: DOCUMENT.to_string() }),
        title: "guide.md".to_owned(),
        format: Format::Markdown.into(),
        content: ["one", "two", "three", "four"].map(section).concat(),
        ..Document::default()
    }
}

#[tokio::test]
async fn only_what_changed_is_embedded_again() {
    let fixture = Fixture::new();
    let mut document = guide();
    assert_eq!(fixture.index(&document).await, 4);
    let before = fixture.vectors().await;
    assert_eq!(fixture.index(&document).await, 0);
    assert_eq!(fixture.vectors().await, before);

    document.content = document.content.replace("two words", "other words");
    assert_eq!(fixture.index(&document).await, 1);
    document.content = document.content.replacen("## one", "Something before it.\n\n## one", 1);
    // The lines below have moved; their text has not.
    assert!(fixture.index(&document).await <= 1);
    fixture.engine.flush().await.unwrap();
    assert_eq!(fixture.index(&document).await, 0);
}

#[tokio::test]
async fn a_move_embeds_nothing_and_another_name_embeds_all() {
    let fixture = Fixture::new();
    let mut document = guide();
    fixture.index(&document).await;
    document.folder_id = Some(Uuid::from_u128(9).to_string());
    document.path = "elsewhere/guide.md".to_owned();
    assert_eq!(fixture.index(&document).await, 0);
    document.title = "handbook.md".to_owned();
    assert_eq!(fixture.index(&document).await, 4);
}

#[tokio::test]
async fn a_document_that_is_as_it_was_is_not_cut_again() {
    let (fixture, mut document) = (Fixture::new(), guide());
    let first = fixture.cutter.chunks(DOCUMENT, &document);
    // Where it stands is no part of its texts.
    document.path = "elsewhere/guide.md".to_owned();
    assert!(Arc::ptr_eq(&first, &fixture.cutter.chunks(DOCUMENT, &document)));
    document.title = "handbook.md".to_owned();
    assert!(!Arc::ptr_eq(&first, &fixture.cutter.chunks(DOCUMENT, &document)));
    let uncached = Cutter::uncached();
    let first = uncached.chunks(DOCUMENT, &document);
    assert!(!Arc::ptr_eq(&first, &uncached.chunks(DOCUMENT, &document)));
}

#[test]
fn names_of_folders_and_databases_are_no_words_of_what_stands_in_them() {
    let of = |kind, path: &str| super::indexed_path(kind, path.to_owned());
    assert_eq!(of(Kind::File, "/Team/Plans/a.md"), "");
    assert_eq!(of(Kind::Record, "/Team/Tasks/Ship it"), "");
    assert_eq!(of(Kind::Memory, "/memories/release"), "/memories/release");
    assert_eq!(of(Kind::SourceDocument, "/sources/Wiki/Plans/a"), "/sources/Wiki/Plans/a");
}

#[test]
fn a_record_is_held_by_its_database() {
    let mut document = guide();
    document.database_id = Some(Uuid::from_u128(5).to_string());
    document.folder_id = Some(Uuid::from_u128(9).to_string());
    let cut = Cutter::uncached().cut_one(WORKSPACE, document).unwrap();
    assert_eq!(cut.document.holder, Some(Uuid::from_u128(5)));
    assert_eq!(cut.document.container, Some(Uuid::from_u128(9)));
}

#[test]
fn text_that_is_called_so_is_cut_as_a_table() {
    let rows: String = (0..200).map(|row| format!("part {row},some euros and cents\n")).collect();
    let mut document = guide();
    document.content = format!("part,price\n{rows}");
    document.format = Format::Text.into();
    let headers = |title: &str, document: &Document| {
        let document = Document { title: title.to_owned(), ..document.clone() };
        let chunks = Cutter::uncached().chunks(DOCUMENT, &document);
        chunks.iter().skip(1).map(|(chunk, _)| chunk.table_header.clone()).collect::<Vec<_>>()
    };
    let table = headers("prices.CSV", &document);
    assert!(!table.is_empty() && table.iter().all(|header| header == "part,price"), "{table:?}");
    assert!(headers("prices.txt", &document).iter().all(String::is_empty));
    document.format = Format::Markdown.into();
    assert!(headers("prices.csv", &document).iter().all(String::is_empty));
}
