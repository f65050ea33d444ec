//! A run in progress: findings and the checkpoint are written in one transaction.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::limits::Allowance;
use cairn_chassis::sql::{self, Tx};
use cairn_proto::domain::{SourceMode, SourceRunStatus};
use cairn_proto::ids::SourceRunId;
use cairn_providers::{
    Call, Entry, ExternalId, Fault, Fetched, Item, ItemFault, Page, Provider, Then, Traits,
};

use super::absence;
use super::batch::Batch;
use super::document::{self, Finding, Occasion, Verdict, entry_of};
use super::fault::{self, Failure, Health, Stop};
use super::read::{Read, Reader};
use super::write;
use crate::context::Context;
use crate::model::{Absent, Run, Source, Stage, StoredDocument, Warning};
use crate::work::Work;
use crate::{Error, store};

/// How long a claim lasts unless it is renewed.
pub(super) const LEASE: Duration = Duration::from_secs(60);
/// Documents whose rows are looked up together.
const CHUNK: usize = 500;
/// Probes of documents that a listing lacks, per run.
const MAX_PROBES: usize = 200;
const PROBES_AT_ONCE: i64 = 20;
const REMOVED_AT_ONCE: i64 = 200;
/// How many documents are retried before new work: a fifth of all, within these bounds.
const MIN_RETRIES: u64 = 10;
const MAX_RETRIES: u64 = 500;
/// Consecutive retries without an answer: then the pages will show what is wrong with the provider.
const MAX_SILENT_RETRIES: u32 = 5;

/// Why a worker stops.
#[derive(Debug)]
pub(super) enum Halt {
    Stop(Stop),
    Cancelled,
    /// The lease was lost, or the source is gone.
    Lost,
    Error(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<sql::Error> for Halt {
    fn from(error: sql::Error) -> Self {
        Self::Error(error.into())
    }
}

/// A worker that executes a run.
pub(super) struct Worker<'a> {
    pub(super) context: &'a Context,
    pub(super) reader: Reader<'a>,
    pub(super) provider: &'a dyn Provider,
    pub(super) call: Call,
    pub(super) traits: Traits,
    pub(super) source: Source,
    pub(super) run: Run,
    pub(super) holder: &'a str,
    pub(super) health: Health,
    /// The limits of the workspace's plan; absent while the plan is unknown.
    pub(super) allowance: Option<Allowance>,
}

impl Worker<'_> {
    /// Executes the run to its end.
    pub(super) async fn work(&mut self) -> Result<(), Halt> {
        self.learn_account().await?;
        loop {
            match self.run.stage {
                Stage::Retries => self.retry().await?,
                Stage::Pages => self.turn_page().await?,
                Stage::Probes => self.probe().await?,
                Stage::Removal => {
                    if self.remove().await? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Retries documents that could not be read before.
    async fn retry(&mut self) -> Result<(), Halt> {
        let mut batch = Batch::default();
        if self.source.mode == SourceMode::Indexed {
            let most = (self.source.documents / 5).clamp(MIN_RETRIES, MAX_RETRIES);
            let (limit, now) = (i64::try_from(most).unwrap_or(i64::MAX), self.now());
            let due = store::source_documents::due(
                &self.context.db,
                self.run.workspace,
                self.run.source,
                now,
                limit,
            )
            .await?;
            let mut silent = 0;
            for known in due {
                let answer = self.provider.fetch(&self.call, &known.external_id, None).await;
                let has_body = matches!(answer, Ok(Fetched::Body(_)));
                silent = if answer == Err(Fault::Unavailable) { silent + 1 } else { 0 };
                let entry = entry_of(&known);
                let read = self.reader.read(answer, &entry, Some(&known), self.traits.gone_after).await;
                let read = match self.judged(read, None) {
                    Ok(read) => read,
                    Err(halt) => return self.halt(batch, halt).await,
                };
                // Marked as seen, so that the listing does not fetch it again.
                let listing = (has_body && self.run.kind.lists()).then_some(self.run.listing);
                batch.counters.listed += u64::from(listing.is_some());
                batch.counters.fetched += u64::from(has_body);
                self.take(&mut batch, Some(known), &entry.id, read, listing);
                if batch.is_full() {
                    self.commit(std::mem::take(&mut batch), None).await?;
                }
                if silent >= MAX_SILENT_RETRIES {
                    break;
                }
            }
        }
        let mut next = self.run.clone();
        next.stage = Stage::Pages;
        self.commit(batch, Some(Checkpoint::Run(Box::new(next)))).await
    }

    async fn turn_page(&mut self) -> Result<(), Halt> {
        let page = match (self.run.kind.lists(), &self.run.position) {
            (true, position) => self.provider.list(&self.call, position.as_ref()).await,
            (false, Some(position)) => self.provider.changes(&self.call, position).await,
            (false, None) => Err(Fault::PositionLost),
        };
        let Page { items, faults, then } = page.map_err(|fault| self.page_fault(&fault))?;
        let before = self.run.counters.listed;
        let mut met = HashSet::with_capacity(items.len() + faults.len());
        let mut items = items.into_iter().filter(|item| met.insert(id_of(item).clone())).collect::<Vec<_>>();
        while !items.is_empty() {
            let rest = items.split_off(items.len().min(CHUNK));
            self.take_items(std::mem::replace(&mut items, rest)).await?;
        }
        let faults: Vec<ItemFault> = faults
            .into_iter()
            .filter(|fault| fault.id.as_ref().is_none_or(|id| met.insert(id.clone())))
            .collect();
        let batch = self.taken_faults(faults).await?;
        if let Then::More(next) = &then {
            let has_new = self.run.counters.listed + batch.counters.listed > before;
            if let Some(message) = self.health.turned(has_new, self.run.position.as_ref() == Some(next)) {
                return self.halt(batch, Halt::Stop(Stop::Failed(Failure::Other(message)))).await;
            }
        }
        self.commit(batch, Some(Checkpoint::Page(then))).await
    }

    async fn take_items(&mut self, items: Vec<Item>) -> Result<(), Halt> {
        let mut known = self.known(items.iter().map(id_of)).await?;
        let mut batch = Batch::default();
        for item in items {
            let before = known.remove(id_of(&item));
            if let Err(halt) = self.take_item(&mut batch, item, before).await {
                return self.halt(batch, halt).await;
            }
            if batch.is_full() {
                self.commit(std::mem::take(&mut batch), None).await?;
            }
        }
        self.commit(batch, None).await
    }

    async fn take_item(
        &mut self,
        batch: &mut Batch,
        item: Item,
        before: Option<StoredDocument>,
    ) -> Result<(), Halt> {
        let listing = self.run.listing;
        let entry = match item {
            Item::Present(entry) => *entry,
            Item::Gone(id) => {
                self.take(batch, before, &id, Read::of(Finding::Gone { after: None }), Some(listing));
                return Ok(());
            }
        };
        let found = match document::judge(before.as_ref(), &entry, self.source.mode, listing) {
            Verdict::Counted => return Ok(()),
            Verdict::Fetch | Verdict::Describe if before.is_none() && self.is_full() => {
                batch.counters.listed += 1;
                batch.counters.failed += 1;
                return Ok(());
            }
            Verdict::Unchanged => {
                batch.see(before.map_or_else(|| self.context.ids.next(), |known| known.id));
                return Ok(());
            }
            Verdict::Moved => Read::of(document::moved(&entry, before.as_ref())),
            Verdict::Describe => Read::of(Finding::Described {
                metadata: document::metadata(&entry, before.as_ref()),
                version: entry.version.clone(),
            }),
            Verdict::Fetch => self.fetch(&entry, before.as_ref(), batch).await?,
        };
        if before.as_ref().is_none_or(|known| known.seen != Some(listing)) {
            batch.counters.listed += 1;
        }
        let halt = found.halt.clone();
        self.take(batch, before, &entry.id, found, Some(listing));
        halt.map_or(Ok(()), |message| Err(Halt::Stop(Stop::Failed(Failure::Other(message)))))
    }

    async fn fetch(
        &mut self,
        entry: &Entry,
        before: Option<&StoredDocument>,
        batch: &mut Batch,
    ) -> Result<Read, Halt> {
        let answer = match &entry.body {
            Some(body) => Ok(Fetched::Body(body.clone())),
            None => {
                let known = before.and_then(document::version_of_text);
                self.provider.fetch(&self.call, &entry.id, known).await
            }
        };
        if matches!(answer, Ok(Fetched::Body(_))) {
            batch.counters.fetched += 1;
        }
        let read = self.reader.read(answer, entry, before, self.traits.gone_after).await;
        let mut health = self.health;
        let judged = self.judged(read, Some(&mut health));
        self.health = health;
        judged
    }

    /// Turns a fault of the whole source into a halt, and counts faults of documents.
    fn judged(&self, read: Result<Read, Fault>, health: Option<&mut Health>) -> Result<Read, Halt> {
        match read {
            Err(fault) => Err(self.page_fault(&fault)),
            Ok(mut read) => {
                if let Some(health) = health {
                    if read.is_passing { read.halt = health.failed() } else { health.answered() }
                }
                Ok(read)
            }
        }
    }

    fn page_fault(&self, fault: &Fault) -> Halt {
        Halt::Stop(fault::of_page(fault, self.run.tries, self.now()))
    }

    /// Records the documents that a page reports as faults.
    async fn taken_faults(&self, faults: Vec<ItemFault>) -> Result<Batch, Halt> {
        let mut batch = Batch::default();
        let mut known = self.known(faults.iter().filter_map(|fault| fault.id.as_ref())).await?;
        for fault in faults {
            batch.counters.listed += 1;
            let Some(id) = fault.id else {
                batch.counters.failed += 1;
                batch.warnings.push(Warning::new("item_failed", fault.reason));
                continue;
            };
            let before = known.remove(&id);
            let is_known = before.as_ref().is_some_and(|known| {
                known.fault.is_some() && fault.version.is_some() && known.version == fault.version
            });
            if let (true, Some(known)) = (is_known && fault.is_lasting, &before) {
                // Unchanged: its fault was reported before.
                batch.counters.listed -= 1;
                batch.see(known.id);
                continue;
            }
            let found = document::listed_fault(
                &fault.title,
                fault.version,
                &fault.reason,
                fault.is_lasting,
                before.as_ref(),
            );
            self.take(&mut batch, before, &id, Read::of(found), Some(self.run.listing));
        }
        Ok(batch)
    }

    /// Probes documents that a listing lacks, where absence proves nothing.
    async fn probe(&mut self) -> Result<(), Halt> {
        let mut asked = 0;
        while asked < MAX_PROBES {
            let unseen =
                store::source_documents::unseen(&self.context.db, ended(&self.run), PROBES_AT_ONCE).await?;
            if unseen.is_empty() {
                break;
            }
            asked += unseen.len();
            let mut batch = Batch::default();
            for known in unseen {
                let version = document::version_of_text(&known);
                let answer = self.provider.fetch(&self.call, &known.external_id, version).await;
                batch.counters.fetched += u64::from(matches!(answer, Ok(Fetched::Body(_))));
                let entry = entry_of(&known);
                let read = self.reader.read(answer, &entry, Some(&known), self.traits.gone_after).await;
                let read = match self.judged(read, None) {
                    Ok(read) => read,
                    Err(halt) => return self.halt(batch, halt).await,
                };
                let listing = Some(self.run.listing);
                let id = known.id;
                if !self.take(&mut batch, Some(known), &entry.id, read, listing) {
                    batch.see(id);
                }
            }
            self.commit(batch, None).await?;
        }
        let mut next = self.run.clone();
        next.stage = Stage::Removal;
        self.commit(Batch::default(), Some(Checkpoint::Run(Box::new(next)))).await
    }

    /// Removes a batch of the documents that the listing lacks; returns whether none is left.
    async fn remove(&mut self) -> Result<bool, Halt> {
        let before = match self.run.absent {
            Absent::Keep => return Ok(true),
            Absent::Remove => Timestamp::from_micros(i64::MAX),
            Absent::Mark => self.held_back_since(),
        };
        let misses = absence::misses_needed(&self.traits);
        let absent = store::source_documents::absent(
            &self.context.db,
            ended(&self.run),
            misses,
            before,
            REMOVED_AT_ONCE,
        )
        .await?;
        if absent.is_empty() {
            return Ok(true);
        }
        let mut batch = Batch::default();
        for known in absent {
            let id = known.external_id.clone();
            self.take(&mut batch, Some(known), &id, Read::of(Finding::Gone { after: None }), None);
        }
        self.commit(batch, None).await?;
        Ok(false)
    }

    /// Derived from the start of the run, so that it is the same after an interruption.
    fn held_back_since(&self) -> Timestamp {
        absence::held_back_since(self.run.started_at.unwrap_or(self.run.created_at))
    }

    async fn known(
        &self,
        ids: impl Iterator<Item = &ExternalId>,
    ) -> Result<HashMap<ExternalId, StoredDocument>, Halt> {
        let (workspace, source) = (self.run.workspace, self.run.source);
        let known = store::source_documents::known(&self.context.db, workspace, source, ids).await?;
        Ok(known.into_iter().map(|known| (known.external_id.clone(), known)).collect())
    }

    /// Adds the step of a document to a batch; returns whether there is one.
    pub(super) fn take(
        &self,
        batch: &mut Batch,
        before: Option<StoredDocument>,
        id: &ExternalId,
        read: Read,
        listing: Option<SourceRunId>,
    ) -> bool {
        let occasion = Occasion { now: self.now(), listing, new_id: self.context.ids.next() };
        let Some(step) = document::step(before.as_ref(), id, read.found, occasion) else { return false };
        let is_kept = step.document.as_ref().is_some_and(|document| document.retained.is_some());
        batch.add(before, step, read.body.filter(|_| is_kept));
        true
    }

    /// Commits the batch before the run stops, so that its documents are not read again.
    async fn halt(&mut self, batch: Batch, halt: Halt) -> Result<(), Halt> {
        if matches!(halt, Halt::Stop(_)) {
            self.commit(batch, None).await?;
        }
        Err(halt)
    }

    /// Writes a batch, and the checkpoint if there is one, in one transaction: documents, their feed entries, and the progress of the run.
    /// Rolls back when the lease was lost or the plan has no room for it.
    pub(super) async fn write(&mut self, batch: &Batch, checkpoint: Option<&Checkpoint>) -> Result<(), Halt> {
        let mut work = Work::within(self.context, self.run.workspace, self.allowance).await?;
        let mut next = self.run.clone();
        write::documents(&mut work, self.run.source, self.run.listing, batch).await?;
        next.counters.add(batch.counters);
        batch.warnings.iter().for_each(|warning| next.warn(warning.clone()));
        if let Some(checkpoint) = checkpoint {
            self.apply_checkpoint(work.tx(), &mut next, checkpoint).await?;
        }
        let until = self.now().plus(LEASE);
        let Some(is_cancelled) = store::source_runs::save(work.tx(), &next, self.holder, until).await? else {
            work.rollback().await?;
            return Err(Halt::Lost);
        };
        work.commit().await?;
        self.run = next;
        if is_cancelled { Err(Halt::Cancelled) } else { Ok(()) }
    }

    async fn apply_checkpoint(
        &self,
        tx: &mut Tx,
        next: &mut Run,
        checkpoint: &Checkpoint,
    ) -> Result<(), Halt> {
        // Progress ends the series of failures.
        next.tries = 0;
        next.lost = 0;
        match checkpoint {
            Checkpoint::Run(to) => next.stage = to.stage,
            Checkpoint::Page(Then::More(position)) => next.position = Some(position.clone()),
            Checkpoint::Page(Then::End { next: position, partial }) => {
                next.position = Some(position.clone());
                next.complete = partial.is_empty();
                for part in partial {
                    next.warn(Warning::new("partial_listing", part.reason.clone()));
                }
                next.stage = Stage::Removal;
                if let Some(spared) = absence::spared(partial).filter(|_| next.kind.lists()) {
                    next.spared = spared;
                    self.conclude(tx, next).await?;
                }
            }
        }
        Ok(())
    }

    /// Draws conclusions about the documents that a finished listing lacks.
    async fn conclude(&self, tx: &mut Tx, next: &mut Run) -> Result<(), Halt> {
        if absence::probes(next.kind, &self.traits) {
            next.stage = Stage::Probes;
        }
        if !absence::concludes(next.kind, &self.traits) {
            return Ok(());
        }
        store::source_documents::miss(tx, ended(next), self.now()).await?;
        let (misses, before) = (absence::misses_needed(&self.traits), self.held_back_since());
        let missing = store::source_documents::count_absent(tx, ended(next), misses, before).await?;
        next.absent = absence::judge(missing);
        if next.absent == Absent::Mark {
            let absent = missing.absent.saturating_sub(missing.held_back);
            let message = format!(
                "{absent} of {} documents are no longer there: they stay for now, and go when a complete run at least an \
                 hour later finds the same",
                missing.documents
            );
            next.warn(Warning::new("mass_removal", message));
        }
        Ok(())
    }

    fn now(&self) -> Timestamp {
        self.context.clock.now()
    }
}

/// Where a run continues.
#[derive(Debug)]
pub(super) enum Checkpoint {
    Run(Box<Run>),
    Page(Then),
}

fn id_of(item: &Item) -> &ExternalId {
    match item {
        Item::Present(entry) => &entry.id,
        Item::Gone(id) => id,
    }
}

fn ended(run: &Run) -> store::source_documents::Ended<'_> {
    store::source_documents::Ended {
        workspace: run.workspace,
        source: run.source,
        listing: run.listing,
        spared: &run.spared,
    }
}

/// The final state of a run that read everything.
pub(super) const fn completed(run: &Run) -> SourceRunStatus {
    if run.warnings.is_empty() && run.counters.failed == 0 && run.complete {
        SourceRunStatus::Completed
    } else {
        SourceRunStatus::CompletedWithWarnings
    }
}
