//! A cache of databases (schemas), so that creating many records does not read the database for each.
//!
//! A record is validated against its database before it is stored, and the statement that stores it verifies that the database
//! has not changed. So a stale schema is harmless, but a stale folder is not: it would bypass a folder scope. Every change of
//! the folders or databases of a workspace therefore invalidates all of its entries, which is only possible if this process is
//! the only writer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_proto::ids::{DatabaseId, WorkspaceId};

use crate::model::Database;

/// When the cache is full, all entries are evicted.
const MAX_DATABASES: usize = 64;

/// The cache; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct DatabaseCache(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    databases: HashMap<(WorkspaceId, DatabaseId), Arc<Database>>,
    /// Incremented by every invalidation.
    generation: Generation,
}

/// The generation of the cache when a read began. An invalidation during the read must not be undone by inserting its result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Generation(u64);

impl DatabaseCache {
    /// A cached database.
    pub(crate) fn get(&self, workspace: WorkspaceId, id: DatabaseId) -> Option<Arc<Database>> {
        self.entries().databases.get(&(workspace, id)).cloned()
    }

    /// The current generation, to be taken before reading a database that is to be inserted.
    pub(crate) fn generation(&self) -> Generation {
        self.entries().generation
    }

    /// Inserts a database that was read in a generation, unless the cache was invalidated since.
    pub(crate) fn insert(&self, generation: Generation, database: &Arc<Database>) {
        let mut entries = self.entries();
        if generation != entries.generation {
            return;
        }
        if entries.databases.len() >= MAX_DATABASES {
            entries.databases.clear();
        }
        entries.databases.insert((database.workspace_id, database.id), Arc::clone(database));
    }

    /// Evicts the databases of a workspace, and begins a new generation.
    pub(crate) fn invalidate(&self, workspace: WorkspaceId) {
        let mut entries = self.entries();
        entries.generation.0 += 1;
        entries.databases.retain(|(of, _), _| *of != workspace);
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::clock::Timestamp;
    use uuid::Uuid;

    use super::*;

    const ONE: WorkspaceId = WorkspaceId(Uuid::from_u128(1));
    const OTHER: WorkspaceId = WorkspaceId(Uuid::from_u128(2));

    fn database(workspace_id: WorkspaceId, number: u128) -> Arc<Database> {
        Arc::new(Database {
            id: DatabaseId(Uuid::from_u128(number)),
            workspace_id,
            folder_id: None,
            folders: Vec::new(),
            path: String::new(),
            name: String::new(),
            description: None,
            icon: None,
            properties: Vec::new(),
            views: Vec::new(),
            record_count: 0,
            created_at: Timestamp::from_micros(0),
            updated_at: Timestamp::from_micros(0),
            deleted_at: None,
        })
    }

    #[test]
    fn a_stale_read_does_not_undo_an_invalidation() {
        let cache = DatabaseCache::default();
        let (mine, theirs) = (database(ONE, 1), database(OTHER, 1));
        let generation = cache.generation();
        cache.insert(generation, &mine);
        cache.insert(generation, &theirs);
        assert_eq!(cache.get(ONE, mine.id), Some(Arc::clone(&mine)));
        cache.invalidate(ONE);
        cache.insert(generation, &mine);
        assert_eq!((cache.get(ONE, mine.id), cache.get(OTHER, mine.id)), (None, Some(theirs)));
        cache.insert(cache.generation(), &mine);
        assert!(cache.get(ONE, mine.id).is_some());
    }

    #[test]
    fn the_cache_is_bounded() {
        let cache = DatabaseCache::default();
        for number in 0..=MAX_DATABASES as u128 {
            cache.insert(cache.generation(), &database(ONE, number));
        }
        assert_eq!(cache.entries().databases.len(), 1);
    }
}
