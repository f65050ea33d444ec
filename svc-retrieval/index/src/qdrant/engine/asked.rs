//! Cursors that somebody asked for and goes on from: what was read from one of them is not to be written any more once the
//! collection that had it is gone, since what stands before it is missing in the new one.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use crate::Cursor;

/// Each cursor that was asked for, and whether the collection was lost since.
#[derive(Default)]
pub(super) struct Asked(Mutex<HashMap<(String, Uuid), bool>>);

impl Asked {
    /// Somebody asks for a cursor. Noted before Qdrant answers: a loss meanwhile counts.
    pub(super) fn note(&self, feed: &str, workspace: Uuid) {
        self.all().insert((feed.to_owned(), workspace), false);
    }

    /// The collection is gone with all cursors.
    pub(super) fn lose(&self) {
        self.all().values_mut().for_each(|is_lost| *is_lost = true);
    }

    /// Whether the collection was lost since one of these was asked for.
    pub(super) fn are_lost(&self, cursors: &[Cursor]) -> bool {
        let all = self.all();
        let is_lost = |cursor: &Cursor| all.get(&(cursor.feed.clone(), cursor.workspace)).copied();
        cursors.iter().any(|cursor| is_lost(cursor).unwrap_or(false))
    }

    fn all(&self) -> MutexGuard<'_, HashMap<(String, Uuid), bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
