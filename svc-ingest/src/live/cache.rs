//! A cache of recently read bodies. In memory only: content of catalogs and live sources must not be stored.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{SourceId, WorkspaceId};
use cairn_providers::{Entry, ExternalId, Version};
use quick_cache::Weighter;

use crate::model::{LiveText, Source};

/// Time to live of a body.
const TTL: Duration = Duration::from_secs(60);
const EXPECTED: usize = 32;
/// The overhead of an entry in bytes.
const ENTRY_BYTES: usize = 512;

/// The cache; clones share it.
#[derive(Debug, Clone)]
pub(super) struct Cache(Arc<quick_cache::sync::Cache<Key, CachedBody, Bytes>>);

/// The cache key: one version of a document, with one configuration of its source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    workspace: WorkspaceId,
    source: SourceId,
    /// When the source was changed last: other settings or credentials may not give access to the document.
    changed_at: Timestamp,
    id: ExternalId,
    version: Version,
}

#[derive(Debug, Clone)]
struct CachedBody {
    text: Arc<LiveText>,
    read_at: Timestamp,
}

#[derive(Debug, Clone)]
struct Bytes;

impl Weighter<Key, CachedBody> for Bytes {
    fn weight(&self, key: &Key, cached: &CachedBody) -> u64 {
        let bytes = ENTRY_BYTES + key.id.as_str().len() + cached.text.content.len();
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl Key {
    /// The key of an entry; `None` if its version is unknown before it is read.
    pub(super) fn of(source: &Source, entry: &Entry) -> Option<Self> {
        entry.version.is_known().then(|| Self {
            workspace: source.workspace,
            source: source.id,
            changed_at: source.updated_at,
            id: entry.id.clone(),
            version: entry.version.clone(),
        })
    }
}

impl Cache {
    /// A cache of at most that many bytes.
    pub(super) fn new(most_bytes: u64) -> Self {
        Self(Arc::new(quick_cache::sync::Cache::with_weighter(EXPECTED, most_bytes, Bytes)))
    }

    /// The body of a key, if it has not expired.
    pub(super) fn get(&self, key: &Key, now: Timestamp) -> Option<Arc<LiveText>> {
        self.0.get(key).filter(|cached| cached.is_fresh(now)).map(|cached| cached.text)
    }

    /// Inserts a body.
    pub(super) fn insert(&self, key: Key, text: Arc<LiveText>, now: Timestamp) {
        self.0.insert(key, CachedBody { text, read_at: now });
    }

    /// Evicts expired bodies.
    pub(super) fn sweep(&self, now: Timestamp) {
        self.0.retain(|_, cached| cached.is_fresh(now));
    }

    /// Invalidates all bodies of a source.
    pub(super) fn invalidate(&self, source: SourceId) {
        self.0.retain(|key, _| key.source != source);
    }

    #[cfg(test)]
    pub(super) fn weight(&self) -> u64 {
        self.0.weight()
    }
}

impl CachedBody {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.read_at) < TTL
    }
}

#[cfg(test)]
mod tests {
    use cairn_proto::domain::FileType;
    use uuid::Uuid;

    use super::*;
    use crate::model::Metadata;

    const MAX_BYTES: u64 = 16 << 20;
    const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);

    fn key(source: u128, id: &str, version: &str) -> Key {
        Key {
            workspace: WorkspaceId(Uuid::from_u128(1)),
            source: SourceId(Uuid::from_u128(source)),
            changed_at: NOW,
            id: ExternalId::new(id).unwrap(),
            version: Version::new(version),
        }
    }

    fn text(content: String) -> Arc<LiveText> {
        let metadata = Metadata {
            title: String::new(),
            path: String::new(),
            mime_type: String::new(),
            url: None,
            updated_at: None,
        };
        Arc::new(LiveText { metadata, format: FileType::Markdown, content, content_hash: String::new() })
    }

    #[test]
    fn a_body_is_kept_for_a_minute_and_for_its_version() {
        let cache = Cache::new(MAX_BYTES);
        cache.insert(key(1, "a", "1"), text("body".into()), NOW);
        assert!(cache.get(&key(1, "a", "1"), NOW.plus(Duration::from_secs(59))).is_some());
        assert!(cache.get(&key(1, "a", "2"), NOW).is_none());
        assert!(cache.get(&key(2, "a", "1"), NOW).is_none());
        let other = Key { changed_at: NOW.plus(TTL), ..key(1, "a", "1") };
        assert!(cache.get(&other, NOW).is_none(), "the source was changed");
        assert!(cache.get(&key(1, "a", "1"), NOW.plus(TTL)).is_none());
        assert!(cache.weight() > 0);
        cache.sweep(NOW.plus(TTL));
        assert_eq!(cache.weight(), 0);
    }

    #[test]
    fn a_source_that_is_forgotten_leaves_nothing() {
        let cache = Cache::new(MAX_BYTES);
        cache.insert(key(1, "a", "1"), text("body".into()), NOW);
        cache.insert(key(2, "a", "1"), text("body".into()), NOW);
        cache.invalidate(SourceId(Uuid::from_u128(1)));
        assert!(cache.get(&key(1, "a", "1"), NOW).is_none());
        assert!(cache.get(&key(2, "a", "1"), NOW).is_some());
    }

    #[test]
    fn it_is_bounded_in_bytes() {
        let cache = Cache::new(MAX_BYTES);
        for number in 0..40 {
            cache.insert(key(1, &number.to_string(), "1"), text("x".repeat(1 << 20)), NOW);
        }
        assert!(cache.weight() <= MAX_BYTES);
        assert!(cache.weight() >= MAX_BYTES / 2, "and of use");
    }
}
