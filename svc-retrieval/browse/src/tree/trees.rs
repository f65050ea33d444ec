//! The trees of this process: drawn up when a workspace is first looked at, renewed before every script.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cairn_chassis::call::Call;
use cairn_chassis::identity::{Identity, Scope};
use cairn_proto::ids::{FolderId, WorkspaceId};
use uuid::Uuid;

use super::base::{Base, Positions};
use super::holder::TextHolder;
use super::lens::Lens;
use super::remote::{Content, Outside, Teller, Told};
use super::rows::Rows;
use super::view::View;
use crate::bodies::Holder;
use crate::error::Error;
use crate::request::Moment;

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
    outside: Outside,
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
    pub(crate) fn new(content: Content, outside: Outside, most_bytes: usize) -> Self {
        Self(Arc::new(Inner { content, outside, most_bytes, kept: Mutex::default() }))
    }

    /// The tree as the caller sees it, as of now or later.
    ///
    /// # Errors
    /// When the identity names no workspace, or content does not answer.
    pub(crate) async fn view(&self, identity: &Identity) -> Result<Arc<View>, Error> {
        let id = identity.workspace_id().map_err(Error::Upstream)?;
        let scope = scope_of(identity);
        let workspace = self.workspace(id);
        // What comes from outside is in no folder.
        let sees_outside = scope.is_none();
        let mut base = self.renewed(id, &workspace, sees_outside).await?;
        if workspace.is_doubtful(&base) {
            tracing::warn!(workspace.id = %id, "content renders otherwise than before, the tree is drawn up anew");
            workspace.forget();
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
        // After the tree of now: what has changed since that was drawn up is told as it was, too.
        let told = self.0.content.past(call, now.workspace, moment).await?;
        let view = tokio::task::spawn_blocking(move || now.as_it_was(told, scope.as_deref())).await??;
        Ok(Arc::new(view))
    }

    /// Who reads the texts of a view.
    pub(crate) fn holder(&self, view: &Arc<View>) -> Arc<dyn Holder> {
        let workspace = self.workspace(view.workspace);
        let Inner { content, outside, .. } = self.0.as_ref();
        let (content, outside) = (content.clone(), outside.clone());
        Arc::new(TextHolder { content, outside, view: Arc::clone(view), workspace })
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

    async fn renewed(
        &self,
        id: WorkspaceId,
        workspace: &Arc<Workspace>,
        sees_outside: bool,
    ) -> Result<Arc<Base>, Error> {
        let mut heard = None;
        if let Some(base) = workspace.base() {
            let news = self.hear(id, base.positions, sees_outside).await?;
            if news.is_nothing_new(base.positions) {
                return Ok(base);
            }
            heard = Some((base.positions, news));
        }
        // What one caller began helps the next, so it is not cut off when the caller goes away.
        let (trees, workspace) = (self.clone(), Arc::clone(workspace));
        tokio::spawn(async move { trees.follow(id, &workspace, heard).await }).await?
    }

    /// What has changed since. Where the owner of documents from outside does not answer, they stay as they were.
    async fn hear(&self, id: WorkspaceId, since: Positions, sees_outside: bool) -> Result<Heard, Error> {
        let Inner { content, outside, .. } = self.0.as_ref();
        let outside = async {
            match since.outside.filter(|_| sees_outside) {
                Some(after) => known(id, outside.changes(id, after).await),
                None => None,
            }
        };
        let (content, outside) = tokio::join!(content.changes(id, since.content), outside);
        let is_missing = sees_outside && since.outside.is_none();
        Ok(Heard { content: content?, outside, is_missing })
    }

    /// Renews the tree, unless somebody else has meanwhile gone beyond what was told.
    async fn follow(
        &self,
        id: WorkspaceId,
        workspace: &Workspace,
        heard: Option<(Positions, Heard)>,
    ) -> Result<Arc<Base>, Error> {
        let _renewing = workspace.renewing.lock().await;
        let mut base = workspace.base();
        // One that was drawn up while this caller had nothing yet may be older than what the caller has written.
        let is_far_enough = |base: &Arc<Base>| {
            heard.as_ref().is_some_and(|(since, heard)| heard.is_in(base.positions, *since))
        };
        if let Some(base) = base.as_ref().filter(|base| is_far_enough(base)) {
            return Ok(Arc::clone(base));
        }
        let mut heard = heard;
        for _ in 0..TRIES {
            let heard =
                heard.take().filter(|(since, _)| base.as_ref().is_some_and(|base| base.positions == *since));
            if let Some(renewed) = self.renew(id, base.take(), heard.map(|(_, heard)| heard)).await? {
                workspace.put(Arc::clone(&renewed));
                self.weigh(id, renewed.bytes());
                return Ok(renewed);
            }
            tracing::warn!(workspace.id = %id, "the tree does not fit together, it is drawn up anew");
        }
        Err(Error::Answer("the items of a tree do not fit together"))
    }

    /// The tree at the heads of the feeds: that one with what has changed since, or a new one. None when it does not fit
    /// together.
    async fn renew(
        &self,
        id: WorkspaceId,
        base: Option<Arc<Base>>,
        heard: Option<Heard>,
    ) -> Result<Option<Arc<Base>>, Error> {
        let Inner { content, outside, .. } = self.0.as_ref();
        let (mut base, mut told) = (base, (None, None));
        if let Some(heard) = heard {
            told = (Some(heard.content), heard.outside);
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

/// What owners told of changes.
#[derive(Debug)]
struct Heard {
    content: Told,
    /// None when nobody asked, or got no answer.
    outside: Option<Told>,
    /// Whether the caller sees documents from outside, and the tree has none since their owner did not answer.
    is_missing: bool,
}

impl Heard {
    fn is_nothing_new(&self, positions: Positions) -> bool {
        let is_new = |told: &Told| Some(told.head) != positions.outside;
        self.content.head == positions.content
            && !self.is_missing
            && !self.outside.as_ref().is_some_and(is_new)
    }

    /// Whether a tree at those positions shows it; it was heard of changes since others.
    fn is_in(&self, positions: Positions, since: Positions) -> bool {
        let content = &self.content;
        let has_content = positions.content >= content.head && content.head >= since.content;
        let has_outside = self
            .outside
            .as_ref()
            .is_none_or(|told| positions.outside >= Some(told.head) && Some(told.head) >= since.outside);
        has_content && has_outside && !(self.is_missing && positions.outside.is_none())
    }
}

/// What is known of documents from outside, where their owner answers.
fn known<T>(id: WorkspaceId, answer: Result<T, Error>) -> Option<T> {
    answer
        .inspect_err(
            |error| tracing::warn!(workspace.id = %id, %error, "documents from outside stay as they were"),
        )
        .ok()
}

/// Rows up to the head of a feed.
#[derive(Debug)]
struct Since {
    rows: Rows,
    position: u64,
}

/// What changed from a position on, with as many items as the tree has; everything where there is no position. None when
/// the tree cannot follow: it is too far behind, or the feed is another one.
async fn since(
    owner: &impl Teller,
    id: WorkspaceId,
    (from, size): (Option<u64>, u64),
    told: Option<Told>,
) -> Result<Option<Since>, Error> {
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
        let is_far = from.is_some_and(|from| answer.head.saturating_sub(from) > MOST_CHANGES.max(size));
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
            return Ok(Some(Since { rows, position }));
        }
    }
}

async fn grown(
    base: Option<Arc<Base>>,
    inside: Option<Since>,
    outside: Option<Since>,
) -> Result<Option<Base>, Error> {
    let count = [&inside, &outside].into_iter().flatten().map(|since| since.rows.0.len()).sum::<usize>();
    let grow = move || {
        let mut grown = base.map_or_else(Base::empty, |base| Base::clone(&base));
        if let Some(Since { rows, position }) = inside {
            grown.apply(&rows, position).ok()?;
        }
        if let Some(Since { rows, position }) = outside {
            grown.apply_outside(&rows, position).ok()?;
        }
        Some(grown)
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
