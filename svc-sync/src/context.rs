//! The dependencies that all rules share.

use std::path::PathBuf;
use std::sync::Arc;

use cairn_chassis::clock::Clock;
use cairn_chassis::ids::IdSource;
use cairn_chassis::lifecycle::Suspensions;
use cairn_chassis::limits::PlanLimits;
use cairn_chassis::sql::Db;
use tokio::sync::Notify;

use crate::content::Content;
use crate::reading::Reader;

/// The dependencies that all rules share; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) db: Db,
    pub(crate) suspensions: Suspensions,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: IdSource,
    pub(crate) limits: Arc<PlanLimits>,
    pub(crate) content: Content,
    /// Reads archives.
    pub(crate) reader: Reader,
    /// The folder for archives while they are read.
    pub(crate) scratch: PathBuf,
    /// Notified when a run is queued.
    pub(crate) wakeup: Arc<Notify>,
}
