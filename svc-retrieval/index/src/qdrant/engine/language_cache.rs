//! A cache of the languages of workspaces.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use uuid::Uuid;

use super::tuning::LANGUAGE_CACHE_TTL;
use crate::words::{Language, Languages};

/// The languages of workspaces: fetched ones expire, those of documents that this process wrote do not.
#[derive(Debug, Default)]
pub(super) struct LanguageCache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    fetched: HashMap<Uuid, (Languages, Instant)>,
    written: HashMap<Uuid, Languages>,
}

impl LanguageCache {
    /// The languages of a workspace, unless they were never fetched or have expired.
    pub(super) fn get(&self, workspace: Uuid) -> Option<Languages> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (fetched, since) = entries.fetched.get(&workspace)?;
        let written = entries.written.get(&workspace).copied().unwrap_or_default();
        (since.elapsed() < LANGUAGE_CACHE_TTL).then(|| fetched.union(written))
    }

    /// Caches fetched languages.
    pub(super) fn insert(&self, workspace: Uuid, languages: Languages) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.fetched.retain(|_, (_, since)| since.elapsed() < LANGUAGE_CACHE_TTL);
        entries.fetched.insert(workspace, (languages, Instant::now()));
    }

    /// Records the language of a document that this process wrote.
    pub(super) fn record_write(&self, workspace: Uuid, language: Language) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = entries.written.entry(workspace).or_default();
        *written = written.with(language);
    }

    /// Drops fetched languages, since another replica has written.
    pub(super) fn invalidate(&self, workspace: Uuid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fetched.remove(&workspace);
    }
}

#[cfg(test)]
mod tests {
    use super::{Language, LanguageCache, Languages, Uuid};

    #[test]
    fn what_was_written_here_is_known_whatever_qdrant_told_before() {
        let (cache, workspace) = (LanguageCache::default(), Uuid::from_u128(1));
        assert_eq!(cache.get(workspace), None);
        cache.record_write(workspace, Language::German);
        cache.insert(workspace, Languages::default().with(Language::French));
        let both = Languages::default().with(Language::French).with(Language::German);
        assert_eq!(cache.get(workspace), Some(both));
        cache.invalidate(workspace);
        assert_eq!(cache.get(workspace), None);
    }
}
