//! A change of the file that is the body of a record is published as a change of the record.

use cairn_chassis::feed::Kind;
use serde_json::json;

use super::tables::Table;
use super::*;
use crate::batch::{Batches, Write};
use crate::records;

#[tokio::test]
async fn a_record_is_told_anew_whatever_happens_to_its_body() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let folder = bench.folder("pages", None).await;
        let file = bench.file("body", Some(folder.id)).await;
        let record = table.make(json!({"Name": "Acme"})).await.record.id.to_string();
        let page = records::RecordDraft {
            content_file_id: Some(Some(file.id.to_string())),
            ..records::RecordDraft::default()
        };
        table.records.update(&bench.caller, &table.id(), &record, page).await.unwrap();
        let (caller, trash) = (&bench.caller, bench.trash());
        let batches = Batches::new(bench.context.clone());
        let (file_id, folder_id) = (file.id.to_string(), folder.id.to_string());
        let told = async |what: &str, before: u64| {
            let entries = bench.entries_after(before).await;
            let times = entries.iter().filter(|entry| entry.item_id == record).count();
            assert_eq!(times, 1, "{} {what}: {entries:?}", bench.engine());
        };
        let position = async || bench.changes().await.len() as u64;

        let before = position().await;
        bench.folders.delete(caller, &folder_id).await.unwrap();
        told("when its folder goes to trash", before).await;

        let before = position().await;
        trash.restore(caller, Kind::Folder, &folder_id).await.unwrap();
        told("when its folder comes back", before).await;

        let before = position().await;
        let rewrite = files::FilePatch { content: Some("anew".into()), ..files::FilePatch::default() };
        batches.write(caller, vec![Write::UpdateFile(file_id.clone(), rewrite)]).await.unwrap();
        told("when a batch changes it", before).await;

        let before = position().await;
        bench.files.delete(caller, &file_id).await.unwrap();
        told("when it goes to trash", before).await;

        let before = position().await;
        trash.restore(caller, Kind::File, &file_id).await.unwrap();
        told("when it comes back", before).await;

        table.records.delete(caller, &table.id(), &record).await.unwrap();
        let before = position().await;
        let rewrite = files::FilePatch { content: Some("last".into()), ..files::FilePatch::default() };
        bench.files.update(caller, &file_id, rewrite).await.unwrap();
        let entries = bench.entries_after(before).await;
        let is_told = entries.iter().any(|entry| entry.item_id == record);
        assert!(!is_told, "{}: what is in trash stays there: {entries:?}", bench.engine());
    }
}
