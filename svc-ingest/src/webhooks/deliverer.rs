//! Claims webhooks that are due, executes their rounds, and watches which feeds move.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use cairn_chassis::entropy::Entropy;
use cairn_chassis::feed::{Source, WatchEvent};
use cairn_chassis::outbound::Guard;
use cairn_chassis::sealing::Keyring;
use cairn_chassis::status::Problem;
use cairn_proto::ids::{WebhookId, WorkspaceId};
use futures::{Stream, StreamExt as _};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request};
use tokio::sync::Notify;
use tokio::task::{self, JoinSet};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::schedule::Outcome;
use super::secret::Secrets;
use super::upstream::{Moved, Upstream};
use crate::context::Context;
use crate::model::Webhook;
use crate::{Error, store};

/// How often this process polls for webhooks that are due.
const POLL: Duration = Duration::from_millis(500);
/// The interval of rounds without a notification.
const IDLE: Duration = Duration::from_secs(60);
/// How long a claim lasts unless it is renewed.
pub(super) const TERM: Duration = Duration::from_secs(60);
/// Webhooks that this process serves concurrently, in all and of one workspace.
const MAX_AT_ONCE: usize = 16;
const MAX_OF_ONE: usize = 4;
const LOOKED_AT: i64 = 100;
/// Deadline of a delivery.
const PATIENCE: Duration = Duration::from_secs(15);
/// Debounce of feed notifications.
const GATHER: Duration = Duration::from_millis(100);
const HEADS_AT_ONCE: usize = 1_000;
/// Backoff between watches.
const RECONNECT: Duration = Duration::from_secs(1);
/// Retention of dead letters.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const SWEEP_EVERY: Duration = Duration::from_secs(60 * 60);
/// When svc-auth and svc-content are not known yet.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The webhook of each worker task of this process.
type Working = HashMap<task::Id, (WorkspaceId, WebhookId)>;

/// Delivers to the webhooks of all workspaces; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Deliverer {
    pub(super) context: Context,
    pub(super) guard: Guard,
    pub(super) keyring: Option<Arc<Keyring>>,
    pub(super) entropy: Arc<dyn Entropy>,
    /// Backoff between tries.
    pub(super) waits: Arc<[Duration]>,
    pub(super) holder: Arc<str>,
    upstream: Arc<OnceLock<Arc<dyn Upstream>>>,
    wake: Arc<Notify>,
}

impl Deliverer {
    pub(crate) fn new(
        context: Context,
        guard: Guard,
        keyring: Option<Arc<Keyring>>,
        entropy: Arc<dyn Entropy>,
        waits: Arc<[Duration]>,
    ) -> Self {
        let holder = context.ids.next::<Uuid>().to_string().into();
        let (upstream, wake) = Default::default();
        Self { context, guard, keyring, entropy, waits, holder, upstream, wake }
    }

    /// Sets the other services; only the first call has an effect.
    pub(crate) fn connect(&self, upstream: Arc<dyn Upstream>) {
        let _ = self.upstream.set(upstream);
    }

    pub(super) fn upstream(&self) -> Result<&Arc<dyn Upstream>, Error> {
        let unknown =
            || Error::Upstream(Problem::unavailable("the other services are not known yet", RETRY_AFTER));
        self.upstream.get().ok_or_else(unknown)
    }

    /// Wakes the deliverer: a webhook may be due.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Claims and serves webhooks until the shutdown.
    pub(crate) async fn run(&self, shutdown: &CancellationToken) {
        if !self.context.db.is_shared() {
            // No other process uses the storage: all leases are from before a restart of this one.
            if let Err(error) =
                store::webhooks::expire_all_leases(&self.context.db, self.context.clock.now()).await
            {
                tracing::warn!(%error, "deliveries to webhooks that were cut short go on later");
            }
        }
        tokio::join!(self.deliver(shutdown), self.hear_content(shutdown), self.hear_ingest(shutdown));
    }

    async fn deliver(&self, shutdown: &CancellationToken) {
        let mut workers = JoinSet::new();
        let mut working = Working::new();
        let mut sweeps = tokio::time::interval(SWEEP_EVERY);
        while !shutdown.is_cancelled() {
            if let Err(error) = self.step(&mut workers, &mut working, shutdown).await {
                tracing::warn!(%error, "webhooks cannot be looked for now; trying again");
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.wake.notified() => {}
                () = tokio::time::sleep(POLL) => {}
                _ = sweeps.tick() => self.sweep().await,
                Some(done) = workers.join_next_with_id() => {
                    let id = done.map_or_else(|lost| lost.id(), |(id, ())| id);
                    working.remove(&id);
                }
            }
        }
        // Workers see the shutdown themselves, and release their webhooks.
        while workers.join_next().await.is_some() {}
    }

    async fn step(
        &self,
        workers: &mut JoinSet<()>,
        working: &mut Working,
        shutdown: &CancellationToken,
    ) -> Result<(), Error> {
        if working.len() >= MAX_AT_ONCE || self.upstream.get().is_none() {
            return Ok(());
        }
        let now = self.context.clock.now();
        for webhook in store::webhooks::claimable(&self.context.db, now, LOOKED_AT).await? {
            if working.len() >= MAX_AT_ONCE {
                break;
            }
            let of_one = working.values().filter(|(workspace, _)| *workspace == webhook.workspace).count();
            if of_one >= MAX_OF_ONE || working.values().any(|(_, id)| *id == webhook.id) {
                continue;
            }
            if self.claim(&webhook).await? {
                let whose = (webhook.workspace, webhook.id);
                let (deliverer, shutdown) = (self.clone(), shutdown.clone());
                let worker = workers.spawn(async move { deliverer.perform(webhook, &shutdown).await });
                working.insert(worker.id(), whose);
            }
        }
        Ok(())
    }

    /// Claims a webhook; `None` if another process was faster.
    pub(crate) async fn claim(&self, webhook: &Webhook) -> Result<bool, Error> {
        let now = self.context.clock.now();
        let (until, again) = (now.plus(TERM), now.plus(IDLE));
        Ok(store::webhooks::claim(&self.context.db, webhook, &self.holder, until, again, now).await?)
    }

    /// Serves a claimed webhook until it has nothing more to do.
    pub(crate) async fn perform(&self, webhook: Webhook, shutdown: &CancellationToken) {
        let (workspace, id) = (webhook.workspace, webhook.id);
        if let Err(error) = self.attend(webhook, shutdown).await {
            // The next worker resumes from the stored state.
            tracing::warn!(%workspace, webhook = %id, %error, "deliveries to a webhook were cut short");
        }
    }

    /// Sends a signed message once; returns the result.
    pub(super) async fn send(&self, webhook: &Webhook, id: &str, body: Bytes) -> Result<Outcome, Error> {
        let sealed = store::webhooks::secrets(&self.context.db, webhook.workspace, webhook.id).await?;
        let sealed = sealed.ok_or_else(|| Error::NoWebhook(webhook.id.to_string()))?;
        let secrets = match Secrets::open(self.keyring.as_deref(), webhook.id, &sealed) {
            Ok(secrets) => secrets,
            Err(Error::Sealed(reason)) => {
                tracing::warn!(webhook = %webhook.id, %reason, "the secret of a webhook does not open");
                return Ok(Outcome::unanswered("its secret can no longer be opened: give it another one"));
            }
            Err(error) => return Err(error),
        };
        let now = self.context.clock.now();
        let signatures = secrets.signatures(id, now, &body, webhook.previous_until)?;
        let request = Request::post(&webhook.url)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header("webhook-id", id)
            .header("webhook-timestamp", now.as_seconds())
            .header("webhook-signature", signatures)
            .body(body);
        let Ok(request) = request else {
            return Ok(Outcome::unanswered("the address cannot be used"));
        };
        Ok(match self.guard.deliver(request, PATIENCE).await {
            Ok(answer) => {
                Outcome::of_status(answer.status(), cairn_providers::retry_after(answer.headers(), now))
            }
            Err(refused) => Outcome::unanswered(refused.to_string()),
        })
    }

    async fn sweep(&self) {
        let before = self.context.clock.now().as_micros();
        let kept = i64::try_from(KEPT_FOR.as_micros()).unwrap_or(i64::MAX);
        let before = cairn_chassis::clock::Timestamp::from_micros(before.saturating_sub(kept));
        if let Err(error) = store::webhook_deliveries::forget_old(&self.context.db, before).await {
            tracing::warn!(%error, "old dead letters of webhooks cannot be forgotten now");
        }
    }

    async fn hear_content(&self, shutdown: &CancellationToken) {
        while !shutdown.is_cancelled() {
            let watched = async {
                let upstream = self.upstream()?;
                let told = upstream.watch().await.map_err(Error::Upstream)?;
                self.hear(Source::Content, told.filter_map(async |moved| moved.ok())).await;
                Ok::<_, Error>(())
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                heard = watched => if let Err(error) = heard {
                    tracing::debug!(%error, "the feeds of svc-content cannot be watched now");
                },
            }
            pause(RECONNECT, shutdown).await;
        }
    }

    async fn hear_ingest(&self, shutdown: &CancellationToken) {
        while !shutdown.is_cancelled() {
            let told = self.context.feed.watch().filter_map(async |event| match event {
                Ok(WatchEvent::Head(head)) => {
                    Some(Moved { workspace: head.workspace, position: head.position })
                }
                Ok(WatchEvent::EveryHead) | Err(_) => None,
            });
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.hear(Source::Ingest, told) => {}
            }
            pause(RECONNECT, shutdown).await;
        }
    }

    /// Makes webhooks due whose feed has moved, until the stream ends.
    async fn hear(&self, feed: Source, told: impl Stream<Item = Moved> + Send) {
        let mut told = std::pin::pin!(told.ready_chunks(HEADS_AT_ONCE));
        while let Some(moved) = told.next().await {
            let mut heads = HashMap::new();
            for Moved { workspace, position } in moved {
                let head = heads.entry(workspace).or_insert(0_u64);
                *head = position.max(*head);
            }
            if let Err(error) = self.notice(feed, &heads).await {
                // They are due in a minute anyway.
                tracing::warn!(%error, "webhooks cannot be told of changes now");
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    /// Makes webhooks due that are behind this position.
    pub(crate) async fn notice(&self, feed: Source, heads: &HashMap<WorkspaceId, u64>) -> Result<(), Error> {
        let now = self.context.clock.now();
        let mut is_due = false;
        for (workspace, id, positions) in store::webhooks::idle(&self.context.db, heads, now).await? {
            let told = match feed {
                Source::Content => positions.content,
                Source::Ingest => positions.ingest,
            };
            if heads.get(&workspace).is_some_and(|head| *head > told) {
                store::webhooks::look(&self.context.db, workspace, id, now).await?;
                is_due = true;
            }
        }
        if is_due {
            self.wake();
        }
        Ok(())
    }
}

async fn pause(time: Duration, shutdown: &CancellationToken) {
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = tokio::time::sleep(time) => {}
    }
}
