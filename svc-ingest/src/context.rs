//! The dependencies that all rules share.

use std::sync::Arc;

use cairn_chassis::clock::Clock;
use cairn_chassis::feed::Feed;
use cairn_chassis::ids::IdSource;
use cairn_chassis::lifecycle::Suspensions;
use cairn_chassis::limits::PlanLimits;
use cairn_chassis::shared_storage::SharedStorage;
use cairn_chassis::sql::Db;
use tokio::sync::Notify;

/// The dependencies that all rules share; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) db: Db,
    pub(crate) feed: Feed,
    pub(crate) suspensions: Suspensions,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: IdSource,
    pub(crate) limits: Arc<PlanLimits>,
    /// The storage usage, shared with svc-content.
    pub(crate) storage: SharedStorage,
    /// Notified when an extraction is queued.
    pub(crate) arrivals: Arc<Notify>,
}
