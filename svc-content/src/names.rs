//! Folders, databases and memories by a part of their names. There are few of them, so each search reads all names of
//! a kind in one statement; those of files have an in-memory index.

use std::collections::HashMap;

use cairn_chassis::feed::Kind;
use cairn_proto::ids::{DocumentId, FolderId};

use crate::checks::part_of_name;
use crate::context::Context;
use crate::model::fold;
use crate::scope::Caller;
use crate::{Error, store};

const DEFAULT_FOUND: u32 = 20;
const MAX_FOUND: u32 = 100;
/// The maximum number of names of a kind that a search reads, the oldest items first: that many take some 100 ms.
const MAX_READ: usize = 100_000;
/// With more names, matching runs off the async threads.
const OFFLOAD_THRESHOLD: usize = 20_000;

/// A folder, database or memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedItem {
    pub(crate) kind: Kind,
    pub(crate) id: DocumentId,
    pub(crate) name: String,
    /// For a folder.
    pub(crate) path: Option<String>,
}

/// The matches: folders, then databases, then memories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundNames {
    pub(crate) items: Vec<NamedItem>,
    /// Whether a kind has more names than were read.
    pub(crate) is_part: bool,
}

/// The search for names on a store.
#[derive(Debug, Clone)]
pub(crate) struct Finder {
    context: Context,
}

impl Finder {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// Live items whose name contains a text, case-insensitively: at most `limit` of each kind, 0 for 20.
    pub(crate) async fn find(&self, caller: &Caller, query: &str, limit: u32) -> Result<FoundNames, Error> {
        let folded = part_of_name(query)?;
        let limit = match limit {
            0 => DEFAULT_FOUND,
            some => some.min(MAX_FOUND),
        };
        let (db, workspace, scope) = (&self.context.db, caller.workspace, caller.listed());
        let max_read = i64::try_from(MAX_READ + 1).unwrap_or(i64::MAX);
        let _permit = db.read_permit(workspace).await?;
        let folders = store::names::folders(db, workspace, scope, max_read).await?;
        let databases = store::names::databases(db, workspace, scope, max_read).await?;
        // The names of memories are visible to every caller.
        let memories = store::names::memories(db, workspace, max_read).await?;
        let named = |(id, name): store::names::ItemName| Candidate { id, name, slug: String::new() };
        let kinds: [(Kind, Vec<Candidate>); 3] = [
            (Kind::Folder, folders.into_iter().map(named).collect()),
            (Kind::Database, databases.into_iter().map(named).collect()),
            (
                Kind::Memory,
                memories.into_iter().map(|(id, name, slug)| Candidate { id, name, slug }).collect(),
            ),
        ];
        let is_part = kinds.iter().any(|(_, names)| names.len() > MAX_READ);
        let is_much = kinds.iter().map(|(_, names)| names.len()).sum::<usize>() > OFFLOAD_THRESHOLD;
        let found = match is_much {
            false => first_of_each(kinds, &folded, limit as usize),
            true => {
                let work = move || first_of_each(kinds, &folded, limit as usize);
                let found = tokio::task::spawn_blocking(work).await;
                found.map_err(|_| Error::OutOfDate("the names could not be looked through".to_owned()))?
            }
        };
        Ok(FoundNames { items: self.with_paths(caller, found).await?, is_part })
    }

    /// Adds the paths of folders, and drops folders deleted since.
    async fn with_paths(&self, caller: &Caller, found: Vec<NamedItem>) -> Result<Vec<NamedItem>, Error> {
        let of_folders = found.iter().filter(|item| item.kind == Kind::Folder);
        let ids: Vec<FolderId> = of_folders.map(|item| FolderId(item.id.0)).collect();
        if ids.is_empty() {
            return Ok(found);
        }
        let folders = store::folders::get_many(&self.context.db, caller.workspace, &ids).await?;
        let mut paths: HashMap<DocumentId, String> =
            folders.into_iter().map(|folder| (DocumentId(folder.id.0), folder.path)).collect();
        let located = found.into_iter().filter_map(|item| {
            if item.kind != Kind::Folder {
                return Some(item);
            }
            paths.remove(&item.id).map(|path| NamedItem { path: Some(path), ..item })
        });
        Ok(located.collect())
    }
}

/// An item that may match.
#[derive(Debug)]
struct Candidate {
    id: DocumentId,
    name: String,
    /// Of a memory, which matches by its slug, too; empty for other kinds.
    slug: String,
}

/// How a name matches, better matches first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    Same,
    Begins,
    Holds,
}

impl Candidate {
    fn matches(&self, folded: &str) -> Option<Match> {
        let name = fold(&self.name);
        if name == folded {
            return Some(Match::Same);
        }
        if name.starts_with(folded) {
            return Some(Match::Begins);
        }
        (name.contains(folded) || self.slug.contains(folded)).then_some(Match::Holds)
    }
}

/// The first items of each kind whose names contain a folded text, ordered by match, name and id.
fn first_of_each(kinds: [(Kind, Vec<Candidate>); 3], folded: &str, limit: usize) -> Vec<NamedItem> {
    let mut items = Vec::new();
    for (kind, candidates) in kinds {
        let mut found: Vec<(Match, String, DocumentId)> = candidates
            .into_iter()
            .filter_map(|one| one.matches(folded).map(|how| (how, one.name, one.id)))
            .collect();
        found.sort_unstable();
        found.truncate(limit);
        items.extend(found.into_iter().map(|(_, name, id)| NamedItem { kind, id, name, path: None }));
    }
    items
}
