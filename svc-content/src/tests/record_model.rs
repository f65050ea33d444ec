//! Random operations on folders, databases, records, memories and the trash, against a model that is too simple to be
//! wrong. `CAIRN_MODEL_ROUNDS` asks for more than the usual number of rounds, `CAIRN_MODEL_SEED` for another beginning.
#![expect(clippy::wildcard_enum_match_arm, reason = "whatever else there is means the same here")]

mod apply;
mod compare;

use std::collections::BTreeMap;

use cairn_chassis::feed::Kind;
use cairn_proto::ids::{DatabaseId, MemberId, MemoryId, PropertyId, RecordId};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

use super::*;
use crate::model::Values;

/// Sequences of one round, on one storage for each engine.
const SEQUENCES: u32 = 25;
const ROUNDS: u64 = 4;
const STEPS: usize = 40;

/// What a value becomes.
#[derive(Debug, Clone)]
enum Given {
    Nothing,
    Text(u8),
    Number(i8),
    Fraction(i16),
    Options(Vec<usize>),
}

/// Items are named by their place among those that can be meant; what names none does nothing.
#[derive(Debug, Clone)]
enum Step {
    MakeFolder,
    DeleteFolder(usize),
    MakeTable { folder: usize },
    MoveTable { table: usize, folder: usize },
    DeleteTable(usize),
    RestoreTable(usize),
    PurgeTable(usize),
    AddField { table: usize, kind: usize },
    DeleteField { table: usize, field: usize },
    KeepOptions { table: usize, field: usize, kept: u8, is_reversed: bool },
    MakeRecord { table: usize, given: Vec<(usize, Given)> },
    ChangeRecord { record: usize, given: Vec<(usize, Given)> },
    BringBackVersion { record: usize, version: usize },
    DeleteRecord(usize),
    RestoreRecord(usize),
    PurgeRecord(usize),
    Restore(usize),
    Remove(usize),
    MakeMemory { name: usize, members: Vec<(usize, usize)> },
    NameMemory { memory: usize, name: usize },
    GiveSlug { memory: usize, name: usize },
    AddMembers { memory: usize, members: Vec<(usize, usize)> },
    MoveMember { memory: usize, member: usize, to: usize },
    RemoveMember { memory: usize, member: usize },
    DeleteMemory(usize),
}

fn given() -> impl Strategy<Value = Vec<(usize, Given)>> {
    let one = prop_oneof![
        1 => Just(Given::Nothing),
        2 => (0..4_u8).prop_map(Given::Text),
        3 => (-3..4_i8).prop_map(Given::Number),
        1 => any::<i16>().prop_map(Given::Fraction),
        3 => prop::collection::vec(0..4_usize, 0..4).prop_map(Given::Options),
    ];
    prop::collection::vec((0..5_usize, one), 0..4)
}

fn step() -> impl Strategy<Value = Step> {
    let place = || 0..6_usize;
    let members = || prop::collection::vec((0..3_usize, 0..6_usize), 0..3);
    prop_oneof![
        2 => Just(Step::MakeFolder),
        2 => place().prop_map(Step::DeleteFolder),
        4 => place().prop_map(|folder| Step::MakeTable { folder }),
        1 => (place(), place()).prop_map(|(table, folder)| Step::MoveTable { table, folder }),
        2 => place().prop_map(Step::DeleteTable),
        1 => place().prop_map(Step::RestoreTable),
        1 => place().prop_map(Step::PurgeTable),
        4 => (place(), 0..3_usize).prop_map(|(table, kind)| Step::AddField { table, kind }),
        1 => (place(), place()).prop_map(|(table, field)| Step::DeleteField { table, field }),
        2 => (place(), place(), any::<u8>(), any::<bool>())
            .prop_map(|(table, field, kept, is_reversed)| Step::KeepOptions { table, field, kept, is_reversed }),
        8 => (place(), given()).prop_map(|(table, given)| Step::MakeRecord { table, given }),
        6 => (place(), given()).prop_map(|(record, given)| Step::ChangeRecord { record, given }),
        2 => (place(), 0..4_usize).prop_map(|(record, version)| Step::BringBackVersion { record, version }),
        2 => place().prop_map(Step::DeleteRecord),
        1 => place().prop_map(Step::RestoreRecord),
        1 => place().prop_map(Step::PurgeRecord),
        4 => (0..4_usize).prop_map(Step::Restore),
        1 => (0..4_usize).prop_map(Step::Remove),
        2 => (0..3_usize, members()).prop_map(|(name, members)| Step::MakeMemory { name, members }),
        1 => (place(), 0..3_usize).prop_map(|(memory, name)| Step::NameMemory { memory, name }),
        1 => (place(), 0..3_usize).prop_map(|(memory, name)| Step::GiveSlug { memory, name }),
        2 => (place(), members()).prop_map(|(memory, members)| Step::AddMembers { memory, members }),
        2 => (place(), place(), place()).prop_map(|(memory, member, to)| Step::MoveMember { memory, member, to }),
        1 => (place(), place()).prop_map(|(memory, member)| Step::RemoveMember { memory, member }),
        1 => place().prop_map(Step::DeleteMemory),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldKind {
    Text,
    Number,
    Options,
}

#[derive(Debug, Clone)]
struct Field {
    id: PropertyId,
    kind: FieldKind,
    /// Id and name.
    options: Vec<(String, String)>,
}

#[derive(Debug)]
struct FolderModel {
    id: FolderId,
    /// The deletion that took it.
    deleted: Option<usize>,
}

#[derive(Debug)]
struct TableModel {
    id: DatabaseId,
    folder: Option<usize>,
    deleted: Option<usize>,
    /// The first titles the records.
    fields: Vec<Field>,
}

#[derive(Debug)]
struct RecordModel {
    id: RecordId,
    table: usize,
    deleted: Option<usize>,
    /// As they are kept; the last is what the record is now.
    versions: Vec<Values>,
}

#[derive(Debug)]
struct MemoryModel {
    id: MemoryId,
    name: usize,
    slug: String,
    version: u64,
    members: Vec<(MemberId, Kind, String)>,
}

/// Everything by the number that it was made with; what is gone is absent.
#[derive(Debug, Default)]
struct Model {
    folders: BTreeMap<usize, FolderModel>,
    tables: BTreeMap<usize, TableModel>,
    records: BTreeMap<usize, RecordModel>,
    memories: BTreeMap<usize, MemoryModel>,
    /// Those in trash.
    gone_memories: BTreeMap<usize, MemoryModel>,
    /// By the number of the deletion: what was deleted by itself.
    trash: BTreeMap<usize, (Kind, usize)>,
    made: usize,
}

fn nth<'a, T: 'a>(all: &'a BTreeMap<usize, T>, place: usize, is_meant: impl Fn(&T) -> bool) -> Option<usize> {
    all.iter().filter(|(_, one)| is_meant(one)).nth(place).map(|(number, _)| *number)
}

impl Model {
    fn number(&mut self) -> usize {
        self.made += 1;
        self.made
    }

    fn live_folder(&self, place: usize) -> Option<usize> {
        nth(&self.folders, place, |folder| folder.deleted.is_none())
    }

    fn live_table(&self, place: usize) -> Option<usize> {
        nth(&self.tables, place, |table| table.deleted.is_none())
    }

    fn is_live(&self, table: usize) -> bool {
        self.tables[&table].deleted.is_none()
    }

    /// A record of a live database, in trash or not.
    fn record(&self, place: usize, is_trashed: bool) -> Option<usize> {
        nth(&self.records, place, |record| {
            self.is_live(record.table) && record.deleted.is_some() == is_trashed
        })
    }

    fn folder_id(&self, folder: Option<usize>) -> Option<FolderId> {
        folder.map(|number| self.folders[&number].id)
    }

    fn item(&self, kind: Kind, number: usize) -> String {
        match kind {
            Kind::Folder => self.folders[&number].id.to_string(),
            Kind::Database => self.tables[&number].id.to_string(),
            Kind::Memory => self.gone_memories[&number].id.to_string(),
            _ => self.records[&number].id.to_string(),
        }
    }

    /// Whether the target of a member lives.
    fn lives(&self, kind: Kind, id: &str) -> bool {
        let is_it = |one: &dyn ToString, deleted: Option<usize>| one.to_string() == id && deleted.is_none();
        match kind {
            Kind::Folder => self.folders.values().any(|folder| is_it(&folder.id, folder.deleted)),
            _ => self.tables.values().any(|table| is_it(&table.id, table.deleted)),
        }
    }

    fn back_table(&mut self, number: usize) {
        let folder = self.tables[&number].folder;
        let folder =
            folder.filter(|folder| self.folders.get(folder).is_some_and(|one| one.deleted.is_none()));
        let table = self.tables.get_mut(&number).unwrap();
        table.deleted = None;
        table.folder = folder;
        self.trash.retain(|_, item| *item != (Kind::Database, number));
    }

    /// Every record that loses a value with the schema, live or in trash, has one more version.
    fn lose(&mut self, table: usize, take: impl Fn(&mut Values) -> bool) {
        for record in self.records.values_mut().filter(|record| record.table == table) {
            let mut after = record.versions.last().unwrap().clone();
            if take(&mut after) {
                record.versions.push(after);
            }
        }
    }

    fn drop_table(&mut self, number: usize) {
        self.tables.remove(&number);
        self.records.retain(|_, record| record.table != number);
        let records = &self.records;
        self.trash.retain(|_, item| match item {
            (Kind::Record, record) => records.contains_key(record),
            other => *other != (Kind::Database, number),
        });
    }

    fn drop_folder(&mut self, number: usize, deletion: usize) {
        let taken: Vec<usize> = self
            .tables
            .iter()
            .filter(|(_, table)| table.deleted == Some(deletion))
            .map(|(n, _)| *n)
            .collect();
        for table in taken {
            self.drop_table(table);
        }
        self.folders.remove(&number);
        for table in self.tables.values_mut() {
            table.folder = table.folder.filter(|folder| *folder != number);
        }
    }

    /// The lowest slug of a name that no memory has.
    fn free_slug(&self, name: &str) -> String {
        let is_free = |slug: &String| self.memories.values().all(|memory| memory.slug != *slug);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap()
    }
}

const NAMES: [&str; 3] = ["alpha", "beta", "beta-2"];

/// What a caller sends for a value, and what is kept of it, if it fits the field.
fn sent(field: &Field, given: &Given) -> Option<(Value, Option<Value>)> {
    match (field.kind, given) {
        (_, Given::Nothing) => Some((Value::Null, None)),
        (FieldKind::Text, Given::Text(text)) => {
            let value = Value::from(format!("Text {text}"));
            Some((value.clone(), Some(value)))
        }
        (FieldKind::Number, Given::Number(number)) => {
            Some((Value::from(*number), Some(Value::from(*number))))
        }
        (FieldKind::Number, Given::Fraction(number)) => {
            let value = Value::from(f64::from(*number) / 7.0);
            Some((value.clone(), Some(value)))
        }
        (FieldKind::Options, Given::Options(places)) if !field.options.is_empty() => {
            let chosen = places.iter().map(|place| &field.options[place % field.options.len()]);
            let names: Vec<&String> = chosen.clone().map(|(_, name)| name).collect();
            let mut ids: Vec<&String> = Vec::new();
            for (id, _) in chosen {
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
            let kept = (!ids.is_empty()).then(|| Value::from_iter(ids.into_iter().map(String::as_str)));
            Some((Value::from_iter(names.into_iter().map(String::as_str)), kept))
        }
        _ => None,
    }
}

async fn run(bench: &Bench, caller: &Caller, steps: &[Step]) {
    let mut model = Model::default();
    for step in steps {
        apply::apply(bench, caller, &mut model, step).await;
    }
    compare::compare(bench, caller, &model).await;
    assert_eq!(bench.wrong().await, [], "{}", bench.engine());
}

fn asked_for(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
fn databases_and_memories_are_what_their_operations_made() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let first = asked_for("CAIRN_MODEL_SEED", 1);
    for seed in first..first + asked_for("CAIRN_MODEL_ROUNDS", ROUNDS) {
        for bench in runtime.block_on(benches()) {
            let workspaces = AtomicU64::new(1_000);
            let config = Config { cases: SEQUENCES, failure_persistence: None, ..Config::default() };
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&seed.to_le_bytes());
            let mut runner =
                TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
            let result = runner.run(&prop::collection::vec(step(), 0..STEPS), |steps| {
                let fresh = caller(u128::from(workspaces.fetch_add(1, Ordering::Relaxed)));
                runtime.block_on(run(&bench, &fresh, &steps));
                Ok(())
            });
            if let Err(error) = result {
                panic!("{} with CAIRN_MODEL_SEED={seed}: {error}", bench.engine());
            }
        }
    }
}
