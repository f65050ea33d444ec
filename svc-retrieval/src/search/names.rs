//! A cache of the names of folders and databases, for searches.
//!
//! Chunks have the id of their folder or database and not its name, so that renaming one needs no reindexing. The names are read
//! from their owner, and again when one may have changed.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use cairn_index::words::{Container, ContainerNames};
use cairn_proto::content::v1::{NamedDatabase, TreeFolder};
use cairn_proto::ids::WorkspaceId;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::tuning::MAX_NAMES;
use crate::error::Error;
use crate::owners::{Names, Owner};

/// The initial capacity of the cache, in workspaces.
const WORKSPACES_EXPECTED: usize = 64;
/// Lock stripes: concurrent searches of one workspace share one read.
const LOCK_STRIPES: usize = 16;

/// Names as of a position of the feed.
#[derive(Debug, Clone)]
struct CachedNames {
    names: Arc<ContainerNames>,
    position: u64,
}

#[derive(Debug, Clone)]
struct ByteWeighter;

impl Weighter<WorkspaceId, CachedNames> for ByteWeighter {
    fn weight(&self, _: &WorkspaceId, cached: &CachedNames) -> u64 {
        cached.names.bytes() as u64 + 256
    }
}

/// The names of recently searched workspaces; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ContainerNamesCache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    cache: Cache<WorkspaceId, CachedNames, ByteWeighter>,
    locks: [Mutex<()>; LOCK_STRIPES],
}

impl ContainerNamesCache {
    /// A cache of at most that many bytes; names that do not fit are read by each search.
    pub(crate) fn new(max_bytes: u64) -> Self {
        let cache = Cache::with_weighter(WORKSPACES_EXPECTED, max_bytes, ByteWeighter);
        Self(Arc::new(Inner { cache, locks: std::array::from_fn(|_| Mutex::default()) }))
    }

    /// The names as of that position of the feed, where it has one, or later ones.
    pub(super) async fn read(
        &self,
        owner: &Owner,
        workspace: WorkspaceId,
        position: u64,
    ) -> Result<Arc<ContainerNames>, Error> {
        if let Some(names) = self.current(workspace, position) {
            return Ok(names);
        }
        let _guard = self.lock_of(workspace).lock().await;
        // The previous holder of the lock may have read them.
        if let Some(names) = self.current(workspace, position) {
            return Ok(names);
        }
        let before = self.0.cache.get(&workspace);
        let after = before.as_ref().map_or(0, |cached| cached.position);
        let (read, of) = owner.read_names(workspace, after, MAX_NAMES).await?;
        let names = match (read, before) {
            (None, Some(before)) => before.names,
            (read, _) => Arc::new(containers(read.unwrap_or_default())),
        };
        let cached = CachedNames { names: Arc::clone(&names), position: of };
        self.0.cache.insert(workspace, cached);
        Ok(names)
    }

    /// A cached position beyond the known head may be of a feed that was rolled back: it counts as stale.
    fn current(&self, workspace: WorkspaceId, position: u64) -> Option<Arc<ContainerNames>> {
        self.0.cache.get(&workspace).filter(|cached| cached.position == position).map(|cached| cached.names)
    }

    fn lock_of(&self, workspace: WorkspaceId) -> &Mutex<()> {
        let mut hasher = DefaultHasher::new();
        workspace.hash(&mut hasher);
        let place = usize::try_from(hasher.finish() % LOCK_STRIPES as u64).unwrap_or_default();
        let [first, ..] = &self.0.locks;
        self.0.locks.get(place).unwrap_or(first)
    }
}

fn containers(names: Names) -> ContainerNames {
    let folders = names.folders.into_iter().filter_map(of_folder);
    ContainerNames::new(folders.chain(names.databases.into_iter().filter_map(of_database)).collect())
}

fn of_folder(folder: TreeFolder) -> Option<Container> {
    let parent = folder.parent_id.and_then(|id| Uuid::try_parse(&id).ok());
    Some(Container { id: Uuid::try_parse(&folder.id).ok()?, parent, name: folder.name, is_holder: false })
}

/// A database stands in its folder, and its records with it.
fn of_database(database: NamedDatabase) -> Option<Container> {
    let parent = database.folder_id.and_then(|id| Uuid::try_parse(&id).ok());
    Some(Container { id: Uuid::try_parse(&database.id).ok()?, parent, name: database.name, is_holder: true })
}
