//! Opens the engines of index generations.

use std::collections::HashMap;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use cairn_embed::EmbedderIdentity;
use tokio::sync::Semaphore;

use crate::embedded::contents::{self, IndexContents};
use crate::embedded::{EmbeddedEngine, Index};
use crate::{Engine, Error};

/// Opens the engines of generations and stores which one is current.
///
/// Embedded engines have one folder each ([`FolderFactory`]); on a server each generation can be a collection named by
/// [`EmbedderIdentity::slug`], with an alias for the current one.
#[async_trait]
pub trait EngineFactory: Send + Sync + Debug {
    /// The embedder of the current generation; `None` at the very first start.
    async fn current(&self) -> Result<Option<EmbedderIdentity>, Error>;

    /// Opens the engine of a generation, creating an empty one if needed. Its cursors are persistent.
    async fn open(&self, identity: &EmbedderIdentity) -> Result<Arc<dyn Engine>, Error>;

    /// Atomically stores which generation is current, for the next start.
    async fn make_current(&self, identity: &EmbedderIdentity) -> Result<(), Error>;

    /// Removes every other generation once this process no longer uses it.
    async fn keep_only(&self, identity: &EmbedderIdentity) -> Result<(), Error>;
}

/// The file that stores which generation is current.
const CURRENT_FILE: &str = "current.json";

/// How often it is checked whether a generation is still used before it is removed: running searches continue to read it.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Opens embedded indexes, one folder each.
#[derive(Debug)]
pub struct FolderFactory {
    root: PathBuf,
    /// Shared by all engines, which run on the same cores.
    permits: Arc<Semaphore>,
    opened: Mutex<HashMap<String, Weak<Index>>>,
}

impl FolderFactory {
    /// A factory in a folder, which belongs to it alone and is created if needed.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn open(root: &Path) -> Result<Self, Error> {
        fs_err::create_dir_all(root)?;
        let (root, permits) = (root.to_owned(), EmbeddedEngine::permits());
        Ok(Self { root, permits, opened: Mutex::default() })
    }

    fn opened(&self) -> MutexGuard<'_, HashMap<String, Weak<Index>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl EngineFactory for FolderFactory {
    async fn current(&self) -> Result<Option<EmbedderIdentity>, Error> {
        current(&self.root)
    }

    async fn open(&self, identity: &EmbedderIdentity) -> Result<Arc<dyn Engine>, Error> {
        let (slug, wanted) = (identity.slug(), identity.clone());
        let folder = self.root.join(&slug);
        let opened =
            tokio::task::spawn_blocking(move || Index::open(&folder, &wanted.embedder, wanted.dimensions));
        let index = Arc::new(opened.await??);
        self.opened().insert(slug, Arc::downgrade(&index));
        Ok(Arc::new(EmbeddedEngine::new(index, Arc::clone(&self.permits))))
    }

    async fn make_current(&self, identity: &EmbedderIdentity) -> Result<(), Error> {
        let written = serde_json::to_vec(identity)?;
        let draft = self.root.join(format!("{CURRENT_FILE}.new"));
        fs_err::write(&draft, written)?;
        fs_err::rename(draft, self.root.join(CURRENT_FILE))?;
        Ok(())
    }

    async fn keep_only(&self, identity: &EmbedderIdentity) -> Result<(), Error> {
        let kept = identity.slug();
        let others: Vec<Weak<Index>> = {
            let mut opened = self.opened();
            opened.extract_if(|slug, _| *slug != kept).map(|(_, index)| index).collect()
        };
        while others.iter().any(|index| index.strong_count() > 0) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let root = self.root.clone();
        tokio::task::spawn_blocking(move || remove_others(&root, &kept)).await?
    }
}

/// The embedder of the current generation in a folder; `None` if there is none.
///
/// # Errors
/// When the file that stores it cannot be read.
pub fn current(root: &Path) -> Result<Option<EmbedderIdentity>, Error> {
    match fs_err::read(root.join(CURRENT_FILE)) {
        // An unreadable identity is treated as none: the index is rebuilt from the feeds.
        Ok(written) => Ok(serde_json::from_slice(&written).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The contents of the last commit of the current generation in a folder; `None` if there is none, or none that this version can open.
/// Read-only: the process that owns the folder may keep running.
///
/// # Errors
/// When a file cannot be read.
pub fn contents(root: &Path) -> Result<Option<IndexContents>, Error> {
    let Some(identity) = current(root)? else { return Ok(None) };
    contents::read(&root.join(identity.slug()))
}

/// How many files of the current generation in a folder fail their checksum.
///
/// # Errors
/// When a file cannot be read at all.
pub fn damaged(root: &Path) -> Result<usize, Error> {
    let Some(identity) = current(root)? else { return Ok(0) };
    contents::damaged(&root.join(identity.slug()))
}

fn remove_others(root: &Path, kept: &str) -> Result<(), Error> {
    for entry in fs_err::read_dir(root)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && *entry.file_name() != *kept {
            fs_err::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use cairn_embed::EmbedderIdentity;
    use uuid::Uuid;

    use super::*;
    use crate::embedded::contents::StoredDocument;
    use crate::words::Language;
    use crate::{Batch, Cursor, IndexedChunk, IndexedDocument};

    fn identity(embedder: &str) -> EmbedderIdentity {
        EmbedderIdentity { embedder: embedder.to_owned(), dimensions: 4, origin: "somewhere".to_owned() }
    }

    #[tokio::test]
    async fn a_factory_keeps_generations_apart_and_knows_the_current_one() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (identity("old"), identity("new"));
        let workspace = Uuid::from_u128(1);
        {
            let factory = FolderFactory::open(folder.path()).unwrap();
            assert_eq!(factory.current().await.unwrap(), None);
            factory.make_current(&old).await.unwrap();
            let cursor = |position| Cursor { feed: "content".to_owned(), workspace, position };
            for (identity, position) in [(&old, 3), (&new, 5)] {
                let engine = factory.open(identity).await.unwrap();
                engine.apply(Batch { cursors: vec![cursor(position)], ..Batch::default() }).await.unwrap();
            }
        }
        let factory = FolderFactory::open(folder.path()).unwrap();
        assert_eq!(factory.current().await.unwrap(), Some(old.clone()));
        assert_eq!(factory.open(&new).await.unwrap().cursor("content", workspace), 5);
        factory.make_current(&new).await.unwrap();
        factory.keep_only(&new).await.unwrap();
        assert_eq!(factory.current().await.unwrap(), Some(new.clone()));
        assert_eq!(factory.open(&new).await.unwrap().cursor("content", workspace), 5);
        assert_eq!(factory.open(&old).await.unwrap().cursor("content", workspace), 0, "it was not removed");
    }

    #[tokio::test]
    async fn what_a_folder_holds_is_read_beside_who_writes_to_it() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(contents(folder.path()).unwrap(), None);
        let factory = FolderFactory::open(folder.path()).unwrap();
        factory.make_current(&identity("one")).await.unwrap();
        let engine = factory.open(&identity("one")).await.unwrap();
        let workspace = Uuid::from_u128(1);
        let document = |id, hash: &str| IndexedDocument {
            workspace,
            document: Uuid::from_u128(id),
            container: None,
            holder: None,
            kind: "KIND_FILE".to_owned(),
            title: "a title".to_owned(),
            path: String::new(),
            tags: Vec::new(),
            language: Language::English,
            content_hash: hash.to_owned(),
            updated_at: 0,
            chunks: vec![IndexedChunk {
                text: "some words".to_owned(),
                heading_path: Vec::new(),
                table_header: String::new(),
                start_line: 1,
                end_line: 1,
                embedding: vec![0.5; 4],
                pieces: Vec::new(),
            }],
        };
        let batch = |documents, deletions, position| Batch {
            documents,
            deletions,
            cursors: vec![Cursor { feed: "content".to_owned(), workspace, position }],
        };
        engine.apply(batch(vec![document(1, "first"), document(2, "second")], Vec::new(), 2)).await.unwrap();
        engine.flush().await.unwrap();
        engine.apply(batch(Vec::new(), vec![(workspace, Uuid::from_u128(1))], 3)).await.unwrap();
        let seen = contents(folder.path()).unwrap().unwrap();
        assert_eq!((seen.documents.len(), seen.cursors["content"][&workspace]), (2, 2), "the last commit");
        engine.flush().await.unwrap();
        let seen = contents(folder.path()).unwrap().unwrap();
        assert_eq!(seen.cursors["content"][&workspace], 3);
        let only = StoredDocument { kind: "KIND_FILE".to_owned(), content_hash: "second".to_owned() };
        assert_eq!(seen.documents, HashMap::from([((workspace, Uuid::from_u128(2)), only)]));
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_no_current_generation() {
        let folder = tempfile::tempdir().unwrap();
        fs_err::write(folder.path().join("current.json"), b"half a fi").unwrap();
        assert_eq!(FolderFactory::open(folder.path()).unwrap().current().await.unwrap(), None);
    }
}
