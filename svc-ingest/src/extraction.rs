//! Extracts the text of documents in the background. Workspaces are served round-robin, so that a large backlog delays only its own
//! workspace.
//!
//! The process that claims a document holds a lease and renews it; when it dies, the lease expires and another process claims the
//! document. The text, the completion of the work and the feed entry are one transaction.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cairn_chassis::feed::Kind;
use cairn_chassis::jobs::Schedule;
use cairn_extract::{Extractor, Failure, Format, Raw, Text};
use cairn_proto::ids::WorkspaceId;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::context::Context;
use crate::extracting::{Occasion, extract};
use crate::model::{
    Body, Extraction, FileType, Growth, Ingested, Pieces, Place, Retained, name_of, with_id_suffix,
};
use crate::work::Work;
use crate::{Error, store};

/// Concurrent extractions of this process: one per child.
const MAX_CONCURRENT: usize = 2;
/// How long a claim lasts unless it is renewed.
const LEASE: Duration = Duration::from_secs(20);
/// How often a lease is renewed.
const RENEW_INTERVAL: Duration = Duration::from_secs(5);
/// How often the queue length metric is updated.
const METRICS_INTERVAL: Duration = Duration::from_secs(15);
/// How often this process polls for work that other processes queued or abandoned.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Attempts without a result, after which a document fails, so that it does not block others.
const MAX_ATTEMPTS: u32 = 4;
const GAVE_UP: &str = "The file could not be read: each try ended before it was done.";
/// Backoff after a failure that is not the document's fault.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// Backoff for documents of a suspended workspace.
const SUSPENDED_DELAY: Duration = Duration::from_secs(300);
/// An upload that began earlier than this was interrupted.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Extracts texts in the background.
#[derive(Debug, Clone)]
pub(crate) struct Extractions {
    context: Context,
    extractor: Extractor,
    /// The lease holder id of this process.
    holder: Arc<str>,
    /// The workspace that was served last.
    last: Arc<Mutex<Option<WorkspaceId>>>,
}

impl Extractions {
    pub(crate) fn new(context: Context, extractor: Extractor) -> Self {
        let holder = context.ids.next::<Uuid>().to_string().into();
        Self { context, extractor, holder, last: Arc::default() }
    }

    /// Works until the shutdown, and then releases its claims.
    pub(crate) async fn run(&self, shutdown: &CancellationToken) {
        let workers: [_; MAX_CONCURRENT] = std::array::from_fn(|_| self.work(shutdown));
        let workers = futures::future::join_all(workers);
        tokio::join!(workers, self.sweep_uploads(shutdown), self.measure(shutdown));
    }

    async fn work(&self, shutdown: &CancellationToken) {
        while !shutdown.is_cancelled() {
            match self.claim().await {
                Ok(Some(job)) => {
                    tokio::select! {
                        () = self.take(&job) => {}
                        () = shutdown.cancelled() => self.give_back(job.place, Duration::ZERO).await,
                    }
                }
                Ok(None) => self.wait(shutdown).await,
                Err(error) => {
                    tracing::warn!(%error, "documents cannot be claimed for reading now; trying again");
                    self.wait(shutdown).await;
                }
            }
        }
    }

    async fn wait(&self, shutdown: &CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.context.arrivals.notified() => {}
            () = sleep(POLL_INTERVAL) => {}
        }
    }

    /// Updates the queue length metric.
    async fn measure(&self, shutdown: &CancellationToken) {
        while !shutdown.is_cancelled() {
            match store::extractions::count(&self.context.db).await {
                Ok(count) => metrics::gauge!("cairn_extraction_queue").set(f64::from(count)),
                Err(error) => {
                    tracing::debug!(%error, "the documents that are to be read are not counted now")
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = sleep(METRICS_INTERVAL) => {}
            }
        }
    }

    /// Claims the oldest document of the next workspace, if there is any.
    pub(crate) async fn claim(&self) -> Result<Option<Extraction>, Error> {
        let (db, now) = (&self.context.db, self.context.clock.now());
        if !store::extractions::is_any_due(db, now).await? {
            return Ok(None);
        }
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let claimed = store::extractions::claim(db, &self.holder, now.plus(LEASE), now, last).await?;
        if let Some(job) = &claimed {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(job.place.workspace);
            // Wake another waiter, as there may be more work.
            self.context.arrivals.notify_one();
            store::ingest::begin(db, job.place, now).await?;
        }
        Ok(claimed)
    }

    /// Processes a claimed document. After an error, it is retried when the lease expires.
    pub(crate) async fn take(&self, job: &Extraction) {
        if self.context.suspensions.is_suspended(job.place.workspace) {
            return self.give_back(job.place, SUSPENDED_DELAY).await;
        }
        let done = match self.read(job).await {
            Ok(Some((document, Ok(text)))) => self.keep(job, &document, text).await,
            Ok(Some((_, Err(failure)))) if failure.may_pass() && job.attempts < MAX_ATTEMPTS => {
                return self.give_back(job.place, RETRY_DELAY * job.attempts).await;
            }
            Ok(Some((_, Err(failure)))) => self.fail(job, &failure.message).await,
            // It was removed, or the lease was lost.
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            tracing::warn!(%error, document.id = %job.place.document, "a document is not read yet; trying again");
        }
    }

    /// The document with its text, or the failure; `None` when the lease was lost.
    async fn read(&self, job: &Extraction) -> Result<Option<(Ingested, Result<Text, Failure>)>, Error> {
        let Place { workspace, document } = job.place;
        let Some(document) = store::ingest::get(&self.context.db, workspace, document).await? else {
            return Ok(None);
        };
        if job.attempts > MAX_ATTEMPTS {
            self.fail(job, GAVE_UP).await?;
            return Ok(None);
        }
        let raw = Raw { base_url: document.url.clone(), ..self.raw(job).await? };
        let extraction = extract(&self.extractor, raw, Occasion::Upload);
        tokio::pin!(extraction);
        let mut renewals = interval(RENEW_INTERVAL);
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                text = &mut extraction => return Ok(Some((document, text))),
                _ = renewals.tick() => {
                    let until = self.context.clock.now().plus(LEASE);
                    if !store::extractions::renew(&self.context.db, job.place, &self.holder, until).await? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// What was sent, whole.
    async fn raw(&self, job: &Extraction) -> Result<Raw, Error> {
        let pieces = store::extractions::read_pieces(&self.context.db, job.place).await?;
        let mut bytes = BytesMut::with_capacity(pieces.len() * Pieces::MAX_BYTES);
        for piece in pieces {
            bytes.extend_from_slice(&piece);
        }
        let bytes: Bytes = bytes.freeze();
        if job.upload.is_html {
            return Ok(Raw::html(String::from_utf8_lossy(&bytes), None));
        }
        let upload = job.upload.clone();
        Ok(Raw { bytes, name: upload.file_name, mime: upload.mime_type, ..Raw::default() })
    }

    async fn keep(&self, job: &Extraction, document: &Ingested, text: Text) -> Result<(), Error> {
        let format = match text.format {
            Format::Markdown => FileType::Markdown,
            Format::Text => FileType::Text,
            Format::Json => FileType::Json,
            Format::Yaml => FileType::Yaml,
        };
        let body = Body::of(text.content).await?;
        let name = name_of(&document.title, format);
        let twin = with_id_suffix(&name, document.id);
        match self.keep_as(job, (&name, &twin), format, &body).await {
            // A document that is written at this moment takes the name.
            Err(Error::Storage(error)) if error.is_unique_violation() => {
                self.keep_as(job, (&twin, &twin), format, &body).await
            }
            kept => kept,
        }
    }

    /// Stores the text under a name, or under another one if that is taken.
    async fn keep_as(
        &self,
        job: &Extraction,
        (name, twin): (&str, &str),
        format: FileType,
        body: &Body,
    ) -> Result<(), Error> {
        let mut work = Work::without_limits(&self.context, job.place.workspace).await?;
        work.keep_text(body).await?;
        if !store::extractions::finish(work.tx(), job.place, &self.holder).await? {
            return work.rollback().await;
        }
        let is_taken = store::ingest::has_name(work.tx(), job.place.workspace, name).await?;
        let name = if is_taken { twin } else { name }.to_owned();
        let text = Retained { name, format, hash: body.hash.clone(), size_bytes: body.size_bytes };
        let now = work.now();
        if !store::ingest::keep_text(work.tx(), job.place, &text, now).await? {
            return work.rollback().await;
        }
        work.grow(unread(job));
        work.publish_upsert(Kind::Ingested, job.place.document);
        work.commit().await.map(drop)
    }

    async fn fail(&self, job: &Extraction, why: &str) -> Result<(), Error> {
        let mut work = Work::without_limits(&self.context, job.place.workspace).await?;
        if !store::extractions::finish(work.tx(), job.place, &self.holder).await? {
            return work.rollback().await;
        }
        let now = work.now();
        store::ingest::fail(work.tx(), job.place, why, now).await?;
        work.grow(unread(job));
        work.commit().await.map(drop)
    }

    /// Releases the claim, so that the work is due again after a delay.
    async fn give_back(&self, place: Place, pause: Duration) {
        let at = self.context.clock.now().plus(pause);
        if let Err(error) = store::extractions::renew(&self.context.db, place, &self.holder, at).await {
            tracing::debug!(%error, "work is not given back; it is free when its time has passed");
        }
    }

    /// Removes the pieces of interrupted uploads, at startup and every hour.
    async fn sweep_uploads(&self, shutdown: &CancellationToken) {
        let mut schedule = Schedule::every(UPLOAD_TIMEOUT);
        while schedule.next(shutdown).await {
            if let Err(error) = self.sweep_once().await {
                tracing::warn!(%error, "what uploads left is not removed yet; the next try is in an hour");
            }
        }
    }

    async fn sweep_once(&self) -> Result<u64, Error> {
        let ago = self.context.clock.now().as_micros() / 1_000
            - i64::try_from(UPLOAD_TIMEOUT.as_millis()).unwrap_or(i64::MAX);
        // Ids begin with the milliseconds of their creation (UUIDv7).
        let before = Uuid::from_u128(u128::from(u64::try_from(ago).unwrap_or(0)) << 80);
        Ok(store::extractions::sweep_pieces(&self.context.db, before.into()).await?)
    }
}

/// What is no longer kept when a document was read.
fn unread(job: &Extraction) -> Growth {
    let bytes = i64::try_from(job.upload.size_bytes).unwrap_or(i64::MAX);
    Growth { documents: 0, bytes: -bytes }
}
