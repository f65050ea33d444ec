//! Plans a rollback (import.md, "Directory sync" and "Import runs"): the inverse of what a run did, except what was changed since. Pure:
//! nothing is written here.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::model::{Entry, Kept, Kind, Origin, Step, Write};
use crate::plan::States;

/// The plan of a rollback.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reversal {
    /// In order of execution.
    pub(crate) steps: Vec<Step>,
    pub(crate) kept: Vec<Kept>,
    origin: Option<Origin>,
}

/// The warning code for an object that was changed since a run of that origin.
pub(crate) const fn edited(origin: Origin) -> &'static str {
    if origin.is_import() { "edited_since_import" } else { "edited_since_sync" }
}

/// Plans a rollback from the steps of the run, in their order, and the current states; `is_reverted` are the items that an earlier worker
/// of the rollback has handled.
pub(crate) fn reversal(
    origin: Origin,
    done: &[Step],
    is_reverted: &HashSet<Uuid>,
    states: &States,
) -> Reversal {
    let mut reversal = Reversal { origin: Some(origin), ..Reversal::default() };
    let open = || done.iter().rev().filter(|step| !is_reverted.contains(&step.id));
    let created = |step: &&Step| matches!(step.write, Write::Create { .. });
    let made: HashSet<Uuid> = done.iter().filter(created).map(|step| step.id).collect();
    // The version that the run's last step on each item left.
    let left: HashMap<Uuid, u64> = done.iter().map(|step| (step.id, step.version_after())).collect();
    let is_as_left =
        |id: &Uuid| states.get(id).is_none_or(|state| left.get(id).is_none_or(|left| state.version == *left));
    // In reverse order, so that folders are restored before their contents.
    for step in open().filter(|step| step.write == Write::Trash) {
        if states.get(&step.id).is_some_and(|state| state.in_trash) {
            reversal.push(step, Write::Restore, step.version);
        } else if !states.contains_key(&step.id) {
            reversal.keep(step, "deleted_since_sync", "it was deleted for good since and cannot come back");
        }
    }
    for step in open().filter(|step| step.write == Write::Update && !made.contains(&step.id)) {
        match states.get(&step.id) {
            // Others may have written values of the added properties since.
            _ if step.kind == Kind::Database => {
                reversal.keep(step, "properties_kept", "the properties that were added to it stay");
            }
            Some(state) if !state.in_trash && state.version == step.version_after() => {
                let to = step.before.as_ref().map_or(step.version, |before| before.version);
                reversal.push(step, Write::Revert { to }, step.version_after());
            }
            _ => reversal.keep_edited(step),
        }
    }
    // How many children of each folder and database are removed.
    let mut going: HashMap<Uuid, u64> = HashMap::new();
    // Bodies of records that stay.
    let mut bodies: HashSet<Uuid> = HashSet::new();
    for kind in [Kind::Record, Kind::File, Kind::Asset, Kind::Database] {
        for step in open().filter(created).filter(|step| step.kind == kind) {
            // Trashed items need no removal.
            let Some(state) = states.get(&step.id).filter(|state| !state.in_trash) else { continue };
            let is_whole = (kind == Kind::Asset || is_as_left(&step.id))
                && step.body.is_none_or(|body| is_as_left(&body));
            if !is_whole || bodies.contains(&step.id) {
                bodies.extend(step.body);
                reversal.keep_edited(step);
                continue;
            }
            if kind == Kind::Database && state.children > going.get(&step.id).copied().unwrap_or(0) {
                reversal.keep_edited(step);
                continue;
            }
            if let Some(parent) = state.parent {
                *going.entry(parent).or_default() += 1;
            }
            reversal.push(step, Write::Trash, state.version);
        }
    }
    // Folders are created before their contents, so they are removed after them.
    for step in open().filter(created).filter(|step| step.kind == Kind::Folder) {
        let Some(state) = states.get(&step.id).filter(|state| !state.in_trash) else { continue };
        if state.children > going.get(&step.id).copied().unwrap_or(0) {
            reversal.keep(step, "not_empty", "other things stand in this folder by now: it stays");
            continue;
        }
        if let Some(parent) = state.parent {
            *going.entry(parent).or_default() += 1;
        }
        reversal.push(step, Write::Trash, 0);
    }
    reversal
}

impl Reversal {
    fn push(&mut self, step: &Step, write: Write, version: u64) {
        // In the baseline of an import, hashes are of the archive's entries.
        let of_content = step.before.as_ref().filter(|_| !self.origin.is_some_and(Origin::is_import));
        let hash = of_content.map_or_else(String::new, |before| before.hash.clone());
        let is_revert = matches!(write, Write::Revert { .. });
        let text_hash = step.former_hash.clone();
        self.steps.push(Step {
            version,
            hash,
            text_hash: text_hash.filter(|_| is_revert),
            tags: step.tags.clone(),
            before: step.before.clone(),
            source: step.source.clone(),
            ..Step::of(step.kind, step.path.clone(), write, step.id)
        });
    }

    fn keep_edited(&mut self, step: &Step) {
        let code = edited(self.origin.unwrap_or(Origin::Directory));
        self.keep(step, code, "it was changed since: it stays as it is");
    }

    fn keep(&mut self, step: &Step, code: &str, why: &str) {
        let (path, code, why) = (step.path.clone(), code.to_owned(), why.to_owned());
        self.kept.push(Kept { path, id: step.id, code, why });
    }
}

/// The baseline entry after a completed rollback step: `Some(None)` removes the entry, `None` leaves it as it is.
pub(crate) fn remembered(step: &Step, now: Option<&Entry>) -> Option<Option<Entry>> {
    let is_ours = now.is_none_or(|now| now.id == step.id);
    match &step.write {
        // A later run may have written something else under the path.
        Write::Trash => is_ours.then(|| step.before.clone()),
        Write::Revert { .. } => {
            let before = step.before.clone().filter(|_| is_ours)?;
            Some(Some(Entry { version: step.version_after(), ..before }))
        }
        Write::Restore => Some(Some(step.before.clone().filter(|_| now.is_none())?)),
        Write::Create { .. } | Write::Update | Write::Relate => None,
    }
}

#[cfg(test)]
mod tests {
    use cairn_proto::ids::SyncRunId;

    use super::*;
    use crate::plan::State;

    fn entry(id: u128, version: u64) -> Entry {
        Entry {
            kind: Kind::File,
            path: format!("{id}"),
            id: Uuid::from_u128(id),
            version,
            hash: format!("h{version}"),
            run: SyncRunId(Uuid::nil()),
        }
    }

    fn step(id: u128, kind: Kind, write: Write, version: u64) -> Step {
        let before = (!matches!(write, Write::Create { .. })).then(|| entry(id, version));
        let (id, path) = (Uuid::from_u128(id), format!("{id}"));
        Step { version, hash: "new".into(), before, ..Step::of(kind, path, write, id) }
    }

    fn create() -> Write {
        Write::Create { name: "x".into(), folder: None, file_type: None }
    }

    fn state(parent: Option<u128>, version: u64, in_trash: bool, children: u64) -> State {
        let parent = parent.map(Uuid::from_u128);
        State { in_trash, parent, name: "x".into(), version, children, ..State::default() }
    }

    #[test]
    fn what_nobody_touched_goes_back_and_the_rest_is_named() {
        let done = [
            step(1, Kind::Folder, create(), 0),
            step(2, Kind::File, create(), 0),
            step(3, Kind::File, create(), 0),
            step(4, Kind::File, Write::Update, 5),
            step(5, Kind::File, Write::Update, 5),
            step(6, Kind::File, Write::Trash, 2),
            step(7, Kind::Folder, Write::Trash, 0),
            step(8, Kind::File, Write::Trash, 2),
        ];
        let states = [
            (1, state(None, 0, false, 2)),
            (2, state(Some(1), 1, false, 0)),
            (3, state(Some(1), 2, false, 0)),
            (4, state(None, 6, false, 0)),
            (5, state(None, 7, false, 0)),
            (6, state(Some(7), 2, true, 0)),
            (7, state(None, 0, true, 0)),
        ];
        let states: States = states.into_iter().map(|(id, state)| (Uuid::from_u128(id), state)).collect();
        let reversal = reversal(Origin::Directory, &done, &HashSet::new(), &states);
        let steps: Vec<_> =
            reversal.steps.iter().map(|step| (step.id.as_u128(), step.write.clone())).collect();
        let expected =
            vec![(7, Write::Restore), (6, Write::Restore), (4, Write::Revert { to: 5 }), (2, Write::Trash)];
        assert_eq!(steps, expected);
        let kept: Vec<_> = reversal.kept.iter().map(|kept| (kept.id.as_u128(), kept.code.as_str())).collect();
        let expected =
            [(8, "deleted_since_sync"), (5, "edited_since_sync"), (3, "edited_since_sync"), (1, "not_empty")];
        assert_eq!(kept, expected);
        let dealt: HashSet<Uuid> = [2, 4, 6, 7].into_iter().map(Uuid::from_u128).collect();
        assert_eq!(super::reversal(Origin::Directory, &done, &dealt, &states).steps, vec![]);
    }

    #[test]
    fn what_goes_back_in_an_import_is_known_by_the_text_that_was_there() {
        let former_hash = Some("text of 5".to_owned());
        let done = [Step { former_hash: former_hash.clone(), ..step(4, Kind::File, Write::Update, 5) }];
        let states = States::from([(Uuid::from_u128(4), state(None, 6, false, 0))]);
        let archive = Origin::Archive(crate::model::ImportProvider::ObsidianZip);
        let reversal = reversal(archive, &done, &HashSet::new(), &states);
        let hashes: Vec<_> = reversal.steps.iter().map(|step| (&step.hash, &step.text_hash)).collect();
        assert_eq!(hashes, [(&String::new(), &former_hash)]);
    }

    #[test]
    fn a_sync_remembers_what_it_remembered_before() {
        let made = step(2, Kind::File, Write::Trash, 1);
        let of_a_create = Step { before: None, ..made.clone() };
        assert_eq!(remembered(&of_a_create, Some(&entry(2, 1))), Some(None));
        assert_eq!(remembered(&of_a_create, Some(&entry(9, 1))), None, "a later run's");
        assert_eq!(remembered(&made, None), Some(Some(entry(2, 1))));
        let back = step(4, Kind::File, Write::Revert { to: 5 }, 6);
        let reverted = remembered(&back, Some(&entry(4, 6))).unwrap().unwrap();
        assert_eq!((reverted.version, reverted.hash.as_str()), (7, "h6"));
    }
}
