//! A tree that follows is the one that would be drawn up anew.

use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use proptest::prelude::*;

use super::*;

#[test]
fn siblings_are_told_apart_and_the_oldest_keeps_its_name() {
    let mut base = tree([
        folder(1, None, "Notes"),
        file(9, Some(1), "Plan.md", 1),
        file(2, Some(1), "Plan.md", 2),
        file(3, Some(1), "Plan.md", 3),
        file(4, Some(1), "other", 4),
    ]);
    let named = |end: &[&str]| end.iter().map(|name| format!("/files/Notes/{name}")).collect::<Vec<_>>();
    let before = named(&["Plan.md", "Plan~00000001.md", "Plan~00000003.md", "other"]);
    assert_eq!(paths(&base, "/files/Notes"), before);
    base.apply(&rows([file(20, Some(1), "Plan.md", 5)]), 2).unwrap();
    let with_newer = named(&["Plan.md", "Plan~00000001.md", "Plan~00000003.md", "Plan~00000004.md", "other"]);
    assert_eq!(paths(&base, "/files/Notes"), with_newer);
    let mut gone = rows([]);
    gone.0.insert(id(2), None);
    base.apply(&gone, 3).unwrap();
    let heir = named(&["Plan.md", "Plan~00000001.md", "Plan~00000004.md", "other"]);
    assert_eq!(paths(&base, "/files/Notes"), heir);
    assert_eq!(base.slot(base.children(base.node(id(1)).unwrap())[0]).unwrap().id, id(3));
}

#[test]
fn what_does_not_fit_together_is_said() {
    assert!(of(&rows([file(1, Some(7), "a", 1)]), 1).is_err());
    let mut base = tree([folder(1, None, "a"), file(2, Some(1), "b", 1)]);
    let mut gone = rows([]);
    gone.0.insert(id(1), None);
    assert!(base.apply(&gone, 2).is_err());
}

#[test]
fn a_database_takes_its_records_along() {
    let mut base = tree([database(1, None, "d"), record(2, 1, "r", None), record(3, 1, "_schema", None)]);
    let all =
        ["/databases/d", "/databases/d/_schema.md", "/databases/d/_schema~00000003.md", "/databases/d/r.md"];
    assert_eq!(paths(&base, "/databases"), all);
    let mut gone = rows([record(4, 1, "late", None)]);
    gone.0.insert(id(1), None);
    base.apply(&gone, 2).unwrap();
    assert_eq!((paths(&base, "/databases"), base.node(id(2)), base.counts.records), (Vec::new(), None, 0));
    base.apply(&rows([database(1, None, "d"), record(2, 1, "r", None)]), 3).unwrap();
    assert_eq!(paths(&base, "/databases").len(), 3);
}

#[test]
fn only_what_shows_elsewhere_changes_the_shape() {
    let mut base = tree([
        folder(1, None, "a"),
        file(2, Some(1), "b", 1),
        database(3, None, "d"),
        record(4, 3, "r", None),
    ]);
    let shape = base.shape;
    base.apply(&rows([file(2, Some(1), "b", 7), record(4, 3, "r", Some(2))]), 2).unwrap();
    assert_eq!(base.shape, shape);
    for change in
        [file(2, None, "b", 7), file(2, None, "c", 7), database(3, Some(1), "d"), memory(5, "m", &[])]
    {
        let before = base.shape;
        base.apply(&rows([change]), 3).unwrap();
        assert_ne!(base.shape, before);
    }
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Folder(u128, usize, String),
    File(u128, usize, String, u8),
    Database(u128, usize, String),
    Record(u128, usize, String),
    Memory(u128, u8),
    Rename(usize, String),
    Move(usize, usize),
    Edit(usize, u8),
    Drop(usize),
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just("a.md".to_owned()),
        3 => Just("a".to_owned()),
        2 => "[ab](\\.md)?",
        1 => "a~0000000[0-7](\\.md)?",
        1 => "a~000000000000000000000000000000[0-7][0-7](\\.md)?",
        1 => Just("_schema".to_owned()),
    ]
}

/// Numbers in no order, so that what comes later may be older.
pub(super) fn step() -> impl Strategy<Value = Step> {
    let number = || 1..400_u128;
    prop_oneof![
        2 => (number(), 0..9_usize, name()).prop_map(|(n, to, name)| Step::Folder(n, to, name)),
        8 => (number(), 0..9_usize, name(), any::<u8>()).prop_map(|(n, to, name, seed)| Step::File(n, to, name, seed)),
        1 => (number(), 0..9_usize, name()).prop_map(|(n, to, name)| Step::Database(n, to, name)),
        8 => (number(), 0..3_usize, name()).prop_map(|(n, to, name)| Step::Record(n, to, name)),
        1 => (number(), any::<u8>()).prop_map(|(n, seed)| Step::Memory(n, seed)),
        4 => (any::<usize>(), name()).prop_map(|(at, name)| Step::Rename(at, name)),
        4 => (any::<usize>(), 0..9_usize).prop_map(|(at, to)| Step::Move(at, to)),
        2 => (any::<usize>(), any::<u8>()).prop_map(|(at, seed)| Step::Edit(at, seed)),
        5 => any::<usize>().prop_map(Step::Drop),
    ]
}

/// The rows that live.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) live: BTreeMap<Uuid, Row>,
    /// No id is given out twice.
    used: HashSet<Uuid>,
    changes: Rows,
}

impl Model {
    fn put(&mut self, row: Row) {
        self.used.insert(row.id);
        self.changes.0.insert(row.id, Some(row.clone()));
        self.live.insert(row.id, row);
    }

    fn remove(&mut self, id: Uuid) {
        self.changes.0.insert(id, None);
        self.live.remove(&id);
    }

    pub(super) fn all(&self, is_one: fn(&What) -> bool) -> Vec<Uuid> {
        self.live.values().filter(|row| is_one(&row.what)).map(|row| row.id).collect()
    }

    /// A folder, or the root.
    fn folder(&self, at: usize) -> Option<Uuid> {
        self.all(|what| matches!(what, What::Folder)).get(at).copied()
    }

    pub(super) fn is_below(&self, mut place: Option<Uuid>, above: Uuid) -> bool {
        while let Some(folder) = place {
            if folder == above {
                return true;
            }
            place = match self.live[&folder].place {
                Place::Folder(parent) => parent,
                Place::Database(_) | Place::Databases | Place::Memories | Place::Sources(_) => None,
            };
        }
        false
    }

    /// A folder goes with all that is in it; its databases go without a word on their records.
    fn drop(&mut self, id: Uuid) {
        let held: Vec<Uuid> = self
            .live
            .values()
            .filter(|row| match &row.what {
                What::Database { folder, .. } => *folder == Some(id),
                What::Folder
                | What::File(_)
                | What::Record { .. }
                | What::Memory(_)
                | What::SourceFolder(_)
                | What::Document(_) => row.place == Place::Folder(Some(id)),
            })
            .map(|row| row.id)
            .collect();
        for held in held {
            self.drop(held);
        }
        self.live.retain(|_, row| row.place != Place::Database(id));
        self.remove(id);
    }

    pub(super) fn carry_out(&mut self, step: &Step) {
        let is_taken = |number: &u128| self.used.contains(&id(*number));
        match step {
            Step::Folder(number, to, name) if !is_taken(number) => {
                let place = Place::Folder(self.folder(*to));
                self.put(Row { place, ..folder(*number, None, name) });
            }
            Step::File(number, to, name, seed) if !is_taken(number) => {
                let place = Place::Folder(self.folder(*to));
                self.put(Row { place, ..file(*number, None, name, *seed) });
            }
            Step::Database(number, to, name) if !is_taken(number) => {
                let mut row = database(*number, None, name);
                row.what = What::Database { folder: self.folder(*to), description: None, schema: text(1) };
                self.put(row);
            }
            Step::Record(number, to, name) if !is_taken(number) => {
                let databases = self.all(|what| matches!(what, What::Database { .. }));
                if let Some(database) = databases.get(*to) {
                    self.put(Row { place: Place::Database(*database), ..record(*number, 0, name, None) });
                }
            }
            Step::Memory(number, seed) if !is_taken(number) => {
                self.put(memory(*number, &format!("m{number}"), &[(MemberKind::File, u128::from(*seed))]));
            }
            Step::Rename(at, name) => self.change(*at, |row| match row.what {
                What::Record { .. } => row.segment = names::of_title(name).into(),
                What::Memory(_) => {}
                What::Folder
                | What::File(_)
                | What::Database { .. }
                | What::SourceFolder(_)
                | What::Document(_) => row.segment = names::of_name(name).into(),
            }),
            Step::Edit(at, seed) => self.change(*at, |row| {
                row.updated += 1;
                if let What::File(found) = &mut row.what {
                    *found = text(*seed);
                }
            }),
            Step::Move(at, to) => {
                let to = self.folder(*to);
                let ids: Vec<Uuid> = self.live.keys().copied().collect();
                let moved = ids.get(at % ids.len().max(1)).copied();
                let Some(moved) = moved.filter(|moved| !self.is_below(to, *moved)) else { return };
                self.change(*at, |row| match &mut row.what {
                    What::Folder | What::File(_) => row.place = Place::Folder(to),
                    What::Database { folder, .. } => *folder = to,
                    What::Record { .. } | What::Memory(_) | What::SourceFolder(_) | What::Document(_) => {}
                });
                assert!(self.live.contains_key(&moved));
            }
            Step::Drop(at) => {
                let ids: Vec<Uuid> = self.live.keys().copied().collect();
                if let Some(gone) = ids.get(at % ids.len().max(1)) {
                    self.drop(*gone);
                }
            }
            // The number has been given out.
            Step::Folder(..) | Step::File(..) | Step::Database(..) | Step::Record(..) | Step::Memory(..) => {}
        }
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut Row)) {
        let ids: Vec<Uuid> = self.live.keys().copied().collect();
        let Some(mut row) = ids.get(at % ids.len().max(1)).and_then(|id| self.live.get(id)).cloned() else {
            return;
        };
        change(&mut row);
        self.put(row);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn following_is_drawing_up_anew(
        start in prop::collection::vec(step(), 0..120),
        parts in prop::collection::vec(prop::collection::vec(step(), 1..5), 0..12),
    ) {
        let mut model = Model::default();
        start.iter().for_each(|step| model.carry_out(step));
        std::mem::take(&mut model.changes);
        let mut base = tree(model.live.values().cloned());
        for (position, part) in (2..).zip(&parts) {
            part.iter().for_each(|step| model.carry_out(step));
            let before = base.clone();
            let walked = walk(&before);
            base.apply(&std::mem::take(&mut model.changes), position).unwrap();
            prop_assert_eq!(walk(&before), walked, "a tree in use has changed");
            let anew = tree(model.live.values().cloned());
            let (found, expected) = (walk(&base), walk(&anew));
            let differs = found.iter().zip(&expected).find(|(one, other)| one != other);
            prop_assert_eq!(differs, None);
            prop_assert_eq!(found.len(), expected.len());
            prop_assert_eq!(base.counts, anew.counts);
            let used = base.slots.len() - base.free.len();
            prop_assert_eq!(used, anew.slots.len());
            for id in model.live.keys() {
                prop_assert_eq!(base.entity(*id).map(|(_, slot)| slot.id), Some(*id));
            }
        }
    }
}

/// Figures, not a test: `cargo test -p cairn-retrieval --release -- --ignored --nocapture renewal_cost`.
#[test]
#[ignore = "prints figures"]
fn renewal_cost() {
    for files in [5_000_u128, 100_000] {
        let folders = (0..files / 50).map(|number| folder(1_000_000 + number, None, &format!("f{number}")));
        let all = (0..files)
            .map(|number| file(number + 1, Some(1_000_000 + number / 50), &format!("{number}.md"), 1));
        let started = Instant::now();
        let mut base = tree(folders.chain(all));
        let built = started.elapsed();
        let held = base.clone();
        let started = Instant::now();
        for round in 0..100_u8 {
            let edited = file(
                u128::from(round) * 37 + 1,
                Some(1_000_000 + u128::from(round) * 37 / 50),
                &format!("{}.md", u128::from(round) * 37),
                round,
            );
            let mut copy = base.clone();
            copy.apply(&rows([edited]), 2).unwrap();
            base = copy;
        }
        let edit = started.elapsed() / 100;
        let started = Instant::now();
        for round in 0..100_u128 {
            let mut copy = base.clone();
            copy.apply(&rows([file(10_000_000 + round, Some(1_000_000), "new.md", 1)]), 2).unwrap();
            base = copy;
        }
        println!(
            "{files} files: built {built:?}, an edit {edit:?}, a new file {:?}, {} bytes",
            started.elapsed() / 100,
            base.bytes()
        );
        drop(held);
    }
}
