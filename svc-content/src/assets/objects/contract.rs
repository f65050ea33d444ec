//! The contract of the engines: a suite that runs on each.

#[cfg(feature = "s3")]
mod bucket;

use std::time::Duration;

use tempfile::TempDir;
use uuid::Uuid;

use super::*;

struct Bench {
    engine: &'static str,
    store: AssetStore,
    folder: Option<TempDir>,
    /// The contents of an engine that is no folder.
    held: Option<Box<dyn Fn() -> Vec<String>>>,
}

async fn benches() -> Vec<Bench> {
    let folder = TempDir::new().unwrap();
    let location = AssetLocation::Folder(folder.path().join("new").join("assets"));
    let in_folder = AssetStore::open(&location).await.unwrap();
    let in_memory = AssetStore::open(&AssetLocation::Memory).await.unwrap();
    #[cfg_attr(not(feature = "s3"), expect(unused_mut, reason = "buckets follow with the feature"))]
    let mut benches = vec![
        Bench { engine: "folder", store: in_folder, folder: Some(folder), held: None },
        Bench { engine: "memory", store: in_memory, folder: None, held: None },
    ];
    #[cfg(feature = "s3")]
    benches.extend(bucket::benches().await);
    benches
}

const fn workspace(number: u128) -> WorkspaceId {
    WorkspaceId(Uuid::from_u128(number))
}

const fn object(number: u128) -> ObjectId {
    ObjectId(Uuid::from_u128(number))
}

/// More than one part of bytes that differ from position to position.
fn large() -> Vec<u8> {
    (0..PART_BYTES * 2 + 12_345).map(|place| u8::try_from(place % 251).unwrap()).collect()
}

impl Bench {
    async fn write(&self, number: u128, bytes: &[u8]) {
        let mut writing = self.store.write(workspace(1), object(number));
        for chunk in bytes.chunks(100_000) {
            writing.put(Bytes::copy_from_slice(chunk)).await.unwrap();
        }
        writing.finish().await.unwrap();
    }

    async fn read(&self, number: u128, range: Range<u64>) -> Vec<u8> {
        let chunks = self.store.read(workspace(1), object(number), range).await.unwrap();
        let chunks: Vec<Bytes> = chunks.try_collect().await.unwrap();
        assert!(chunks.iter().all(|chunk| chunk.len() <= CHUNK_BYTES), "{}", self.engine);
        chunks.concat()
    }

    async fn listed(&self) -> Vec<(WorkspaceId, ObjectId)> {
        let mut all: Vec<_> =
            self.store.list().map_ok(|listed| (listed.workspace, listed.object)).try_collect().await.unwrap();
        all.sort();
        all
    }

    /// Everything in the folder or the bucket, including what the engine does not list.
    fn entries(&self) -> Vec<String> {
        let mut names = self.held.as_ref().map(|held| held()).unwrap_or_default();
        let mut folders: Vec<PathBuf> = self.folder.iter().map(|folder| folder.path().to_owned()).collect();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    names.push(entry.file_name().into_string().unwrap());
                }
            }
        }
        names
    }
}

#[tokio::test]
async fn what_is_written_is_read_in_whole_and_in_part() {
    let large = large();
    for bench in benches().await {
        bench.write(1, b"").await;
        bench.write(2, b"small").await;
        bench.write(3, &large).await;
        assert_eq!(bench.read(1, 0..0).await, b"", "{}", bench.engine);
        assert_eq!(bench.read(2, 0..5).await, b"small", "{}", bench.engine);
        assert_eq!(bench.read(2, 1..3).await, b"ma", "{}", bench.engine);
        let size = large.len() as u64;
        assert!(bench.read(3, 0..size).await == large, "{}", bench.engine);
        let around = PART_BYTES as u64;
        assert!(bench.read(3, around - 7..around + 7).await == large[PART_BYTES - 7..PART_BYTES + 7]);
        assert_eq!(bench.read(3, size..size).await, b"");
        assert_eq!(bench.store.size(workspace(1), object(3)).await.unwrap(), Some(size));
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    for bench in benches().await {
        let nothing = (workspace(1), object(9));
        for range in [0..0, 0..1] {
            let read = bench.store.read(nothing.0, nothing.1, range).await;
            assert!(matches!(read.err(), Some(Error::NotFound { .. })), "{}", bench.engine);
        }
        assert_eq!(bench.store.size(nothing.0, nothing.1).await.unwrap(), None);
        bench.store.delete(nothing.0, nothing.1).await.unwrap();
        bench.write(1, b"x").await;
        assert_eq!(bench.store.size(workspace(2), object(1)).await.unwrap(), None, "another workspace");
        bench.store.delete(workspace(1), object(1)).await.unwrap();
        assert_eq!(bench.listed().await, [], "{}", bench.engine);
    }
}

#[tokio::test]
async fn until_it_is_finished_there_is_nothing() {
    let large = Bytes::from(large());
    for bench in benches().await {
        let mut writing = bench.store.write(workspace(1), object(1));
        writing.put(large.clone()).await.unwrap();
        assert_eq!(bench.listed().await, [], "{}", bench.engine);
        assert_eq!(bench.store.size(workspace(1), object(1)).await.unwrap(), None);
        writing.abort().await;
        assert_eq!(bench.entries(), Vec::<String>::new(), "{}", bench.engine);

        let mut dropped = bench.store.write(workspace(1), object(2));
        dropped.put(large.clone()).await.unwrap();
        drop(dropped);
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        while !bench.entries().is_empty() {
            assert!(tokio::time::Instant::now() < deadline, "a dropped upload stays: {:?}", bench.entries());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(bench.listed().await, []);
    }
}

#[tokio::test]
async fn objects_are_listed_with_their_age_and_nothing_else_is() {
    for bench in benches().await {
        bench.write(1, b"a").await;
        bench.write(2, b"b").await;
        bench.store.engine.put(&Key::from("notes.txt"), "x".into()).await.unwrap();
        bench.store.engine.put(&Key::from("a/b/c"), "x".into()).await.unwrap();
        assert_eq!(bench.listed().await, [(workspace(1), object(1)), (workspace(1), object(2))]);
        let listed: Vec<ListedObject> = bench.store.list().try_collect().await.unwrap();
        let long_ago = Timestamp::from_seconds(1_700_000_000);
        assert!(listed.iter().all(|listed| listed.written_at > long_ago), "{}", bench.engine);
    }
}

/// As after `kill -9`: staged data stays, and is not listed.
#[tokio::test]
async fn what_a_killed_process_left_is_removed_when_it_is_old() {
    let bench = benches().await.into_iter().find(|bench| bench.engine == "folder").unwrap();
    bench.write(1, b"kept").await;
    let mut writing = bench.store.write(workspace(1), object(2));
    writing.put(Bytes::from(large())).await.unwrap();
    // Neither aborted nor dropped.
    std::mem::forget(writing);
    assert_eq!(bench.entries().len(), 2);
    assert_eq!(bench.listed().await, [(workspace(1), object(1))], "it is no object");
    let long_ago = Timestamp::from_seconds(1_700_000_000);
    let far_ahead = Timestamp::from_seconds(9_000_000_000);
    assert_eq!(bench.store.remove_interrupted(long_ago).await.unwrap(), 0, "it may go on");
    assert_eq!(bench.store.remove_interrupted(far_ahead).await.unwrap(), 1);
    assert_eq!(bench.entries(), [object(1).to_string()]);
    assert_eq!(bench.read(1, 0..4).await, b"kept");
}

#[tokio::test]
async fn a_store_is_made_only_to_write() {
    let folder = TempDir::new().unwrap();
    let location = AssetLocation::Folder(folder.path().join("assets"));
    assert!(AssetStore::open_existing(&location).await.unwrap().is_none());
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing was made");
    AssetStore::open(&location).await.unwrap();
    assert!(AssetStore::open_existing(&location).await.unwrap().is_some());
}

#[test]
fn a_location_is_a_path_or_a_url() {
    let folder = |path: &str| AssetLocation::Folder(path.into());
    assert_eq!(AssetLocation::from_url("/srv/assets").unwrap(), folder("/srv/assets"));
    assert_eq!(AssetLocation::from_url("./assets").unwrap(), folder("./assets"));
    assert_eq!(AssetLocation::from_url("file:///srv/assets").unwrap(), folder("/srv/assets"));
    assert!(matches!(AssetLocation::from_url("s3://bucket/assets").unwrap(), AssetLocation::Bucket(_)));
    for odd in ["", "file:", "s3:", "gs://bucket", "http://x"] {
        assert!(AssetLocation::from_url(odd).is_err(), "{odd}");
    }
}
