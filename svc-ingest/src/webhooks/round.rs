//! The round of a claimed webhook. A delivery is stored in one transaction with the feed positions, then sent until it succeeds or is
//! given up; then the feeds are read on. An interrupted round resumes from the stored state.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::changes::VisibleChange;
use cairn_proto::domain::{ChangeKind, WebhookDeliveryState as State};
use tokio_util::sync::CancellationToken;

use super::deliverer::{Deliverer, TERM};
use super::message::{self, Change};
use super::schedule::{self, Outcome, Verdict};
use super::upstream::Delegated;
use crate::model::{Delivery, Positions, Webhook};
use crate::{Error, store};

/// Changes of one delivery.
const MAX_CHANGES: u32 = 100;
/// Rounds in a row before other webhooks are served.
const MAX_ROUNDS: u32 = 50;
/// Open deliveries of one query.
const LOOKED_AT: i64 = 20;
/// Time to live of an identity: bounds how long a revoked role is still used.
const DELEGATED_FOR: Duration = Duration::from_secs(2);
/// Backoff after a failed call to another service.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// A webhook whose owner has been refused for this long is disabled. Deleted workspaces are suspended sooner, so their webhooks stay.
const REFUSED_FOR: Duration = Duration::from_secs(10);
/// Dead letters in a row after which a webhook is disabled: days, with the default backoff.
const MAX_GIVEN_UP: u32 = 5;
/// Deliveries of a webhook that are retained.
const KEPT_DEAD: i64 = 100;
const KEPT_DELIVERED: i64 = 50;

/// What follows a round.
enum Next {
    /// Another round at once.
    Round,
    /// A round at that time, or earlier when notified.
    Rest(Timestamp),
    /// The webhook is gone, or the lease was lost.
    Over,
}

/// A cached identity, and its expiry.
type CachedIdentity = Option<(Delegated, Timestamp)>;

/// The changes after the positions of a webhook.
struct Read {
    changes: Vec<Change>,
    positions: Positions,
    has_more: bool,
}

impl Deliverer {
    /// Serves a claimed webhook, and releases it.
    pub(super) async fn attend(&self, webhook: Webhook, shutdown: &CancellationToken) -> Result<(), Error> {
        let mut identity = None;
        // After an error, the webhook is due again soon.
        let mut rest = self.now();
        for _ in 0..MAX_ROUNDS {
            let until = self.now().plus(TERM);
            if !store::webhooks::renew(&self.context.db, &webhook, &self.holder, until).await? {
                break;
            }
            let round = self.round(&webhook, &mut identity);
            let next = tokio::select! {
                next = round => next?,
                // At-least-once: a delivery whose result was not stored is sent again with the same id.
                () = shutdown.cancelled() => break,
            };
            match next {
                Next::Round => rest = self.now(),
                Next::Rest(until) => {
                    rest = until;
                    break;
                }
                Next::Over => break,
            }
        }
        Ok(store::webhooks::release(&self.context.db, &webhook, &self.holder, rest).await?)
    }

    async fn round(&self, held: &Webhook, identity: &mut CachedIdentity) -> Result<Next, Error> {
        // Read again: the webhook may have changed meanwhile.
        let found = store::webhooks::get(&self.context.db, held.workspace, held.id).await?;
        let Some(webhook) = found.filter(|webhook| webhook.enabled) else { return Ok(Next::Over) };
        let of = (webhook.workspace, webhook.id);
        let open = store::webhook_deliveries::open(&self.context.db, of, LOOKED_AT).await?;
        let now = self.now();
        let due = open.iter().find(|delivery| delivery.next_try_at.is_none_or(|at| at <= now));
        let has_pending = open.iter().any(|delivery| delivery.state == State::Pending);
        let later = open.iter().filter_map(|delivery| delivery.next_try_at).min();
        if due.is_none() && has_pending {
            return Ok(Next::Rest(later.unwrap_or(now)));
        }
        let delegated = match self.identity(&webhook, identity).await? {
            Ok(delegated) => delegated,
            Err(next) => return Ok(next),
        };
        if let Some(delivery) = due {
            return self.try_delivery(&webhook, delivery.clone()).await;
        }
        let read = match self.read(&webhook, &delegated).await {
            Ok(read) => read,
            Err(Error::Upstream(problem)) => {
                tracing::warn!(webhook = %webhook.id, %problem, "the changes for a webhook cannot be read now");
                return Ok(Next::Rest(now.plus(ASK_AGAIN)));
            }
            Err(error) => return Err(error),
        };
        let goes_on = read.has_more || !read.changes.is_empty();
        if read.positions != webhook.positions && !self.write(&webhook, &read).await? {
            return Ok(Next::Over);
        }
        let idle = Timestamp::from_micros(i64::MAX);
        Ok(if goes_on { Next::Round } else { Next::Rest(later.unwrap_or(idle)) })
    }

    /// The identity for this round, or what follows without one.
    async fn identity(
        &self,
        webhook: &Webhook,
        kept: &mut CachedIdentity,
    ) -> Result<Result<Delegated, Next>, Error> {
        let now = self.now();
        if let Some((identity, _)) = kept.as_ref().filter(|(_, until)| now < *until) {
            return Ok(Ok(identity.clone()));
        }
        let upstream = self.upstream()?;
        match upstream.delegate(webhook.workspace, webhook.acts_for, &webhook.folders).await {
            Ok(Some(identity)) => {
                if webhook.refused_since.is_some() {
                    store::webhooks::allowed(&self.context.db, webhook).await?;
                }
                *kept = Some((identity.clone(), now.plus(DELEGATED_FOR)));
                Ok(Ok(identity))
            }
            Ok(None) => Ok(Err(self.refuse(webhook, now).await?)),
            Err(problem) => {
                tracing::warn!(webhook = %webhook.id, %problem, "nobody says whether a webhook may go on; trying again");
                Ok(Err(Next::Rest(now.plus(ASK_AGAIN))))
            }
        }
    }

    async fn refuse(&self, webhook: &Webhook, now: Timestamp) -> Result<Next, Error> {
        match webhook.refused_since {
            Some(since) if now.since(since) >= REFUSED_FOR => {
                let reason = format!(
                    "{}, for whom it acts, is no longer owner or admin of the workspace: enable it to take it over",
                    webhook.acts_for_name
                );
                let mut tx = self.context.db.begin_write().await?;
                store::webhooks::disable(&mut tx, webhook, &reason, now).await?;
                tx.commit().await?;
                Ok(Next::Over)
            }
            Some(since) => Ok(Next::Rest(since.plus(REFUSED_FOR))),
            None => {
                store::webhooks::refused(&self.context.db, webhook, now).await?;
                Ok(Next::Rest(now.plus(REFUSED_FOR)))
            }
        }
    }

    /// Reads the subscribed changes of both feeds after the positions of a webhook.
    async fn read(&self, webhook: &Webhook, identity: &Delegated) -> Result<Read, Error> {
        let Positions { content, ingest } = webhook.positions;
        let told = self.upstream()?.changes(identity, Some(content), MAX_CHANGES).await;
        let told = told.map_err(Error::Upstream)?;
        let mut read = Read {
            changes: Vec::new(),
            positions: Positions { content: told.last, ingest },
            has_more: told.has_more,
        };
        let looked_at = u32::try_from(told.changes.len()).unwrap_or(u32::MAX);
        let wanted = |kind: ChangeKind| webhook.kinds.is_empty() || webhook.kinds.contains(&kind);
        let of_content = told.changes.into_iter().filter_map(Change::of_content);
        read.changes.extend(of_content.filter(|(kind, _)| wanted(*kind)).map(|(_, change)| change));
        // Documents of this service are in no folder.
        let room = MAX_CHANGES.saturating_sub(looked_at);
        if !webhook.folders.is_empty() || room == 0 {
            read.has_more |= room == 0;
            return Ok(read);
        }
        let dated = self.context.feed.read_dated(webhook.workspace, ingest, room).await?;
        read.has_more |= u32::try_from(dated.len()).is_ok_and(|count| count >= room);
        if let Some(last) = dated.last() {
            read.positions.ingest = last.change.position;
        }
        let of_ingest = dated.into_iter().map(VisibleChange::of).filter_map(Change::of_ingest);
        read.changes.extend(of_ingest.filter(|(kind, _)| wanted(*kind)).map(|(_, change)| change));
        Ok(read)
    }

    /// Stores a delivery and the feed positions in one transaction; `false` if the lease was lost.
    async fn write(&self, webhook: &Webhook, read: &Read) -> Result<bool, Error> {
        let mut tx = self.context.db.begin_write().await?;
        if !store::webhooks::move_on(&mut tx, webhook, &self.holder, read.positions).await? {
            tx.rollback().await?;
            return Ok(false);
        }
        if !read.changes.is_empty() {
            let contents = message::contents(&read.changes, read.positions)?;
            let count = u32::try_from(read.changes.len()).unwrap_or(u32::MAX);
            let (of, id, now) = ((webhook.workspace, webhook.id), self.context.ids.next(), self.now());
            store::webhook_deliveries::insert(&mut tx, of, id, &contents, count, now).await?;
        }
        tx.commit().await?;
        Ok(true)
    }

    async fn try_delivery(&self, webhook: &Webhook, delivery: Delivery) -> Result<Next, Error> {
        let of = (webhook.workspace, webhook.id);
        let contents = store::webhook_deliveries::contents(&self.context.db, of, delivery.id).await?;
        // It was removed, with its webhook or by retention.
        let Some(contents) = contents else { return Ok(Next::Round) };
        let body = message::changes(webhook.workspace, &contents, delivery.created_at);
        let outcome = self.send(webhook, &delivery.id.to_string(), body).await?;
        self.conclude(webhook, delivery, outcome).await
    }

    /// Stores the result of a try, and its consequences for the webhook.
    async fn conclude(
        &self,
        webhook: &Webhook,
        mut delivery: Delivery,
        outcome: Outcome,
    ) -> Result<Next, Error> {
        let now = self.now();
        let mut last = webhook.last.clone();
        let mut given_up = webhook.given_up;
        let was_pending = delivery.state == State::Pending;
        delivery.tries = delivery.tries.saturating_add(1);
        delivery.last_tried_at = Some(now);
        delivery.last_status = outcome.status;
        delivery.last_error = Some(outcome.message).filter(|message| !message.is_empty());
        last.tried_at = Some(now);
        last.status = outcome.status;
        last.error.clone_from(&delivery.last_error);
        let mut result = outcome.verdict.as_str();
        let mut disabled = None;
        match outcome.verdict {
            Verdict::Arrived => {
                delivery.state = State::Delivered;
                delivery.next_try_at = None;
                last.delivered_at = Some(now);
                given_up = 0;
            }
            Verdict::Gone => {
                delivery.next_try_at = Some(now);
                disabled.clone_from(&delivery.last_error);
            }
            Verdict::Failed => {
                let (tries, asked) = (delivery.tries, outcome.retry_after);
                delivery.next_try_at =
                    schedule::next_try(&self.waits, tries, asked, now, self.entropy.as_ref());
                if delivery.next_try_at.is_none() {
                    delivery.state = State::Dead;
                    result = "dead";
                    given_up = given_up.saturating_add(u32::from(was_pending));
                }
                if given_up >= MAX_GIVEN_UP {
                    disabled = Some(format!("{given_up} deliveries in a row were given up"));
                }
            }
        }
        metrics::counter!("cairn_webhook_deliveries_total", "outcome" => result).increment(1);
        let of = (webhook.workspace, webhook.id);
        let mut tx = self.context.db.begin_write().await?;
        store::webhooks::tried(&mut tx, webhook, &last, given_up).await?;
        store::webhook_deliveries::save(&mut tx, of, &delivery).await?;
        match delivery.state {
            State::Delivered => {
                store::webhook_deliveries::forget(&mut tx, of, State::Delivered, KEPT_DELIVERED).await?;
            }
            State::Dead => store::webhook_deliveries::forget(&mut tx, of, State::Dead, KEPT_DEAD).await?,
            State::Pending | State::Replaying => {}
        }
        if let Some(reason) = &disabled {
            store::webhooks::disable(&mut tx, webhook, reason, now).await?;
            tracing::warn!(workspace = %webhook.workspace, webhook = %webhook.id, %reason, "a webhook is disabled");
        }
        tx.commit().await?;
        Ok(if disabled.is_some() { Next::Over } else { Next::Round })
    }

    fn now(&self) -> Timestamp {
        self.context.clock.now()
    }
}
