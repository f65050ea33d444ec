//! What every rule stands on.

use std::sync::Arc;

use cairn_chassis::clock::Clock;
use cairn_chassis::feed::Feed;
use cairn_chassis::ids::IdSource;
use cairn_chassis::lifecycle::Suspensions;
use cairn_chassis::limits::PlanLimits;
use cairn_chassis::shared_storage::SharedStorage;
use cairn_chassis::sql::Db;

use crate::columns::{Columns, Names, Shelf};
use crate::database_cache::DatabaseCache;
use crate::outside::Outside;

/// What every rule stands on; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) db: Db,
    pub(crate) feed: Feed,
    pub(crate) suspensions: Suspensions,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: IdSource,
    pub(crate) limits: Arc<PlanLimits>,
    /// What svc-ingest keeps counts, too.
    pub(crate) storage: SharedStorage,
    /// Where documents of connected sources are asked for.
    pub(crate) outside: Outside,
    /// Databases that are in use, in memory.
    pub(crate) columns: Shelf<Columns>,
    /// Names of files of workspaces in which they are looked for, in memory.
    pub(crate) names: Shelf<Names>,
    /// Databases to which records are written.
    pub(crate) database_cache: DatabaseCache,
}
