//! The names of the folders and databases of workspaces, as searches read them.
//!
//! They are asked of their owner when one may have changed, and kept: chunks know the folder or database that they stand in and
//! not what it is called, so that to rename one is to index nothing.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use cairn_index::words::{Container, ContainerNames};
use cairn_proto::content::v1::{NamedDatabase, TreeFolder};
use cairn_proto::ids::WorkspaceId;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::tuning::MOST_NAMES;
use crate::error::Error;
use crate::owners::{Names, Owner};

/// Workspaces that the cache makes room for at first.
const WORKSPACES_EXPECTED: usize = 64;
/// Reads at the same time: searches of one workspace wait for one read together.
const TURNS: usize = 16;

/// Names as of a position of the feed.
#[derive(Debug, Clone)]
struct Known {
    names: Arc<ContainerNames>,
    position: u64,
}

#[derive(Debug, Clone)]
struct Bytes;

impl Weighter<WorkspaceId, Known> for Bytes {
    fn weight(&self, _: &WorkspaceId, known: &Known) -> u64 {
        known.names.bytes() as u64 + 256
    }
}

/// The names that searches read last; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct KnownNames(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    known: Cache<WorkspaceId, Known, Bytes>,
    turns: [Mutex<()>; TURNS],
}

impl KnownNames {
    /// Of all workspaces, so many bytes stay in memory; names that do not fit are asked for by each search.
    pub(crate) fn new(most_bytes: u64) -> Self {
        let known = Cache::with_weighter(WORKSPACES_EXPECTED, most_bytes, Bytes);
        Self(Arc::new(Inner { known, turns: std::array::from_fn(|_| Mutex::default()) }))
    }

    /// The names as of that position of the feed, where it has one, or later ones.
    pub(super) async fn read(
        &self,
        owner: &Owner,
        workspace: WorkspaceId,
        position: u64,
    ) -> Result<Arc<ContainerNames>, Error> {
        if let Some(known) = self.current(workspace, position) {
            return Ok(known);
        }
        let _turn = self.turn(workspace).lock().await;
        // Whoever had the turn before may have read them.
        if let Some(known) = self.current(workspace, position) {
            return Ok(known);
        }
        let before = self.0.known.get(&workspace);
        let after = before.as_ref().map_or(0, |known| known.position);
        let (read, of) = owner.read_names(workspace, after, MOST_NAMES).await?;
        let names = match (read, before) {
            (None, Some(before)) => before.names,
            (read, _) => Arc::new(containers(read.unwrap_or_default())),
        };
        let known = Known { names: Arc::clone(&names), position: of };
        self.0.known.insert(workspace, known);
        Ok(names)
    }

    /// What is known of later than the feed is known to be may be of a feed that has gone back since: it is asked for again.
    fn current(&self, workspace: WorkspaceId, position: u64) -> Option<Arc<ContainerNames>> {
        self.0.known.get(&workspace).filter(|known| known.position == position).map(|known| known.names)
    }

    fn turn(&self, workspace: WorkspaceId) -> &Mutex<()> {
        let mut hasher = DefaultHasher::new();
        workspace.hash(&mut hasher);
        let place = usize::try_from(hasher.finish() % TURNS as u64).unwrap_or_default();
        let [first, ..] = &self.0.turns;
        self.0.turns.get(place).unwrap_or(first)
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

/// Records are looked for in the folder of their database.
fn of_database(database: NamedDatabase) -> Option<Container> {
    let parent = database.folder_id.and_then(|id| Uuid::try_parse(&id).ok());
    Some(Container { id: Uuid::try_parse(&database.id).ok()?, parent, name: database.name, is_holder: true })
}
