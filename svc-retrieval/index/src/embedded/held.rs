//! What the last commit of an index holds, read beside the process that writes to it.

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

/// How often it is read again because a commit came between.
const ATTEMPTS: usize = 100;
/// Blocks of stored chunks in memory; rows are read in their order.
const BLOCKS: usize = 1;

/// What an index holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// How far the feeds are in it.
    pub cursors: Cursors,
    /// Its documents, by the workspace that they stand under.
    pub documents: HashMap<(Uuid, Uuid), HeldDocument>,
}

/// A document that has at least one chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldDocument {
    /// What it is to its owner.
    pub kind: String,
    /// The hash of the content that was cut.
    pub content_hash: String,
}

/// How many files of an index are not what was written; none where there is no index.
pub(crate) fn damaged(folder: &Path) -> Result<usize, Error> {
    let segments = folder.join(SEGMENTS);
    if !segments.is_dir() {
        return Ok(0);
    }
    // It lists its files itself: of those that tantivy does not know to be its own, it checks none.
    let directory = UnsyncedDirectory::open_to_read(&segments).map_err(TantivyError::from)?;
    if !Index::exists(&directory).map_err(TantivyError::from)? {
        return Ok(0);
    }
    Ok(Index::open(directory)?.validate_checksum()?.len())
}

/// Reads the folder of an index; `None` when there is none, or none that this version goes on with.
pub(crate) fn read(folder: &Path) -> Result<Option<Held>, Error> {
    let segments = folder.join(SEGMENTS);
    if !segments.is_dir() {
        return Ok(None);
    }
    // The folder of the writer removes what is unfinished when it is opened; this one only reads.
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
            let store = segment.get_store_reader(BLOCKS)?;
            for stored in store.iter::<TantivyDocument>(segment.alive_bitset()) {
                if let Some((key, kind, content_hash)) = fields.decode_document(&stored?) {
                    documents.insert(key, HeldDocument { kind, content_hash });
                }
            }
        }
        return Ok(Some(Held { cursors: payload.cursors, documents }));
    }
    let message = "the index changes faster than it can be read";
    Err(TantivyError::SystemError(message.to_owned()).into())
}
