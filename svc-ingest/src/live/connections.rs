//! A cache of connections whose setup costs a handshake or a token, so that not every question pays for that in requests and latency.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::SourceId;
use cairn_providers::{Provider, ProviderKind};
use quick_cache::sync::Cache;

use crate::model::Source;

/// Time to live of a connection.
const TTL: Duration = Duration::from_secs(60);
const MAX_PROVIDERS: usize = 256;

/// The cached connections of this process; each is valid for one configuration of its source.
#[derive(Debug, Clone)]
pub(super) struct Connections(Arc<Cache<SourceId, CachedProvider>>);

#[derive(Debug, Clone)]
struct CachedProvider {
    provider: Arc<dyn Provider>,
    /// When the source was changed last.
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
        // Other providers hold listings, which may be large and outdated.
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
