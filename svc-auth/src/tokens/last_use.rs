//! When tokens were last used, kept in memory between writes: a write per request would be the dearest part of it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{TokenId, WorkspaceId};

use crate::model::tokens::{Token, Uses};

#[derive(Debug, Default)]
pub(super) struct LastUse(Mutex<Uses>);

impl LastUse {
    pub(super) fn note(&self, workspace: WorkspaceId, id: TokenId, at: Timestamp) {
        note_latest(&mut self.uses(), (workspace, id), at);
    }

    pub(super) fn take(&self) -> Uses {
        std::mem::take(&mut self.uses())
    }

    pub(super) fn put_back(&self, uses: Uses) {
        let mut current = self.uses();
        for (key, at) in uses {
            note_latest(&mut current, key, at);
        }
    }

    /// Brings a token that was read up to date with what is not written yet.
    pub(super) fn refresh(&self, token: &mut Token) {
        let noted = self.uses().get(&(token.workspace, token.id)).copied();
        token.last_used_at = token.last_used_at.max(noted);
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note_latest(uses: &mut Uses, key: (WorkspaceId, TokenId), at: Timestamp) {
    let latest = uses.entry(key).or_insert(at);
    *latest = at.max(*latest);
}
