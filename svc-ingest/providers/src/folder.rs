//! A folder on the server, below a root that the operator configured.
//!
//! Documents are regular files; their ids are their paths relative to the folder. Hidden files, and those that a `.gitignore` in the folder
//! excludes, are skipped. Symbolic links are never followed, in any component of a path.

mod place;
mod read;
mod walk;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cairn_proto::domain::SourceMode;
use serde::{Deserialize, Serialize};

use self::walk::Walk;
use crate::connect::Draft;
use crate::filter::Filter;
use crate::{
    Account, Call, Changes, Deletions, ExternalId, Fault, Fetched, Listing, Page, Partial, Position,
    Provider, Search, Then, Traits, Version,
};

/// The default first.
pub(crate) const MODES: &[SourceMode] = &[SourceMode::Indexed, SourceMode::Catalog];

/// Parses the settings `path`, `include` and `exclude`.
pub(crate) fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
    Folder::make(draft)
}

const POSITION_VERSION: u16 = 1;
/// With more unreadable folders, the whole listing counts as incomplete.
const MAX_PARTIALS: usize = 20;

/// A folder.
#[derive(Debug)]
struct Folder {
    root: Arc<PathBuf>,
    filter: Arc<Filter>,
    /// The walk of the current listing, so that a page continues where the last one stopped.
    walk: Mutex<Option<(Position, Walk)>>,
}

/// The cursor of a listing.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct At {
    /// The last path that was listed.
    after: Option<String>,
    /// Whether there were any files so far.
    found: bool,
    /// Folders that could not be read so far.
    unread: Vec<String>,
}

impl Folder {
    fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
        let path = draft.settings.required_text("path", "give the path of a folder on the server");
        let filter = Filter::of(&mut draft.settings);
        let root = place::below_roots(&path?, draft.reach.roots());
        if let Err(problem) = &root {
            draft.settings.refuse("path", "not_allowed", *problem);
        }
        let (root, filter) = (Arc::new(root.ok()?), Arc::new(filter?));
        Some(Box::new(Self { root, filter, walk: Mutex::new(None) }))
    }

    /// The walk from a cursor: the current one if it is there, else a new one that skips to it.
    fn walk_from(&self, from: Option<&Position>) -> Result<(At, Walk), Fault> {
        let Some(from) = from else {
            return Ok((At::default(), Walk::new(&self.root, Arc::clone(&self.filter), None)));
        };
        let at: At = from.read(POSITION_VERSION)?;
        let under_way = self.walk.lock().unwrap_or_else(PoisonError::into_inner).take();
        let walk = match under_way {
            Some((position, walk)) if position == *from => walk,
            Some(_) | None => Walk::new(&self.root, Arc::clone(&self.filter), at.after.clone()),
        };
        Ok((at, walk))
    }
}

#[async_trait]
impl Provider for Folder {
    fn traits(&self) -> Traits {
        Traits {
            listing: Listing::Exhaustive,
            changes: Changes::None,
            deletions: Deletions::FromListing,
            gone_after: None,
            search: Search::None,
            every: Duration::from_secs(15 * 60),
        }
    }

    async fn check(&self, _: &Call) -> Result<Account, Fault> {
        let root = Arc::clone(&self.root);
        blocking(move || read::check(&root)).await?;
        Ok(Account::new(None, "the folder can be read"))
    }

    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault> {
        let (mut at, mut walk) = self.walk_from(from)?;
        let (root, now) = (Arc::clone(&self.root), call.now());
        let (step, walk) = blocking(move || {
            // To a walk in progress, a root that disappeared looks empty.
            let is_there = read::check(&root).is_ok();
            let step = if is_there { walk.step(now) } else { walk::Step::without_root() };
            Ok((step, walk))
        })
        .await?;
        at.found |= !step.items.is_empty() || !step.faults.is_empty();
        at.unread.extend(step.unread);
        at.unread.truncate(MAX_PARTIALS + 1);
        let then = match step.stopped_at {
            Some(path) => {
                at.after = Some(path);
                Then::More(Position::new(POSITION_VERSION, &at)?)
            }
            None => {
                let next = Position::new(POSITION_VERSION, &At::default())?;
                Then::End { next, partial: partial(&at, step.has_root) }
            }
        };
        if let Then::More(position) = &then {
            *self.walk.lock().unwrap_or_else(PoisonError::into_inner) = Some((position.clone(), walk));
        }
        Page::new(step.items, step.faults, then)
    }

    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault> {
        if !self.filter.takes(id.as_str()) {
            return Ok(Fetched::Gone);
        }
        let (root, now) = (Arc::clone(&self.root), call.now());
        let (id, known) = (id.clone(), known.cloned());
        blocking(move || read::fetch(&root, &id, known.as_ref(), now)).await
    }
}

fn partial(at: &At, has_root: bool) -> Vec<Partial> {
    if !has_root {
        return vec![Partial::everywhere("the folder is not there, or cannot be read")];
    }
    if !at.found && at.unread.is_empty() {
        return vec![Partial::everywhere("the folder is empty: is its disk there?")];
    }
    const UNREAD: &str = "a folder in it cannot be read";
    if at.unread.len() > MAX_PARTIALS || at.unread.iter().any(String::is_empty) {
        return vec![Partial::everywhere("several folders in it cannot be read")];
    }
    at.unread.iter().map(|path| Partial::below(format!("{path}/"), UNREAD)).collect()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    // The task is only cancelled at shutdown.
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(Fault::Unavailable))
}

#[cfg(test)]
mod tests;
