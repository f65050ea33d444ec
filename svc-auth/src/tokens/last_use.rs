//! Times of last use, buffered in memory between writes: a write per request would dominate its cost.

use std::collections::btree_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cairn_proto::ids::{TokenId, WorkspaceId};

use crate::model::tokens::{Token, Use, Uses};

#[derive(Debug, Default)]
pub(super) struct LastUse(Mutex<Uses>);

impl LastUse {
    pub(super) fn note(&self, workspace: WorkspaceId, id: TokenId, used: Use) {
        note_latest(&mut self.uses(), (workspace, id), used);
    }

    pub(super) fn take(&self) -> Uses {
        std::mem::take(&mut self.uses())
    }

    pub(super) fn put_back(&self, uses: Uses) {
        let mut current = self.uses();
        for (key, used) in uses {
            note_latest(&mut current, key, used);
        }
    }

    /// Applies buffered uses to a token that was read from the storage.
    pub(super) fn refresh(&self, token: &mut Token) {
        let noted = self.uses().get(&(token.workspace, token.id)).cloned();
        if let Some(used) = noted.filter(|used| token.last_used_at.is_none_or(|last| last <= used.at)) {
            token.last_used_at = Some(used.at);
            token.last_client = used.client;
            token.last_channel = Some(used.channel);
        }
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note_latest(uses: &mut Uses, key: (WorkspaceId, TokenId), used: Use) {
    match uses.entry(key) {
        Entry::Vacant(free) => {
            free.insert(used);
        }
        Entry::Occupied(mut known) if known.get().at < used.at => {
            known.insert(used);
        }
        Entry::Occupied(_) => {}
    }
}
