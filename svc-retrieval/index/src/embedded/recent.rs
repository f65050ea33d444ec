//! Segments in memory: what was applied since the last commit, searched beside what is committed.
//!
//! A commit writes some twenty files and opens every segment anew. A segment of one small batch in memory costs a tenth
//! of that, so a fresh write is found in a millisecond; the feed is its log.

use std::fmt;

use tantivy::directory::RamDirectory;
use tantivy::indexer::UserOperation;
use tantivy::schema::Schema;
use tantivy::tokenizer::TokenizerManager;
use tantivy::{SegmentReader, TantivyDocument, TantivyError};

use super::open::settings;
use super::view::Part;
use crate::tuning::{RECENT_BATCHES, RECENT_ROWS, RECENT_WRITER_MEMORY, STORE_CACHE_BLOCKS};

/// Makes a segment in memory of some rows, at least one.
pub(super) fn segment(
    schema: &Schema,
    tokenizers: &TokenizerManager,
    rows: &[TantivyDocument],
) -> tantivy::Result<Part> {
    let mut writer = tantivy::Index::builder()
        .schema(schema.clone())
        .settings(settings())
        .tokenizers(tokenizers.clone())
        .single_segment_index_writer(RamDirectory::create(), RECENT_WRITER_MEMORY)?;
    for row in rows {
        writer.add_document(row.clone())?;
    }
    let segment = writer.finalize()?.searchable_segments()?.pop();
    let segment =
        segment.ok_or_else(|| TantivyError::InternalError("a recent segment is missing".to_owned()))?;
    let segment = SegmentReader::open(&segment)?;
    let store = segment.get_store_reader(STORE_CACHE_BLOCKS)?;
    Ok(Part::new(segment, Some(store)))
}

/// What the next commit has to write.
#[derive(Default)]
pub(super) struct Pending {
    operations: Vec<UserOperation>,
    rows: usize,
    batches: usize,
}

impl Pending {
    /// Whether nothing was applied since the last commit, not even a position.
    pub(super) fn is_empty(&self) -> bool {
        self.batches == 0
    }

    /// Whether so many more rows may be kept in memory.
    pub(super) fn has_room_for(&self, rows: usize) -> bool {
        self.batches < RECENT_BATCHES && self.rows + rows <= RECENT_ROWS
    }

    pub(super) fn push(&mut self, operations: Vec<UserOperation>, rows: usize) {
        self.operations.extend(operations);
        self.rows += rows;
        self.batches += 1;
    }

    pub(super) fn into_operations(self) -> Vec<UserOperation> {
        self.operations
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} rows in {} batches", self.rows, self.batches)
    }
}
