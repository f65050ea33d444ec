//! Buckets: of the fake server, and of a real one if configured.

use cairn_chassis::clock::SystemClock;
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::ids::IdSource;
use object_store::aws::AmazonS3Builder;

use super::super::s3_server::{self, S3Server};
use super::*;

/// The URL of a bucket prefix, as in `CAIRN_ASSETS`, with credentials in the environment. The suite leaves a few
/// objects in it.
const REAL_BUCKET: &str = "CAIRN_TEST_S3_URL";

/// The suite runs on each.
pub(super) async fn benches() -> Vec<Bench> {
    let mut benches = vec![bench(&S3Server::start().await, "a prefix").await];
    match std::env::var(REAL_BUCKET) {
        Ok(url) => {
            let store = in_real_bucket(&url).await;
            benches.push(Bench { engine: "real bucket", store, folder: None, held: None });
        }
        Err(_) => eprintln!("skipped: s3: {REAL_BUCKET} is not set"),
    }
    benches
}

async fn bench(server: &S3Server, prefix: &str) -> Bench {
    let store = in_bucket(server, prefix).await.unwrap();
    let server = server.clone();
    Bench { engine: "bucket", store, folder: None, held: Some(Box::new(move || server.entries())) }
}

async fn in_bucket(server: &S3Server, prefix: &str) -> Result<AssetStore, Error> {
    let keys = AmazonS3Builder::new()
        .with_access_key_id(s3_server::ACCESS_KEY)
        .with_secret_access_key(s3_server::SECRET_KEY);
    let bucket = bucket(server, s3_server::BUCKET, prefix);
    Ok(AssetStore { engine: bucket.open_with(keys).await?, folder: None })
}

fn bucket(server: &S3Server, name: &str, prefix: &str) -> Bucket {
    let address = server.address;
    Bucket::from_url(&format!("s3://{name}/{prefix}?endpoint=http://{address}&allow_http=true")).unwrap()
}

/// Under a prefix that no other test uses.
async fn in_real_bucket(url: &str) -> AssetStore {
    let location = AssetLocation::from_url(url).unwrap();
    let AssetStore { engine, folder } = AssetStore::open(&location).await.unwrap();
    let ids = IdSource::new(Arc::new(SystemClock), Arc::new(OsEntropy));
    let own = Key::from(ids.next::<Uuid>().to_string());
    AssetStore { engine: Arc::new(object_store::prefix::PrefixStore::new(engine, own)), folder }
}

#[tokio::test]
async fn a_large_object_goes_to_a_bucket_in_few_parts_at_once() {
    let server = S3Server::start().await;
    let bench = bench(&server, "a prefix").await;
    bench.write(1, b"small").await;
    assert_eq!(server.uploads_begun(), 0, "one request is enough");
    let large: Vec<u8> = large().repeat(3);
    bench.write(2, &large).await;
    assert_eq!(server.uploads_begun(), 1);
    assert!(bench.read(2, 0..large.len() as u64).await == large);
    assert_eq!(server.largest_body(), PART_BYTES);
    // The last part does not wait for the others.
    assert!(server.max_parts_in_flight() <= PARTS_AT_ONCE + 1, "{}", server.max_parts_in_flight());
}

#[tokio::test]
async fn a_bucket_lists_many_pages_with_ages_and_only_what_its_prefix_has() {
    let server = S3Server::start().await;
    let here = bench(&server, "here").await;
    let there = in_bucket(&server, "here-too").await.unwrap();
    for number in 1..=5 {
        here.write(number, b"x").await;
    }
    let mut elsewhere = there.write(workspace(1), object(6));
    elsewhere.put(Bytes::from_static(b"y")).await.unwrap();
    elsewhere.finish().await.unwrap();
    let listed: Vec<ListedObject> = here.store.list().try_collect().await.unwrap();
    let mut found: Vec<ObjectId> = listed.iter().map(|listed| listed.object).collect();
    found.sort();
    assert_eq!(found, (1..=5).map(object).collect::<Vec<_>>());
    let written_at = to_timestamp(s3_server::written_at());
    assert!(listed.iter().all(|listed| listed.written_at == written_at), "{listed:?}");
    assert!(server.entries().iter().all(|key| key.starts_with("here/") || key.starts_with("here-too/")));
}

#[tokio::test]
async fn a_bucket_that_cannot_be_used_is_known_at_the_start_and_no_secret_is_told() {
    let server = S3Server::start().await;
    let keys = |id: &str| {
        AmazonS3Builder::new().with_access_key_id(id).with_secret_access_key(s3_server::SECRET_KEY)
    };
    let refused = bucket(&server, s3_server::BUCKET, "").open_with(keys("another")).await.unwrap_err();
    let missing = bucket(&server, "elsewhere", "").open_with(keys(s3_server::ACCESS_KEY)).await.unwrap_err();
    let store = in_bucket(&server, "").await.unwrap();
    for told in [format!("{refused} {refused:?}"), format!("{missing} {missing:?}"), format!("{store:?}")] {
        assert!(!told.contains(s3_server::SECRET_KEY), "{told}");
    }
}
