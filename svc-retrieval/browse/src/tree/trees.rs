//! The trees of this process: drawn up when a workspace is first looked at, renewed before every script.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::identity::{Identity, Scope, ServiceIdentitySource};
use cairn_proto::content::v1::ReadTreeChangesResponse;
use cairn_proto::ids::{FolderId, WorkspaceId};
use uuid::Uuid;

use super::base::Base;
use super::holder::TextHolder;
use super::lens::Lens;
use super::remote::Content;
use super::rows::Rows;
use super::view::View;
use crate::bodies::Holder;
use crate::error::Error;

/// Changes that a tree follows; beyond that, and beyond its own size, drawing it up anew is cheaper.
const MOST_CHANGES: u64 = 10_000;
/// Following more than that takes long enough to hold up others on the same thread.
const MOST_INLINE: usize = 200;
/// Scopes of a workspace for which what they see is kept.
const MOST_LENSES: usize = 32;
/// How often a tree that does not fit together is drawn up anew.
const TRIES: usize = 3;

/// The trees of this process; cheap to clone. All of it can be drawn up again.
#[derive(Debug, Clone)]
pub(crate) struct Trees(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    content: Content,
    most_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    workspaces: HashMap<WorkspaceId, Entry>,
    uses: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    workspace: Arc<Workspace>,
    last_use: u64,
    bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct Workspace {
    current: Mutex<Current>,
    /// Held by whoever renews.
    renewing: tokio::sync::Mutex<()>,
    /// An entity, and the hash of a text of it that content did not find again.
    doubt: Mutex<Option<(Uuid, [u8; 32])>>,
}

#[derive(Debug, Default)]
struct Current {
    base: Option<Arc<Base>>,
    /// Each for one scope; all for one shape of the base.
    lenses: HashMap<Option<Vec<FolderId>>, Arc<Lens>>,
}

impl Trees {
    /// None yet. They take about that many bytes at most, those of the workspace in use apart.
    pub(crate) fn new(content: ServiceChannel, identity: ServiceIdentitySource, most_bytes: usize) -> Self {
        let content = Content::new(content, identity);
        Self(Arc::new(Inner { content, most_bytes, kept: Mutex::default() }))
    }

    /// The tree as the caller sees it, as of now or later.
    ///
    /// # Errors
    /// When the identity names no workspace, or content does not answer.
    pub(crate) async fn view(&self, identity: &Identity) -> Result<Arc<View>, Error> {
        let id = identity.workspace_id().map_err(Error::Upstream)?;
        let scope = match &identity.scope {
            Scope::All => None,
            Scope::Folders(listed) => {
                let mut listed = listed.to_vec();
                listed.sort();
                Some(listed)
            }
        };
        let workspace = self.workspace(id);
        let mut base = self.renewed(id, &workspace).await?;
        if workspace.is_doubtful(&base) {
            tracing::warn!(workspace.id = %id, "content renders otherwise than before, the tree is drawn up anew");
            workspace.forget();
            base = self.renewed(id, &workspace).await?;
        }
        let lens = workspace.lens(&base, scope);
        Ok(Arc::new(View { workspace: id, base, lens }))
    }

    /// Who reads the texts of a view.
    pub(crate) fn holder(&self, view: &Arc<View>) -> Arc<dyn Holder> {
        let workspace = self.workspace(view.workspace);
        Arc::new(TextHolder { content: self.0.content.clone(), view: Arc::clone(view), workspace })
    }

    fn workspace(&self, id: WorkspaceId) -> Arc<Workspace> {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let last_use = kept.uses;
        let new = || Entry { workspace: Arc::default(), last_use, bytes: 0 };
        let entry = kept.workspaces.entry(id).or_insert_with(new);
        entry.last_use = last_use;
        Arc::clone(&entry.workspace)
    }

    async fn renewed(&self, id: WorkspaceId, workspace: &Arc<Workspace>) -> Result<Arc<Base>, Error> {
        let mut told = None;
        if let Some(base) = workspace.base() {
            let answer = self.0.content.changes(id, base.position).await?;
            if answer.head == base.position {
                return Ok(base);
            }
            told = Some((base.position, answer));
        }
        // What one caller began helps the next, so it is not cut off when the caller goes away.
        let (trees, workspace) = (self.clone(), Arc::clone(workspace));
        tokio::spawn(async move { trees.follow(id, &workspace, told).await }).await?
    }

    /// Renews the tree, unless somebody else has meanwhile gone beyond what was told.
    async fn follow(
        &self,
        id: WorkspaceId,
        workspace: &Workspace,
        told: Option<(u64, ReadTreeChangesResponse)>,
    ) -> Result<Arc<Base>, Error> {
        let _renewing = workspace.renewing.lock().await;
        let mut base = workspace.base();
        let is_far_enough = |base: &Arc<Base>| {
            told.as_ref().is_none_or(|(after, answer)| base.position >= answer.head && answer.head >= *after)
        };
        if let Some(base) = base.as_ref().filter(|base| is_far_enough(base)) {
            return Ok(Arc::clone(base));
        }
        let mut told = told;
        for _ in 0..TRIES {
            let told =
                told.take().filter(|(after, _)| base.as_ref().is_some_and(|base| base.position == *after));
            if let Some(renewed) = self.renew(id, base.take(), told.map(|(_, answer)| answer)).await? {
                let renewed = Arc::new(renewed);
                workspace.put(Arc::clone(&renewed));
                self.weigh(id, renewed.bytes());
                return Ok(renewed);
            }
            tracing::warn!(workspace.id = %id, "the tree does not fit together, it is drawn up anew");
        }
        Err(Error::Answer("the items of a tree do not fit together"))
    }

    /// The tree at the feed's head: that one with what has changed since, or a new one. None when it does not fit
    /// together.
    async fn renew(
        &self,
        id: WorkspaceId,
        base: Option<Arc<Base>>,
        told: Option<ReadTreeChangesResponse>,
    ) -> Result<Option<Base>, Error> {
        let content = &self.0.content;
        let (mut base, mut rows, mut position) = match base {
            Some(base) => (Some(base), Rows::default(), None),
            None => {
                let (rows, position) = content.list(id).await?;
                (None, rows, Some(position))
            }
        };
        let mut told = told;
        loop {
            let after = position.or_else(|| base.as_ref().map(|base| base.position)).unwrap_or(0);
            let answer = match told.take() {
                Some(answer) => answer,
                None => content.changes(id, after).await?,
            };
            let is_other = answer.head < after;
            let is_far = base.as_ref().is_some_and(|base| {
                let size = u64::try_from(base.slots.len()).unwrap_or(u64::MAX);
                answer.head.saturating_sub(base.position) > MOST_CHANGES.max(size)
            });
            if is_other || is_far {
                let (listed, from) = content.list(id).await?;
                (base, rows, position) = (None, listed, Some(from));
                continue;
            }
            rows.take(answer.items.unwrap_or_default(), answer.gone)?;
            position = Some(answer.position);
            if answer.position >= answer.head {
                return grown(base, rows, answer.position).await;
            }
        }
    }

    fn weigh(&self, id: WorkspaceId, bytes: usize) {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = kept.workspaces.get_mut(&id) else { return };
        let before = std::mem::replace(&mut entry.bytes, bytes);
        kept.bytes = kept.bytes.saturating_sub(before).saturating_add(bytes);
        while kept.bytes > self.0.most_bytes {
            let others = kept.workspaces.iter().filter(|(other, _)| **other != id);
            let Some(oldest) = others.min_by_key(|(_, entry)| entry.last_use).map(|(other, _)| *other) else {
                return;
            };
            let gone = kept.workspaces.remove(&oldest).map_or(0, |entry| entry.bytes);
            kept.bytes = kept.bytes.saturating_sub(gone);
        }
    }
}

async fn grown(base: Option<Arc<Base>>, rows: Rows, position: u64) -> Result<Option<Base>, Error> {
    let count = rows.0.len();
    let grow = move || match base {
        None => Base::of(&rows, position).ok(),
        Some(base) => {
            let mut copy = Base::clone(&base);
            copy.apply(&rows, position).is_ok().then_some(copy)
        }
    };
    if count <= MOST_INLINE {
        return Ok(grow());
    }
    Ok(tokio::task::spawn_blocking(grow).await?)
}

impl Workspace {
    /// Remembers that content did not find a text of that entity again. It may have changed since; if no change is told
    /// of, content renders it otherwise than it did, as another version may.
    pub(super) fn doubt(&self, id: Uuid, hash: [u8; 32]) {
        *self.doubt.lock().unwrap_or_else(PoisonError::into_inner) = Some((id, hash));
    }

    /// Whether the tree still has what was doubted.
    fn is_doubtful(&self, base: &Base) -> bool {
        let doubt = self.doubt.lock().unwrap_or_else(PoisonError::into_inner).take();
        doubt.is_some_and(|(id, hash)| base.shows(id, hash))
    }

    fn forget(&self) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Current::default();
    }

    fn base(&self) -> Option<Arc<Base>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).base.clone()
    }

    fn put(&self, base: Arc<Base>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.base.as_ref().is_none_or(|before| before.shape != base.shape) {
            current.lenses.clear();
        }
        current.base = Some(base);
    }

    fn lens(&self, base: &Base, scope: Option<Vec<FolderId>>) -> Arc<Lens> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lens) = current.lenses.get(&scope).filter(|lens| lens.shape == base.shape) {
            return Arc::clone(lens);
        }
        let lens = Arc::new(Lens::new(base, scope.as_deref()));
        if current.lenses.len() >= MOST_LENSES {
            current.lenses.clear();
        }
        current.lenses.insert(scope, Arc::clone(&lens));
        lens
    }
}
