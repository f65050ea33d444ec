//! Records in batches, and tags that a file gets with earlier content.

use cairn_proto::ids::RecordId;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::tables::Table;
use super::*;
use crate::batch::{Batches, ConditionalWrite, Outcome, Write};
use crate::files::FilePatch;
use crate::model::StatesRequest;
use crate::records::{RecordDraft, RecordWrite};

fn values(values: &Value) -> RecordDraft {
    RecordDraft { values: values.to_string(), allow_names: true, ..RecordDraft::default() }
}

impl Table {
    fn create(&self, given: &Value) -> ConditionalWrite {
        Write::Record(self.id(), RecordWrite::Create(values(given))).into()
    }

    fn update(&self, id: RecordId, given: &Value, if_version: Option<u64>) -> ConditionalWrite {
        let write = Write::Record(self.id(), RecordWrite::Update(id.to_string(), values(given)));
        ConditionalWrite { if_version, ..write.into() }
    }

    fn delete(&self, id: RecordId, if_version: Option<u64>) -> ConditionalWrite {
        let write = Write::Record(self.id(), RecordWrite::Delete(id.to_string()));
        ConditionalWrite { if_version, ..write.into() }
    }
}

async fn batch(bench: &Bench, writes: Vec<ConditionalWrite>) -> Result<Vec<Outcome>, Error> {
    Ok(Batches::new(bench.context.clone()).write(&bench.caller, writes).await?.outcomes)
}

#[tokio::test]
async fn records_are_made_changed_restored_and_deleted_in_one_transaction() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let ids: [RecordId; 2] = [bench.context.ids.next(), bench.context.ids.next()];
        let with_id = |write, id: RecordId| ConditionalWrite { new_id: Some(id.to_string()), ..write };
        let before = bench.changes().await.len();
        let made = vec![
            with_id(table.create(&json!({"Name": "A", "Points": 1, "Status": "Todo"})), ids[0]),
            with_id(table.create(&json!({"Name": "B", "Points": 2})), ids[1]),
        ];
        let done = batch(&bench, made).await.unwrap();
        assert_eq!(done, ids.map(|id| Outcome::Record(id, Some(1))), "{}", bench.engine());
        assert_eq!(bench.changes().await.len(), before + 2);
        assert_eq!(table.sorted(&[("Points", "asc")]).await, "AB");

        let done = batch(
            &bench,
            vec![
                table.update(ids[0], &json!({"Points": 3, "Status": null}), Some(1)),
                table.update(ids[1], &json!({"Points": 2}), Some(1)),
                table.create(&json!({"Name": "C", "Points": 4})),
            ],
        );
        let done = done.await.unwrap();
        // A change that changes nothing leaves the version alone.
        assert_eq!(done[..2], [Outcome::Record(ids[0], Some(2)), Outcome::Record(ids[1], Some(1))]);
        assert_eq!(table.sorted(&[("Points", "asc")]).await, "BAC");
        let back = Write::Record(table.id(), RecordWrite::RestoreVersion(ids[0].to_string(), 1));
        let back = ConditionalWrite { if_version: Some(2), ..back.into() };
        let done = batch(&bench, vec![back, table.delete(ids[1], Some(1))]).await.unwrap();
        assert_eq!(done, [Outcome::Record(ids[0], Some(3)), Outcome::Record(ids[1], None)]);
        assert_eq!(table.sorted(&[("Points", "asc")]).await, "AC");
        assert_eq!(
            table.filtered(json!({"fieldId": "Status", "operator": "equals", "value": "Todo"})).await,
            "A"
        );
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

#[tokio::test]
async fn a_batch_of_records_with_a_fault_does_nothing_and_names_every_fault() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let one = table.make(json!({"Name": "one"})).await.record.id;
        let missing = RecordId(Uuid::from_u128(5));
        let refused = batch(
            &bench,
            vec![
                table.create(&json!({"Name": "fine"})),
                table.create(&json!({"Points": "many", "Status": "Never"})),
                table.create(&json!({"File": missing_file()})),
            ],
        );
        let expected = [
            ("writes[1].values.Points", "wrong_type"),
            ("writes[1].values.Status", "unknown_option"),
            ("writes[2].values.File", "not_found"),
        ];
        assert_eq!(violations(refused.await), pairs(&expected), "{}", bench.engine());
        let refused = batch(
            &bench,
            vec![
                table.create(&json!({"Name": "fine"})),
                table.update(one, &json!({"Points": 1}), Some(7)),
                table.delete(one, Some(7)),
                table.update(missing, &json!({"Points": 1}), None),
                table.delete(missing, None),
            ],
        );
        let expected = [
            ("writes[1]", "version_conflict"),
            ("writes[2]", "version_conflict"),
            ("writes[3]", "not_found"),
            ("writes[4]", "not_found"),
        ];
        assert_eq!(violations(refused.await), pairs(&expected), "{}", bench.engine());
        let elsewhere = Write::Record(missing.to_string(), RecordWrite::Delete(one.to_string()));
        assert_eq!(
            violations(batch(&bench, vec![elsewhere.into()]).await),
            pairs(&[("writes[0]", "not_found")])
        );
        assert_eq!(table.titles(Default::default()).await.0, ["one"]);
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

/// Batches over the same records in opposite orders, beside single writes and changes of the properties.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batches_of_records_race_with_all_other_writes() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let mut made = Vec::new();
        for number in 0..6 {
            made.push(table.make(json!({"Name": number.to_string()})).await.record.id);
        }
        let mut tasks = JoinSet::new();
        for turn in 0..4_usize {
            let mut writes: Vec<_> =
                made.iter().map(|id| table.update(*id, &json!({"Points": turn}), None)).collect();
            if turn % 2 == 1 {
                writes.reverse();
            }
            let (batches, caller) = (Batches::new(bench.context.clone()), bench.caller.clone());
            tasks.spawn(async move { batches.write(&caller, writes).await.map(drop) });
            let (records, caller) = (table.records.clone(), bench.caller.clone());
            let (database, id, draft) = (table.id(), made[turn].to_string(), values(&json!({"Done": true})));
            tasks.spawn(async move { records.update(&caller, &database, &id, draft).await.map(drop) });
            let (databases, caller, database) = (table.databases.clone(), bench.caller.clone(), table.id());
            let draft = crate::databases::properties::PropertyDraft {
                name: format!("P{turn}"),
                kind: Some(crate::model::PropertyType::Text),
                config: None,
            };
            tasks.spawn(async move { databases.create_property(&caller, &database, draft).await.map(drop) });
        }
        for result in tasks.join_all().await {
            // A batch whose database has changed can be sent again.
            assert!(matches!(result, Ok(()) | Err(Error::OutOfDate(_))), "{} {result:?}", bench.engine());
        }
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

#[tokio::test]
async fn a_file_gets_tags_with_earlier_content_and_states_tell_them() {
    for bench in benches().await {
        let file = bench.file("a", None).await;
        let batches = Batches::new(bench.context.clone());
        let tags = |tags: &[&str]| Some(tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>());
        let patch = FilePatch { content: Some("new".into()), tags: tags(&["new"]), ..FilePatch::default() };
        batches.write(&bench.caller, [Write::UpdateFile(file.id.to_string(), patch)]).await.unwrap();
        let asked = StatesRequest { files: vec![file.id], ..StatesRequest::default() };
        let state = async || batches.states(&bench.caller, &asked).await.unwrap().files.pop().unwrap();
        assert_eq!(state().await.tags, ["new"], "{}", bench.engine());
        let back = Write::RestoreVersion(file.id.to_string(), 1);
        let back = ConditionalWrite { tags: tags(&["old"]), if_version: Some(2), ..back.into() };
        batches.write(&bench.caller, [back]).await.unwrap();
        let now = state().await;
        assert_eq!((now.version, now.content_hash, now.tags), (3, file.content_hash, vec!["old".into()]));
        let again = ConditionalWrite { tags: None, ..Write::RestoreVersion(file.id.to_string(), 2).into() };
        batches.write(&bench.caller, [again]).await.unwrap();
        assert_eq!(state().await.tags, ["old"]);
    }
}
