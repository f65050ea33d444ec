//! The dependencies of the rules.

use std::sync::Arc;

use cairn_chassis::clock::Clock;
use cairn_chassis::feed::Feed;
use cairn_chassis::ids::IdSource;
use cairn_chassis::lifecycle::Suspensions;
use cairn_chassis::limits::PlanLimits;
use cairn_chassis::shared_storage::SharedStorage;
use cairn_chassis::sql::Db;

use crate::columns::{Columns, Names, SnapshotCache};
use crate::database_cache::DatabaseCache;
use crate::outside::Outside;

/// The dependencies of the rules; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) db: Db,
    pub(crate) feed: Feed,
    pub(crate) suspensions: Suspensions,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: IdSource,
    pub(crate) limits: Arc<PlanLimits>,
    /// The storage limits, shared with svc-ingest.
    pub(crate) storage: SharedStorage,
    /// The client for documents of connected sources.
    pub(crate) outside: Outside,
    /// In-memory columns of databases in use.
    pub(crate) columns: SnapshotCache<Columns>,
    /// In-memory file names of workspaces that are searched.
    pub(crate) names: SnapshotCache<Names>,
    /// The cache of databases that records are written to.
    pub(crate) database_cache: DatabaseCache,
}
