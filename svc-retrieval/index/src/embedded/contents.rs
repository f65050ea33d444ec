//! Reads the contents of the last commit of an index, also while another process writes to it.

use std::collections::HashMap;
use std::path::Path;

use tantivy::directory::MmapDirectory;
use tantivy::{Index, TantivyDocument, TantivyError};
use uuid::Uuid;

use super::directory::UnsyncedDirectory;
use super::folder::SEGMENTS;
use super::open::{Payload, open_reader};
use super::schema::Fields;
use crate::{Cursors, Error};

/// How often a read is retried because a commit happened during it.
const ATTEMPTS: usize = 100;
/// Cached blocks of stored chunks: one, since rows are read in order.
const CACHED_BLOCKS: usize = 1;

/// The contents of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexContents {
    /// Its cursors.
    pub cursors: Cursors,
    /// Its documents, by workspace and id.
    pub documents: HashMap<(Uuid, Uuid), StoredDocument>,
}

/// A document that has at least one chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDocument {
    /// The kind that its owner gave it.
    pub kind: String,
    /// The hash of the indexed content.
    pub content_hash: String,
}

/// How many files of an index fail their checksum; 0 if there is no index.
pub(crate) fn damaged(folder: &Path) -> Result<usize, Error> {
    let segments = folder.join(SEGMENTS);
    if !segments.is_dir() {
        return Ok(0);
    }
    // This directory lists its files itself: tantivy verifies only files in that list.
    let directory = UnsyncedDirectory::open_to_read(&segments).map_err(TantivyError::from)?;
    if !Index::exists(&directory).map_err(TantivyError::from)? {
        return Ok(0);
    }
    Ok(Index::open(directory)?.validate_checksum()?.len())
}

/// Reads the folder of an index; `None` if there is none, or none that this version can open.
pub(crate) fn read(folder: &Path) -> Result<Option<IndexContents>, Error> {
    let segments = folder.join(SEGMENTS);
    if !segments.is_dir() {
        return Ok(None);
    }
    // Read-only: the writer's directory removes unfinished files when it is opened.
    let directory = MmapDirectory::open(&segments).map_err(TantivyError::from)?;
    if !Index::exists(&directory).map_err(TantivyError::from)? {
        return Ok(None);
    }
    let engine = Index::open(directory)?;
    let fields = Fields::new();
    if engine.schema() != fields.schema {
        return Ok(None);
    }
    for _ in 0..ATTEMPTS {
        let meta = engine.load_metas()?;
        let Some(text) = &meta.payload else { return Ok(None) };
        let payload: Payload = serde_json::from_str(text)?;
        if !payload.is_of_this_version() {
            return Ok(None);
        }
        let searcher = open_reader(&engine)?.searcher();
        let after = engine.load_metas()?;
        if (after.opstamp, &after.payload) != (meta.opstamp, &meta.payload) {
            continue;
        }
        let mut documents = HashMap::new();
        for segment in searcher.segment_readers() {
            let store = segment.get_store_reader(CACHED_BLOCKS)?;
            for stored in store.iter::<TantivyDocument>(segment.alive_bitset()) {
                if let Some((key, kind, content_hash)) = fields.decode_document(&stored?) {
                    documents.insert(key, StoredDocument { kind, content_hash });
                }
            }
        }
        return Ok(Some(IndexContents { cursors: payload.cursors, documents }));
    }
    let message = "the index changes faster than it can be read";
    Err(TantivyError::SystemError(message.to_owned()).into())
}
