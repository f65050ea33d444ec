//! What a run does to each document (import.md, "Directory sync"): decided from the manifest, from what the sync remembers,
//! and from how that stands in the workspace now. Nothing is touched here.

mod folders;
mod steps;

use std::collections::{BTreeSet, HashMap};

use cairn_proto::ids::SyncRunId;
use uuid::Uuid;

pub(crate) use self::folders::{Needed, Tree};
pub(crate) use self::steps::{beside, steps};
use crate::model::{
    ConflictPolicy, Counters, Details, Document, Entry, Kind, Memory, Prunable, Still, SyncAction,
};

/// How an item stands in the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) in_trash: bool,
    /// What holds it: a folder, absent in the root; of a record, its database.
    pub(crate) parent: Option<Uuid>,
    pub(crate) name: String,
    /// 0 for folders and assets, which have none.
    pub(crate) version: u64,
    /// Of a file.
    pub(crate) hash: String,
    /// Of a file.
    pub(crate) tags: Vec<String>,
    /// Of a folder: how much lives in it directly; of a database: its live records.
    pub(crate) children: u64,
}

/// What stands where, of that which a sync remembers; what is not here is gone for good.
pub(crate) type States = HashMap<Uuid, State>;

/// What a run goes by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) run: SyncRunId,
    pub(crate) policy: ConflictPolicy,
    pub(crate) prune: bool,
}

/// What there is to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan<'a> {
    /// New documents, and those whose new version stands beside the old one: with what was remembered.
    pub(crate) creates: Vec<(&'a Document, Option<&'a Entry>)>,
    pub(crate) updates: Vec<(&'a Document, &'a Entry)>,
    /// Files, then folders, the deepest first. Only done when the run prunes.
    pub(crate) prunes: Vec<&'a Entry>,
    pub(crate) stills: Vec<Still>,
    /// What is remembered anew: both sides came to the same content.
    pub(crate) adopts: Vec<Entry>,
    /// What there is nothing left of to remember.
    pub(crate) forgets: Vec<(Kind, String)>,
}

/// How the file of a document stands, compared with what this sync wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    AsWritten,
    Edited,
    InTrash,
}

fn standing(entry: &Entry, states: &States) -> Standing {
    match states.get(&entry.id) {
        None => Standing::InTrash,
        Some(state) if state.in_trash => Standing::InTrash,
        // Content, name, place, tags: each raises it.
        Some(state) if state.version != entry.version => Standing::Edited,
        Some(_) => Standing::AsWritten,
    }
}

/// Plans a run.
pub(crate) fn plan<'a>(rules: Rules, details: &'a Details, memory: &'a Memory, states: &States) -> Plan<'a> {
    let mut plan = Plan::default();
    for document in &details.documents {
        match memory.get(Kind::File, &document.path) {
            None if document.text.is_none() => plan.stills.push(outdated(document, None)),
            None => plan.creates.push((document, None)),
            Some(entry) => plan.judge(rules, document, entry, states),
        }
    }
    plan.judge_absent(rules, details, memory, states);
    plan
}

impl<'a> Plan<'a> {
    fn judge(&mut self, rules: Rules, document: &'a Document, entry: &'a Entry, states: &States) {
        let is_changed = document.hash != entry.hash;
        if !is_changed && entry.run == rules.run {
            // Written before this run was cut short: that is settled.
            return;
        }
        let standing = standing(entry, states);
        let still = |action, why: Option<(&str, &str)>| Still {
            path: document.path.clone(),
            kind: Kind::File,
            action,
            id: Some(entry.id),
            why: why.map(|(code, why)| (code.to_owned(), why.to_owned())),
        };
        if !is_changed || rules.policy == ConflictPolicy::Skip {
            return self.stills.push(still(SyncAction::Skipped, None));
        }
        match (standing, rules.policy) {
            (Standing::InTrash, _) => self.stills.push(still(SyncAction::Conflict, Some(IN_TRASH))),
            (Standing::Edited, ConflictPolicy::Update) => match states.get(&entry.id) {
                // The same on both sides: there is nothing to overwrite.
                Some(state) if state.hash == document.hash => {
                    let (version, hash) = (state.version, state.hash.clone());
                    self.adopts.push(Entry { version, hash, ..entry.clone() });
                    self.stills.push(still(SyncAction::Skipped, None));
                }
                _ => self.stills.push(still(SyncAction::Conflict, Some(EDITED))),
            },
            (Standing::AsWritten | Standing::Edited, _) if document.text.is_none() => {
                self.stills.push(outdated(document, Some(entry.id)));
            }
            (_, ConflictPolicy::Duplicate) => self.creates.push((document, Some(entry))),
            (_, ConflictPolicy::Update | ConflictPolicy::Skip) => self.updates.push((document, entry)),
        }
    }

    /// What earlier runs wrote and the manifest does not have.
    fn judge_absent(&mut self, rules: Rules, details: &Details, memory: &'a Memory, states: &States) {
        let paths: BTreeSet<&str> = details.documents.iter().map(|document| document.path.as_str()).collect();
        // How much of each folder goes with this run.
        let mut going: HashMap<Uuid, u64> = HashMap::new();
        for entry in memory.of_kind(Kind::File).filter(|entry| !paths.contains(entry.path.as_str())) {
            match standing(entry, states) {
                Standing::AsWritten => {
                    if let Some(parent) = states.get(&entry.id).and_then(|state| state.parent) {
                        *going.entry(parent).or_default() += 1;
                    }
                    self.prunes.push(entry);
                }
                Standing::Edited if rules.prune => self.stills.push(Still {
                    path: entry.path.clone(),
                    kind: entry.kind,
                    action: SyncAction::Conflict,
                    id: Some(entry.id),
                    why: Some((KEPT.0.to_owned(), KEPT.1.to_owned())),
                }),
                Standing::Edited => {}
                Standing::InTrash => self.forgets.push((Kind::File, entry.path.clone())),
            }
        }
        let needed = folders::above(paths);
        // A path sorts before those below it.
        for entry in memory.of_kind(Kind::Folder).rev() {
            if needed.contains(entry.path.as_str()) {
                continue;
            }
            match states.get(&entry.id).filter(|state| !state.in_trash) {
                None => self.forgets.push((Kind::Folder, entry.path.clone())),
                Some(state) => {
                    let is_ours = entry.path.rsplit('/').next() == Some(state.name.as_str());
                    if is_ours && state.children == going.get(&entry.id).copied().unwrap_or(0) {
                        if let Some(parent) = state.parent {
                            *going.entry(parent).or_default() += 1;
                        }
                        self.prunes.push(entry);
                    }
                }
            }
        }
    }

    /// What a preview says of it.
    pub(crate) fn would(&self) -> Counters {
        let count = |action| self.stills.iter().filter(|still| still.action == action).count() as u64;
        Counters {
            created: self.creates.len() as u64,
            updated: self.updates.len() as u64,
            skipped: count(SyncAction::Skipped),
            conflicts: count(SyncAction::Conflict),
            pruned: self.prunes.iter().filter(|entry| entry.kind == Kind::File).count() as u64,
            processed: 0,
        }
    }

    /// What a preview lists.
    pub(crate) fn prunable(&self) -> Vec<Prunable> {
        let one = |entry: &&Entry| Prunable { kind: entry.kind, id: entry.id, path: entry.path.clone() };
        self.prunes.iter().map(one).collect()
    }

    /// What would be done to each document of which something would, by path.
    pub(crate) fn changes(&self) -> Vec<(String, SyncAction)> {
        let creates = self.creates.iter().map(|(document, _)| (document.path.clone(), SyncAction::Created));
        let updates = self.updates.iter().map(|(document, _)| (document.path.clone(), SyncAction::Updated));
        let conflicts = self.stills.iter().filter(|still| still.action == SyncAction::Conflict);
        let conflicts = conflicts.map(|still| (still.path.clone(), SyncAction::Conflict));
        let mut changes: Vec<_> = creates.chain(updates).chain(conflicts).collect();
        changes.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        changes
    }
}

const EDITED: (&str, &str) = (
    "edited_in_service",
    "its file was edited in the workspace and its document was changed: the file stays as it is. Bring one of them to \
     the other's content, or sync with the policy 'duplicate'",
);
const IN_TRASH: (&str, &str) = (
    "deleted_in_service",
    "its file was deleted in the workspace and its document was changed: restore the file, or leave the document out",
);
const KEPT: (&str, &str) = (
    "edited_in_service",
    "its file was edited in the workspace: it is not pruned. Delete it there if nobody needs it",
);

/// What the preview took for unchanged is not any more, so its text was not kept.
fn outdated(document: &Document, id: Option<Uuid>) -> Still {
    let why = "another run of this sync wrote it after this run was previewed: preview the directory again";
    Still {
        path: document.path.clone(),
        kind: Kind::File,
        action: SyncAction::Conflict,
        id,
        why: Some(("preview_outdated".to_owned(), why.to_owned())),
    }
}

#[cfg(test)]
mod tests;
