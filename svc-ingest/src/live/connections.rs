//! Connections that begin with a greeting or a token: whoever asks next does not pay for that again, in requests nor in time.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::SourceId;
use cairn_providers::{Provider, ProviderKind};
use quick_cache::sync::Cache;

use crate::model::Source;

/// A connection is used again for so long.
const MOST_AGE: Duration = Duration::from_secs(60);
const MOST: usize = 256;

/// The connections of this process, each as its source was set up when it was made.
#[derive(Debug, Clone)]
pub(super) struct Connections(Arc<Cache<SourceId, Made>>);

#[derive(Debug, Clone)]
struct Made {
    provider: Arc<dyn Provider>,
    /// When people had changed the source last.
    changed_at: Timestamp,
    at: Timestamp,
}

impl Connections {
    pub(super) fn new() -> Self {
        Self(Arc::new(Cache::new(MOST)))
    }

    pub(super) fn get(&self, source: &Source, now: Timestamp) -> Option<Arc<dyn Provider>> {
        let made = self.0.get(&source.id)?;
        (made.changed_at == source.updated_at && made.is_young(now)).then_some(made.provider)
    }

    pub(super) fn put(&self, source: &Source, provider: &Arc<dyn Provider>, now: Timestamp) {
        // What others keep is what they have listed, which may be much and is no longer so.
        if !matches!(source.provider, ProviderKind::Mcp | ProviderKind::GoogleDrive) {
            return;
        }
        let made = Made { provider: Arc::clone(provider), changed_at: source.updated_at, at: now };
        self.0.insert(source.id, made);
    }

    pub(super) fn forget(&self, source: SourceId) {
        self.0.remove(&source);
    }

    pub(super) fn sweep(&self, now: Timestamp) {
        self.0.retain(|_, made| made.is_young(now));
    }
}

impl Made {
    fn is_young(&self, now: Timestamp) -> bool {
        now.since(self.at) < MOST_AGE
    }
}
