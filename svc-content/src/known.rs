//! Databases as they were read last, for whoever makes one record after the other.
//!
//! A record is checked against its database before it is stored, and the statement that stores it looks whether the database is
//! still that one. So what is known here may be late without harm, but for where the database stands: whatever changes the
//! folders or databases of a workspace has all of it forgotten. Only a process that is the only one to write can do that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_proto::ids::{DatabaseId, WorkspaceId};

use crate::model::Database;

/// Databases to which records are written at the same time. Beyond, all are read anew.
const MOST: usize = 64;

/// What is known; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownDatabases(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    databases: HashMap<(WorkspaceId, DatabaseId), Arc<Database>>,
    /// How often anything was forgotten.
    forgotten: u64,
}

/// When something was begun to be read: what was forgotten meanwhile must not come back with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begun(u64);

impl KnownDatabases {
    /// A database, if it is known.
    pub(crate) fn get(&self, workspace: WorkspaceId, id: DatabaseId) -> Option<Arc<Database>> {
        self.known().databases.get(&(workspace, id)).cloned()
    }

    /// To be asked for before a database is read that is to be kept.
    pub(crate) fn begin(&self) -> Begun {
        Begun(self.known().forgotten)
    }

    /// Keeps a database that was read since.
    pub(crate) fn keep(&self, begun: Begun, database: &Arc<Database>) {
        let mut known = self.known();
        if begun != Begun(known.forgotten) {
            return;
        }
        if known.databases.len() >= MOST {
            known.databases.clear();
        }
        known.databases.insert((database.workspace_id, database.id), Arc::clone(database));
    }

    /// Forgets the databases of a workspace.
    pub(crate) fn forget(&self, workspace: WorkspaceId) {
        let mut known = self.known();
        known.forgotten += 1;
        known.databases.retain(|(of, _), _| *of != workspace);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
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
    fn what_is_forgotten_does_not_come_back_with_what_was_read_before() {
        let known = KnownDatabases::default();
        let (mine, theirs) = (database(ONE, 1), database(OTHER, 1));
        let begun = known.begin();
        known.keep(begun, &mine);
        known.keep(begun, &theirs);
        assert_eq!(known.get(ONE, mine.id), Some(Arc::clone(&mine)));
        known.forget(ONE);
        known.keep(begun, &mine);
        assert_eq!((known.get(ONE, mine.id), known.get(OTHER, mine.id)), (None, Some(theirs)));
        known.keep(known.begin(), &mine);
        assert!(known.get(ONE, mine.id).is_some());
    }

    #[test]
    fn it_is_never_more_than_so_many() {
        let known = KnownDatabases::default();
        for number in 0..=MOST as u128 {
            known.keep(known.begin(), &database(ONE, number));
        }
        assert_eq!(known.known().databases.len(), 1);
    }
}
