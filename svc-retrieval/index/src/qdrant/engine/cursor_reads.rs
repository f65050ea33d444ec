//! Cursors that somebody asked for and goes on from: what was read from one of them is not to be written any more once the
//! collection that had it is gone, since what stands before it is missing in the new one.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use crate::Cursor;

/// Each cursor that was asked for, and whether the collection was lost since.
#[derive(Default)]
pub(super) struct CursorReads(Mutex<HashMap<(String, Uuid), bool>>);

impl CursorReads {
    /// Somebody asks for a cursor. Noted before Qdrant answers: a loss meanwhile counts.
    pub(super) fn record(&self, feed: &str, workspace: Uuid) {
        self.lock().insert((feed.to_owned(), workspace), false);
    }

    /// The collection is gone with all cursors.
    pub(super) fn invalidate(&self) {
        self.lock().values_mut().for_each(|is_invalid| *is_invalid = true);
    }

    /// Whether the collection was lost since one of these was asked for.
    pub(super) fn any_invalidated(&self, cursors: &[Cursor]) -> bool {
        let reads = self.lock();
        let is_invalid = |cursor: &Cursor| reads.get(&(cursor.feed.clone(), cursor.workspace)).copied();
        cursors.iter().any(|cursor| is_invalid(cursor).unwrap_or(false))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, Uuid), bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
