//! The rules of webhooks: addresses to which the change feed of a workspace is sent, signed (ADR 98).
//!
//! `input` validates requests, `secret` signs, `message` builds the payloads, `schedule` decides on retries. `deliverer` claims webhooks
//! that are due, and watches which feeds move; `round` serves one of them; `upstream` has the clients of other services.

mod deliverer;
mod input;
mod message;
mod round;
mod schedule;
mod secret;
mod upstream;

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::Tx;
use cairn_chassis::status::Problem;
use cairn_proto::domain::{WebhookDeliveryState, limits};
use cairn_proto::ids::{FolderId, UserId, WebhookDeliveryId, WebhookId, WorkspaceId};
use tokio::time::Instant;

pub(crate) use self::deliverer::Deliverer;
pub(crate) use self::input::{Draft, Patch};
pub(crate) use self::schedule::{Outcome, USUAL_WAITS, Verdict};
use self::secret::Secrets;
pub(crate) use self::secret::{COLUMN, Secret};
pub(crate) use self::upstream::Remote;
#[cfg(test)]
pub(crate) use self::upstream::{Delegated, Moved, Upstream};
use crate::checks::Checks;
use crate::model::{Delivery, LastAttempt, Page, PageRequest, Positions, Webhook, WebhookDetails};
use crate::{Error, store};

/// How long the previous secret stays valid after a rotation.
const OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);
/// Greater than every id.
const AFTER_ALL: &str = "~";

/// The caller: an owner or admin.
#[derive(Debug, Clone)]
pub(crate) struct Manager {
    pub(crate) workspace: WorkspaceId,
    pub(crate) person: UserId,
    pub(crate) name: String,
}

/// The result of a ping.
#[derive(Debug)]
pub(crate) struct Tested {
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
}

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Webhooks {
    deliverer: Deliverer,
}

impl Webhooks {
    pub(crate) const fn new(deliverer: Deliverer) -> Self {
        Self { deliverer }
    }

    /// The webhooks of a workspace by name.
    pub(crate) async fn list(&self, manager: &Manager) -> Result<Vec<WebhookDetails>, Error> {
        let webhooks = store::webhooks::list(self.db(), manager.workspace).await?;
        let backlogs = store::webhook_deliveries::backlogs(self.db(), manager.workspace).await?;
        let shown = webhooks.into_iter().map(|webhook| {
            let backlog = backlogs.iter().find(|(id, _)| *id == webhook.id);
            let backlog = backlog.map(|(_, backlog)| *backlog).unwrap_or_default();
            WebhookDetails { webhook, dead_letters: backlog.dead, next_try_at: backlog.next_try_at }
        });
        Ok(shown.collect())
    }

    /// A webhook.
    pub(crate) async fn get(&self, manager: &Manager, id: &str) -> Result<WebhookDetails, Error> {
        let id = self.find(manager, id).await?.id;
        let listed = self.list(manager).await?;
        listed.into_iter().find(|shown| shown.webhook.id == id).ok_or_else(|| no_webhook(id))
    }

    /// Creates a webhook for changes from now on; returns its secret, too.
    pub(crate) async fn create(
        &self,
        manager: &Manager,
        draft: Draft,
    ) -> Result<(WebhookDetails, Secret), Error> {
        let checked = input::check(draft, &self.deliverer.guard)?;
        let workspace = manager.workspace;
        let positions = self.beginning(manager, &checked.folders).await?;
        let (id, now) = (self.deliverer.context.ids.next(), self.now());
        let secret = Secret::generate(self.deliverer.entropy.as_ref());
        let sealed = self.seal(&Secrets::of(secret.clone()), id)?;
        let webhook = Webhook {
            workspace,
            id,
            name: checked.name,
            url: checked.url,
            kinds: checked.kinds,
            folders: checked.folders,
            enabled: checked.enabled,
            disabled_reason: None,
            acts_for: manager.person,
            acts_for_name: manager.name.clone(),
            previous_until: None,
            positions,
            look_at: now,
            refused_since: None,
            given_up: 0,
            last: LastAttempt::default(),
            created_at: now,
            updated_at: now,
        };
        let mut tx = self.begin(workspace).await?;
        if store::webhooks::count(&mut tx, workspace).await? >= input::MAX_WEBHOOKS {
            return Err(input::too_many());
        }
        store::webhooks::insert(&mut tx, &webhook, &sealed).await?;
        tx.commit().await?;
        self.deliverer.wake();
        Ok((WebhookDetails { webhook, dead_letters: 0, next_try_at: None }, secret))
    }

    /// Applies a patch.
    pub(crate) async fn update(
        &self,
        manager: &Manager,
        id: &str,
        patch: Patch,
    ) -> Result<WebhookDetails, Error> {
        let id = parse_id(id)?;
        let mut tx = self.begin(manager.workspace).await?;
        let found = store::webhooks::find(&mut tx, manager.workspace, id).await?;
        let mut webhook = found.ok_or_else(|| no_webhook(id))?;
        self.apply(&mut webhook, patch, manager)?;
        let now = self.now();
        webhook.updated_at = now;
        if webhook.enabled {
            webhook.look_at = now;
        }
        store::webhooks::change(&mut tx, &webhook).await?;
        if webhook.enabled {
            // Retry open deliveries at once: the cause may be fixed.
            store::webhook_deliveries::hasten(&mut tx, (webhook.workspace, webhook.id), now).await?;
        }
        tx.commit().await?;
        self.deliverer.wake();
        self.get(manager, &id.to_string()).await
    }

    fn apply(&self, webhook: &mut Webhook, patch: Patch, manager: &Manager) -> Result<(), Error> {
        let mut checks = Checks::default();
        for unknown in &patch.unknown_fields {
            checks.violation("updateMask", "invalid", unknown.as_str());
        }
        let kept: Vec<String> = webhook.folders.iter().map(ToString::to_string).collect();
        if patch.folders.is_some_and(|given| given != kept) {
            let message = "a webhook keeps its folders: make another one";
            checks.violation("folderIds", "immutable", message);
        }
        if let Some(name) = patch.name {
            checks.line("name", &name, limits::LABEL_CHARS);
            webhook.name = name;
        }
        if let Some(url) = patch.url {
            input::url(&mut checks, &url, &self.deliverer.guard);
            webhook.url = url;
        }
        if let Some(given) = patch.kinds {
            webhook.kinds = input::kinds(&mut checks, &given);
        }
        checks.finish()?;
        match patch.enabled {
            Some(true) if !webhook.enabled => {
                webhook.enabled = true;
                webhook.acts_for = manager.person;
                webhook.acts_for_name.clone_from(&manager.name);
                webhook.disabled_reason = None;
                webhook.refused_since = None;
                webhook.given_up = 0;
                webhook.last.error = None;
            }
            Some(false) if webhook.enabled => {
                webhook.enabled = false;
                webhook.disabled_reason = None;
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    /// Removes a webhook with its deliveries.
    pub(crate) async fn delete(&self, manager: &Manager, id: &str) -> Result<(), Error> {
        let id = parse_id(id)?;
        let mut tx = self.begin(manager.workspace).await?;
        // Lock order: the webhook before its deliveries.
        if !store::webhooks::remove(&mut tx, manager.workspace, id).await? {
            return Err(no_webhook(id));
        }
        store::webhook_deliveries::remove_of(&mut tx, (manager.workspace, id)).await?;
        Ok(tx.commit().await?)
    }

    /// Rotates the secret of a webhook; the previous one stays valid for a day.
    pub(crate) async fn rotate(
        &self,
        manager: &Manager,
        id: &str,
    ) -> Result<(WebhookDetails, Secret), Error> {
        let id = parse_id(id)?;
        let workspace = manager.workspace;
        let mut tx = self.begin(workspace).await?;
        let sealed = store::webhooks::held_secrets(&mut tx, workspace, id).await?;
        let sealed = sealed.ok_or_else(|| no_webhook(id))?;
        let secret = Secret::generate(self.deliverer.entropy.as_ref());
        let now = self.now();
        let (secrets, until) = match Secrets::open(self.deliverer.keyring.as_deref(), id, &sealed) {
            Ok(before) => (before.rotated(secret.clone()), Some(now.plus(OVERLAP))),
            // Secrets that cannot be opened are replaced.
            Err(Error::Sealed(_)) => (Secrets::of(secret.clone()), None),
            Err(error) => return Err(error),
        };
        let sealed = self.seal(&secrets, id)?;
        store::webhooks::set_secrets(&mut tx, (workspace, id), &sealed, until, now).await?;
        tx.commit().await?;
        Ok((self.get(manager, &id.to_string()).await?, secret))
    }

    /// Sends a ping; returns the result.
    pub(crate) async fn test(&self, manager: &Manager, id: &str) -> Result<Tested, Error> {
        let webhook = self.find(manager, id).await?;
        let now = self.now();
        let body = message::ping(webhook.workspace, webhook.id, now);
        let ping: WebhookDeliveryId = self.deliverer.context.ids.next();
        let began = Instant::now();
        let outcome = self.deliverer.send(&webhook, &ping.to_string(), body).await?;
        Ok(Tested { outcome, took: began.elapsed() })
    }

    /// The deliveries of a webhook, newest first.
    pub(crate) async fn deliveries(
        &self,
        manager: &Manager,
        id: &str,
        state: Option<WebhookDeliveryState>,
        request: PageRequest,
    ) -> Result<Page<Delivery>, Error> {
        let webhook = self.find(manager, id).await?;
        let of = (webhook.workspace, webhook.id);
        let before = request.after.as_ref().map_or(AFTER_ALL, |after| &after.id);
        let found = store::webhook_deliveries::page(self.db(), of, state, before, request.fetch()).await?;
        let total = match request.known_total(found.len()) {
            Some(total) => total,
            None => store::webhook_deliveries::count(self.db(), of, state).await?,
        };
        Ok(request.page(found, total, |delivery| (String::new(), delivery.id.to_string())))
    }

    /// Requeues one dead letter, or all; returns how many.
    pub(crate) async fn replay(
        &self,
        manager: &Manager,
        id: &str,
        delivery: Option<&str>,
    ) -> Result<u64, Error> {
        let webhook = self.find(manager, id).await?;
        let (of, now) = ((webhook.workspace, webhook.id), self.now());
        let mut tx = self.begin(manager.workspace).await?;
        let replayed = match delivery {
            None => store::webhook_deliveries::replay_all(&mut tx, of, now).await?,
            Some(text) => {
                let no_delivery = || Error::NoDelivery(text.to_owned());
                let delivery: WebhookDeliveryId = text.parse().map_err(|_| no_delivery())?;
                match store::webhook_deliveries::state_of(&mut tx, of, delivery).await? {
                    None => return Err(no_delivery()),
                    Some(WebhookDeliveryState::Dead) => {
                        u64::from(store::webhook_deliveries::replay(&mut tx, of, delivery, now).await?)
                    }
                    // Delivered or open deliveries are not sent again.
                    Some(
                        WebhookDeliveryState::Pending
                        | WebhookDeliveryState::Delivered
                        | WebhookDeliveryState::Replaying,
                    ) => 0,
                }
            }
        };
        tx.commit().await?;
        store::webhooks::look(self.db(), webhook.workspace, webhook.id, now).await?;
        self.deliverer.wake();
        Ok(replayed)
    }

    /// Where the feeds are now. Asked for in the manager's name, so that folders which are not theirs are refused.
    async fn beginning(&self, manager: &Manager, folders: &[FolderId]) -> Result<Positions, Error> {
        let upstream = self.deliverer.upstream()?;
        let delegated = upstream.delegate(manager.workspace, manager.person, folders).await;
        let identity = delegated.map_err(Error::Upstream)?.ok_or_else(|| {
            Error::Upstream(Problem::forbidden("making webhooks needs the role 'owner' or 'admin'"))
        })?;
        if !folders.is_empty() {
            let live = upstream.live_folders(&identity).await.map_err(Error::Upstream)?;
            let mut checks = Checks::default();
            for (place, folder) in folders.iter().enumerate().filter(|(_, folder)| !live.contains(folder)) {
                let message = format!("there is no folder {folder} in this workspace, or it is in trash");
                checks.violation(&format!("folderIds[{place}]"), "not_found", message);
            }
            checks.finish()?;
        }
        let content = upstream.changes(&identity, None, 1).await.map_err(Error::Upstream)?.last;
        let ingest = self.deliverer.context.feed.head(manager.workspace).await?;
        Ok(Positions { content, ingest })
    }

    async fn find(&self, manager: &Manager, id: &str) -> Result<Webhook, Error> {
        let id = parse_id(id)?;
        let found = store::webhooks::get(self.db(), manager.workspace, id).await?;
        found.ok_or_else(|| no_webhook(id))
    }

    /// Serializes changes of one workspace's webhooks.
    async fn begin(&self, workspace: WorkspaceId) -> Result<Tx, Error> {
        let mut tx = self.db().begin_write().await?;
        tx.lock_name(&format!("ingest-webhooks-{workspace}")).await?;
        Ok(tx)
    }

    fn seal(&self, secrets: &Secrets, id: WebhookId) -> Result<crate::model::SealedCredentials, Error> {
        secrets.seal(self.deliverer.keyring.as_deref(), id, self.deliverer.entropy.as_ref())
    }

    fn db(&self) -> &cairn_chassis::sql::Db {
        &self.deliverer.context.db
    }

    fn now(&self) -> Timestamp {
        self.deliverer.context.clock.now()
    }
}

fn parse_id(text: &str) -> Result<WebhookId, Error> {
    text.parse().map_err(|_| Error::NoWebhook(text.to_owned()))
}

fn no_webhook(id: WebhookId) -> Error {
    Error::NoWebhook(id.to_string())
}
