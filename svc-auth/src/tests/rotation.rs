//! Replacing signing keys, and sealing them.

use cairn_chassis::identity::{KEY_MAX_AGE, RemoteKeys, Verifier};
use cairn_chassis::on_db;
use cairn_chassis::sealing::Keyring;

use super::*;
use crate::doctor::examine;
use crate::{ask_for_rotation, reseal, signing_keys};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn ring(text: &str) -> Arc<Keyring> {
    Arc::new(Keyring::parse(text).unwrap())
}

fn first() -> String {
    "11".repeat(32)
}

fn second() -> String {
    "22".repeat(32)
}

async fn open_with(
    storage: &TestDb,
    clock: &Arc<ManualClock>,
    sealing: Option<Arc<Keyring>>,
) -> Result<Service, crate::Error> {
    let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
    Service::open(Config { sealing, ..config(storage) }, shared, Arc::new(OsEntropy)).await
}

async fn turn(service: &Service) {
    service.keys.rotate(service.ambient.clock.now(), &*service.ambient.entropy).await.unwrap();
}

async fn states(storage: &TestDb) -> Vec<&'static str> {
    let mut states: Vec<_> =
        signing_keys(&storage.config).await.unwrap().unwrap().into_iter().map(|key| key.state).collect();
    states.sort_unstable();
    states
}

fn signed_by(service: &Service) -> String {
    service.service_identities.issue("sync", MESH_SECRET).unwrap().identity
}

async fn accepts(verifier: &Verifier, identity: &str) -> bool {
    let mut metadata = MetadataMap::new();
    metadata.insert("authorization", format!("Bearer {identity}").parse().unwrap());
    verifier.authenticate(&metadata).await.is_ok()
}

fn key_of(identity: &str) -> &str {
    identity.split('.').next().unwrap()
}

#[tokio::test]
async fn a_key_is_replaced_by_its_age_and_no_identity_is_refused() {
    for storage in engines().await {
        let clock = clock();
        let (one, other) = (open(&storage, &clock).await.unwrap(), open(&storage, &clock).await.unwrap());
        let remote = RemoteKeys(local(&one).await);
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let elsewhere = Verifier::new(Arc::new(remote), shared);
        let engine = storage.engine;

        clock.advance(90 * DAY - MINUTE);
        turn(&one).await;
        let last_of_old = signed_by(&other);
        assert!(accepts(&elsewhere, &last_of_old).await, "{engine}");
        assert_eq!(states(&storage).await, ["active"], "{engine}: it is not old enough");

        clock.advance(MINUTE);
        turn(&one).await;
        turn(&other).await;
        assert_eq!(states(&storage).await, ["active", "next"], "{engine}: replicas publish one");
        assert_eq!(key_of(&signed_by(&one)), key_of(&last_of_old), "{engine}: it does not sign yet");

        clock.advance(2 * KEY_MAX_AGE);
        turn(&other).await;
        assert_eq!(states(&storage).await, ["active", "retired"], "{engine}");
        // A replica that has not looked yet signs with the old key, and nobody minds.
        let (by_old, by_new) = (signed_by(&one), signed_by(&other));
        assert_ne!(key_of(&by_old), key_of(&by_new), "{engine}");
        for identity in [&by_old, &by_new] {
            for verifier in [&elsewhere, &one.ambient().verifier, &other.ambient().verifier] {
                assert!(accepts(verifier, identity).await, "{engine}");
            }
        }
        turn(&one).await;
        assert_eq!(key_of(&signed_by(&one)), key_of(&by_new), "{engine}: it has looked, without a restart");

        clock.advance(10 * MINUTE - Duration::from_secs(1));
        turn(&one).await;
        assert_eq!(states(&storage).await, ["active", "retired"], "{engine}: what it signed may still live");
        clock.advance(Duration::from_secs(1));
        turn(&one).await;
        turn(&one).await;
        assert_eq!(states(&storage).await, ["active"], "{engine}");
    }
}

#[tokio::test]
async fn a_key_is_replaced_when_it_is_asked_for() {
    for storage in engines().await {
        assert!(!ask_for_rotation(&storage.config, clock().now()).await.unwrap(), "there is no key yet");
        let clock = clock();
        let service = open(&storage, &clock).await.unwrap();
        let before = signed_by(&service);
        turn(&service).await;
        assert_eq!(states(&storage).await, ["active"], "{}", storage.engine);
        assert!(ask_for_rotation(&storage.config, clock.now()).await.unwrap());
        assert!(signing_keys(&storage.config).await.unwrap().unwrap()[0].is_to_be_replaced);
        turn(&service).await;
        clock.advance(2 * KEY_MAX_AGE);
        turn(&service).await;
        let after = signed_by(&service);
        assert_ne!(key_of(&before), key_of(&after), "{}", storage.engine);
        // The wish is met: it is not granted again and again.
        turn(&service).await;
        assert_eq!(states(&storage).await, ["active", "retired"], "{}", storage.engine);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_that_turn_at_once_do_each_step_once() {
    for storage in engines().await {
        let clock = clock();
        let mut replicas = Vec::new();
        for _ in 0..6 {
            replicas.push(open(&storage, &clock).await.unwrap());
        }
        clock.advance(90 * DAY);
        for step in ["publish", "activate"] {
            let mut turning = tokio::task::JoinSet::new();
            for replica in replicas.clone() {
                turning.spawn(async move { turn(&replica).await });
            }
            turning.join_all().await;
            let expected = if step == "publish" { ["active", "next"] } else { ["active", "retired"] };
            assert_eq!(states(&storage).await, expected, "{} {step}", storage.engine);
            clock.advance(2 * KEY_MAX_AGE);
        }
        let mut signed = Vec::new();
        for replica in &replicas {
            turn(replica).await;
            signed.push(key_of(&signed_by(replica)).to_owned());
        }
        signed.dedup();
        assert_eq!(signed.len(), 1, "{}", storage.engine);
    }
}

/// The seed in the table, and what the table says of its sealing.
async fn stored(service: &Service) -> (Vec<u8>, String) {
    let select = "SELECT seed, sealing FROM signing_keys WHERE state = 'active'";
    on_db!(&service.db, |c| sqlx::query_as(select).fetch_one(c).await).unwrap()
}

#[tokio::test]
async fn a_seed_is_sealed_and_opens_with_its_key_only() {
    for storage in engines().await {
        let clock = clock();
        let service = open_with(&storage, &clock, Some(ring(&first()))).await.unwrap();
        let (seed, sealing) = stored(&service).await;
        assert_eq!((seed.len() > 32, sealing.as_str()), (true, "aes-256-gcm"), "{}", storage.engine);
        for wrong in [None, Some(ring(&second()))] {
            let refusal = open_with(&storage, &clock, wrong).await.unwrap_err().to_string();
            assert!(refusal.contains("CAIRN_SECRET_KEY") && !refusal.contains(&first()), "{refusal}");
        }
        let both = format!("{},{}", second(), first());
        let again = open_with(&storage, &clock, Some(ring(&both))).await.unwrap();
        assert_eq!(key_of(&signed_by(&again)), key_of(&signed_by(&service)), "{}", storage.engine);
    }
}

#[tokio::test]
async fn what_stands_open_is_sealed_and_sealed_anew() {
    for storage in engines().await {
        let clock = clock();
        let plain = open(&storage, &clock).await.unwrap();
        let sealing = open_with(&storage, &clock, Some(ring(&first()))).await.unwrap();
        assert_eq!(key_of(&signed_by(&plain)), key_of(&signed_by(&sealing)), "what stands open still reads");
        let quiet = |_: &str| ();
        let done = reseal(&storage.config, &ring(&first()), &OsEntropy, &quiet).await.unwrap().unwrap();
        assert_eq!((done.changed, done.current), (1, 0), "{}", storage.engine);
        let done = reseal(&storage.config, &ring(&first()), &OsEntropy, &quiet).await.unwrap().unwrap();
        assert_eq!((done.changed, done.current), (0, 1), "{}", storage.engine);
        assert!(open(&storage, &clock).await.is_err());

        let stranger = reseal(&storage.config, &ring(&second()), &OsEntropy, &quiet).await.unwrap_err();
        assert!(stranger.to_string().contains("signing_keys.seed/"), "{stranger}");
        let both = format!("{},{}", second(), first());
        let done = reseal(&storage.config, &ring(&both), &OsEntropy, &quiet).await.unwrap().unwrap();
        assert_eq!((done.changed, done.current), (1, 0), "{}", storage.engine);
        let after = open_with(&storage, &clock, Some(ring(&second()))).await.unwrap();
        assert_eq!(key_of(&signed_by(&plain)), key_of(&signed_by(&after)), "{}", storage.engine);
    }
}

#[tokio::test]
async fn the_doctor_names_what_does_not_open() {
    for storage in engines().await {
        let clock = clock();
        let service = open_with(&storage, &clock, Some(ring(&first()))).await.unwrap();
        service.bootstrap(wanted(), |_| Ok(())).await.unwrap();
        let found = async |ring: Option<Arc<Keyring>>| {
            examine(&storage.config, ring.as_deref(), &|_| {}).await.unwrap().unwrap()
        };
        assert_eq!(found(Some(ring(&first()))).await, [], "{}", storage.engine);
        for wrong in [None, Some(ring(&second()))] {
            let findings = found(wrong).await;
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(findings[0].subject.contains("CAIRN_SECRET_KEY"), "{findings:?}");
        }
        let damage = "UPDATE signing_keys SET sealing = 'rot13'";
        on_db!(service.db.writer(), |c| sqlx::query(damage).execute(c).await.map(|_| ())).unwrap();
        assert!(found(Some(ring(&first()))).await[0].subject.contains("rot13"), "{}", storage.engine);
    }
}
