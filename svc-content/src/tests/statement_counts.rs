//! The number of statements of a list does not depend on its length, and a write takes few: each is a round trip to
//! another thread.

use cairn_chassis::clock::Timestamp;
use serde_json::json;

use super::tables::Table;
use super::*;
use crate::databases::properties::SettingsDraft;
use crate::documents::DocumentRef;
use crate::folders::FolderPatch;
use crate::model::{ActivityId, Author, PropertyType, Record};
use crate::records::{self, RecordListRequest};
use crate::versions::Versions;

impl Bench {
    /// The number of reads that the rules make meanwhile; `None` where they are not counted.
    async fn statements<T>(&self, reading: impl Future<Output = T>) -> (T, Option<u64>) {
        let before = self.context.db.statements_read();
        let read = reading.await;
        let after = self.context.db.statements_read();
        (read, after.zip(before).map(|(after, before)| after - before))
    }

    /// A page of a folder as the console shows it: the files, their authors, their states; and all folders.
    async fn page_of(&self, folder: FolderId) -> (usize, Option<u64>) {
        let request = PageRequest::new(PAGES, 50, "").unwrap();
        let reading = async {
            let listed =
                self.files.list(&self.caller, in_folder(Some(folder), false), request).await.unwrap();
            let ids: Vec<String> = listed.items.iter().map(|file| file.id.to_string()).collect();
            let versions = Versions::new(self.context.clone()).current(&self.caller, &ids).await.unwrap();
            assert_eq!(versions.len(), ids.len());
            let kind = Some(cairn_chassis::feed::Kind::File);
            let refs: Vec<DocumentRef> = ids.into_iter().map(|id| DocumentRef { kind, id }).collect();
            assert_eq!(self.documents.confirm(&self.caller, &refs).await.unwrap().len(), refs.len());
            self.folders.list(&self.caller, None, first_page()).await.unwrap();
            refs.len()
        };
        self.statements(reading).await
    }
}

#[tokio::test]
async fn a_page_of_many_files_takes_as_many_statements_as_one_of_few() {
    for bench in benches().await {
        let (few, many) = (bench.folder("few", None).await, bench.folder("many", None).await);
        for number in 0..60 {
            bench.file(&format!("{number}"), Some(many.id)).await;
            bench.folder(&format!("{number}"), Some(few.id)).await;
        }
        for number in 0..3 {
            bench.file(&format!("{number}"), Some(few.id)).await;
        }
        let ((three, of_few), (fifty, of_many)) = (bench.page_of(few.id).await, bench.page_of(many.id).await);
        assert_eq!((three, fifty), (3, 50), "{}", bench.engine());
        // The folder, its files, their versions, their documents, all folders; and for a longer list the count.
        assert_eq!(of_few, of_few.map(|_| 5), "{}", bench.engine());
        assert_eq!(of_many, of_many.map(|_| 6), "{}", bench.engine());
    }
}

#[tokio::test]
async fn what_a_list_holds_comes_as_it_was_written() {
    for bench in benches().await {
        let odd = "a\"quote \\ \u{2028}é😀";
        let folder = bench.folder(odd, None).await;
        let mut drafted = draft(odd, Some(folder.id));
        drafted.description = Some(odd.to_owned());
        drafted.tags = vec![odd.to_owned()];
        let made = bench.files.create(&bench.caller, drafted).await.unwrap().item;
        let listed = bench.files.list(&bench.caller, None, first_page()).await.unwrap();
        assert_eq!(listed.items, [made], "{}", bench.engine());
        let folders = bench.folders.list(&bench.caller, None, first_page()).await.unwrap();
        assert_eq!(folders.items, [folder], "{}", bench.engine());
    }
}

impl Bench {
    /// The number of writes and commits that the rules make meanwhile.
    async fn messages<T>(&self, writing: impl Future<Output = T>) -> (T, Option<u64>) {
        let before = self.context.db.statements_written();
        let written = writing.await;
        let after = self.context.db.statements_written();
        (written, after.zip(before).map(|(after, before)| after - before))
    }
}

/// The round trip to the thread of the connection costs more than small statements in one message.
#[tokio::test]
async fn a_record_is_made_in_two_messages_and_changed_in_five() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let making = table.make(json!({"Name": "one", "Points": 1, "Tags": ["Todo", "Doing"]}));
        let (made, of_writing) = bench.messages(making).await;
        // The record, with BEGIN before it and the end of the change behind it; and the commit.
        assert_eq!(of_writing, of_writing.map(|_| 2), "{}", bench.engine());
        let (_, of_reading) = bench.statements(table.make(json!({"Name": "two"}))).await;
        // The database is cached by then.
        assert_eq!(of_reading, of_reading.map(|_| 0), "{}", bench.engine());
        let id = made.record.id.to_string();
        let changing = table.change(&id, json!({"Points": 2, "Tags": ["Finished"]}));
        let (changed, of_changing) = bench.messages(changing).await;
        // Whether the database is unchanged, the record before, the record after, the end of the change; the commit.
        assert_eq!(of_changing, of_changing.map(|_| 5), "{}", bench.engine());
        assert_eq!(changed.unwrap().record.version, 2, "{}", bench.engine());
        let former = json!({"fieldId": "Points", "operator": "lt", "value": 2});
        assert_eq!(table.filtered(former).await, "", "{}", bench.engine());
        assert_eq!(table.titles(RecordListRequest::default()).await.1, 2);
        assert_eq!(made.record.version, 1);
    }
}

/// A record is stored only if the schema it was checked against is current; otherwise it is checked again.
#[tokio::test]
async fn a_record_is_not_stored_beside_another_schema() {
    for bench in benches().await {
        let mut table = Table::new(&bench, None).await;
        let former = table.database.clone();
        table.add("More", PropertyType::Text, SettingsDraft::default()).await;
        let made = table.make(json!({"Name": "one"})).await.record;
        let late = Record { id: bench.context.ids.next(), ..made };
        for (database, is_stored) in [(&former, false), (&table.database, true)] {
            let mut tx = bench.context.db.begin_write().await.unwrap();
            let stored = store::records::insert(&mut tx, database, &late, &Author::default()).await.unwrap();
            assert_eq!(stored, is_stored, "{}", bench.engine());
            tx.commit().await.unwrap();
            let found = store::records::get_many(&bench.context.db, bench.caller.workspace, &[late.id]).await;
            assert_eq!(found.unwrap().len(), usize::from(is_stored), "{}", bench.engine());
        }
        table.reload().await;
        assert_eq!(table.database.record_count, 2, "{}", bench.engine());
    }
}

/// Databases are cached for callers that create one record after another; their current location is noted all the
/// same.
#[tokio::test]
async fn a_record_is_noted_where_its_database_stands_now() {
    const FAR: ActivityId = ActivityId { at: Timestamp::from_seconds(9_000_000_000), position: 0, place: 0 };
    for bench in benches().await {
        let folder = bench.folder("before", None).await;
        let mut table = Table::new(&bench, Some(folder.id)).await;
        let path = async || {
            let made = table.make(json!({"Name": "one"})).await.record.id.to_string();
            let listed = store::activity::list(&bench.context.db, bench.caller.workspace, None, FAR, 1).await;
            let entry = listed.unwrap().remove(0);
            assert_eq!(entry.what.item_id, made);
            entry.what.path
        };
        assert_eq!(path().await, "/before/Tasks/one", "{}", bench.engine());
        assert_eq!(path().await, "/before/Tasks/one", "{}", bench.engine());
        let renamed = FolderPatch { name: Some("after".to_owned()), ..FolderPatch::default() };
        bench.folders.update(&bench.caller, &folder.id.to_string(), renamed).await.unwrap();
        assert_eq!(path().await, "/after/Tasks/one", "{}", bench.engine());
        table.add("More", PropertyType::Text, SettingsDraft::default()).await;
        let made = table.make(json!({"Name": "two", "More": "text"})).await;
        assert_eq!(made.record.values.len(), 2, "{}", bench.engine());
        let id = table.id();
        table.databases.delete(&bench.caller, &id).await.unwrap();
        let late = records::RecordDraft { values: "{}".to_owned(), ..records::RecordDraft::default() };
        assert_not_found(table.records.create(&bench.caller, &id, late).await, "database");
    }
}
