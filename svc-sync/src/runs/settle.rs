//! Decides from the state of the workspace whether a logged step is done: by its effect alone, so that it does not matter whether the
//! worker was lost before or after it sent the write.

use crate::model::{Counters, Entry, Kind, Step, SyncAction, Unwritten, Write};
use crate::plan::States;

/// Whether the workspace shows the effect of a step.
pub(super) fn is_done(step: &Step, states: &States) -> bool {
    let state = states.get(&step.id);
    match &step.write {
        // Nobody else uses the id, so its object was created, whatever happened to it since.
        Write::Create { .. } => state.is_some(),
        Write::Update | Write::Revert { .. } if step.kind == Kind::File => {
            let hash = step.text_hash.as_ref().unwrap_or(&step.hash);
            let is_it = |known: &str| hash.is_empty() || known == hash;
            state.is_some_and(|state| state.version == step.version_after() && is_it(&state.hash))
        }
        // Records have no hash, but their versions have authors.
        Write::Update | Write::Relate | Write::Revert { .. } if step.changes_record() => {
            state.is_some_and(|state| state.own_versions.contains(&step.version_after()))
        }
        // Databases have neither: only their version shows the write.
        Write::Update | Write::Relate | Write::Revert { .. } => {
            state.is_some_and(|state| state.version > step.version)
        }
        Write::Trash => state.is_none_or(|state| state.in_trash),
        Write::Restore => state.is_some_and(|state| !state.in_trash),
    }
}

/// Whether the state proves that a refused step is done: false wherever somebody's edit could look the same.
pub(super) fn is_provably_done(step: &Step, states: &States) -> bool {
    matches!(step.kind, Kind::File | Kind::Folder | Kind::Record) && is_known(step) && is_done(step, states)
}

/// Whether the stale write of a lost worker shows in these states. A trashed object counts whoever trashed it.
pub(super) fn has_taken_effect(step: &Step, states: &States) -> bool {
    match step.write {
        Write::Trash => is_done(step, states),
        // The states cover objects of the baseline, and a new object is not among them.
        Write::Create { .. } => false,
        Write::Update | Write::Relate | Write::Revert { .. } | Write::Restore => {
            is_provably_done(step, states)
        }
    }
}

/// Whether a stale write of this step could be told apart from somebody's edit. Databases have versions without authors and no hashes, and
/// any edit raises a version.
pub(super) const fn is_identifiable(step: &Step) -> bool {
    let has_identity = matches!(step.kind, Kind::File | Kind::Folder | Kind::Record);
    has_identity || matches!(step.write, Write::Create { .. } | Write::Trash)
}

/// Whether the hash of the content after the step is known, if its effect shows by that.
fn is_known(step: &Step) -> bool {
    let needs_hash = step.kind == Kind::File && matches!(step.write, Write::Update | Write::Revert { .. });
    !needs_hash || step.text_hash.is_some() || !step.hash.is_empty()
}

/// Whether a step in flight when its worker was lost needs no retry. Completing a database takes several calls, and the workspace cannot
/// show whether all of them were made.
pub(super) fn is_complete(step: &Step, states: &States) -> bool {
    let takes_several_calls = step.kind == Kind::Database && step.write == Write::Relate;
    !takes_several_calls && is_done(step, states)
}

/// Fills in the versions of databases after completed steps, which take several writes each. One write leaves the next version, whatever
/// edits came after it.
pub(super) fn learn_versions(steps: &mut [Step], states: &States) {
    for step in steps.iter_mut().filter(|step| step.kind == Kind::Database) {
        if matches!(step.write, Write::Create { .. } | Write::Update | Write::Relate) {
            step.after = states.get(&step.id).map(|state| state.version).or(step.after);
        }
    }
}

const fn has_versions(kind: Kind) -> bool {
    !matches!(kind, Kind::Folder | Kind::Asset)
}

/// The baseline entries that completed steps put, and the keys that they remove.
pub(super) fn baseline_changes(
    steps: &[Step],
    run: cairn_proto::ids::SyncRunId,
) -> (Vec<Entry>, Vec<(Kind, String)>) {
    let (mut puts, mut forgets) = (Vec::new(), Vec::new());
    for step in steps {
        match step.write {
            Write::Create { .. } | Write::Update | Write::Relate => puts.push(Entry {
                kind: step.kind,
                path: step.path.clone(),
                id: step.id,
                version: if has_versions(step.kind) { step.version_after() } else { 0 },
                hash: step.hash.clone(),
                run,
            }),
            Write::Trash => forgets.push((step.kind, step.path.clone())),
            Write::Revert { .. } | Write::Restore => {}
        }
    }
    (puts, forgets)
}

/// The counters of a run from its completed steps and the documents that it does not write.
pub(super) fn tally<'a>(done: impl IntoIterator<Item = &'a Step>, unwritten: &[Unwritten]) -> Counters {
    let mut counters = Counters::default();
    let counted = |step: &&Step| step.kind != Kind::Folder && step.write != Write::Relate;
    let files = done.into_iter().filter(counted).map(Step::action);
    for action in files.chain(unwritten.iter().map(|unwritten| unwritten.action)) {
        counters.processed += 1;
        match action {
            SyncAction::Created => counters.created += 1,
            SyncAction::Updated => counters.updated += 1,
            SyncAction::Skipped => counters.skipped += 1,
            SyncAction::Conflict => counters.conflicts += 1,
            SyncAction::Pruned => counters.pruned += 1,
            SyncAction::Failed => {}
        }
    }
    counters
}

/// The outcome of a refused step; `None` for folders, which are not counted.
pub(super) fn refused(step: &Step, code: &str, message: &str) -> Option<Unwritten> {
    // The object was created by this run and counts as that, even if completing it failed.
    if step.kind == Kind::Folder || step.write == Write::Relate {
        return None;
    }
    let is_edited = matches!(code, "version_conflict" | "not_found" | "went_along")
        && !matches!(step.write, Write::Create { .. });
    let (action, why) = if is_edited {
        let why = "it was changed in the workspace while this run went on: it stays as it is";
        (SyncAction::Conflict, ("edited_in_service".to_owned(), why.to_owned()))
    } else {
        (SyncAction::Failed, ("refused".to_owned(), message.to_owned()))
    };
    let id = (!matches!(step.write, Write::Create { .. })).then_some(step.id);
    Some(Unwritten { path: step.path.clone(), kind: step.kind, action, id, why: Some(why) })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::plan::State;

    fn step(write: Write) -> Step {
        let (id, path, hash) = (Uuid::from_u128(1), "a".to_owned(), "new".to_owned());
        Step { version: 3, hash, ..Step::of(Kind::File, path, write, id) }
    }

    fn states(version: u64, hash: &str, in_trash: bool) -> States {
        let state = State { in_trash, name: "a".into(), version, hash: hash.into(), ..State::default() };
        States::from([(Uuid::from_u128(1), state)])
    }

    #[test]
    fn a_step_is_done_when_its_effect_is_there() {
        let create = step(Write::Create { name: "a".into(), folder: None, file_type: None });
        let gone = States::new();
        assert!(!is_done(&create, &gone) && is_done(&create, &states(9, "other", true)));
        let update = step(Write::Update);
        assert!(is_done(&update, &states(4, "new", false)));
        assert!(
            !is_done(&update, &states(3, "old", false)) && !is_done(&update, &states(4, "theirs", false))
        );
        // An import knows the hash of the archive's entry and that of the text written.
        let of_import = Step { text_hash: Some("theirs".into()), ..step(Write::Update) };
        assert!(is_done(&of_import, &states(4, "theirs", false)));
        assert!(!is_done(&of_import, &states(4, "new", false)));
        let back = Step { hash: String::new(), ..step(Write::Revert { to: 1 }) };
        assert!(is_done(&back, &states(4, "any", false)) && !is_done(&back, &states(3, "any", false)));
        let trash = step(Write::Trash);
        assert!(is_done(&trash, &states(3, "old", true)) && is_done(&trash, &gone));
        assert!(!is_done(&trash, &states(3, "old", false)));
        let restore = step(Write::Restore);
        assert!(is_done(&restore, &states(3, "old", false)) && !is_done(&restore, &gone));
    }

    #[test]
    fn what_was_refused_is_done_only_where_that_is_certain() {
        let ours = states(4, "new", false);
        assert!(is_provably_done(&step(Write::Update), &ours));
        assert!(!is_provably_done(&step(Write::Update), &states(4, "theirs", false)));
        assert!(is_provably_done(&step(Write::Trash), &states(3, "old", true)));
        // Without a hash it could be anybody's edit.
        let unknown = Step { hash: String::new(), ..step(Write::Revert { to: 1 }) };
        assert!(!is_provably_done(&unknown, &ours));
        let known = Step { text_hash: Some("new".into()), ..unknown };
        assert!(is_provably_done(&known, &ours) && !is_provably_done(&known, &states(4, "theirs", false)));
    }

    #[test]
    fn a_version_of_a_record_is_ours_only_by_its_author() {
        let of = |version, own_versions| {
            let state = State { version, own_versions, ..State::default() };
            States::from([(Uuid::from_u128(1), state)])
        };
        for write in [Write::Update, Write::Relate, Write::Revert { to: 1 }] {
            // The version before it is 3, and a record has no hash.
            let step = Step { kind: Kind::Record, hash: String::new(), ..step(write) };
            for (states, is_ours) in [
                (of(3, vec![3]), false),
                (of(4, vec![]), false),
                (of(4, vec![4]), true),
                (of(5, vec![4]), true),
                (of(5, vec![5]), false),
            ] {
                assert_eq!(is_complete(&step, &states), is_ours, "{step:?} {states:?}");
                assert_eq!(is_provably_done(&step, &states), is_ours, "{step:?} {states:?}");
                assert_eq!(has_taken_effect(&step, &states), is_ours, "{step:?} {states:?}");
            }
            let mut done = [step];
            learn_versions(&mut done, &of(9, vec![4]));
            assert_eq!(done[0].version_after(), 4, "later versions are edits");
        }
    }

    #[test]
    fn what_arrives_late_is_known_by_its_effect() {
        let ours = states(4, "new", false);
        assert!(has_taken_effect(&step(Write::Update), &ours));
        assert!(!has_taken_effect(&step(Write::Update), &states(4, "theirs", false)));
        let unknown = Step { hash: String::new(), ..step(Write::Revert { to: 1 }) };
        assert!(!has_taken_effect(&unknown, &ours));
        let asset = Step { kind: Kind::Asset, ..step(Write::Trash) };
        assert!(has_taken_effect(&asset, &States::new()) && !has_taken_effect(&asset, &ours));
        let create = step(Write::Create { name: "a".into(), folder: None, file_type: None });
        assert!(!has_taken_effect(&create, &ours));
    }

    #[test]
    fn only_what_an_edit_cannot_look_like_stays_open() {
        let create = || Write::Create { name: "a".into(), folder: None, file_type: None };
        let of = |kind, write| Step { kind, ..step(write) };
        for kind in [Kind::File, Kind::Folder, Kind::Asset, Kind::Database, Kind::Record] {
            assert!(
                is_identifiable(&of(kind, create())) && is_identifiable(&of(kind, Write::Trash)),
                "{kind:?}"
            );
        }
        for write in [Write::Update, Write::Revert { to: 1 }] {
            assert!(is_identifiable(&of(Kind::File, write.clone())), "its hash tells it apart: {write:?}");
            assert!(
                is_identifiable(&of(Kind::Record, write.clone())),
                "its author tells it apart: {write:?}"
            );
            assert!(!is_identifiable(&of(Kind::Database, write.clone())), "{write:?}");
        }
        assert!(is_identifiable(&of(Kind::Record, Write::Relate)));
        assert!(!is_identifiable(&of(Kind::Database, Write::Relate)));
    }

    #[test]
    fn what_is_refused_is_a_conflict_only_where_somebody_changed_it() {
        let update = refused(&step(Write::Update), "version_conflict", "m").unwrap();
        assert_eq!((update.action, update.id), (SyncAction::Conflict, Some(Uuid::from_u128(1))));
        let create = step(Write::Create { name: "a".into(), folder: None, file_type: None });
        let failed = refused(&create, "not_found", "no folder").unwrap();
        assert_eq!((failed.action, failed.id), (SyncAction::Failed, None));
        assert_eq!(failed.why.unwrap().1, "no folder");
        assert_eq!(refused(&Step { kind: Kind::Folder, ..create }, "invalid", "m"), None);
        let unwritten = [Unwritten {
            path: "x".into(),
            kind: Kind::File,
            action: SyncAction::Failed,
            id: None,
            why: None,
        }];
        let counters = tally(&[step(Write::Update)], &unwritten);
        assert_eq!((counters.updated, counters.processed), (1, 2));
    }
}
