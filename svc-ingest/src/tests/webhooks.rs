//! What becomes of deliveries to webhooks: on every engine, with a clock that stands and services that a test scripts.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU16};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use cairn_chassis::clock::{ManualClock, Timestamp};
use cairn_chassis::entropy::Entropy;
use cairn_chassis::feed::Source;
use cairn_chassis::sealing::Keyring;
use cairn_chassis::status::Problem;
use cairn_proto::domain::{WebhookDeliveryState, WebhookStatus};
use cairn_proto::feed::v1::{Kind, ListChangesResponse, Op, SeenChange};
use cairn_proto::ids::UserId;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http::{HeaderMap, StatusCode};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::model::{Delivery, PageRequest, SOURCE_PAGES, WebhookDetails};
use crate::webhooks::{
    Delegated, Deliverer, Draft as WebhookDraft, Manager, Moved, Patch, Upstream, Webhooks,
};

const WAITS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(100)];
const MINUTE: Duration = Duration::from_secs(60);

/// svc-auth and svc-content, as far as webhooks ask them.
#[derive(Debug, Default)]
struct Scripted {
    /// Ids of files, of which each is a change.
    files: Mutex<Vec<String>>,
    refuses: AtomicBool,
    asked_for: Mutex<Vec<FolderId>>,
}

impl Scripted {
    fn write(&self, file: &str) {
        self.files.lock().unwrap().push(file.to_owned());
    }
}

#[async_trait::async_trait]
impl Upstream for Scripted {
    async fn delegate(
        &self,
        _: WorkspaceId,
        _: UserId,
        folders: &[FolderId],
    ) -> Result<Option<Delegated>, Problem> {
        *self.asked_for.lock().unwrap() = folders.to_vec();
        Ok((!self.refuses.load(Ordering::Relaxed)).then(|| Delegated("signed".to_owned())))
    }

    async fn live_folders(&self, _: &Delegated) -> Result<HashSet<FolderId>, Problem> {
        Ok([FolderId(Uuid::from_u128(9))].into())
    }

    async fn changes(
        &self,
        _: &Delegated,
        after: Option<u64>,
        limit: u32,
    ) -> Result<ListChangesResponse, Problem> {
        let files = self.files.lock().unwrap();
        let head = files.len() as u64;
        let Some(after) = after else {
            return Ok(ListChangesResponse { last: head, ..ListChangesResponse::default() });
        };
        let read =
            (after + 1..=head).zip(files.iter().skip(usize::try_from(after).unwrap())).take(limit as usize);
        let changes: Vec<SeenChange> = read
            .map(|(position, file)| SeenChange {
                position,
                kind: Kind::File.into(),
                item_id: file.clone(),
                op: Op::Upsert.into(),
                ..SeenChange::default()
            })
            .collect();
        let last = changes.last().map_or(after, |change| change.position);
        Ok(ListChangesResponse { has_more: last < head, changes, last })
    }

    async fn watch(&self) -> Result<BoxStream<'static, Result<Moved, Problem>>, Problem> {
        Ok(stream::pending().boxed())
    }
}

/// What receives messages.
#[derive(Debug, Clone, Default)]
struct Receiver {
    status: Arc<AtomicU16>,
    received: Arc<Mutex<Vec<(String, String)>>>,
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: String) -> StatusCode {
    let id = headers["webhook-id"].to_str().unwrap().to_owned();
    receiver.received.lock().unwrap().push((id, body));
    StatusCode::from_u16(receiver.status.load(Ordering::Relaxed)).unwrap()
}

impl Receiver {
    async fn start() -> (Self, SocketAddr) {
        let receiver = Self::default();
        receiver.answer_with(200);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new().fallback(receive).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        (receiver, address)
    }

    fn answer_with(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    fn received(&self) -> Vec<(String, String)> {
        self.received.lock().unwrap().clone()
    }
}

struct Stand {
    bench: Bench,
    clock: Arc<ManualClock>,
    upstream: Arc<Scripted>,
    receiver: Receiver,
    address: SocketAddr,
    deliverer: Deliverer,
    webhooks: Webhooks,
    manager: Manager,
    ring: Option<Arc<Keyring>>,
}

async fn stands() -> Vec<Stand> {
    let mut stands = Vec::new();
    for bench in benches().await {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(7));
        let ring = Some(Arc::new(Keyring::generate(entropy.as_ref())));
        let (receiver, address) = Receiver::start().await;
        let upstream = Arc::<Scripted>::default();
        let deliverer = process(&bench, &clock, &ring, &upstream);
        let webhooks = Webhooks::new(deliverer.clone());
        let person = UserId(Uuid::from_u128(5));
        let manager = Manager { workspace: workspace(1), person, name: "Ada".to_owned() };
        stands.push(Stand { bench, clock, upstream, receiver, address, deliverer, webhooks, manager, ring });
    }
    stands
}

/// A process on the storage.
fn process(
    bench: &Bench,
    clock: &Arc<ManualClock>,
    ring: &Option<Arc<Keyring>>,
    upstream: &Arc<Scripted>,
) -> Deliverer {
    let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
    let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(SEED.fetch_add(1, Ordering::Relaxed)));
    let context = Context {
        feed: Feed::new(bench.context.db.clone(), Arc::clone(&shared)),
        ids: IdSource::new(Arc::clone(&shared), Arc::clone(&entropy)),
        clock: shared,
        ..bench.context.clone()
    };
    let guard = Guard::new(&["127.0.0.1/32".parse().unwrap()]).unwrap();
    let deliverer = Deliverer::new(context, guard, ring.clone(), entropy, WAITS.into());
    let upstream: Arc<dyn Upstream> = Arc::<Scripted>::clone(upstream);
    deliverer.connect(upstream);
    deliverer
}

impl Stand {
    fn engine(&self) -> &str {
        self.bench.test.engine
    }

    fn draft(&self) -> WebhookDraft {
        WebhookDraft {
            name: "Hook".to_owned(),
            url: format!("http://{}/hook", self.address),
            enabled: true,
            ..WebhookDraft::default()
        }
    }

    async fn make(&self) -> String {
        let (shown, _) = self.webhooks.create(&self.manager, self.draft()).await.unwrap();
        shown.webhook.id.to_string()
    }

    async fn shown(&self, id: &str) -> WebhookDetails {
        self.webhooks.get(&self.manager, id).await.unwrap()
    }

    async fn deliveries(&self, id: &str, state: Option<WebhookDeliveryState>) -> Vec<Delivery> {
        let first = PageRequest::new(SOURCE_PAGES, 0, "").unwrap();
        self.webhooks.deliveries(&self.manager, id, state, first).await.unwrap().items
    }

    /// Takes what is due and works on it; how many webhooks that were.
    async fn work(&self, deliverer: &Deliverer) -> usize {
        self.clock.advance(Duration::from_millis(10));
        let now = self.clock.now();
        let mut worked = 0;
        for webhook in store::webhooks::claimable(&self.bench.context.db, now, 10).await.unwrap() {
            if deliverer.claim(&webhook).await.unwrap() {
                deliverer.perform(webhook, &CancellationToken::new()).await;
                worked += 1;
            }
        }
        worked
    }

    async fn change(&self, file: &str) {
        self.upstream.write(file);
        let head = self.upstream.files.lock().unwrap().len() as u64;
        let heads = HashMap::from([(self.manager.workspace, head)]);
        self.deliverer.notice(Source::Content, &heads).await.unwrap();
    }
}

#[tokio::test]
async fn what_changes_is_sent_once_and_nothing_from_before() {
    for stand in stands().await {
        stand.upstream.write("before");
        let id = stand.make().await;
        assert_eq!(stand.work(&stand.deliverer).await, 1, "{}", stand.engine());
        assert_eq!(stand.receiver.received().len(), 0);
        assert_eq!(stand.work(&stand.deliverer).await, 0, "nothing is due");
        stand.change("after").await;
        assert_eq!(stand.work(&stand.deliverer).await, 1, "a notice makes it due");
        let received = stand.receiver.received();
        assert!(received.len() == 1 && received[0].1.contains("\"after\""), "{received:?}");
        // What comes from outside is told as well.
        stand.bench.take("a", "a", "a").await.unwrap();
        let heads = HashMap::from([(stand.manager.workspace, 1)]);
        stand.deliverer.notice(Source::Ingest, &heads).await.unwrap();
        stand.work(&stand.deliverer).await;
        assert!(stand.receiver.received()[1].1.contains("\"kind\":\"ingested\""));
        // Without a notice a look each minute finds it.
        stand.upstream.write("unheard");
        assert_eq!(stand.work(&stand.deliverer).await, 0);
        stand.clock.advance(MINUTE);
        assert_eq!(stand.work(&stand.deliverer).await, 1);
        assert!(stand.receiver.received()[2].1.contains("\"unheard\""));
        let shown = stand.shown(&id).await;
        assert_eq!((shown.webhook.status(), shown.webhook.last.status), (WebhookStatus::Active, Some(200)));
        let arrived = store::webhook_deliveries::contents(
            &stand.bench.context.db,
            (shown.webhook.workspace, shown.webhook.id),
            stand.deliveries(&id, None).await[0].id,
        );
        assert_eq!(arrived.await.unwrap().unwrap().changes, "[]", "what has arrived is not kept");
        assert_eq!(stand.bench.faults().await, Vec::<String>::new(), "{}", stand.engine());
    }
}

#[tokio::test]
async fn many_changes_come_in_messages_of_a_hundred_and_in_order() {
    for stand in stands().await {
        stand.make().await;
        for number in 0..250 {
            stand.upstream.write(&format!("f{number}"));
        }
        while stand.work(&stand.deliverer).await > 0 {}
        let told: Vec<usize> =
            stand.receiver.received().iter().map(|(_, body)| body.matches("\"kind\"").count()).collect();
        assert_eq!(told, [100, 100, 50], "{}", stand.engine());
    }
}

#[tokio::test]
async fn a_delivery_is_tried_until_it_is_given_up_and_can_be_replayed() {
    for stand in stands().await {
        let id = stand.make().await;
        stand.receiver.answer_with(500);
        stand.change("lost").await;
        stand.work(&stand.deliverer).await;
        assert_eq!(stand.shown(&id).await.webhook.status(), WebhookStatus::Failing, "{}", stand.engine());
        stand.change("later").await;
        assert_eq!(stand.work(&stand.deliverer).await, 0, "what comes after waits");
        for wait in WAITS {
            // Chance adds a fifth at most.
            stand.clock.advance(wait + wait / 5);
            stand.work(&stand.deliverer).await;
        }
        let dead = stand.deliveries(&id, Some(WebhookDeliveryState::Dead)).await;
        assert_eq!((dead.len(), dead[0].tries, dead[0].last_status), (1, 3, Some(500)));
        assert_eq!(stand.bench.faults().await, Vec::<String>::new());
        stand.receiver.answer_with(200);
        stand.clock.advance(WAITS[0] * 2);
        stand.work(&stand.deliverer).await;
        let before = stand.receiver.received();
        assert!(before.last().unwrap().1.contains("\"later\""), "the webhook goes on");
        let letter = dead[0].id.to_string();
        assert_eq!(stand.webhooks.replay(&stand.manager, &id, Some(&letter)).await.unwrap(), 1);
        stand.work(&stand.deliverer).await;
        assert_eq!(stand.receiver.received().last().unwrap(), &before[0], "the same id and body");
        assert_eq!(stand.webhooks.replay(&stand.manager, &id, None).await.unwrap(), 0);
        assert!(matches!(
            stand.webhooks.replay(&stand.manager, &id, Some(&id)).await,
            Err(Error::NoDelivery(_))
        ));
    }
}

#[tokio::test]
async fn five_dead_letters_in_a_row_disable_a_webhook_and_whoever_enables_it_takes_it_over() {
    for stand in stands().await {
        let id = stand.make().await;
        stand.receiver.answer_with(404);
        for number in 0..5 {
            stand.change(&format!("f{number}")).await;
            for wait in [Duration::ZERO, WAITS[0] * 2, WAITS[1] * 2] {
                stand.clock.advance(wait);
                stand.work(&stand.deliverer).await;
            }
        }
        let shown = stand.shown(&id).await;
        assert_eq!(
            (shown.webhook.status(), shown.dead_letters),
            (WebhookStatus::Disabled, 5),
            "{}",
            stand.engine()
        );
        assert!(shown.webhook.disabled_reason.unwrap().contains("5 deliveries"));
        let other = Manager { person: UserId(Uuid::from_u128(6)), ..stand.manager.clone() };
        let on = Patch { enabled: Some(true), ..Patch::default() };
        let shown = stand.webhooks.update(&other, &id, on).await.unwrap();
        assert_eq!((shown.webhook.acts_for, shown.webhook.given_up), (other.person, 0));
    }
}

#[tokio::test]
async fn a_webhook_that_is_held_is_nobody_elses_until_its_holder_is_lost() {
    for stand in stands().await {
        stand.make().await;
        stand.work(&stand.deliverer).await;
        stand.change("a").await;
        let other = process(&stand.bench, &stand.clock, &stand.ring, &stand.upstream);
        stand.clock.advance(Duration::from_millis(10));
        let due = store::webhooks::claimable(&stand.bench.context.db, stand.clock.now(), 10).await.unwrap();
        // Accepted, and lost before anything was done.
        assert!(stand.deliverer.claim(&due[0]).await.unwrap());
        stand.change("b").await;
        assert!(!other.claim(&due[0]).await.unwrap(), "{}", stand.engine());
        assert_eq!(stand.work(&other).await, 0);
        stand.clock.advance(MINUTE);
        assert_eq!(stand.work(&other).await, 1);
        let received = stand.receiver.received();
        assert!(received[0].1.contains("\"a\"") && received[0].1.contains("\"b\""), "{received:?}");
    }
}

#[tokio::test]
async fn nothing_is_sent_for_who_may_not_and_a_passing_refusal_disables_nothing() {
    for stand in stands().await {
        let folder = FolderId(Uuid::from_u128(9));
        let draft = WebhookDraft { folders: vec![folder.to_string()], ..stand.draft() };
        let (shown, _) = stand.webhooks.create(&stand.manager, draft).await.unwrap();
        let id = shown.webhook.id.to_string();
        stand.upstream.refuses.store(true, Ordering::Relaxed);
        stand.change("a").await;
        stand.work(&stand.deliverer).await;
        assert!(stand.shown(&id).await.webhook.enabled, "{}", stand.engine());
        stand.upstream.refuses.store(false, Ordering::Relaxed);
        stand.clock.advance(Duration::from_secs(11));
        stand.work(&stand.deliverer).await;
        assert_eq!(stand.receiver.received().len(), 1);
        assert_eq!(*stand.upstream.asked_for.lock().unwrap(), [folder], "within its folders");
        stand.upstream.refuses.store(true, Ordering::Relaxed);
        stand.change("b").await;
        for _ in 0..2 {
            stand.clock.advance(Duration::from_secs(11));
            stand.work(&stand.deliverer).await;
        }
        let shown = stand.shown(&id).await;
        assert!(!shown.webhook.enabled && stand.receiver.received().len() == 1);
        assert!(shown.webhook.disabled_reason.unwrap().contains("Ada"));
    }
}

#[tokio::test]
async fn webhooks_are_of_their_workspace_and_go_with_it() {
    for stand in stands().await {
        let id = stand.make().await;
        stand.receiver.answer_with(500);
        stand.change("a").await;
        stand.work(&stand.deliverer).await;
        let other = Manager { workspace: workspace(2), ..stand.manager.clone() };
        assert!(matches!(stand.webhooks.get(&other, &id).await, Err(Error::NoWebhook(_))));
        assert!(matches!(stand.webhooks.rotate(&other, &id).await, Err(Error::NoWebhook(_))));
        assert!(matches!(stand.webhooks.delete(&other, &id).await, Err(Error::NoWebhook(_))));
        assert_eq!(stand.deliveries(&id, None).await.len(), 1, "{}", stand.engine());
        for _ in 1..20 {
            stand.make().await;
        }
        let more = stand.webhooks.create(&stand.manager, stand.draft()).await;
        assert!(matches!(more, Err(Error::LimitExceeded(_))));
        stand.webhooks.delete(&stand.manager, &id).await.unwrap();
        assert_eq!(stand.bench.faults().await, Vec::<String>::new());
        let rows = store::removal::rows(stand.bench.context.db.clone());
        while !cairn_chassis::lifecycle::Purge::purge(&rows, workspace(1)).await.unwrap() {}
        assert!(stand.webhooks.list(&stand.manager).await.unwrap().is_empty());
    }
}
