use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Value, json};

use super::*;
use crate::clock::ManualClock;
use crate::identity::{Permission, Principal, PrincipalKind, Role, Scope, Signer};

fn identity(expires_at: Timestamp) -> Identity {
    Identity {
        principal: Principal { kind: PrincipalKind::Token, id: "t".into(), name: "agent".into() },
        workspace: Some("0199c0de-0000-7000-8000-000000000001".parse().unwrap()),
        role: Some(Role::Admin),
        permissions: [Permission::Read].into_iter().collect(),
        may_publish: true,
        question_log_days: Some(30),
        on_behalf_of: Some("0199c0de-0000-7000-8000-000000000003".parse().unwrap()),
        scope: Scope::Folders(["0199c0de-0000-7000-8000-000000000002".parse().unwrap()].into()),
        plan: Some("free".into()),
        expires_at,
    }
}

fn metadata(token: &str) -> MetadataMap {
    let mut metadata = MetadataMap::new();
    metadata.insert("authorization", format!("Bearer {token}").parse().unwrap());
    metadata
}

/// A directory whose keys change, and that counts how often it is asked.
#[derive(Debug, Default)]
struct Directory {
    keys: Mutex<Vec<PublicKey>>,
    is_down: std::sync::atomic::AtomicBool,
    asked: AtomicUsize,
}

#[tonic::async_trait]
impl KeyDirectory for Directory {
    async fn keys(&self) -> Result<Vec<PublicKey>, Problem> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.is_down.load(Ordering::SeqCst) {
            return Err(Problem::unavailable("down", Duration::from_secs(1)));
        }
        Ok(self.keys.lock().unwrap().clone())
    }
}

struct Bench {
    clock: Arc<ManualClock>,
    directory: Arc<Directory>,
    verifier: Verifier,
}

impl Bench {
    fn new(known: &[&Signer]) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let directory = Arc::new(Directory::default());
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let verifier = Verifier::new(Arc::<Directory>::clone(&directory), shared);
        let bench = Self { clock, directory, verifier };
        bench.publish(known);
        bench
    }

    fn publish(&self, signers: &[&Signer]) {
        let keys = signers.iter().map(|signer| signer.public_key().clone()).collect();
        *self.directory.keys.lock().unwrap() = keys;
    }

    fn sign(&self, signer: &Signer) -> String {
        let sent = identity(self.clock.now().plus(Duration::from_secs(300)));
        signer.sign(&sent, self.clock.now()).unwrap()
    }

    async fn check(&self, token: &str) -> Result<Identity, Problem> {
        self.verifier.authenticate(&metadata(token)).await
    }

    fn asked(&self) -> usize {
        self.directory.asked.load(Ordering::SeqCst)
    }

    /// Lets a refresh in the background come to its end.
    async fn settle(&self, asked: usize) {
        while self.asked() < asked {
            tokio::task::yield_now().await;
        }
        drop(self.verifier.0.refreshing.lock().await);
    }
}

fn signer(seed: u8) -> Signer {
    Signer::new(&[seed; 32]).unwrap()
}

#[tokio::test]
async fn a_signed_identity_holds_until_it_ends() {
    let signer = signer(7);
    let bench = Bench::new(&[&signer]);
    let token = bench.sign(&signer);
    assert_eq!(bench.check(&token).await.unwrap().principal.name, "agent");
    bench.clock.advance(Duration::from_secs(300));
    let refusal = bench.check(&token).await.unwrap_err();
    assert!(refusal.message.contains("expired"), "{refusal}");
    // The same holds of one that is met for the first time after its end.
    let late = Bench::new(&[&signer]);
    late.clock.advance(Duration::from_secs(300));
    assert!(late.check(&token).await.unwrap_err().message.contains("expired"));
    assert!(late.verifier.has_expired(&token).await);
    assert!(!Bench::new(&[&signer]).verifier.has_expired(&token).await, "it holds yet");
    let elsewhere = late.sign(&self::signer(8));
    late.clock.advance(Duration::from_secs(300));
    for never in [elsewhere.as_str(), "x", ""] {
        assert!(!late.verifier.has_expired(never).await, "what never held has not ended");
    }
}

#[tokio::test]
async fn forgeries_are_refused() {
    let (own, stranger) = (signer(7), signer(8));
    let bench = Bench::new(&[&own]);
    let (good, foreign) = (bench.sign(&own), bench.sign(&stranger));
    let unsigned = "eyJhbGciOiJub25lIn0.e30.";
    let (head, _) = good.rsplit_once('.').unwrap();
    let (_, foreign_signature) = foreign.rsplit_once('.').unwrap();
    let swapped = format!("{head}.{foreign_signature}");
    for forged in ["", "x", unsigned, &foreign, &swapped, &good[..good.len() - 4]] {
        assert!(bench.check(forged).await.is_err(), "{forged}");
    }
    assert!(bench.verifier.authenticate(&MetadataMap::new()).await.is_err());
    let mut two = metadata(&good);
    two.append("authorization", format!("Bearer {good}").parse().unwrap());
    assert!(bench.verifier.authenticate(&two).await.is_err());
}

/// What a signer of ours would never sign, signed with its key.
#[tokio::test]
async fn a_good_signature_does_not_make_up_for_wrong_claims() {
    let signer = signer(7);
    let bench = Bench::new(&[&signer]);
    let good = bench.sign(&signer);
    let encoded = good.split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(encoded).unwrap()).unwrap();
    let resigned = |change: &dyn Fn(&mut Value)| {
        let mut changed = claims.clone();
        change(&mut changed);
        resign(&signer, &changed)
    };
    assert!(bench.check(&resigned(&|_| ())).await.is_ok(), "else this shows nothing");
    let wrong: [(&str, Value); 7] = [
        ("aud", json!("another-mesh")),
        ("iss", json!("somebody")),
        ("kind", json!("king")),
        ("permissions", json!(["read", "rule"])),
        ("role", json!("king")),
        ("exp", json!("soon")),
        ("sub", Value::Null),
    ];
    for (claim, value) in wrong {
        let token = resigned(&|claims: &mut Value| claims[claim] = value.clone());
        assert!(bench.check(&token).await.is_err(), "{claim}: {value}");
    }
    for claim in ["aud", "iss", "exp", "sub"] {
        let token = resigned(&|claims: &mut Value| {
            claims.as_object_mut().unwrap().remove(claim);
        });
        assert!(bench.check(&token).await.is_err(), "without {claim}");
    }
}

#[tokio::test]
async fn only_our_algorithm_is_taken() {
    let own = signer(7);
    let bench = Bench::new(&[&own]);
    let good = bench.sign(&own);
    let claims = good.split('.').nth(1).unwrap();
    let key_id = &own.public_key().id;
    // The public key as the secret of a symmetric algorithm: the oldest trick against verifiers.
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some(key_id.clone());
    let decoded: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    let secret = EncodingKey::from_secret(&own.public_key().bytes);
    let symmetric = jsonwebtoken::encode(&header, &decoded, &secret).unwrap();
    let none = URL_SAFE_NO_PAD.encode(json!({"alg": "none", "kid": key_id}).to_string());
    let unnamed = URL_SAFE_NO_PAD.encode(json!({"alg": "EdDSA"}).to_string());
    let signature = good.rsplit('.').next().unwrap();
    for forged in [
        symmetric,
        format!("{none}.{claims}."),
        format!("{none}.{claims}.{signature}"),
        format!("{unnamed}.{claims}.{signature}"),
    ] {
        assert!(bench.check(&forged).await.is_err(), "{forged}");
    }
}

#[tokio::test]
async fn a_new_key_is_asked_for_and_unknown_ones_do_not_flood() {
    let (first, second) = (signer(7), signer(8));
    let bench = Bench::new(&[&first]);
    bench.check(&bench.sign(&first)).await.unwrap();
    assert_eq!(bench.asked(), 1);
    for seed in 9..30 {
        assert!(bench.check(&bench.sign(&signer(seed))).await.is_err());
    }
    assert_eq!(bench.asked(), 1, "within a second nobody is asked again");
    bench.publish(&[&first, &second]);
    bench.clock.advance(KEY_REFRESH_INTERVAL);
    bench.check(&bench.sign(&second)).await.unwrap();
    assert_eq!(bench.asked(), 2);
}

#[tokio::test]
async fn a_clock_that_was_put_back_keeps_nobody_from_asking() {
    let (first, second) = (signer(7), signer(8));
    let bench = Bench::new(&[&first]);
    bench.check(&bench.sign(&first)).await.unwrap();
    bench.publish(&[&first, &second]);
    bench.clock.put_back(Duration::from_secs(100));
    bench.check(&bench.sign(&second)).await.unwrap();
}

#[tokio::test]
async fn old_keys_are_renewed_before_they_are_needed_and_forgotten_when_taken_back() {
    let (first, second) = (signer(7), signer(8));
    let bench = Bench::new(&[&first]);
    bench.check(&bench.sign(&first)).await.unwrap();
    bench.publish(&[&first, &second]);
    bench.clock.advance(KEY_MAX_AGE);
    bench.check(&bench.sign(&first)).await.unwrap();
    bench.settle(2).await;
    // The second key is known by now, though nobody can be asked.
    bench.directory.is_down.store(true, Ordering::SeqCst);
    bench.check(&bench.sign(&second)).await.unwrap();

    // What is known holds while nobody answers.
    bench.clock.advance(KEY_MAX_AGE);
    bench.check(&bench.sign(&first)).await.unwrap();
    bench.settle(3).await;
    bench.check(&bench.sign(&first)).await.unwrap();

    bench.directory.is_down.store(false, Ordering::SeqCst);
    bench.publish(&[&second]);
    let before = bench.asked();
    bench.clock.advance(Duration::from_secs(1));
    bench.check(&bench.sign(&second)).await.unwrap();
    bench.settle(before + 1).await;
    bench.clock.advance(Duration::from_secs(1));
    assert!(bench.check(&bench.sign(&first)).await.is_err(), "it was taken back");
}

/// The claims with a signature of that key.
fn resign(signer: &Signer, claims: &Value) -> String {
    signer.sign_claims(claims).unwrap()
}

#[tokio::test]
async fn a_service_refuses_identities_of_workspaces_that_it_knows_to_be_suspended() {
    let signer = signer(7);
    let bench = Bench::new(&[&signer]);
    let token = bench.sign(&signer);
    let workspace = bench.check(&token).await.unwrap().workspace.unwrap();
    let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&bench.clock);
    let suspensions = Suspensions::in_memory(clock);
    let refusing = bench.verifier.refusing(suspensions.clone());
    refusing.authenticate(&metadata(&token)).await.unwrap();
    suspensions.set(workspace, true, 1).await.unwrap();
    let refusal = refusing.authenticate(&metadata(&token)).await.unwrap_err();
    assert_eq!(refusal.reason, crate::status::Reason::Unauthorized);
    bench.check(&token).await.unwrap();
    suspensions.set(workspace, false, 2).await.unwrap();
    refusing.authenticate(&metadata(&token)).await.unwrap();
}

#[tokio::test]
async fn a_service_that_presents_itself_calls_for_itself() {
    let signer = signer(7);
    let bench = Bench::new(&[&signer]);
    let service = Identity {
        principal: Principal { kind: PrincipalKind::Service, id: "gateway".into(), name: "gateway".into() },
        workspace: None,
        role: None,
        on_behalf_of: None,
        scope: Scope::All,
        plan: None,
        ..identity(bench.clock.now().plus(Duration::from_secs(300)))
    };
    let service = signer.sign(&service, bench.clock.now()).unwrap();
    let presented = |token: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(SERVICE_IDENTITY, token.parse().unwrap());
        headers
    };
    let call = bench.verifier.authenticate_call(&presented(&service)).await;
    assert_eq!(call.unwrap().principal.kind, PrincipalKind::Service);
    // Nobody else is let in by that header, and it stands for nobody beside another identity.
    let somebody = bench.sign(&signer);
    assert!(bench.verifier.authenticate_call(&presented(&somebody)).await.is_err());
    let mut both = presented(&service);
    both.insert(AUTHORIZATION, format!("Bearer {somebody}").parse().unwrap());
    let call = bench.verifier.authenticate_call(&both).await;
    assert_eq!(call.unwrap().principal.kind, PrincipalKind::Token);
    assert!(bench.verifier.authenticate_call(&HeaderMap::new()).await.is_err());
}
