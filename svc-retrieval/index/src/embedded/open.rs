//! Opens an index folder, or wipes it when its contents do not match what was requested.

use serde::{Deserialize, Serialize};
use tantivy::directory::error::OpenDirectoryError;
use tantivy::index::SegmentComponent;
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{IndexReader, IndexSettings, ReloadPolicy, TantivyError};

use super::Error;
use super::directory::UnsyncedDirectory;
use super::folder::Folder;
use super::schema::Fields;
use super::tokens::{TOKEN_LIST, TokenListTokenizer};
use crate::tuning::{SCHEMA_VERSION, STORE_BLOCK, STORE_CACHE_BLOCKS};
use crate::{Cursor, Cursors};

/// Stored with every commit: the schema and embedder of the index, and its cursors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Payload {
    schema: u32,
    embedder: String,
    dimensions: usize,
    pub(super) cursors: Cursors,
}

impl Payload {
    /// The payload of an empty index.
    pub(super) fn new(embedder: &str, dimensions: usize) -> Self {
        let embedder = embedder.to_owned();
        Self { schema: SCHEMA_VERSION, embedder, dimensions, cursors: Cursors::new() }
    }

    /// Advances cursors.
    pub(super) fn advance(&mut self, cursors: &[Cursor]) {
        for cursor in cursors {
            self.cursors.entry(cursor.feed.clone()).or_default().insert(cursor.workspace, cursor.position);
        }
    }

    /// Whether this version can open it.
    pub(super) const fn is_of_this_version(&self) -> bool {
        self.schema == SCHEMA_VERSION
    }

    fn fits(&self, wanted: &Self) -> bool {
        self.schema == wanted.schema
            && self.embedder == wanted.embedder
            && self.dimensions == wanted.dimensions
    }
}

/// An open index.
pub(super) struct Opened {
    pub(super) engine: tantivy::Index,
    pub(super) reader: IndexReader,
    pub(super) payload: Payload,
}

/// Why the files of a folder cannot be used.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("made by another version or embedder")]
    Other,
    #[error("damaged files: {0}")]
    Damaged(usize),
    #[error(transparent)]
    Directory(#[from] OpenDirectoryError),
    #[error(transparent)]
    Engine(#[from] TantivyError),
    #[error(transparent)]
    Payload(#[from] serde_json::Error),
}

/// Opens the index in the folder if it matches `wanted`, otherwise creates an empty one in its place.
pub(super) fn open(folder: &Folder, fields: &Fields, wanted: Payload) -> Result<Opened, Error> {
    let opened = match open_existing(folder, fields, &wanted) {
        Ok(Some(opened)) => opened,
        Ok(None) => create(folder, fields, wanted)?,
        Err(reason) => {
            tracing::warn!(%reason, folder = %folder.segments().display(), "index wiped; it is rebuilt from the feeds");
            create(folder, fields, wanted)?
        }
    };
    folder.mark_intact()?;
    Ok(opened)
}

/// `None` if nothing was ever committed.
fn open_existing(folder: &Folder, fields: &Fields, wanted: &Payload) -> Result<Option<Opened>, Unusable> {
    let directory = UnsyncedDirectory::open(&folder.segments())?;
    if !tantivy::Index::exists(&directory).map_err(TantivyError::from)? {
        return Ok(None);
    }
    let engine = tantivy::Index::open(directory)?;
    let Some(text) = engine.load_metas()?.payload else {
        return Ok(None);
    };
    let payload: Payload = serde_json::from_str(&text)?;
    if !payload.fits(wanted) || engine.schema() != fields.schema {
        return Err(Unusable::Other);
    }
    if folder.may_be_damaged() {
        check_files(&engine)?;
    }
    engine.tokenizers().register(TOKEN_LIST, TextAnalyzer::from(TokenListTokenizer::default()));
    let reader = open_reader(&engine)?;
    Ok(Some(Opened { engine, reader, payload }))
}

/// Fails for missing files, and for files whose checksum differs.
fn check_files(engine: &tantivy::Index) -> Result<(), Unusable> {
    let damaged = engine.validate_checksum()?.len();
    if damaged > 0 {
        return Err(Unusable::Damaged(damaged));
    }
    // The reader opens the other files of a segment; positions are only opened by the first phrase query.
    for segment in engine.searchable_segments()? {
        segment.open_read(SegmentComponent::Positions).map_err(TantivyError::from)?;
    }
    Ok(())
}

fn create(folder: &Folder, fields: &Fields, payload: Payload) -> Result<Opened, Error> {
    folder.wipe()?;
    let directory = UnsyncedDirectory::open(&folder.segments()).map_err(TantivyError::from)?;
    let engine = tantivy::Index::create(directory, fields.schema.clone(), settings())?;
    engine.tokenizers().register(TOKEN_LIST, TextAnalyzer::from(TokenListTokenizer::default()));
    let reader = open_reader(&engine)?;
    Ok(Opened { engine, reader, payload })
}

/// A reader that is reloaded manually after each commit: a watcher would be too late.
pub(super) fn open_reader(engine: &tantivy::Index) -> tantivy::Result<IndexReader> {
    engine
        .reader_builder()
        .reload_policy(ReloadPolicy::Manual)
        .doc_store_cache_num_blocks(STORE_CACHE_BLOCKS)
        .try_into()
}

/// The settings of on-disk and in-memory segments.
pub(super) fn settings() -> IndexSettings {
    IndexSettings {
        docstore_blocksize: STORE_BLOCK,
        // A dedicated thread to compress the few chunks of a commit costs more than it saves.
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    }
}
