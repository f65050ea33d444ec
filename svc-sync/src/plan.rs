//! Plans what a run does with each document (import.md, "Directory sync"): a three-way comparison of the manifest, the baseline of the sync,
//! and the current state of the workspace. Pure: nothing is written here.

mod folders;
mod steps;

use std::collections::{BTreeSet, HashMap};

use cairn_proto::ids::SyncRunId;
use uuid::Uuid;

pub(crate) use self::folders::{FolderRef, Tree};
pub(crate) use self::steps::{beside, steps};
use crate::model::{
    Baseline, ConflictPolicy, Counters, Details, Document, Entry, Kind, Prunable, SyncAction, Unwritten,
};

/// The state of an item in the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) in_trash: bool,
    /// Its folder, absent in the root; of a record, its database.
    pub(crate) parent: Option<Uuid>,
    pub(crate) name: String,
    /// 0 for folders and assets, which have none.
    pub(crate) version: u64,
    /// Of a file.
    pub(crate) hash: String,
    /// Of a file.
    pub(crate) tags: Vec<String>,
    /// Of a folder: its live direct children; of a database: its live records.
    pub(crate) children: u64,
    /// Of a record: the versions that this service wrote, where `ContentSession::read_own_versions` has read them.
    pub(crate) own_versions: Vec<u64>,
}

/// States by id; an item without one was permanently deleted.
pub(crate) type States = HashMap<Uuid, State>;

/// The options of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) run: SyncRunId,
    pub(crate) policy: ConflictPolicy,
    pub(crate) prune: bool,
}

/// The plan of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan<'a> {
    /// New documents, and those that get a second version beside the old file: with its baseline entry.
    pub(crate) creates: Vec<(&'a Document, Option<&'a Entry>)>,
    pub(crate) updates: Vec<(&'a Document, &'a Entry)>,
    /// Files, then folders, the deepest first. Executed only when the run prunes.
    pub(crate) prunes: Vec<&'a Entry>,
    pub(crate) unwritten: Vec<Unwritten>,
    /// Updated baseline entries: both sides made the same change.
    pub(crate) adopts: Vec<Entry>,
    /// Baseline entries whose item no longer exists.
    pub(crate) forgets: Vec<(Kind, String)>,
}

/// The file of a document, compared with the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    AsWritten,
    Edited,
    InTrash,
}

fn file_state(entry: &Entry, states: &States) -> FileState {
    match states.get(&entry.id) {
        None => FileState::InTrash,
        Some(state) if state.in_trash => FileState::InTrash,
        // A change of content, name, folder or tags raises the version.
        Some(state) if state.version != entry.version => FileState::Edited,
        Some(_) => FileState::AsWritten,
    }
}

/// Plans a run.
pub(crate) fn plan<'a>(
    rules: Rules,
    details: &'a Details,
    baseline: &'a Baseline,
    states: &States,
) -> Plan<'a> {
    let mut plan = Plan::default();
    for document in &details.documents {
        match baseline.get(Kind::File, &document.path) {
            None if document.text.is_none() => plan.unwritten.push(outdated(document, None)),
            None => plan.creates.push((document, None)),
            Some(entry) => plan.judge(rules, document, entry, states),
        }
    }
    plan.judge_absent(rules, details, baseline, states);
    plan
}

impl<'a> Plan<'a> {
    fn judge(&mut self, rules: Rules, document: &'a Document, entry: &'a Entry, states: &States) {
        let is_changed = document.hash != entry.hash;
        if !is_changed && entry.run == rules.run {
            // An earlier worker of this run has written it.
            return;
        }
        let state = file_state(entry, states);
        let unwritten = |action, why: Option<(&str, &str)>| Unwritten {
            path: document.path.clone(),
            kind: Kind::File,
            action,
            id: Some(entry.id),
            why: why.map(|(code, why)| (code.to_owned(), why.to_owned())),
        };
        if !is_changed || rules.policy == ConflictPolicy::Skip {
            return self.unwritten.push(unwritten(SyncAction::Skipped, None));
        }
        match (state, rules.policy) {
            (FileState::InTrash, _) => self.unwritten.push(unwritten(SyncAction::Conflict, Some(IN_TRASH))),
            (FileState::Edited, ConflictPolicy::Update) => match states.get(&entry.id) {
                // Both sides have the same content.
                Some(state) if state.hash == document.hash => {
                    let (version, hash) = (state.version, state.hash.clone());
                    self.adopts.push(Entry { version, hash, ..entry.clone() });
                    self.unwritten.push(unwritten(SyncAction::Skipped, None));
                }
                _ => self.unwritten.push(unwritten(SyncAction::Conflict, Some(EDITED))),
            },
            (FileState::AsWritten | FileState::Edited, _) if document.text.is_none() => {
                self.unwritten.push(outdated(document, Some(entry.id)));
            }
            (_, ConflictPolicy::Duplicate) => self.creates.push((document, Some(entry))),
            (_, ConflictPolicy::Update | ConflictPolicy::Skip) => self.updates.push((document, entry)),
        }
    }

    /// Judges files and folders of the baseline that the manifest lacks.
    fn judge_absent(&mut self, rules: Rules, details: &Details, baseline: &'a Baseline, states: &States) {
        let paths: BTreeSet<&str> = details.documents.iter().map(|document| document.path.as_str()).collect();
        // How many children of each folder are pruned.
        let mut going: HashMap<Uuid, u64> = HashMap::new();
        for entry in baseline.of_kind(Kind::File).filter(|entry| !paths.contains(entry.path.as_str())) {
            match file_state(entry, states) {
                FileState::AsWritten => {
                    if let Some(parent) = states.get(&entry.id).and_then(|state| state.parent) {
                        *going.entry(parent).or_default() += 1;
                    }
                    self.prunes.push(entry);
                }
                FileState::Edited if rules.prune => self.unwritten.push(Unwritten {
                    path: entry.path.clone(),
                    kind: entry.kind,
                    action: SyncAction::Conflict,
                    id: Some(entry.id),
                    why: Some((KEPT.0.to_owned(), KEPT.1.to_owned())),
                }),
                FileState::Edited => {}
                FileState::InTrash => self.forgets.push((Kind::File, entry.path.clone())),
            }
        }
        let needed = folders::above(paths);
        // A path sorts before those below it.
        for entry in baseline.of_kind(Kind::Folder).rev() {
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

    /// The counters of a preview.
    pub(crate) fn would(&self) -> Counters {
        let count =
            |action| self.unwritten.iter().filter(|unwritten| unwritten.action == action).count() as u64;
        Counters {
            created: self.creates.len() as u64,
            updated: self.updates.len() as u64,
            skipped: count(SyncAction::Skipped),
            conflicts: count(SyncAction::Conflict),
            pruned: self.prunes.iter().filter(|entry| entry.kind == Kind::File).count() as u64,
            processed: 0,
        }
    }

    /// What a preview lists as prunable.
    pub(crate) fn prunable(&self) -> Vec<Prunable> {
        let one = |entry: &&Entry| Prunable { kind: entry.kind, id: entry.id, path: entry.path.clone() };
        self.prunes.iter().map(one).collect()
    }

    /// The planned action of each document that is not skipped, by path.
    pub(crate) fn changes(&self) -> Vec<(String, SyncAction)> {
        let creates = self.creates.iter().map(|(document, _)| (document.path.clone(), SyncAction::Created));
        let updates = self.updates.iter().map(|(document, _)| (document.path.clone(), SyncAction::Updated));
        let conflicts = self.unwritten.iter().filter(|unwritten| unwritten.action == SyncAction::Conflict);
        let conflicts = conflicts.map(|unwritten| (unwritten.path.clone(), SyncAction::Conflict));
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

/// A document that was unchanged at the preview, so that its text was not stored, and has changed since.
fn outdated(document: &Document, id: Option<Uuid>) -> Unwritten {
    let why = "another run of this sync wrote it after this run was previewed: preview the directory again";
    Unwritten {
        path: document.path.clone(),
        kind: Kind::File,
        action: SyncAction::Conflict,
        id,
        why: Some(("preview_outdated".to_owned(), why.to_owned())),
    }
}

#[cfg(test)]
mod tests;
