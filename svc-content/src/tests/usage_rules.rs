//! The usage of a workspace is counted, and limited by its plan.

use cairn_chassis::feed::Kind;
use futures::stream;
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use serde_json::json;

use super::tables::Table;
use super::*;
use crate::assets::{self, AssetStore, Assets, UploadEnd, UploadPart};
use crate::batch::{Batches, Write};
use crate::model::Asset;
use crate::records;
use crate::usage::{Accounts, Measure};

const MB: u64 = 1024 * 1024;

/// The bench with the limits of a small plan: 2 MB and 3 files.
async fn limited() -> Vec<(Bench, Caller)> {
    let mut all = Vec::new();
    for mut bench in benches().await {
        bench.context.limits = Arc::new(PlanLimits::with_overrides("small=1:2:3").unwrap());
        bench.files = Files::new(bench.context.clone());
        let small = Caller { plan: Some("small".to_owned()), ..bench.caller.clone() };
        all.push((bench, small));
    }
    all
}

impl Bench {
    async fn uses(&self, caller: &Caller) -> (u64, u64) {
        let account = Accounts::new(self.context.clone()).get(caller).await.unwrap();
        (account.files.used, account.bytes.used)
    }

    async fn put(&self, caller: &Caller, name: &str, content: String) -> Result<File, Error> {
        let draft = files::FileDraft { content, ..draft(name, None) };
        Ok(self.files.create(caller, draft).await?.item)
    }

    async fn replace(&self, caller: &Caller, file: &File, content: String) -> Result<File, Error> {
        let patch = files::FilePatch { content: Some(content), ..files::FilePatch::default() };
        Ok(self.files.update(caller, &file.id.to_string(), patch).await?.item)
    }
}

/// A text of a megabyte that is unique by its first character.
fn megabyte(first: char) -> String {
    let mut text = String::from(first);
    text.extend(std::iter::repeat_n('x', MB as usize - 1));
    text
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, what: &str) {
    match result {
        Err(Error::LimitExceeded(violations)) => {
            let paths: Vec<_> = violations.iter().map(|violation| violation.path.as_str()).collect();
            assert_eq!(paths, [what]);
        }
        other => panic!("expected no room for {what}, got {other:?}"),
    }
}

#[tokio::test]
async fn a_plan_holds_for_files_and_bytes_with_versions_and_trash() {
    for (bench, small) in limited().await {
        let one = bench.put(&small, "1", megabyte('a')).await.unwrap();
        bench.put(&small, "2", megabyte('a')).await.unwrap();
        assert_eq!(bench.uses(&small).await, (2, MB), "{}: equal contents count once", bench.engine());
        let one = bench.replace(&small, &one, megabyte('b')).await.unwrap();
        refused(bench.replace(&small, &one, megabyte('c')).await, "storageBytes");
        refused(bench.put(&small, "3", "x".to_owned()).await, "storageBytes");
        // A write without growth passes.
        bench.replace(&small, &one, megabyte('a')).await.unwrap();
        let three = bench.put(&small, "3", megabyte('b')).await.unwrap();
        refused(bench.put(&small, "4", megabyte('b')).await, "files");
        assert_eq!(bench.uses(&small).await, (3, 2 * MB));

        bench.files.delete(&small, &three.id.to_string()).await.unwrap();
        refused(bench.put(&small, "4", megabyte('b')).await, "files");
        bench.trash().restore(&small, Kind::File, &three.id.to_string()).await.unwrap();
        bench.files.delete(&small, &one.id.to_string()).await.unwrap();
        bench.files.delete(&small, &three.id.to_string()).await.unwrap();
        bench.trash().remove(&small, Kind::File, &one.id.to_string()).await.unwrap();
        bench.trash().remove(&small, Kind::File, &three.id.to_string()).await.unwrap();
        assert_eq!(bench.uses(&small).await, (1, MB), "{}", bench.engine());
        bench.put(&small, "4", megabyte('d')).await.unwrap();

        // A smaller plan rejects growth, and nothing else.
        let least = Caller { plan: Some("free".to_owned()), ..small.clone() };
        let account = Accounts::new(bench.context.clone()).get(&least).await.unwrap();
        assert_eq!(account.files, Measure { used: 2, limit: Some(2_000) });
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

#[tokio::test]
async fn a_batch_is_counted_as_a_whole() {
    for (bench, small) in limited().await {
        let batches = Batches::new(bench.context.clone());
        let create = |name: &str, content: &str| {
            Write::CreateFile(files::FileDraft { content: content.to_owned(), ..draft(name, None) })
        };
        let four: Vec<_> = (0..4).map(|number| create(&number.to_string(), "x")).collect();
        refused(batches.write(&small, four).await, "files");
        assert_eq!(bench.uses(&small).await, (0, 0));
        batches.write(&small, vec![create("a", "x"), create("b", "x"), create("c", "yy")]).await.unwrap();
        assert_eq!(bench.uses(&small).await, (3, 3), "{}", bench.engine());
    }
}

/// The values of a record are stored in the record and in a version: twice 100 000 bytes, and some overhead.
#[tokio::test]
async fn a_plan_holds_for_records_and_their_versions() {
    for (bench, small) in limited().await {
        let table = Table::new(&bench, None).await;
        let values = json!({ table.field("Name"): "x".repeat(100_000) }).to_string();
        let draft = || records::RecordDraft { values: values.clone(), ..records::RecordDraft::default() };
        let mut made = Vec::new();
        for _ in 0..10 {
            made.push(table.records.create(&small, &table.id(), draft()).await.unwrap().item.record);
        }
        let kept = 20 * values.len() as u64;
        assert_eq!(bench.uses(&small).await, (0, kept), "{}", bench.engine());
        refused(table.records.create(&small, &table.id(), draft()).await, "storageBytes");
        let id = made[0].id.to_string();
        table.records.delete(&small, &table.id(), &id).await.unwrap();
        refused(table.records.create(&small, &table.id(), draft()).await, "storageBytes");
        table.records.restore(&small, &table.id(), &id).await.unwrap();
        let less = json!({ table.field("Name"): "y" }).to_string();
        let shorter = records::RecordDraft { values: less.clone(), ..records::RecordDraft::default() };
        table.records.update(&small, &table.id(), &id, shorter).await.unwrap();
        let kept = kept - values.len() as u64 + 2 * less.len() as u64;
        assert_eq!(bench.uses(&small).await, (0, kept), "{}", bench.engine());
        table.records.delete(&small, &table.id(), &id).await.unwrap();
        table.records.purge(&small, &table.id(), &id).await.unwrap();
        assert_eq!(bench.uses(&small).await, (0, 18 * values.len() as u64), "{}", bench.engine());
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());

        table.databases.delete(&small, &table.id()).await.unwrap();
        table.databases.purge(&small, &table.id()).await.unwrap();
        assert_eq!(bench.uses(&small).await, (0, 0), "{}", bench.engine());
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

/// Of concurrent writers that each see room for one more, one passes.
#[tokio::test]
async fn writers_at_the_limit_do_not_pass_together() {
    for (bench, small) in limited().await {
        bench.put(&small, "1", "1".to_owned()).await.unwrap();
        bench.put(&small, "2", "2".to_owned()).await.unwrap();
        let names: Vec<String> = (0..8).map(|number| number.to_string()).collect();
        let writes = names.iter().map(|name| bench.put(&small, name, format!("content {name}")));
        let written = futures::future::join_all(writes).await;
        assert_eq!(written.iter().filter(|one| one.is_ok()).count(), 1, "{}: {written:?}", bench.engine());
        for one in written.into_iter().filter(Result::is_err) {
            refused(one, "files");
        }
        assert_eq!(bench.uses(&small).await.0, 3);
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

#[derive(Debug, Clone)]
enum Step {
    Write { content: u8 },
    Rewrite { file: usize, content: u8 },
    Delete { file: usize },
    Restore { deletion: usize },
    Remove { deletion: usize },
    Upload { content: u8 },
    Discard { asset: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let content = || 0..6_u8;
    prop_oneof![
        4 => content().prop_map(|content| Step::Write { content }),
        3 => (0..6_usize, content()).prop_map(|(file, content)| Step::Rewrite { file, content }),
        3 => (0..6_usize).prop_map(|file| Step::Delete { file }),
        1 => (0..3_usize).prop_map(|deletion| Step::Restore { deletion }),
        2 => (0..3_usize).prop_map(|deletion| Step::Remove { deletion }),
        2 => content().prop_map(|content| Step::Upload { content }),
        2 => (0..3_usize).prop_map(|asset| Step::Discard { asset }),
    ]
}

/// Few contents, so that equal ones occur.
fn text(content: u8) -> String {
    format!("{content}").repeat(usize::from(content) * 100 + 1)
}

#[derive(Debug, Default)]
struct Made {
    files: Vec<File>,
    trash: Vec<File>,
    assets: Vec<Asset>,
}

async fn apply(bench: &Bench, assets: &Assets, made: &mut Made, step: Step) {
    let caller = &bench.caller;
    match step {
        Step::Write { content } => made.files.push(bench.put(caller, "a", text(content)).await.unwrap()),
        Step::Rewrite { file, content } => {
            let Some(file) = made.files.get(file) else { return };
            bench.replace(caller, file, text(content)).await.unwrap();
        }
        Step::Delete { file } if file < made.files.len() => {
            let file = made.files.remove(file);
            bench.files.delete(caller, &file.id.to_string()).await.unwrap();
            made.trash.push(file);
        }
        Step::Restore { deletion } if deletion < made.trash.len() => {
            let file = made.trash.remove(deletion);
            bench.trash().restore(caller, Kind::File, &file.id.to_string()).await.unwrap();
            made.files.push(file);
        }
        Step::Remove { deletion } if deletion < made.trash.len() => {
            let file = made.trash.remove(deletion);
            bench.trash().remove(caller, Kind::File, &file.id.to_string()).await.unwrap();
        }
        Step::Upload { content } => {
            let bytes = text(content).into_bytes();
            let end = UploadEnd { size_bytes: bytes.len() as u64, content_hash: None };
            let parts = stream::iter([Ok(UploadPart::Bytes(bytes.into())), Ok(UploadPart::End(end))]);
            let draft = assets::AssetDraft {
                name: "a.bin".to_owned(),
                media_type: String::new(),
                size_bytes: None,
                new_id: None,
            };
            made.assets.push(assets.upload(caller, draft, parts).await.unwrap());
        }
        Step::Discard { asset } if asset < made.assets.len() => {
            assets.delete(caller, &made.assets.remove(asset).id.to_string()).await.unwrap();
        }
        Step::Delete { .. } | Step::Restore { .. } | Step::Remove { .. } | Step::Discard { .. } => {}
    }
}

/// The doctor recounts what the writes have counted.
#[test]
fn the_count_is_what_a_recount_gives() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for bench in runtime.block_on(benches()) {
        let store = runtime.block_on(AssetStore::open(&AssetLocation::Memory)).unwrap();
        let assets = Assets::new(bench.context.clone(), store);
        let cases = Cases { cases: 8, failure_persistence: None, ..Cases::default() };
        let steps = prop::collection::vec(step(), 0..40);
        let result = TestRunner::new(cases).run(&steps, |steps| {
            let mut made = Made::default();
            runtime.block_on(async {
                for step in steps {
                    apply(&bench, &assets, &mut made, step).await;
                }
                assert_eq!(bench.wrong().await, [], "{}", bench.engine());
            });
            Ok(())
        });
        result.unwrap();
    }
}

#[tokio::test]
async fn what_another_service_keeps_takes_room_too() {
    for (bench, small) in limited().await {
        bench.context.storage.set_cached(small.workspace, MB);
        let one = bench.put(&small, "1", megabyte('a')).await.unwrap();
        refused(bench.put(&small, "2", "x".to_owned()).await, "storageBytes");
        assert_eq!(bench.uses(&small).await, (1, MB), "{}: each counts its own", bench.engine());
        bench.replace(&small, &one, megabyte('a')).await.unwrap();
        bench.context.storage.set_cached(small.workspace, 0);
        bench.put(&small, "2", "x".to_owned()).await.unwrap();
    }
}
