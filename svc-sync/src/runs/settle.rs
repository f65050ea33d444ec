//! Whether a step that was noted is done, as the workspace tells: by its effect alone, so that a worker that was lost
//! between the write and its record leaves nothing unknown.

use crate::model::{Counters, Entry, Kind, Step, Still, SyncAction, Write};
use crate::plan::States;

/// Whether the workspace shows the effect of a step.
pub(super) fn is_done(step: &Step, states: &States) -> bool {
    let state = states.get(&step.id);
    match &step.write {
        // The id is its own, so whatever became of it since, it was made.
        Write::Create { .. } => state.is_some(),
        // Of what has no hash in the workspace, the version is all that tells.
        Write::Update | Write::Revert { .. } if step.kind == Kind::File => {
            let hash = step.text_hash.as_ref().unwrap_or(&step.hash);
            let is_it = |known: &str| hash.is_empty() || known == hash;
            state.is_some_and(|state| state.version == step.version_after() && is_it(&state.hash))
        }
        Write::Update | Write::Relate | Write::Revert { .. } => {
            state.is_some_and(|state| state.version > step.version)
        }
        Write::Trash => state.is_none_or(|state| state.in_trash),
        Write::Restore => state.is_some_and(|state| !state.in_trash),
    }
}

/// Whether a step that was refused is done nevertheless: only where its effect is not to be taken for what somebody else did.
pub(super) fn is_surely_done(step: &Step, states: &States) -> bool {
    matches!(step.kind, Kind::File | Kind::Folder) && is_known(step) && is_done(step, states)
}

/// Whether the call of a worker that was lost has had its effect on what these states tell of. What it was to take away is gone,
/// whoever took it.
pub(super) fn has_arrived(step: &Step, states: &States) -> bool {
    match step.write {
        Write::Trash => is_done(step, states),
        // It has an id of its own, which states of what was known before do not tell of.
        Write::Create { .. } => false,
        Write::Update | Write::Relate | Write::Revert { .. } | Write::Restore => is_surely_done(step, states),
    }
}

/// Whether it can be told that the call of a worker that was lost has had its effect after all. Of records and databases only versions
/// are counted, which somebody else's edit raises as well.
pub(super) const fn can_arrive(step: &Step) -> bool {
    let is_told_apart = matches!(step.kind, Kind::File | Kind::Folder);
    is_told_apart || matches!(step.write, Write::Create { .. } | Write::Trash)
}

/// Whether the content that a file gets is known.
fn is_known(step: &Step) -> bool {
    let has_content = matches!(step.write, Write::Update | Write::Revert { .. });
    !has_content || step.text_hash.is_some() || !step.hash.is_empty()
}

/// Whether a step that was under way when a worker was lost need not be carried out again. What completes a database takes several
/// calls, of which the workspace shows the first as it shows all.
pub(super) fn is_over(step: &Step, states: &States) -> bool {
    step.write != Write::Relate && is_done(step, states)
}

/// Writes into steps that are done what versions the workspace has given what it made or changed.
pub(super) fn learn_versions(steps: &mut [Step], states: &States) {
    let counted = |step: &&mut Step| matches!(step.kind, Kind::Database | Kind::Record);
    for step in steps.iter_mut().filter(counted) {
        if matches!(step.write, Write::Create { .. } | Write::Update | Write::Relate) {
            step.after = states.get(&step.id).map(|state| state.version).or(step.after);
        }
    }
}

const fn has_versions(kind: Kind) -> bool {
    !matches!(kind, Kind::Folder | Kind::Asset)
}

/// What a sync remembers after steps that are done: what it puts, and what it forgets.
pub(super) fn remembered(
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

/// How far a run is that has done these steps and leaves these documents alone.
pub(super) fn tally<'a>(done: impl IntoIterator<Item = &'a Step>, stills: &[Still]) -> Counters {
    let mut counters = Counters::default();
    let counted = |step: &&Step| step.kind != Kind::Folder && step.write != Write::Relate;
    let files = done.into_iter().filter(counted).map(Step::action);
    for action in files.chain(stills.iter().map(|still| still.action)) {
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

/// What becomes of a document whose step the workspace refused; `None` for folders, which are not counted.
pub(super) fn refused(step: &Step, code: &str, message: &str) -> Option<Still> {
    // What the run made stands, also where it could not be completed.
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
    Some(Still { path: step.path.clone(), kind: step.kind, action, id, why: Some(why) })
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
        // An import knows the hash of its archive, and that of the text.
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
        assert!(is_surely_done(&step(Write::Update), &ours));
        assert!(!is_surely_done(&step(Write::Update), &states(4, "theirs", false)));
        assert!(is_surely_done(&step(Write::Trash), &states(3, "old", true)));
        // It could be anybody's.
        let unknown = Step { hash: String::new(), ..step(Write::Revert { to: 1 }) };
        assert!(!is_surely_done(&unknown, &ours));
        let known = Step { text_hash: Some("new".into()), ..unknown };
        assert!(is_surely_done(&known, &ours) && !is_surely_done(&known, &states(4, "theirs", false)));
        let record = Step { kind: Kind::Record, ..step(Write::Update) };
        assert!(!is_surely_done(&record, &ours));
    }

    #[test]
    fn what_arrives_late_is_known_by_its_effect() {
        let ours = states(4, "new", false);
        assert!(has_arrived(&step(Write::Update), &ours));
        assert!(!has_arrived(&step(Write::Update), &states(4, "theirs", false)));
        let unknown = Step { hash: String::new(), ..step(Write::Revert { to: 1 }) };
        assert!(!has_arrived(&unknown, &ours));
        let asset = Step { kind: Kind::Asset, ..step(Write::Trash) };
        assert!(has_arrived(&asset, &States::new()) && !has_arrived(&asset, &ours));
        let create = step(Write::Create { name: "a".into(), folder: None, file_type: None });
        assert!(!has_arrived(&create, &ours));
    }

    #[test]
    fn only_what_an_edit_cannot_look_like_stays_open() {
        let create = || Write::Create { name: "a".into(), folder: None, file_type: None };
        let of = |kind, write| Step { kind, ..step(write) };
        for kind in [Kind::File, Kind::Folder, Kind::Asset, Kind::Database, Kind::Record] {
            assert!(can_arrive(&of(kind, create())) && can_arrive(&of(kind, Write::Trash)), "{kind:?}");
        }
        for write in [Write::Update, Write::Revert { to: 1 }] {
            assert!(can_arrive(&of(Kind::File, write.clone())), "its hash tells it apart: {write:?}");
            assert!(!can_arrive(&of(Kind::Record, write.clone())), "{write:?}");
        }
        assert!(!can_arrive(&of(Kind::Record, Write::Relate)));
        assert!(!can_arrive(&of(Kind::Database, Write::Update)));
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
        let stills =
            [Still { path: "x".into(), kind: Kind::File, action: SyncAction::Failed, id: None, why: None }];
        let counters = tally(&[step(Write::Update)], &stills);
        assert_eq!((counters.updated, counters.processed), (1, 2));
    }
}
