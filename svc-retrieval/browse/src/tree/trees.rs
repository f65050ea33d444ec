//! The cache of trees: built when a workspace is first used, and brought up to date before every script.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cairn_chassis::call::Call;
use cairn_chassis::identity::{Identity, Scope};
use cairn_proto::ids::{FolderId, WorkspaceId};
use uuid::Uuid;

use super::base::{Base, Positions};
use super::holder::TextHolder;
use super::lens::Lens;
use super::remote::{ChangeSet, Content, Outside, TreeOwner};
use super::rows::Rows;
use super::view::View;
use crate::bodies::BodyFetcher;
use crate::error::Error;
use crate::request::Moment;

/// Changes that are applied to a tree; above this, and above its own size, rebuilding it is cheaper.
const MAX_CHANGES: u64 = 10_000;
/// Rows that are applied on the async thread; more take long enough to delay other tasks.
const MAX_INLINE: usize = 200;
/// Cached lenses of a workspace, one for each scope.
const MAX_LENSES: usize = 32;
/// Attempts to rebuild an inconsistent tree.
const TRIES: usize = 3;

/// The trees of this process; cheap to clone. Everything in it can be rebuilt.
#[derive(Debug, Clone)]
pub(crate) struct Trees(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    content: Content,
    outside: Outside,
    most_bytes: usize,
    cache: Mutex<TreeCache>,
}

#[derive(Debug, Default)]
struct TreeCache {
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
    /// Serializes updates of the tree.
    renew_lock: tokio::sync::Mutex<()>,
    /// An entity, and the hash of its text that content could not render again.
    suspect: Mutex<Option<(Uuid, [u8; 32])>>,
}

#[derive(Debug, Default)]
struct Current {
    base: Option<Arc<Base>>,
    /// By scope; all of the same shape of the base.
    lenses: HashMap<Option<Vec<FolderId>>, Arc<Lens>>,
}

impl Trees {
    /// An empty cache of about `most_bytes`, not counting the workspace in use.
    pub(crate) fn new(content: Content, outside: Outside, most_bytes: usize) -> Self {
        Self(Arc::new(Inner { content, outside, most_bytes, cache: Mutex::default() }))
    }

    /// The tree as the caller sees it, as of now or later.
    ///
    /// # Errors
    /// When the identity names no workspace, or content does not answer.
    pub(crate) async fn view(&self, identity: &Identity) -> Result<Arc<View>, Error> {
        let id = identity.workspace_id().map_err(Error::Upstream)?;
        let scope = scope_of(identity);
        let workspace = self.workspace(id);
        // Documents from outside are in no folder.
        let sees_outside = scope.is_none();
        let mut base = self.renewed(id, &workspace, sees_outside).await?;
        if workspace.is_suspect(&base) {
            tracing::warn!(workspace.id = %id, "content renders otherwise than before, the tree is drawn up anew");
            workspace.invalidate();
            base = self.renewed(id, &workspace, sees_outside).await?;
        }
        let lens = workspace.lens(&base, scope);
        Ok(Arc::new(View { workspace: id, base, lens, past: None }))
    }

    /// The tree as it was at a moment, as far as the caller sees it now and would have seen it then.
    ///
    /// # Errors
    /// When the identity names no workspace, content does not answer, or does not know how things stood at that moment.
    pub(crate) async fn past(
        &self,
        identity: &Identity,
        call: &Call,
        moment: Moment,
    ) -> Result<Arc<View>, Error> {
        let now = self.view(identity).await?;
        let scope = scope_of(identity);
        // Read after the current tree, so that changes since it was built are covered, too.
        let told = self.0.content.past(call, now.workspace, moment).await?;
        let view = tokio::task::spawn_blocking(move || now.as_it_was(told, scope.as_deref())).await??;
        Ok(Arc::new(view))
    }

    /// The fetcher of the texts of a view.
    pub(crate) fn holder(&self, view: &Arc<View>) -> Arc<dyn BodyFetcher> {
        let workspace = self.workspace(view.workspace);
        let Inner { content, outside, .. } = self.0.as_ref();
        let (content, outside) = (content.clone(), outside.clone());
        Arc::new(TextHolder { content, outside, view: Arc::clone(view), workspace })
    }

    fn workspace(&self, id: WorkspaceId) -> Arc<Workspace> {
        let mut cache = self.0.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.uses += 1;
        let last_use = cache.uses;
        let new = || Entry { workspace: Arc::default(), last_use, bytes: 0 };
        let entry = cache.workspaces.entry(id).or_insert_with(new);
        entry.last_use = last_use;
        Arc::clone(&entry.workspace)
    }

    async fn renewed(
        &self,
        id: WorkspaceId,
        workspace: &Arc<Workspace>,
        sees_outside: bool,
    ) -> Result<Arc<Base>, Error> {
        let mut updates = None;
        if let Some(base) = workspace.base() {
            let news = self.fetch_updates(id, base.positions, sees_outside).await?;
            if news.is_empty_at(base.positions) {
                return Ok(base);
            }
            updates = Some((base.positions, news));
        }
        // Spawned, so that it is not cancelled with the caller: the next caller needs it, too.
        let (trees, workspace) = (self.clone(), Arc::clone(workspace));
        tokio::spawn(async move { trees.follow(id, &workspace, updates).await }).await?
    }

    /// The changes since those positions. Where the owner of documents from outside does not answer, they stay as they were.
    async fn fetch_updates(
        &self,
        id: WorkspaceId,
        since: Positions,
        sees_outside: bool,
    ) -> Result<Updates, Error> {
        let Inner { content, outside, .. } = self.0.as_ref();
        let outside = async {
            match since.outside.filter(|_| sees_outside) {
                Some(after) => known(id, outside.changes(id, after).await),
                None => None,
            }
        };
        let (content, outside) = tokio::join!(content.changes(id, since.content), outside);
        let is_missing = sees_outside && since.outside.is_none();
        Ok(Updates { content: content?, outside, is_missing })
    }

    /// Updates the tree, unless another task has meanwhile applied these updates.
    async fn follow(
        &self,
        id: WorkspaceId,
        workspace: &Workspace,
        updates: Option<(Positions, Updates)>,
    ) -> Result<Arc<Base>, Error> {
        let _guard = workspace.renew_lock.lock().await;
        let mut base = workspace.base();
        // A tree that was built before this caller read the heads may be older than the caller's own writes.
        let is_far_enough = |base: &Arc<Base>| {
            updates.as_ref().is_some_and(|(since, updates)| updates.is_applied_at(base.positions, *since))
        };
        if let Some(base) = base.as_ref().filter(|base| is_far_enough(base)) {
            return Ok(Arc::clone(base));
        }
        let mut updates = updates;
        for _ in 0..TRIES {
            let updates = updates
                .take()
                .filter(|(since, _)| base.as_ref().is_some_and(|base| base.positions == *since));
            if let Some(renewed) = self.renew(id, base.take(), updates.map(|(_, updates)| updates)).await? {
                workspace.put(Arc::clone(&renewed));
                self.account(id, renewed.bytes());
                return Ok(renewed);
            }
            tracing::warn!(workspace.id = %id, "the tree does not fit together, it is drawn up anew");
        }
        Err(Error::Answer("the items of a tree do not fit together"))
    }

    /// The tree at the heads of the feeds: `base` with the changes since, or a new one. `None` when it is inconsistent.
    async fn renew(
        &self,
        id: WorkspaceId,
        base: Option<Arc<Base>>,
        updates: Option<Updates>,
    ) -> Result<Option<Arc<Base>>, Error> {
        let Inner { content, outside, .. } = self.0.as_ref();
        let (mut base, mut told) = (base, (None, None));
        if let Some(updates) = updates {
            told = (Some(updates.content), updates.outside);
        }
        loop {
            let from = base.as_ref().map(|base| base.positions);
            let size = base.as_ref().map_or(0, |base| u64::try_from(base.slots.len()).unwrap_or(u64::MAX));
            let of_outside = from.and_then(|from| from.outside);
            let (inside, beside) = tokio::join!(
                since(content, id, (from.map(|from| from.content), size), told.0.take()),
                since(outside, id, (of_outside, size), told.1.take()),
            );
            let (inside, beside) = (inside?, known(id, beside));
            let can_follow = inside.is_some() && beside.as_ref().is_none_or(Option::is_some);
            if !can_follow {
                base = None;
                continue;
            }
            let beside = beside.flatten();
            let is_as_before = beside.is_none()
                && inside.as_ref().map(|since| since.position) == from.map(|from| from.content);
            match base {
                Some(base) if is_as_before => return Ok(Some(base)),
                base => return Ok(grown(base, inside, beside).await?.map(Arc::new)),
            }
        }
    }

    fn account(&self, id: WorkspaceId, bytes: usize) {
        let mut cache = self.0.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = cache.workspaces.get_mut(&id) else { return };
        let before = std::mem::replace(&mut entry.bytes, bytes);
        cache.bytes = cache.bytes.saturating_sub(before).saturating_add(bytes);
        while cache.bytes > self.0.most_bytes {
            let others = cache.workspaces.iter().filter(|(other, _)| **other != id);
            let Some(oldest) = others.min_by_key(|(_, entry)| entry.last_use).map(|(other, _)| *other) else {
                return;
            };
            let gone = cache.workspaces.remove(&oldest).map_or(0, |entry| entry.bytes);
            cache.bytes = cache.bytes.saturating_sub(gone);
        }
    }
}

/// The folders of a caller who does not see all, in order.
fn scope_of(identity: &Identity) -> Option<Vec<FolderId>> {
    match &identity.scope {
        Scope::All => None,
        Scope::Folders(listed) => {
            let mut listed = listed.to_vec();
            listed.sort();
            Some(listed)
        }
    }
}

/// Updates from the owners.
#[derive(Debug)]
struct Updates {
    content: ChangeSet,
    /// `None` when it was not requested, or not answered.
    outside: Option<ChangeSet>,
    /// Whether the caller sees documents from outside, and the tree has none since their owner did not answer.
    is_missing: bool,
}

impl Updates {
    fn is_empty_at(&self, positions: Positions) -> bool {
        let is_new = |told: &ChangeSet| Some(told.head) != positions.outside;
        self.content.head == positions.content
            && !self.is_missing
            && !self.outside.as_ref().is_some_and(is_new)
    }

    /// Whether a tree at `positions` has these updates, which were read since `since`.
    fn is_applied_at(&self, positions: Positions, since: Positions) -> bool {
        let content = &self.content;
        let has_content = positions.content >= content.head && content.head >= since.content;
        let has_outside = self
            .outside
            .as_ref()
            .is_none_or(|told| positions.outside >= Some(told.head) && Some(told.head) >= since.outside);
        has_content && has_outside && !(self.is_missing && positions.outside.is_none())
    }
}

/// The answer of the owner of documents from outside; `None` where it does not answer.
fn known<T>(id: WorkspaceId, answer: Result<T, Error>) -> Option<T> {
    answer
        .inspect_err(
            |error| tracing::warn!(workspace.id = %id, %error, "documents from outside stay as they were"),
        )
        .ok()
}

/// Rows up to the head of a feed.
#[derive(Debug)]
struct RowsUntil {
    rows: Rows,
    position: u64,
}

/// The changes from a position on; everything where there is no position. `None` when the tree cannot be updated: it is too far
/// behind (`size` is its number of items), or the feed was rolled back.
async fn since(
    owner: &impl TreeOwner,
    id: WorkspaceId,
    (from, size): (Option<u64>, u64),
    told: Option<ChangeSet>,
) -> Result<Option<RowsUntil>, Error> {
    let (mut rows, mut position) = match from {
        Some(from) => (Rows::default(), from),
        None => owner.list(id).await?,
    };
    let mut told = told.filter(|_| from.is_some());
    loop {
        let answer = match told.take() {
            Some(answer) => answer,
            None => owner.changes(id, position).await?,
        };
        let is_other = answer.head < position;
        let is_far = from.is_some_and(|from| answer.head.saturating_sub(from) > MAX_CHANGES.max(size));
        if from.is_some() && (is_other || is_far) {
            return Ok(None);
        }
        if is_other {
            (rows, position) = owner.list(id).await?;
            continue;
        }
        rows.0.extend(answer.rows.0);
        position = answer.position;
        if position >= answer.head {
            return Ok(Some(RowsUntil { rows, position }));
        }
    }
}

async fn grown(
    base: Option<Arc<Base>>,
    inside: Option<RowsUntil>,
    outside: Option<RowsUntil>,
) -> Result<Option<Base>, Error> {
    let count = [&inside, &outside].into_iter().flatten().map(|since| since.rows.0.len()).sum::<usize>();
    let grow = move || {
        let mut grown = base.map_or_else(Base::empty, |base| Base::clone(&base));
        if let Some(RowsUntil { rows, position }) = inside {
            grown.apply(&rows, position).ok()?;
        }
        if let Some(RowsUntil { rows, position }) = outside {
            grown.apply_outside(&rows, position).ok()?;
        }
        Some(grown)
    };
    if count <= MAX_INLINE {
        return Ok(grow());
    }
    Ok(tokio::task::spawn_blocking(grow).await?)
}

impl Workspace {
    /// Records that content rendered another text for that entity than the tree expects. It may have changed since; if the next
    /// update has no change of it, another version of content renders it differently, and the tree is rebuilt.
    pub(super) fn suspect(&self, id: Uuid, hash: [u8; 32]) {
        *self.suspect.lock().unwrap_or_else(PoisonError::into_inner) = Some((id, hash));
    }

    /// Whether the tree still has the suspect text.
    fn is_suspect(&self, base: &Base) -> bool {
        let suspect = self.suspect.lock().unwrap_or_else(PoisonError::into_inner).take();
        suspect.is_some_and(|(id, hash)| base.shows(id, hash))
    }

    fn invalidate(&self) {
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
        if current.lenses.len() >= MAX_LENSES {
            current.lenses.clear();
        }
        current.lenses.insert(scope, Arc::clone(&lens));
        lens
    }
}
