//! The languages of workspaces, as this process knows them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use uuid::Uuid;

use super::tuning::LANGUAGES_KEPT;
use crate::words::{Language, Languages};

/// The languages of workspaces. What Qdrant told is believed for a while, what was written here for good.
#[derive(Debug, Default)]
pub(super) struct Spoken(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    told: HashMap<Uuid, (Languages, Instant)>,
    heard: HashMap<Uuid, Languages>,
}

impl Spoken {
    /// What is known and still believed.
    pub(super) fn known(&self, workspace: Uuid) -> Option<Languages> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, since) = known.told.get(&workspace)?;
        let heard = known.heard.get(&workspace).copied().unwrap_or_default();
        (since.elapsed() < LANGUAGES_KEPT).then(|| told.union(heard))
    }

    /// Qdrant has told.
    pub(super) fn learn(&self, workspace: Uuid, languages: Languages) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.told.retain(|_, (_, since)| since.elapsed() < LANGUAGES_KEPT);
        known.told.insert(workspace, (languages, Instant::now()));
    }

    /// A document in that language was written here.
    pub(super) fn hear(&self, workspace: Uuid, language: Language) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = known.heard.entry(workspace).or_default();
        *heard = heard.with(language);
    }

    /// Somebody else has written: what Qdrant told is no longer to be believed.
    pub(super) fn forget(&self, workspace: Uuid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).told.remove(&workspace);
    }
}

#[cfg(test)]
mod tests {
    use super::{Language, Languages, Spoken, Uuid};

    #[test]
    fn what_was_written_here_is_known_whatever_qdrant_told_before() {
        let (spoken, workspace) = (Spoken::default(), Uuid::from_u128(1));
        assert_eq!(spoken.known(workspace), None);
        spoken.hear(workspace, Language::German);
        spoken.learn(workspace, Languages::default().with(Language::French));
        let both = Languages::default().with(Language::French).with(Language::German);
        assert_eq!(spoken.known(workspace), Some(both));
        spoken.forget(workspace);
        assert_eq!(spoken.known(workspace), None);
    }
}
