//! Pages and groups from columns against those from the engine: random databases that change, and random questions.

use cairn_proto::domain::{DateUnit, GroupOrder, SortOrder};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::tables::{Table, tree};
use super::*;
use crate::databases::Databases;
use crate::databases::properties::{OptionDraft, PropertyPatch, SettingsDraft};
use crate::databases::views::SortDraft;
use crate::model::PropertyType;
use crate::records::{RecordGroupsRequest, RecordListRequest, Records};

const STEPS: usize = 60;
const QUESTIONS: usize = 6;
const FIELDS: [&str; 9] = ["Name", "Points", "Done", "Due", "Link", "File", "Status", "Tags", "Late"];
const NAMES: [&str; 9] =
    ["Ada", "ada b", "Åse", "100%_done", "x_y", "STRASSE 7", "straße", "\\ zz 7", "2026 Ada\nx"];
const DAYS: [&str; 5] =
    ["2026-03-01", "2026-03-01T10:00:00Z", "2026-03-02", "1969-12-31", "2026-11-20T00:00:00+02:00"];
const LINKS: [&str; 3] = ["https://cairn.example/x_y", "https://cairn.example/ADA", "ftp://b"];
const OPTIONS: [&str; 4] = ["Todo", "Doing", "Finished", "2026"];
const WORDS: [&str; 16] = [
    "ADA", "ada b", "å", "%", "_", "7 ss", "todo", "ing", "1.5", "\\", "q", "none", "2026", "-03-01t",
    "https", "-1",
];

/// Something that is done between questions.
#[derive(Debug, Clone)]
enum Step {
    Make(Value),
    Change(usize, Value),
    Delete(usize),
    Restore(usize),
    /// Options of a select become these, in this order.
    Options {
        field: &'static str,
        kept: Vec<&'static str>,
    },
    AddField,
    DropField,
    TrashTable,
    MakeFile,
}

fn values() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        6 => prop::sample::select(NAMES.to_vec()).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => (196_usize..204).prop_map(|length| Value::from(format!("{}q", "å".repeat(length)))),
    ];
    let points = prop_oneof![
        4 => (-3..9_i32).prop_map(|n| json!(f64::from(n) / 2.0)),
        1 => (-3..9_i32).prop_map(|n| json!(n)),
        1 => Just(json!(-0.0)),
        1 => Just(Value::Null)
    ];
    let tags = prop::sample::subsequence(OPTIONS[..3].to_vec(), 0..=3).prop_shuffle();
    let due = prop::option::of(prop::sample::select(DAYS.to_vec()));
    let link = prop::option::of(prop::sample::select(LINKS.to_vec()));
    let file = prop::option::of(0..3_usize);
    let status = prop::option::of(prop::sample::select(OPTIONS[..3].to_vec()));
    (name, points, prop::option::of(any::<bool>()), status, tags, due, link, file).prop_map(
        |(name, points, done, status, tags, due, link, file)| {
            json!({"Name": name, "Points": points, "Done": done, "Status": status, "Tags": tags, "Due": due,
                "Link": link, "File": file})
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let some = any::<usize>();
    let kept = prop::sample::subsequence(OPTIONS.to_vec(), 1..=4).prop_shuffle();
    prop_oneof![
        14 => values().prop_map(Step::Make),
        6 => (some, values()).prop_map(|(which, values)| Step::Change(which, values)),
        3 => some.prop_map(Step::Delete),
        2 => some.prop_map(Step::Restore),
        1 => (prop::sample::select(vec!["Status", "Tags"]), kept)
            .prop_map(|(field, kept)| Step::Options { field, kept }),
        1 => Just(Step::AddField),
        1 => Just(Step::DropField),
        1 => Just(Step::TrashTable),
        1 => Just(Step::MakeFile),
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    let is = |field: &'static str, operator: &'static str, value: Value| json!({"fieldId": field, "operator": operator, "value": value});
    let one_of = |all: &[&'static str]| prop::sample::select(all.to_vec());
    let number = || (-3..9_i32).prop_map(|n| json!(f64::from(n) / 2.0));
    prop_oneof![
        (one_of(&NAMES), one_of(&["equals", "not_equals", "contains", "in"]))
            .prop_map(move |(text, operator)| is("Name", operator, text.into())),
        (196_usize..204, one_of(&["equals", "not_equals"])).prop_map(move |(length, operator)| is(
            "Name",
            operator,
            format!("{}q", "å".repeat(length)).into()
        )),
        one_of(&["a", "%", "_", "\\", "ss", "q", ""]).prop_map(move |part| is(
            "Name",
            "contains",
            part.into()
        )),
        (number(), one_of(&["equals", "not_equals", "gt", "gte", "lt", "lte"]))
            .prop_map(move |(number, operator)| is("Points", operator, number)),
        prop::collection::vec(number(), 1..4).prop_map(move |numbers| is("Points", "in", numbers.into())),
        (any::<bool>(), one_of(&["equals", "not_equals"])).prop_map(move |(done, operator)| is(
            "Done",
            operator,
            done.into()
        )),
        (one_of(&DAYS), one_of(&["equals", "not_equals", "before", "after", "gte", "lte"]))
            .prop_map(move |(day, operator)| is("Due", operator, day.into())),
        (one_of(&LINKS), one_of(&["equals", "contains", "not_equals"])).prop_map(move |(link, operator)| is(
            "Link",
            operator,
            link.into()
        )),
        (0..3_usize, one_of(&["equals", "not_equals", "contains"])).prop_map(move |(file, operator)| is(
            "File",
            operator,
            file.into()
        )),
        (one_of(&["do", "in", "zz"]), one_of(&["Status", "Tags"])).prop_map(move |(part, field)| is(
            field,
            "contains",
            part.into()
        )),
        (prop::collection::vec(one_of(&OPTIONS), 1..3), one_of(&["Status", "Tags"]))
            .prop_map(move |(options, field)| is(field, "in", json!(options))),
        (one_of(&OPTIONS), one_of(&["Status", "Tags"])).prop_map(move |(option, field)| is(
            field,
            "not_equals",
            option.into()
        )),
        (one_of(&FIELDS), one_of(&["is_empty", "is_not_empty"]))
            .prop_map(|(field, operator)| json!({"fieldId": field, "operator": operator})),
    ]
}

fn filter() -> impl Strategy<Value = Value> {
    let tree = leaf().prop_recursive(3, 10, 3, |inner| {
        (any::<bool>(), prop::collection::vec(inner, 0..4)).prop_map(|(is_all, branches)| {
            if is_all { json!({"and": branches}) } else { json!({"or": branches}) }
        })
    });
    prop_oneof![1 => Just(json!({"and": []})), 4 => tree]
}

#[derive(Debug, Clone)]
struct Question {
    filter: Value,
    sorts: Vec<(&'static str, bool)>,
    search: &'static str,
    limit: u32,
    offset: u64,
    wanted: usize,
    is_scoped: bool,
    groups: Groups,
}

#[derive(Debug, Clone)]
struct Groups {
    by: &'static str,
    date_unit: DateUnit,
    order: Option<GroupOrder>,
    summarize: Vec<&'static str>,
}

fn groups() -> impl Strategy<Value = Groups> {
    let unit = prop::sample::select(DateUnit::ALL.to_vec());
    let order = prop::option::of(prop::sample::select(GroupOrder::ALL.to_vec()));
    let summarize = prop::sample::subsequence(vec!["Points", "Due"], 0..=2);
    (prop::sample::select(FIELDS.to_vec()), unit, order, summarize)
        .prop_map(|(by, date_unit, order, summarize)| Groups { by, date_unit, order, summarize })
}

fn question() -> impl Strategy<Value = Question> {
    let sorts = prop::sample::subsequence(FIELDS.to_vec(), 0..=3).prop_shuffle();
    let sorts = (sorts, prop::collection::vec(any::<bool>(), 3))
        .prop_map(|(fields, down)| fields.into_iter().zip(down).collect::<Vec<_>>());
    let search = prop_oneof![2 => Just(""), 3 => prop::sample::select(WORDS.to_vec())];
    (filter(), sorts, search, 1..12_u32, 0..30_u64, any::<usize>(), any::<bool>(), groups()).prop_map(
        |(filter, sorts, search, limit, offset, wanted, is_scoped, groups)| Question {
            filter,
            sorts,
            search,
            limit,
            offset,
            wanted,
            is_scoped,
            groups,
        },
    )
}

/// A database, by columns and by the engine alone.
struct Both {
    table: Table,
    engine: Records,
    files: Vec<String>,
    records: Vec<String>,
    trashed: Vec<String>,
    folder: FolderId,
}

impl Both {
    async fn new(bench: &Bench) -> Self {
        let number = bench.changes().await.len();
        let folder = bench.folder(&format!("Seen {number}"), None).await.id;
        let hidden = bench.folder(&format!("Hidden {number}"), None).await.id;
        let mut files = Vec::new();
        for (name, at) in [("a.md", folder), ("b.md", folder), ("c.md", hidden)] {
            files.push(bench.file(name, Some(at)).await.id.to_string());
        }
        let table = Table::new(bench, Some(folder)).await;
        let engine = Records::new(Context { columns: SnapshotCache::new(0), ..bench.context.clone() });
        Self { table, engine, files, records: Vec::new(), trashed: Vec::new(), folder }
    }

    /// With the id of a file in the place of its number.
    fn filed(&self, mut value: Value) -> Value {
        let id = |number: &Value| number.as_u64().map(|number| json!(self.files[number as usize]));
        if let Some(values) = value.as_object_mut().filter(|object| object.contains_key("Name")) {
            values.retain(|field, _| self.has(field));
        }
        if let Some(file) = value.get("File").and_then(id) {
            value["File"] = file;
        }
        if value["fieldId"] == "File"
            && let Some(file) = value.get("value").and_then(id)
        {
            value["value"] = file;
        }
        for branches in ["and", "or"] {
            if let Some(list) = value.get_mut(branches).and_then(Value::as_array_mut) {
                *list = std::mem::take(list).into_iter().map(|one| self.filed(one)).collect();
            }
        }
        value
    }

    /// Options and fields that are gone are refused, which changes nothing.
    async fn take(&mut self, bench: &Bench, step: Step) {
        let (caller, id) = (bench.caller.clone(), self.table.id());
        let of = |list: &[String], which: usize| list.get(which % list.len().max(1)).cloned();
        match step {
            Step::Make(values) => {
                let draft = crate::records::RecordDraft {
                    values: self.filed(values).to_string(),
                    allow_names: true,
                    ..Default::default()
                };
                if let Ok(made) = self.table.records.create(&caller, &id, draft).await {
                    self.records.push(made.item.record.id.to_string());
                }
            }
            Step::Change(which, values) => {
                if let Some(record) = of(&self.records, which) {
                    let _refused = self.table.change(&record, self.filed(values)).await;
                }
            }
            Step::Delete(which) => {
                if let Some(record) = of(&self.records, which) {
                    self.table.records.delete(&caller, &id, &record).await.unwrap();
                    self.records.retain(|one| *one != record);
                    self.trashed.push(record);
                }
            }
            Step::Restore(which) => {
                if let Some(record) = of(&self.trashed, which) {
                    self.table.records.restore(&caller, &id, &record).await.unwrap();
                    self.trashed.retain(|one| *one != record);
                    self.records.push(record);
                }
            }
            Step::Options { field, kept } => {
                let options = kept
                    .iter()
                    .map(|name| OptionDraft { name: (*name).to_owned(), ..OptionDraft::default() });
                let config = SettingsDraft { options: Some(options.collect()), ..SettingsDraft::default() };
                let patch = PropertyPatch { config: Some(config), ..PropertyPatch::default() };
                let field = self.table.field(field);
                self.table.databases.update_property(&caller, &id, &field, patch).await.unwrap();
            }
            Step::AddField => {
                if self.has("Late") {
                    let draft = json!({"Late": "ada late"});
                    if let Some(record) = self.records.first() {
                        self.table.change(record, draft).await.unwrap();
                    }
                } else {
                    self.table.add("Late", PropertyType::Text, SettingsDraft::default()).await;
                }
            }
            Step::DropField => {
                for field in ["Late", "Link"] {
                    if self.has(field) {
                        let field = self.table.field(field);
                        self.table.databases.delete_property(&caller, &id, &field).await.unwrap();
                        break;
                    }
                }
            }
            Step::TrashTable => {
                self.table.databases.delete(&caller, &id).await.unwrap();
                Databases::new(bench.context.clone()).restore(&caller, &id).await.unwrap();
            }
            Step::MakeFile => {
                bench.file(&format!("{}.md", bench.changes().await.len()), None).await;
            }
        }
        self.table.reload().await;
    }

    fn has(&self, field: &str) -> bool {
        self.table.database.properties.iter().any(|property| property.name == field)
    }

    async fn ask(&self, bench: &Bench, asked: Question) {
        let sorts = asked.sorts.iter().map(|(field, is_down)| SortDraft {
            field_id: (*field).to_owned(),
            order: if *is_down { SortOrder::Desc } else { SortOrder::Asc },
        });
        let ask = RecordListRequest {
            filters: vec![tree(&self.filed(asked.filter.clone()))],
            sorts: sorts.collect(),
            search: asked.search.to_owned(),
            limit: asked.limit,
            offset: asked.offset,
            allow_names: true,
            ..RecordListRequest::default()
        };
        let wanted = self.records.iter().chain(&self.trashed).nth(asked.wanted % 12);
        let around = RecordListRequest { record_id: wanted.cloned(), ..ask.clone() };
        let caller = if asked.is_scoped { bench.scoped(&[self.folder]) } else { bench.caller.clone() };
        let id = self.table.id();
        for ask in [ask, around] {
            let by_engine = self.engine.list(&caller, &id, ask.clone()).await.map_err(|e| e.to_string());
            let by_columns = self.table.records.list(&caller, &id, ask).await.map_err(|e| e.to_string());
            assert_eq!(by_columns, by_engine, "{} {asked:?}", bench.engine());
        }
        self.ask_groups(bench, &caller, &asked).await;
    }

    async fn ask_groups(&self, bench: &Bench, caller: &Caller, asked: &Question) {
        let ask = RecordGroupsRequest {
            filters: vec![tree(&self.filed(asked.filter.clone()))],
            search: asked.search.to_owned(),
            view_id: None,
            group_by: asked.groups.by.to_owned(),
            date_unit: asked.groups.date_unit,
            order: asked.groups.order,
            summarize: asked.groups.summarize.iter().map(|field| (*field).to_owned()).collect(),
            allow_names: true,
        };
        let id = self.table.id();
        let by_engine = self.engine.groups(caller, &id, ask.clone()).await.map_err(|e| e.to_string());
        let by_columns = self.table.records.groups(caller, &id, ask).await.map_err(|e| e.to_string());
        assert_eq!(by_columns, by_engine, "{} {asked:?}", bench.engine());
    }
}

#[test]
fn columns_answer_what_the_engine_answers() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for bench in runtime.block_on(benches()) {
        let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
        for _ in 0..2 {
            let mut both = runtime.block_on(Both::new(&bench));
            for _ in 0..STEPS {
                let taken = step().new_tree(&mut runner).unwrap().current();
                runtime.block_on(both.take(&bench, taken));
                for _ in 0..QUESTIONS {
                    let asked = question().new_tree(&mut runner).unwrap().current();
                    runtime.block_on(both.ask(&bench, asked));
                }
            }
            assert!(bench.context.columns.len() > 0, "columns were never asked");
        }
    }
}
