use cairn_chassis::feed::{Kind, Op};
use cairn_proto::ids::{AssetId, DatabaseId, RecordId};
use tokio::task::JoinSet;

use super::tables::named;
use super::*;
use crate::batch::{Batches, ConditionalWrite, Outcome, Write};
use crate::databases::{DatabaseDraft, Databases};
use crate::files::FilePatch;
use crate::model::StatesRequest;
use crate::records::{RecordDraft, Records};

impl Bench {
    fn batches(&self) -> Batches {
        Batches::new(self.context.clone())
    }
}

fn new_file(name: &str, folder: Option<&str>) -> Write {
    Write::CreateFile(files::FileDraft { folder_id: folder.map(str::to_owned), ..draft(name, None) })
}

fn new_folder(name: &str, parent: Option<&str>) -> Write {
    Write::CreateFolder(folders::FolderDraft { name: name.into(), parent_id: parent.map(str::to_owned) })
}

fn rewrite(file: &File, content: &str) -> Write {
    Write::UpdateFile(
        file.id.to_string(),
        FilePatch { content: Some(content.into()), ..FilePatch::default() },
    )
}

#[tokio::test]
async fn a_batch_does_everything_in_one_range_of_the_feed() {
    for bench in benches().await {
        let kept = bench.file("kept", None).await;
        let gone = bench.file("gone", None).await;
        let dead = bench.folder("dead", None).await;
        bench.file("in dead", Some(dead.id)).await;
        let moved = bench.folder("moved", None).await;
        let before = bench.changes().await.len() as u64;
        let into =
            folders::FolderPatch { parent_id: Some(Some("#0".into())), ..folders::FolderPatch::default() };
        let writes = vec![
            new_folder("top", None),
            new_folder("inner", Some("#0")),
            new_file("a", Some("#1")),
            rewrite(&kept, "new"),
            rewrite(&kept, "new"),
            Write::DeleteFile(gone.id.to_string()),
            Write::DeleteFolder(dead.id.to_string()),
            Write::UpdateFolder(moved.id.to_string(), into),
        ];
        let done = bench.batches().write(&bench.caller, writes).await.unwrap();
        assert_eq!(
            (done.positions.first, done.positions.last),
            (before + 1, before + 8),
            "{}",
            bench.engine()
        );
        let told: Vec<_> =
            bench.entries_after(before).await.into_iter().map(|entry| (entry.kind, entry.op)).collect();
        let (file, folder) = (Kind::File, Kind::Folder);
        let expected = [
            (folder, Op::Upsert),
            (folder, Op::Upsert),
            (file, Op::Upsert),
            (file, Op::Upsert),
            (file, Op::Delete),
            (folder, Op::Delete),
            (file, Op::Delete),
            (folder, Op::Upsert),
        ];
        assert_eq!(told, expected, "{}", bench.engine());
        assert!(matches!(&done.outcomes[2], Outcome::File(file) if file.path == "/top/inner/a"));
        assert!(matches!(&done.outcomes[4], Outcome::File(file) if file.version == 2));
        assert_eq!(done.outcomes[5], Outcome::Deleted(gone.id.to_string()));
        assert!(matches!(&done.outcomes[7], Outcome::Folder(folder) if folder.path == "/top/moved"));
        assert_eq!(bench.names(&bench.caller, None).await, ["a", "kept"]);
        assert_eq!(bench.folder_paths(&bench.caller, None).await.len(), 3);
        assert_eq!(bench.wrong().await, []);
        let nothing = bench.batches().write(&bench.caller, vec![rewrite(&kept, "new")]).await.unwrap();
        assert_eq!((nothing.positions.first, nothing.positions.last), (0, done.positions.last));
    }
}

#[tokio::test]
async fn a_batch_with_a_fault_does_nothing_and_names_every_fault() {
    for bench in benches().await {
        let file = bench.file("a", None).await;
        let before = bench.changes().await.len();
        let stale = FilePatch {
            if_content_hash: vec!["blake3:other".into()],
            name: Some("x".into()),
            ..FilePatch::default()
        };
        let found = bench
            .batches()
            .write(
                &bench.caller,
                vec![
                    new_folder("fine", None),
                    Write::UpdateFile(file.id.to_string(), stale),
                    Write::DeleteFile(missing_file()),
                    new_file("fine", Some(&missing_folder().to_string())),
                    Write::DeleteFolder(missing_folder().to_string()),
                ],
            )
            .await;
        let expected = [
            ("writes[1]", "version_conflict"),
            ("writes[2]", "not_found"),
            ("writes[3]", "not_found"),
            ("writes[4]", "not_found"),
        ];
        assert_eq!(violations(found), pairs(&expected), "{}", bench.engine());
        let odd = vec![
            new_file("a/b", Some("x")),
            new_file("fine", Some("#0")),
            new_file("fine", Some("#3")),
            new_folder("", Some("#9")),
            new_folder("", Some("#x")),
            Write::DeleteFile("x".into()),
        ];
        let expected = [
            ("writes[0].name", "invalid"),
            ("writes[0].folderId", "invalid"),
            ("writes[1].folderId", "invalid"),
            ("writes[2].folderId", "invalid"),
            ("writes[3].parentId", "invalid"),
            ("writes[4].parentId", "invalid"),
            ("writes[5]", "not_found"),
        ];
        assert_eq!(violations(bench.batches().write(&bench.caller, odd).await), pairs(&expected));
        assert_eq!(bench.changes().await.len(), before);
        assert_eq!(bench.names(&bench.caller, None).await, ["a"]);
        assert!(bench.folder_paths(&bench.caller, None).await.is_empty());
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

#[tokio::test]
async fn a_batch_keeps_to_its_limits_and_scope() {
    for bench in benches().await {
        let many =
            |count: usize| (0..count).map(|number| new_folder(&number.to_string(), None)).collect::<Vec<_>>();
        let too_many = bench.batches().write(&bench.caller, many(1_001)).await;
        assert_eq!(violations(too_many), pairs(&[("writes", "too_long")]));
        let done = bench.batches().write(&bench.caller, many(1_000)).await.unwrap();
        assert_eq!((done.positions.first, done.positions.last, done.outcomes.len()), (1, 1_000, 1_000));
        let large = |bytes: usize| {
            let content = "x".repeat(bytes);
            Write::CreateFile(files::FileDraft { content, ..draft("large", None) })
        };
        let mut writes: Vec<_> = (0..4).map(|_| large(5 * 1024 * 1024)).collect();
        writes.push(large(4 * 1024 * 1024));
        bench.batches().write(&bench.caller, writes.clone()).await.unwrap();
        writes.push(large(1));
        let found = bench.batches().write(&bench.caller, writes).await;
        assert_eq!(violations(found), pairs(&[("writes", "too_long")]), "{}", bench.engine());

        let own = bench.folder("own", None).await;
        let agent = bench.scoped(&[own.id]);
        let inside = new_file("in", Some(&own.id.to_string()));
        bench.batches().write(&agent, vec![inside.clone()]).await.unwrap();
        let found = bench.batches().write(&agent, vec![inside, new_file("out", None)]).await;
        assert_eq!(violations(found), pairs(&[("writes[1]", "out_of_scope")]));
        let foreign = vec![Write::DeleteFolder(own.id.to_string())];
        let found = bench.batches().write(&caller(77), foreign).await;
        assert_eq!(violations(found), pairs(&[("writes[0]", "not_found")]));
    }
}

/// Batches over the same files in opposite orders, beside single writes and deletions of their folder: nothing
/// deadlocks, and each is whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batches_race_with_all_other_writes() {
    for bench in benches().await {
        for _ in 0..6 {
            let folder = bench.folder("f", None).await;
            let mut made = Vec::new();
            for number in 0..6 {
                made.push(bench.file(&number.to_string(), Some(folder.id)).await);
            }
            let mut tasks = JoinSet::new();
            for turn in 0..4 {
                let mut writes: Vec<_> =
                    made.iter().map(|file| rewrite(file, &format!("{turn} {}", file.name))).collect();
                if turn % 2 == 1 {
                    writes.reverse();
                }
                writes.push(new_file("new", Some(&folder.id.to_string())));
                let (batches, caller) = (bench.batches(), bench.caller.clone());
                tasks.spawn(
                    async move { batches.write(&caller, writes).await.map(|done| done.positions.last) },
                );
                let (files, caller, file) =
                    (bench.files.clone(), bench.caller.clone(), made[turn].id.to_string());
                tasks.spawn(async move {
                    let to_root = FilePatch { folder_id: Some(None), ..FilePatch::default() };
                    files.update(&caller, &file, to_root).await.map(|written| written.position)
                });
            }
            let (folders, caller) = (bench.folders.clone(), bench.caller.clone());
            tasks.spawn(async move { folders.delete(&caller, &folder.id.to_string()).await });
            for result in tasks.join_all().await {
                let is_clean = matches!(result, Ok(_) | Err(Error::NotFound { .. }) | Err(Error::Invalid(_)));
                assert!(is_clean, "{} {result:?}", bench.engine());
            }
        }
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

fn guarded(write: Write) -> ConditionalWrite {
    write.into()
}

#[tokio::test]
async fn a_file_that_changed_meanwhile_refuses_the_batch() {
    for bench in benches().await {
        let file = bench.file("a", None).await;
        let stale = |write| vec![ConditionalWrite { if_version: Some(2), ..guarded(write) }];
        let writes = [
            rewrite(&file, "new"),
            Write::DeleteFile(file.id.to_string()),
            Write::RestoreVersion(file.id.to_string(), 1),
        ];
        for write in writes {
            let refused = bench.batches().write(&bench.caller, stale(write)).await;
            assert_eq!(
                violations(refused),
                pairs(&[("writes[0]", "version_conflict")]),
                "{}",
                bench.engine()
            );
        }
        let current = ConditionalWrite { if_version: Some(1), ..guarded(rewrite(&file, "new")) };
        bench.batches().write(&bench.caller, [current]).await.unwrap();
        // The version that is restored need not be one that changed the content.
        let back = ConditionalWrite {
            if_version: Some(2),
            ..guarded(Write::RestoreVersion(file.id.to_string(), 1))
        };
        let done = bench.batches().write(&bench.caller, [back]).await.unwrap();
        let Outcome::File(restored) = &done.outcomes[0] else { panic!("{done:?}") };
        assert_eq!((&restored.content_hash, restored.version), (&file.content_hash, 3));
    }
}

#[tokio::test]
async fn what_a_batch_makes_has_the_id_that_it_is_given_and_states_tell_of_it() {
    for bench in benches().await {
        let ids: [Uuid; 2] = [bench.context.ids.next(), bench.context.ids.next()];
        let with_id = |write, id: Uuid| ConditionalWrite { new_id: Some(id.to_string()), ..guarded(write) };
        let (folder, file) = (FolderId(ids[0]), FileId(ids[1]));
        let writes = [
            with_id(new_folder("f", None), ids[0]),
            with_id(new_file("a", Some(&folder.to_string())), ids[1]),
        ];
        bench.batches().write(&bench.caller, writes).await.unwrap();
        let unknown = FileId(Uuid::from_u128(5));
        let asked =
            StatesRequest { files: vec![file, unknown], folders: vec![folder], ..StatesRequest::default() };
        let states = async || {
            let found = bench.batches().states(&bench.caller, &asked).await.unwrap();
            (found.files, found.folders)
        };
        let (files, folders) = states().await;
        assert_eq!((files.len(), files[0].id, files[0].version, files[0].in_trash), (1, file, 1, false));
        assert_eq!((folders[0].children, files[0].folder_id), (1, Some(folder)), "{}", bench.engine());

        let empty_only =
            ConditionalWrite { if_empty: true, ..guarded(Write::DeleteFolder(folder.to_string())) };
        let refused = bench.batches().write(&bench.caller, [empty_only.clone()]).await;
        assert_eq!(violations(refused), pairs(&[("writes[0].ifEmpty", "not_empty")]));
        let both = [guarded(Write::DeleteFile(file.to_string())), empty_only];
        bench.batches().write(&bench.caller, both).await.unwrap();
        let (files, folders) = states().await;
        assert!(files[0].in_trash && folders[0].in_trash && folders[0].children == 0);
        let back = [
            Write::RestoreItem(Kind::Folder, folder.to_string()),
            Write::RestoreItem(Kind::File, file.to_string()),
        ];
        bench.batches().write(&bench.caller, back).await.unwrap();
        let (files, folders) = states().await;
        assert!(!files[0].in_trash && files[0].folder_id == Some(folder) && folders[0].children == 1);
        let gone = [Write::RestoreItem(Kind::File, file.to_string())];
        assert_eq!(
            violations(bench.batches().write(&bench.caller, gone).await),
            pairs(&[("writes[0]", "not_found")])
        );
        let odd = ConditionalWrite { new_id: Some("x".into()), ..guarded(new_file("b", None)) };
        let refused = bench.batches().write(&bench.caller, [odd]).await;
        assert_eq!(violations(refused), pairs(&[("writes[0].newId", "invalid")]));
    }
}

#[tokio::test]
async fn databases_records_and_assets_have_the_ids_that_they_are_given_and_states() {
    for bench in benches().await {
        let ids: [Uuid; 2] = [bench.context.ids.next(), bench.context.ids.next()];
        let databases = Databases::new(bench.context.clone());
        let records = Records::new(bench.context.clone());
        let draft = DatabaseDraft { new_id: Some(ids[0].to_string()), ..named("d", None) };
        let made = databases.create(&bench.caller, draft.clone()).await.unwrap().item;
        assert_eq!(made.id, DatabaseId(ids[0]));
        let record = RecordDraft { new_id: Some(ids[1].to_string()), ..RecordDraft::default() };
        let made = records.create(&bench.caller, &made.id.to_string(), record).await.unwrap().item;
        assert_eq!(made.record.id, RecordId(ids[1]), "{}", bench.engine());
        assert!(databases.create(&bench.caller, draft).await.is_err(), "an id is there once");
        let odd = DatabaseDraft { new_id: Some("x".into()), ..named("e", None) };
        assert_eq!(violations(databases.create(&bench.caller, odd).await), pairs(&[("newId", "invalid")]));

        let asked = StatesRequest {
            databases: vec![DatabaseId(ids[0]), DatabaseId(ids[1])],
            records: vec![RecordId(ids[1])],
            assets: vec![AssetId(ids[1])],
            ..StatesRequest::default()
        };
        let states = async || bench.batches().states(&bench.caller, &asked).await.unwrap();
        let before = states().await;
        assert_eq!((before.databases.len(), before.databases[0].records), (1, 1));
        assert_eq!((before.records[0].version, before.records[0].in_trash), (1, false));
        assert_eq!(before.assets, []);
        databases.delete(&bench.caller, &ids[0].to_string()).await.unwrap();
        let after = states().await;
        assert!(after.databases[0].in_trash && after.records[0].in_trash, "a record goes with its database");
    }
}
