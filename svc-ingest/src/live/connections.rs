//! Connections that begin with a greeting or a token: whoever asks next does not pay for that again, in requests nor in time.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::SourceId;
use cairn_providers::{Provider, ProviderKind};
use quick_cache::sync::Cache;

use crate::model::Source;

/// A connection is used again for so long.
const TTL: Duration = Duration::from_secs(60);
const MAX_PROVIDERS: usize = 256;

/// The connections of this process, each as its source was set up when it was made.
#[derive(Debug, Clone)]
pub(super) struct Connections(Arc<Cache<SourceId, CachedProvider>>);

#[derive(Debug, Clone)]
struct CachedProvider {
    provider: Arc<dyn Provider>,
    /// When people had changed the source last.
    changed_at: Timestamp,
    at: Timestamp,
}

impl Connections {
    pub(super) fn new() -> Self {
        Self(Arc::new(Cache::new(MAX_PROVIDERS)))
    }

    pub(super) fn get(&self, source: &Source, now: Timestamp) -> Option<Arc<dyn Provider>> {
        let cached = self.0.get(&source.id)?;
        (cached.changed_at == source.updated_at && cached.is_fresh(now)).then_some(cached.provider)
    }

    pub(super) fn insert(&self, source: &Source, provider: &Arc<dyn Provider>, now: Timestamp) {
        // What others keep is what they have listed, which may be much and is no longer so.
        if !matches!(source.provider, ProviderKind::Mcp | ProviderKind::GoogleDrive) {
            return;
        }
        let cached =
            CachedProvider { provider: Arc::clone(provider), changed_at: source.updated_at, at: now };
        self.0.insert(source.id, cached);
    }

    pub(super) fn invalidate(&self, source: SourceId) {
        self.0.remove(&source);
    }

    pub(super) fn sweep(&self, now: Timestamp) {
        self.0.retain(|_, cached| cached.is_fresh(now));
    }
}

impl CachedProvider {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.at) < TTL
    }
}
