//! The rules of assets, on every engine.

use std::time::Duration;

use bytes::Bytes;
use cairn_chassis::clock::{ManualClock, Timestamp};
use cairn_chassis::jobs::Lease;
use futures::stream::{self, TryStreamExt as _};
use serde_json::json;

use super::tables::{Table, named};
use super::*;
use crate::assets::{AssetDraft, AssetStore, Assets, UploadEnd, UploadPart};
use crate::databases::Databases;
use crate::databases::properties::SettingsDraft;
use crate::model::{Asset, Database, PropertyType};
use crate::records;

/// The messages after the draft.
type Sent = Vec<Result<UploadPart, Error>>;

pub(super) struct Attachments {
    assets: Assets,
    pub(super) store: AssetStore,
}

impl Attachments {
    pub(super) async fn new(bench: &Bench) -> Self {
        Self::with(bench.context.clone(), AssetStore::open(&AssetLocation::Memory).await.unwrap())
    }

    fn with(context: Context, store: AssetStore) -> Self {
        let limits = Arc::new(PlanLimits::with_overrides("small=1:2").unwrap());
        Self { assets: Assets::new(Context { limits, ..context }, store.clone()), store }
    }

    pub(super) async fn upload(&self, caller: &Caller, name: &str, bytes: &[u8]) -> Asset {
        self.assets.upload(caller, self::draft(name), whole(bytes)).await.unwrap()
    }

    async fn send(&self, caller: &Caller, parts: Sent) -> Result<Asset, Error> {
        self.assets.upload(caller, self::draft("a.bin"), stream::iter(parts)).await
    }

    async fn read(&self, caller: &Caller, asset: &Asset, offset: u64, length: Option<u64>) -> Vec<u8> {
        let (found, bytes) =
            self.assets.download(caller, &asset.id.to_string(), offset, length).await.unwrap();
        assert_eq!(found, *asset);
        bytes.try_collect::<Vec<Bytes>>().await.unwrap().concat()
    }

    pub(super) async fn objects(&self) -> usize {
        self.store.list().try_collect::<Vec<_>>().await.unwrap().len()
    }

    async fn rows(&self, bench: &Bench) -> usize {
        store::assets::list_all(&bench.context.db, "", "", 100).await.unwrap().len()
    }

    async fn sweep(&self, context: &Context) -> usize {
        let lease = Lease::new(
            context.db.clone(),
            Arc::clone(&context.clock),
            &context.ids,
            "asset-sweep",
            Duration::from_secs(60),
        );
        self.assets.sweep(&lease).await.unwrap()
    }
}

fn draft(name: &str) -> AssetDraft {
    AssetDraft { name: name.to_owned(), media_type: "image/PNG".to_owned(), size_bytes: None, new_id: None }
}

fn piece(bytes: &[u8]) -> Result<UploadPart, Error> {
    Ok(UploadPart::Bytes(Bytes::copy_from_slice(bytes)))
}

fn end(size_bytes: u64, content_hash: Option<&str>) -> Result<UploadPart, Error> {
    Ok(UploadPart::End(UploadEnd { size_bytes, content_hash: content_hash.map(str::to_owned) }))
}

fn whole(bytes: &[u8]) -> impl futures::Stream<Item = Result<UploadPart, Error>> + Send + Unpin + use<> {
    let mut parts: Vec<_> = bytes.chunks(7).map(piece).collect();
    parts.push(end(bytes.len() as u64, None));
    stream::iter(parts)
}

/// The same storage two days later.
fn later(bench: &Bench) -> Context {
    let later = bench.context.clock.now().plus(Duration::from_secs(2 * 24 * 60 * 60));
    bench.by_clock(Arc::new(ManualClock::new(later)))
}

#[tokio::test]
async fn an_asset_comes_back_as_it_was_sent() {
    for bench in benches().await {
        let attachments = Attachments::new(&bench).await;
        let bytes = b"not really a picture".as_slice();
        let asset = attachments.upload(&bench.caller, "a b.png", bytes).await;
        assert_eq!((asset.name.as_str(), asset.media_type.as_str()), ("a b.png", "image/png"));
        assert_eq!(asset.kept.size_bytes, 20);
        assert_eq!(asset.kept.hash, format!("blake3:{}", blake3::hash(bytes).to_hex()));
        let id = asset.id.to_string();
        assert_eq!(attachments.assets.get(&bench.caller, &id).await.unwrap(), asset, "{}", bench.engine());
        let read = async |offset, length| attachments.read(&bench.caller, &asset, offset, length).await;
        assert_eq!(read(0, None).await, bytes);
        assert_eq!(read(11, None).await, b"a picture");
        assert_eq!(read(4, Some(6)).await, b"really");
        assert_eq!(read(13, Some(u64::MAX)).await, b"picture");
        assert_eq!(read(20, None).await, b"");
        let beyond = attachments.assets.download(&bench.caller, &id, 21, None).await;
        assert_eq!(violations(beyond.map(|_| ())), pairs(&[("offset", "too_large")]));

        let empty = attachments.upload(&bench.caller, "empty", b"").await;
        assert_eq!(attachments.read(&bench.caller, &empty, 0, None).await, b"");
        let untyped = AssetDraft { name: "x".into(), ..AssetDraft::default() };
        let untyped = attachments.assets.upload(&bench.caller, untyped, whole(b"?")).await.unwrap();
        assert_eq!(untyped.media_type, "application/octet-stream");
    }
}

#[tokio::test]
async fn an_asset_is_one_workspaces() {
    for bench in benches().await {
        let attachments = Attachments::new(&bench).await;
        let id = attachments.upload(&bench.caller, "a", b"x").await.id.to_string();
        let stranger = caller(2);
        for id in [id.as_str(), "", "no id", &missing_file()] {
            assert_not_found(attachments.assets.get(&stranger, id).await, "asset");
            assert_not_found(attachments.assets.delete(&stranger, id).await, "asset");
            let download = attachments.assets.download(&stranger, id, 0, None).await;
            assert_not_found(download.map(|_| ()), "asset");
        }
        let theirs = attachments.upload(&stranger, "a", b"x").await;
        assert_eq!(attachments.objects().await, 2, "{}: nothing is shared", bench.engine());
        attachments.assets.delete(&bench.caller, &id).await.unwrap();
        assert_not_found(attachments.assets.get(&bench.caller, &id).await, "asset");
        assert_eq!(attachments.read(&stranger, &theirs, 0, None).await, b"x");
    }
}

#[tokio::test]
async fn the_same_bytes_are_stored_once() {
    for bench in benches().await {
        let attachments = Attachments::new(&bench).await;
        let one = attachments.upload(&bench.caller, "one", b"same").await;
        let two = attachments.upload(&bench.caller, "two", b"same").await;
        assert_ne!(one.id, two.id);
        assert_eq!((one.kept.clone(), attachments.objects().await), (two.kept.clone(), 1));
        attachments.assets.delete(&bench.caller, &one.id.to_string()).await.unwrap();
        assert_eq!(attachments.read(&bench.caller, &two, 0, None).await, b"same", "{}", bench.engine());
        attachments.assets.delete(&bench.caller, &two.id.to_string()).await.unwrap();
        assert_eq!((attachments.objects().await, attachments.rows(&bench).await), (0, 0));
        let again = attachments.upload(&bench.caller, "again", b"same").await;
        assert_eq!(attachments.read(&bench.caller, &again, 0, None).await, b"same");
    }
}

#[tokio::test]
async fn a_refused_upload_leaves_nothing() {
    let right = format!("blake3:{}", blake3::hash(b"abcdef").to_hex());
    for bench in benches().await {
        let attachments = Attachments::new(&bench).await;
        let refused: [(Sent, &str, &str); 6] = [
            (vec![], "end", "required"),
            (vec![piece(b"abc"), piece(b"def")], "end", "required"),
            (vec![piece(b"abc"), end(6, None)], "end.sizeBytes", "mismatch"),
            (vec![piece(b"abcdeF"), end(6, Some(&right))], "end.contentHash", "mismatch"),
            (vec![piece(b"abc"), end(3, None), piece(b"d")], "end", "not_last"),
            (vec![piece(b"abc"), Err(Error::invalid("bytes", "incomplete", "cut"))], "bytes", "incomplete"),
        ];
        for (parts, path, code) in refused {
            assert_eq!(violations(attachments.send(&bench.caller, parts).await), pairs(&[(path, code)]));
        }
        for (name, media_type, path, code) in [
            ("", "image/png", "name", "required"),
            ("a/b", "image/png", "name", "invalid"),
            ("a", "text/html; charset=utf-8", "mediaType", "invalid"),
            ("a", "a/b\r\nx: y", "mediaType", "invalid"),
        ] {
            let bad = AssetDraft {
                name: name.into(),
                media_type: media_type.into(),
                size_bytes: None,
                new_id: None,
            };
            let refused = attachments.assets.upload(&bench.caller, bad, whole(b"x")).await;
            assert_eq!(violations(refused), pairs(&[(path, code)]));
        }
        assert_eq!(
            (attachments.objects().await, attachments.rows(&bench).await),
            (0, 0),
            "{}",
            bench.engine()
        );
        let sent = vec![piece(b"abc"), piece(b"def"), end(6, Some(&right))];
        assert_eq!(attachments.send(&bench.caller, sent).await.unwrap().kept.hash, right);
    }
}

#[tokio::test]
async fn the_plan_limits_an_asset_and_all_of_them() {
    const MB: usize = 1024 * 1024;
    for bench in benches().await {
        let attachments = Attachments::new(&bench).await;
        let small = Caller { plan: Some("small".into()), ..bench.caller.clone() };
        let too_large = |result: Result<Asset, Error>| {
            assert!(matches!(result, Err(Error::TooLarge(_))), "{}: {result:?}", bench.engine());
        };
        let bytes = |fill: u8| {
            let piece = Bytes::from(vec![fill; MB]);
            vec![Ok(UploadPart::Bytes(piece)), end(MB as u64, None)]
        };
        let announced = AssetDraft { size_bytes: Some(MB as u64 + 1), ..draft("a") };
        too_large(attachments.assets.upload(&small, announced, stream::pending()).await);
        let mut sent = bytes(0);
        sent.insert(1, piece(b"x"));
        too_large(attachments.send(&small, sent).await);
        assert_eq!(attachments.objects().await, 0);

        let first = attachments.send(&small, bytes(1)).await.unwrap();
        attachments.send(&small, bytes(2)).await.unwrap();
        let full = attachments.send(&small, bytes(3)).await;
        assert!(matches!(full, Err(Error::LimitExceeded(_))), "{full:?}");
        assert_eq!(attachments.objects().await, 2, "{}", bench.engine());
        attachments.send(&small, bytes(2)).await.unwrap();
        attachments.assets.delete(&small, &first.id.to_string()).await.unwrap();
        attachments.send(&small, bytes(3)).await.unwrap();
    }
}

struct Shelf {
    database: Database,
    field: String,
}

async fn shelf(bench: &Bench, folder: Option<FolderId>) -> Shelf {
    let databases = Databases::new(bench.context.clone());
    let database = databases.create(&bench.caller, named("Shelf", folder)).await.unwrap().item;
    let mut table = Table::on(bench, database);
    let several = SettingsDraft { multiple: Some(true), ..SettingsDraft::default() };
    table.add("Scans", PropertyType::AssetReference, several).await;
    Shelf { field: table.field("Scans"), database: table.database }
}

fn naming(shelf: &Shelf, ids: &[&Asset]) -> records::RecordDraft {
    let ids: Vec<String> = ids.iter().map(|asset| asset.id.to_string()).collect();
    records::RecordDraft { values: json!({&shelf.field: ids}).to_string(), ..records::RecordDraft::default() }
}

#[tokio::test]
async fn records_name_assets_of_their_workspace() {
    for bench in benches().await {
        let attachments = Attachments::new(&bench).await;
        let rules = records::Records::new(bench.context.clone());
        let shelf = shelf(&bench, None).await;
        let database = shelf.database.id.to_string();
        let (one, two) = (
            attachments.upload(&bench.caller, "1", b"1").await,
            attachments.upload(&bench.caller, "2", b"2").await,
        );
        let theirs = attachments.upload(&caller(2), "3", b"3").await;
        let made = rules.create(&bench.caller, &database, naming(&shelf, &[&one, &two])).await.unwrap();
        let expected = json!([one.id.to_string(), two.id.to_string()]);
        assert_eq!(made.item.record.values[&shelf.field], expected, "{}", bench.engine());

        let path = format!("values.{}[1]", shelf.field);
        let foreign = rules.create(&bench.caller, &database, naming(&shelf, &[&one, &theirs])).await;
        assert_eq!(violations(foreign), pairs(&[(&path, "not_found")]));
        attachments.assets.delete(&bench.caller, &two.id.to_string()).await.unwrap();
        let deleted = rules.create(&bench.caller, &database, naming(&shelf, &[&one, &two])).await;
        assert_eq!(violations(deleted), pairs(&[(&path, "not_found")]));
        let id = made.item.record.id.to_string();
        let read = rules.get(&bench.caller, &database, &id).await.unwrap();
        assert_eq!(read.record.values[&shelf.field], expected, "what is named stays named");
    }
}

#[tokio::test]
async fn a_folder_scope_covers_what_its_records_name() {
    for bench in benches().await {
        let attachments = Attachments::new(&bench).await;
        let rules = records::Records::new(bench.context.clone());
        let inside = bench.folder("inside", None).await;
        let scoped = bench.scoped(&[inside.id]);
        let (mine, other) = (shelf(&bench, Some(inside.id)).await, shelf(&bench, None).await);
        let shown = attachments.upload(&bench.caller, "shown", b"shown").await;
        let hidden = attachments.upload(&bench.caller, "hidden", b"hidden").await;
        let unnamed = attachments.upload(&bench.caller, "unnamed", b"unnamed").await;
        let mine_id = mine.database.id.to_string();
        let record = rules.create(&bench.caller, &mine_id, naming(&mine, &[&shown])).await.unwrap();
        let other_id = other.database.id.to_string();
        rules.create(&bench.caller, &other_id, naming(&other, &[&hidden])).await.unwrap();

        let get = async |asset: &Asset| attachments.assets.get(&scoped, &asset.id.to_string()).await;
        assert_eq!(get(&shown).await.unwrap(), shown, "{}", bench.engine());
        assert_eq!(attachments.read(&scoped, &shown, 0, None).await, b"shown");
        assert_out_of_scope(get(&hidden).await);
        assert_out_of_scope(get(&unnamed).await);
        assert_out_of_scope(attachments.assets.upload(&scoped, draft("a"), whole(b"x")).await);
        assert_out_of_scope(attachments.assets.delete(&scoped, &shown.id.to_string()).await);

        // Referring to an asset requires seeing it.
        for asset in [&hidden, &unnamed] {
            assert_out_of_scope(rules.create(&scoped, &mine_id, naming(&mine, &[asset])).await);
        }
        rules.create(&scoped, &mine_id, naming(&mine, &[&shown])).await.unwrap();

        // An asset that only an older version refers to is hidden.
        let id = record.item.record.id.to_string();
        let both = naming(&mine, &[&shown, &unnamed]);
        rules.update(&bench.caller, &mine_id, &id, both).await.unwrap();
        assert_eq!(get(&unnamed).await.unwrap(), unnamed);
        rules.update(&bench.caller, &mine_id, &id, naming(&mine, &[&shown])).await.unwrap();
        let versions = rules.versions(&scoped, &mine_id, &id, first_page()).await.unwrap().items;
        let named: Vec<_> = versions.iter().map(|version| version.values[&mine.field].clone()).collect();
        let only_shown = json!([shown.id.to_string()]);
        assert_eq!(named, [only_shown.clone(), only_shown.clone(), only_shown]);
        assert_out_of_scope(get(&unnamed).await);
    }
}

#[tokio::test]
async fn what_crashes_left_is_swept_when_it_is_old() {
    for bench in benches().await {
        let attachments = Attachments::new(&bench).await;
        let kept = attachments.upload(&bench.caller, "kept", b"kept").await;
        // As after a crash before the transaction of an upload, and after the transaction of a deletion.
        let workspaces = [bench.caller.workspace, caller(7).workspace];
        for (number, workspace) in workspaces.into_iter().enumerate() {
            let object = cairn_proto::ids::ObjectId(Uuid::from_u128(500 + number as u128));
            let mut writing = attachments.store.write(workspace, object);
            writing.put(Bytes::from_static(b"lost")).await.unwrap();
            writing.finish().await.unwrap();
        }
        assert_eq!(attachments.sweep(&bench.context).await, 0, "they may belong to uploads that go on");
        assert_eq!(attachments.objects().await, 3);
        let context = later(&bench);
        let afterwards = Attachments::with(context.clone(), attachments.store.clone());
        assert_eq!(afterwards.sweep(&context).await, 2, "{}", bench.engine());
        assert_eq!(afterwards.sweep(&context).await, 0);
        assert_eq!(attachments.read(&bench.caller, &kept, 0, None).await, b"kept");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_bytes_come_and_go_at_once() {
    for bench in benches().await {
        let attachments = Arc::new(Attachments::new(&bench).await);
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let (attachments, caller) = (Arc::clone(&attachments), bench.caller.clone());
            tasks.spawn(async move {
                for _ in 0..5 {
                    let asset = attachments.upload(&caller, "a", b"same").await;
                    assert_eq!(attachments.read(&caller, &asset, 0, None).await, b"same");
                    attachments.assets.delete(&caller, &asset.id.to_string()).await.unwrap();
                }
            });
        }
        tasks.join_all().await;
        assert_eq!(
            (attachments.objects().await, attachments.rows(&bench).await),
            (0, 0),
            "{}",
            bench.engine()
        );
    }
}

#[tokio::test]
async fn the_doctor_names_what_is_wrong_with_assets() {
    let gone = "the bytes of an asset are in the store and have its hash and size";
    let stray = "an object in the store is that of an asset, or of an upload of the last day";
    for bench in benches().await {
        let folder = tempfile::TempDir::new().unwrap();
        let location = AssetLocation::Folder(folder.path().join("assets"));
        let now = bench.context.clock.now();
        let wrong = async |at: Timestamp| {
            let found = crate::assets::examine(&bench.context.db, &location, at, &|_| {}).await.unwrap();
            found.into_iter().map(|finding| finding.rule).collect::<Vec<_>>()
        };
        assert_eq!(wrong(now).await, [""; 0]);
        let objects = AssetStore::open(&location).await.unwrap();
        let attachments = Attachments::with(bench.context.clone(), objects);
        let first = attachments.upload(&bench.caller, "1", b"first").await;
        let second = attachments.upload(&bench.caller, "2", b"second").await;
        let two_days_on = later(&bench).clock.now();
        assert_eq!(wrong(two_days_on).await, [""; 0], "{}", bench.engine());

        let path = |asset: &Asset| {
            let workspace = asset.workspace_id.to_string();
            folder.path().join("assets").join(workspace).join(asset.kept.object.to_string())
        };
        std::fs::write(path(&first), b"FIRST").unwrap();
        assert_eq!(wrong(now).await, [gone], "other bytes of the same size");
        std::fs::write(path(&first), b"firs").unwrap();
        assert_eq!(wrong(now).await, [gone]);
        std::fs::remove_file(path(&first)).unwrap();
        assert_eq!(wrong(now).await, [gone]);
        let lost = attachments.assets.download(&bench.caller, &first.id.to_string(), 0, None).await;
        assert!(matches!(lost.map(|_| ()), Err(Error::LostAsset(_))));
        std::fs::write(path(&first), b"first").unwrap();
        std::fs::copy(path(&second), path(&second).with_file_name(missing_file())).unwrap();
        assert_eq!(wrong(now).await, [""; 0], "it may be that of an upload that goes on");
        assert_eq!(wrong(two_days_on).await, [stray]);
        let (db, mut report) = (&bench.context.db, cairn_chassis::doctor::Report::default());
        let refuse = crate::IfUnmounted::Refuse;
        crate::assets::mend(db, &location, None, refuse, two_days_on, &mut report, &|_| {}).await.unwrap();
        assert_eq!(wrong(two_days_on).await, [""; 0], "{}", bench.engine());
        let aside = std::fs::read_dir(folder.path().join("assets/damaged")).unwrap();
        assert_eq!(aside.count(), 1, "its row may be what was lost");

        bench.break_by("DELETE FROM assets WHERE name = '1'").await;
        assert_eq!(wrong(now).await, ["an object is that of an asset"], "{}", bench.engine());
        std::fs::remove_dir_all(folder.path().join("assets")).unwrap();
        assert_eq!(wrong(now).await, ["an object is that of an asset", gone]);
        let refused =
            crate::assets::mend(db, &location, None, refuse, two_days_on, &mut report, &|_| {}).await;
        assert!(matches!(refused, Err(Error::StoreAway { missing: 2, all: 2, .. })), "{}", bench.engine());
        assert!(!folder.path().join("assets").exists(), "it may be a volume that is not mounted");
        let give_up = crate::IfUnmounted::GiveUp;
        crate::assets::mend(db, &location, None, give_up, two_days_on, &mut report, &|_| {}).await.unwrap();
        assert_eq!(wrong(now).await, [""; 0], "{}", bench.engine());
    }
}
