//! Whether a search index holds the documents that their owner has: all of them, as they are, and no others.
//!
//! An index follows the feed, so it is compared where it has got to: what the feed told later is not missing yet.

use std::collections::{BTreeMap, HashMap, HashSet};

use cairn_proto::feed::v1::{Kind, Op};
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use super::{Finding, Progress, SHOWN};
use crate::sql::{Db, Error, Text};
use crate::{fetch, statements};

const RULE: &str = "the index holds what its owner has, as far as it has followed the feed";
const AHEAD: &str = "the index has followed no further than the feed goes";
/// Documents that an owner is asked for together.
const AT_ONCE: usize = 100;

statements! {
    pub(crate) fn statements;

    /// Of each item the last change that the feed tells.
    const LAST: &str = "SELECT c.workspace_id, c.item_id, c.kind, c.op, c.position FROM feed_changes c \
         JOIN (SELECT workspace_id, item_id, MAX(position) AS position FROM feed_changes \
         GROUP BY workspace_id, item_id) l ON l.workspace_id = c.workspace_id AND l.position = c.position";
}

/// What an index holds of one owner.
#[derive(Debug, Default)]
pub struct Indexed {
    /// How far it has followed the feed of each workspace.
    pub positions: HashMap<WorkspaceId, u64>,
    /// The hash of the content of each document.
    pub documents: HashMap<(WorkspaceId, Uuid), String>,
}

/// A document as its owner has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// Its id.
    pub id: Uuid,
    /// The hash of its content.
    pub content_hash: String,
    /// Whether there is nothing in it that an index could hold.
    pub is_blank: bool,
}

/// Which documents an owner is asked for.
#[derive(Debug)]
pub struct Asked {
    /// In this workspace.
    pub workspace: WorkspaceId,
    /// At most a hundred.
    pub documents: Vec<(Kind, String)>,
    /// Whether it matters that they are blank.
    pub with_text: bool,
}

/// Compares what an index holds with what the owner of these kinds has, which answers those of the documents that there
/// are. Nothing is written; both may be in use.
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
    let told = Told::read(db, kinds, indexed).await?;
    let mut findings = told.behind(indexed);
    let mut wrong: BTreeMap<(WorkspaceId, Uuid), &str> = BTreeMap::new();
    let mut living = HashSet::new();
    for (workspace, documents) in &told.living {
        for some in documents.chunks(AT_ONCE) {
            let asked = Asked { workspace: *workspace, documents: some.to_vec(), with_text: false };
            let mut missing = HashSet::new();
            for document in owned(asked).await? {
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
            let documents: Vec<_> = some.iter().filter(|(_, id)| missing.contains(id)).cloned().collect();
            if !documents.is_empty() {
                let asked = Asked { workspace: *workspace, documents, with_text: true };
                for document in owned(asked).await?.into_iter().filter(|document| !document.is_blank) {
                    wrong.insert((*workspace, document.id), "it is not in the index");
                }
            }
        }
    }
    for held in indexed.documents.keys() {
        // Where nothing is told, the workspace was removed, and the index forgets it by itself.
        if !living.contains(held) && !told.is_ahead(held) && told.ends.contains_key(&held.0) {
            wrong.insert(*held, "the index holds it, and there is no such document");
        }
    }
    if !wrong.is_empty() {
        // What was written meanwhile is not wrong.
        let told = Told::read(db, kinds, indexed).await?;
        wrong.retain(|document, _| !told.is_ahead(document));
    }
    let shown = wrong.into_iter().take(SHOWN);
    let finding = |((workspace, id), why): ((WorkspaceId, Uuid), &str)| Finding {
        rule: RULE,
        subject: format!("workspace {workspace} document {id}: {why}"),
    };
    findings.extend(shown.map(finding));
    Ok(findings)
}

/// What the feed has told of documents.
struct Told {
    /// Those that there are, as far as the index has followed.
    living: BTreeMap<WorkspaceId, Vec<(Kind, String)>>,
    /// Those of which the feed told more than the index has followed.
    ahead: HashSet<(WorkspaceId, Uuid)>,
    /// Where the feed of each workspace ends.
    ends: HashMap<WorkspaceId, u64>,
}

impl Told {
    async fn read(db: &Db, kinds: &[Kind], indexed: &Indexed) -> Result<Self, Error> {
        let rows: Vec<(Text<WorkspaceId>, String, i64, i64, i64)> = fetch!(all, db, LAST)?;
        let mut told = Self { living: BTreeMap::new(), ahead: HashSet::new(), ends: HashMap::new() };
        for (workspace, item, kind, op, position) in rows {
            let end = told.ends.entry(workspace.0).or_default();
            *end = (*end).max(u64::try_from(position).unwrap_or(0));
            let kind = i32::try_from(kind).ok().and_then(|kind| Kind::try_from(kind).ok());
            let Some(kind) = kind.filter(|kind| kinds.contains(kind)) else { continue };
            let Ok(id) = Uuid::try_parse(&item) else { continue };
            let workspace = workspace.0;
            let followed = indexed.positions.get(&workspace).copied().unwrap_or(0);
            if u64::try_from(position).is_ok_and(|position| position > followed) {
                told.ahead.insert((workspace, id));
            } else if op == i64::from(i32::from(Op::Upsert)) {
                told.living.entry(workspace).or_default().push((kind, item));
            }
        }
        Ok(told)
    }

    /// Feeds that end before what the index has followed: what was written last is gone, as when a log was cut. A workspace
    /// without a feed may have been removed.
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
        behind.into_iter().take(SHOWN).map(finding).collect()
    }

    fn is_ahead(&self, document: &(WorkspaceId, Uuid)) -> bool {
        self.ahead.contains(document)
    }
}
