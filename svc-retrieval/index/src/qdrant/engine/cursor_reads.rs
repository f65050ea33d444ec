//! Tracks the cursors that callers continue from. Changes that were read from such a cursor must not be written once its collection was
//! lost, since the new collection lacks everything before the cursor.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use crate::Cursor;

/// By feed and workspace of each cursor that was read, whether the collection was lost since then.
#[derive(Default)]
pub(super) struct CursorReads(Mutex<HashMap<(String, Uuid), bool>>);

impl CursorReads {
    /// Records a read, before the request is sent: a loss during the request counts.
    pub(super) fn record(&self, feed: &str, workspace: Uuid) {
        self.lock().insert((feed.to_owned(), workspace), false);
    }

    /// Invalidates all reads, since the collection was lost.
    pub(super) fn invalidate(&self) {
        self.lock().values_mut().for_each(|is_invalid| *is_invalid = true);
    }

    /// Whether the collection was lost since one of these cursors was read.
    pub(super) fn any_invalidated(&self, cursors: &[Cursor]) -> bool {
        let reads = self.lock();
        let is_invalid = |cursor: &Cursor| reads.get(&(cursor.feed.clone(), cursor.workspace)).copied();
        cursors.iter().any(|cursor| is_invalid(cursor).unwrap_or(false))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, Uuid), bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
