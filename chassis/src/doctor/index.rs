//! Compares a search index with the documents of their owner: all must be indexed with their current content, and no others.
//!
//! An index follows the feed, so it is compared as of its position: later changes are not missing yet.

use std::collections::{BTreeMap, HashMap, HashSet};

use cairn_proto::feed::v1::{Kind, Op};
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use super::{Finding, MAX_LISTED, Progress};
use crate::sql::{Db, Error, Text};
use crate::{fetch, statements};

const RULE: &str = "the index holds what its owner has, as far as it has followed the feed";
const AHEAD: &str = "the index has followed no further than the feed goes";
/// Documents per request to the owner.
const BATCH: usize = 100;

statements! {
    pub(crate) fn statements;

    /// The last change of each item in the feed.
    const LAST: &str = "SELECT c.workspace_id, c.item_id, c.kind, c.op, c.position FROM feed_changes c \
         JOIN (SELECT workspace_id, item_id, MAX(position) AS position FROM feed_changes \
         GROUP BY workspace_id, item_id) l ON l.workspace_id = c.workspace_id AND l.position = c.position";
}

/// The indexed documents of one owner.
#[derive(Debug, Default)]
pub struct Indexed {
    /// The position of the index in the feed of each workspace.
    pub positions: HashMap<WorkspaceId, u64>,
    /// The content hash of each indexed document.
    pub documents: HashMap<(WorkspaceId, Uuid), String>,
}

/// A document as its owner has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// Its id.
    pub id: Uuid,
    /// The hash of its content.
    pub content_hash: String,
    /// Whether it has no text to index.
    pub is_blank: bool,
}

/// A request for documents to their owner.
#[derive(Debug)]
pub struct Asked {
    /// The workspace of the documents.
    pub workspace: WorkspaceId,
    /// At most a hundred.
    pub documents: Vec<(Kind, String)>,
    /// Whether [`Owned::is_blank`] is needed.
    pub with_text: bool,
}

/// Compares an index with the documents of the owner of these kinds; `owned` returns the requested documents that exist.
/// Nothing is written, and both may be in use.
///
/// # Errors
/// When the database or the owner fails.
pub async fn examine<E: From<Error>>(
    db: &Db,
    kinds: &[Kind],
    indexed: &Indexed,
    progress: Progress<'_>,
    owned: impl AsyncFn(Asked) -> Result<Vec<Owned>, E>,
) -> Result<Vec<Finding>, E> {
    progress(RULE);
    let feed = FeedState::read(db, kinds, indexed).await?;
    let mut findings = feed.behind(indexed);
    let mut wrong: BTreeMap<(WorkspaceId, Uuid), &str> = BTreeMap::new();
    let mut living = HashSet::new();
    for (workspace, documents) in &feed.living {
        for batch in documents.chunks(BATCH) {
            let request = Asked { workspace: *workspace, documents: batch.to_vec(), with_text: false };
            let mut missing = HashSet::new();
            for document in owned(request).await? {
                living.insert((*workspace, document.id));
                match indexed.documents.get(&(*workspace, document.id)) {
                    Some(hash) if *hash == document.content_hash => {}
                    Some(_) => {
                        wrong.insert((*workspace, document.id), "the index has another content of it");
                    }
                    None => {
                        missing.insert(document.id.to_string());
                    }
                }
            }
            let documents: Vec<_> = batch.iter().filter(|(_, id)| missing.contains(id)).cloned().collect();
            if !documents.is_empty() {
                let request = Asked { workspace: *workspace, documents, with_text: true };
                for document in owned(request).await?.into_iter().filter(|document| !document.is_blank) {
                    wrong.insert((*workspace, document.id), "it is not in the index");
                }
            }
        }
    }
    for held in indexed.documents.keys() {
        // A workspace without a feed was purged, and the index drops it by itself.
        if !living.contains(held) && !feed.is_ahead(held) && feed.ends.contains_key(&held.0) {
            wrong.insert(*held, "the index holds it, and there is no such document");
        }
    }
    if !wrong.is_empty() {
        // Documents that were written during the comparison are no faults.
        let feed = FeedState::read(db, kinds, indexed).await?;
        wrong.retain(|document, _| !feed.is_ahead(document));
    }
    let shown = wrong.into_iter().take(MAX_LISTED);
    let finding = |((workspace, id), why): ((WorkspaceId, Uuid), &str)| Finding {
        rule: RULE,
        subject: format!("workspace {workspace} document {id}: {why}"),
    };
    findings.extend(shown.map(finding));
    Ok(findings)
}

/// The state of documents according to the feed.
struct FeedState {
    /// Existing documents, as of the position of the index.
    living: BTreeMap<WorkspaceId, Vec<(Kind, String)>>,
    /// Documents with changes after the position of the index.
    ahead: HashSet<(WorkspaceId, Uuid)>,
    /// The last position in the feed of each workspace.
    ends: HashMap<WorkspaceId, u64>,
}

impl FeedState {
    async fn read(db: &Db, kinds: &[Kind], indexed: &Indexed) -> Result<Self, Error> {
        let rows: Vec<(Text<WorkspaceId>, String, i64, i64, i64)> = fetch!(all, db, LAST)?;
        let mut feed = Self { living: BTreeMap::new(), ahead: HashSet::new(), ends: HashMap::new() };
        for (workspace, item, kind, op, position) in rows {
            let end = feed.ends.entry(workspace.0).or_default();
            *end = (*end).max(u64::try_from(position).unwrap_or(0));
            let kind = i32::try_from(kind).ok().and_then(|kind| Kind::try_from(kind).ok());
            let Some(kind) = kind.filter(|kind| kinds.contains(kind)) else { continue };
            let Ok(id) = Uuid::try_parse(&item) else { continue };
            let workspace = workspace.0;
            let followed = indexed.positions.get(&workspace).copied().unwrap_or(0);
            if u64::try_from(position).is_ok_and(|position| position > followed) {
                feed.ahead.insert((workspace, id));
            } else if op == i64::from(i32::from(Op::Upsert)) {
                feed.living.entry(workspace).or_default().push((kind, item));
            }
        }
        Ok(feed)
    }

    /// Feeds that end before the position of the index: the last writes were lost, such as by a truncated log. A workspace
    /// without a feed may have been purged.
    fn behind(&self, indexed: &Indexed) -> Vec<Finding> {
        let mut behind: Vec<_> = indexed
            .positions
            .iter()
            .filter_map(|(workspace, position)| {
                let end = self.ends.get(workspace).filter(|end| *end < position)?;
                Some((*workspace, *position, *end))
            })
            .collect();
        behind.sort();
        let finding = |(workspace, position, end): (WorkspaceId, u64, u64)| Finding {
            rule: AHEAD,
            subject: format!(
                "workspace {workspace}: the index has followed to {position}, and the feed ends at {end}: what was written \
                 in between is lost"
            ),
        };
        behind.into_iter().take(MAX_LISTED).map(finding).collect()
    }

    fn is_ahead(&self, document: &(WorkspaceId, Uuid)) -> bool {
        self.ahead.contains(document)
    }
}
