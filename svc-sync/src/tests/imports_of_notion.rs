//! Imports of Notion's exports, over a real svc-content.

use cairn_proto::content::v1::PropertyType::{Number, Relation, Select, Text};
use cairn_proto::content::v1::database_service_client::DatabaseServiceClient;
use cairn_proto::content::v1::record_service_client::RecordServiceClient;
use cairn_proto::content::v1::{Database, Record};
use cairn_proto::domain::ImportProvider;

use super::imports::{archive, draft_of};
use super::*;

const TASKS: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const PEOPLE: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const ROW: &str = "cccccccccccccccccccccccccccccccc";
const ADA: &str = "dddddddddddddddddddddddddddddddd";
const HOME: &str = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";

fn export(state: &str) -> Vec<u8> {
    let tasks = format!(
        "Task,State,Points,Who\nWrite,{state},3,Ada (People%20{PEOPLE}/Ada%20{ADA}.md)\nRead,Open,5,\nRest,{state},8,\n"
    );
    let page = format!("# Write\n\nState: {state}\nPoints: 3\n\nThe text of it.\n");
    let people = "Name,Age\nAda,36\nBob,\n";
    let home =
        format!("# Home\n\n[Tasks](Tasks%20{TASKS}.csv) and [Write](Tasks%20{TASKS}/Write%20{ROW}.md)\n");
    archive(&[
        (&format!("Home {HOME}.md"), home.as_bytes()),
        (&format!("Tasks {TASKS}_all.csv"), tasks.as_bytes()),
        (&format!("Tasks {TASKS}/Write {ROW}.md"), page.as_bytes()),
        (&format!("People {PEOPLE}_all.csv"), people.as_bytes()),
        (&format!("People {PEOPLE}/Ada {ADA}.md"), b"# Ada\n\nShe wrote notes.\n"),
    ])
}

impl Bench {
    pub(super) async fn databases(&self) -> Vec<Database> {
        let mut client = DatabaseServiceClient::new(self.content.clone());
        let request = self.request(content::ListDatabasesRequest::default());
        client.list_databases(request).await.unwrap().into_inner().databases
    }

    pub(super) async fn records_of(&self, database: &Database) -> Vec<Record> {
        let mut client = RecordServiceClient::new(self.content.clone());
        let database_id = database.id.clone();
        let request =
            self.request(content::ListRecordsRequest { database_id, limit: 200, ..Default::default() });
        client.list_records(request).await.unwrap().into_inner().records
    }

    pub(super) async fn values(
        &self,
        database: &Database,
        title: &str,
    ) -> BTreeMap<String, serde_json::Value> {
        let records = self.records_of(database).await;
        let record = records.into_iter().find(|record| record.title == title).unwrap();
        let values: BTreeMap<String, serde_json::Value> = serde_json::from_str(&record.values_json).unwrap();
        let name = |id: &str| database.properties.iter().find(|one| one.id == id).unwrap().name.clone();
        values.into_iter().map(|(id, value)| (name(&id), value)).collect()
    }
}

fn named<'a>(databases: &'a [Database], name: &str) -> &'a Database {
    databases.iter().find(|database| database.name == name).unwrap()
}

#[tokio::test]
async fn an_export_becomes_pages_and_related_databases_and_goes_away_again() {
    for bench in benches().await {
        let done = bench.import(draft_of(ImportProvider::NotionZip), &export("Open")).await;
        assert_eq!(done.run.error, None, "{}", bench.engine);
        let report = bench.report(&done).await;
        assert_eq!(done.run.counters.processed, done.run.total, "{report:?}");
        assert_eq!((report.counts.databases, report.counts.records), (2, 5));
        let databases = bench.databases().await;
        let (tasks, people) = (named(&databases, "Tasks"), named(&databases, "People"));
        let kinds: Vec<_> = tasks.properties.iter().map(|one| (one.name.as_str(), one.r#type())).collect();
        assert_eq!(kinds[0], ("Task", Text));
        assert!(kinds.contains(&("Points", Number)), "{kinds:?}");
        assert!(kinds.contains(&("Who", Relation)), "{kinds:?}");
        let ada = bench.records_of(people).await.into_iter().find(|record| record.title == "Ada").unwrap();
        let write = bench.values(tasks, "Write").await;
        assert_eq!((&write["Points"], &write["Who"]), (&serde_json::json!(3), &serde_json::json!([ada.id])));
        let record = bench.records_of(tasks).await.into_iter().find(|one| one.title == "Write").unwrap();
        let body = record.content_file_id.unwrap();
        let texts = bench.tree().await;
        let home = texts.iter().find(|(path, _)| path.ends_with("/Home.md")).unwrap().1;
        assert!(home[0].contains(&format!("(/databases/{})", tasks.id)), "{home:?}");
        assert!(home[0].contains(&format!("(/file/{body})")), "{home:?}");
        assert_eq!(bench.faults().await, Vec::<String>::new());

        let same = bench.import(draft_of(ImportProvider::NotionZip), &export("Open")).await;
        let counters = counted(same.run.counters);
        assert_eq!((counters[0], counters[1], counters[3]), (0, 0, 0), "{:?}", bench.report(&same).await);
        let changed = bench.import(draft_of(ImportProvider::NotionZip), &export("Done")).await;
        assert_eq!(changed.run.counters.conflicts, 0, "{:?}", bench.report(&changed).await);
        assert_eq!(bench.values(tasks, "Write").await["Who"], serde_json::json!([ada.id]));
        let state = |values: &BTreeMap<String, serde_json::Value>| values["State"].to_string();
        assert!(state(&bench.values(tasks, "Write").await).contains("Done"));
        let back = bench.take_back(&changed).await;
        assert_eq!(back.run.state, RunStatus::RolledBack);
        assert!(state(&bench.values(tasks, "Write").await).contains("Open"));
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_was_being_made_is_completed() {
    for bench in benches().await {
        let draft = draft_of(ImportProvider::NotionZip);
        let previewed = bench.preview_import(draft, &export("Open")).await.unwrap();
        let id = previewed.run.id.to_string();
        bench.imports.start(&bench.caller, &id).await.unwrap();
        let context = bench.service.context();
        let due = store::runs::claimable(&context.db, context.clock.now(), 1).await.unwrap().pop().unwrap();
        let run = bench.service.runner().claim(due).await.unwrap().unwrap();
        let shutdown = CancellationToken::new();
        let one_is_there = async {
            while bench.databases().await.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = one_is_there => {}
            _ = bench.service.runner().perform(run, &shutdown) => {}
        }
        store::runs::expire_all_leases(&context.db, context.clock.now()).await.unwrap();
        bench.work_with_kills(9_000).await;

        let done = bench.imports.get(&bench.caller, &id).await.unwrap();
        assert_eq!(done.run.error, None, "{}", bench.engine);
        assert_eq!(counted(done.run.counters), counted(previewed.run.would), "{}", bench.engine);
        let databases = bench.databases().await;
        let kinds = |name: &str| {
            let properties = named(&databases, name).properties.iter();
            properties.map(|one| (one.name.clone(), one.r#type())).collect::<Vec<_>>()
        };
        let expected = |list: &[(&str, content::PropertyType)]| {
            list.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect::<Vec<_>>()
        };
        let tasks = [("Task", Text), ("State", Select), ("Points", Number), ("Who", Relation)];
        assert_eq!(kinds("Tasks"), expected(&tasks), "{}", bench.engine);
        assert_eq!(kinds("People"), expected(&[("Name", Text), ("Age", Number)]), "{}", bench.engine);
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_rollback_leaves_a_database_that_somebody_uses() {
    for bench in benches().await {
        let done = bench.import(draft_of(ImportProvider::NotionZip), &export("Open")).await;
        let databases = bench.databases().await;
        let people = named(&databases, "People");
        let mut records = RecordServiceClient::new(bench.content.clone());
        let request = content::CreateRecordRequest { database_id: people.id.clone(), ..Default::default() };
        records.create_record(bench.request(request)).await.unwrap();
        let back = bench.take_back(&done).await;
        assert_eq!(back.run.state, RunStatus::RolledBack, "{}: {:?}", bench.engine, back.run.error);
        let left = bench.databases().await;
        assert_eq!(left.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["People"]);
        assert_eq!(bench.records_of(people).await.len(), 1);
        let codes: Vec<&str> = back.warnings.iter().map(|warning| warning.code.as_str()).collect();
        assert!(codes.contains(&"edited_since_import"), "{codes:?}");
    }
}
