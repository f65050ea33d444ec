//! Executes a run of an import, and its rollback.
//!
//! The ids of all objects are known before the first is created (`decision`), so each text is written once, with its links. Folders come
//! first, then attachments, files, databases and records, and last the relations between those.

mod records;
mod values;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bytes::Bytes;
use cairn_chassis::bodies::content_hash;
use cairn_import::Content;
use cairn_proto::domain::ImportProvider;
use futures::Stream;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::values::schema;
use super::active::{ActiveRun, BATCH_BYTES, BATCH_STEPS, Halt, cut};
use super::settle;
use crate::content::{Attachment, ContentSession, Payload, Work};
use crate::decision::{Decision, Decisions, Verdict, decide};
use crate::imports::{self, Planned};
use crate::manifest::MAX_FOLDERS;
use crate::model::{Kind, Report, Step, SyncAction, Unwritten, Write};
use crate::plan::{States, beside};
use crate::reading::{Answers, Failure, Frame, Item, ItemDetails, Query, Scratch, Source};
use crate::{Error, store};

/// Attachments of one logged batch.
const LOGGED_ASSETS: usize = 50;

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unavailable => Self::Retry(failure.message().to_owned()),
            Failure::Lost | Failure::Refused(..) => Self::Failed(failure.message().to_owned()),
        }
    }
}

/// Does the remaining work of the run.
pub(super) async fn import(
    active: &mut ActiveRun<'_>,
    session: &ContentSession,
    provider: ImportProvider,
) -> Result<(), Halt> {
    let mut import = Import::begin(active, session, provider).await?;
    let outcome = import.work(session).await;
    if !matches!(outcome, Err(Halt::LeaseLost | Halt::Storage(_))) {
        // Also after an interruption: the report lists what can be rolled back.
        import.report().await?;
    }
    let has_warnings = outcome?;
    active.discard_in_doubt().await?;
    active.complete(has_warnings);
    Ok(())
}

/// Reverts what the run did, and writes that into its report.
pub(super) async fn roll_back(active: &mut ActiveRun<'_>, session: &ContentSession) -> Result<(), Halt> {
    let outcome = active.roll_back(session).await;
    let (db, workspace, run) = (&active.context.db, active.run.workspace, active.run.id);
    let report: Option<Report> = store::details::get(db, workspace, run).await?;
    if let (Ok(()), Some(report)) = (&outcome, report) {
        let report = imports::rolled_back(report, &active.done, &active.kept);
        let mut tx = db.begin_write().await?;
        store::details::set_report(&mut tx, workspace, run, &report).await?;
        active.save(tx).await?;
    }
    outcome
}

/// A run in progress.
struct Import<'h, 'c> {
    active: &'h mut ActiveRun<'c>,
    scratch: Scratch,
    source: Source,
    planned: Planned,
    decisions: Decisions,
    states: States,
    /// Places of items that could not be written.
    failed: HashSet<usize>,
}

impl<'h, 'c> Import<'h, 'c> {
    /// Fetches the archive, plans it anew, and decides against the current state of the workspace.
    async fn begin(
        active: &'h mut ActiveRun<'c>,
        session: &ContentSession,
        provider: ImportProvider,
    ) -> Result<Self, Halt> {
        let context = active.context;
        let mut scratch = match imports::fetch(context, active.run.workspace, active.run.id).await {
            Ok(scratch) => scratch,
            Err(Error::Storage(error)) => return Err(error.into()),
            Err(error @ Error::Scratch(_)) => return Err(Halt::Retry(error.to_string())),
            Err(error) => return Err(Halt::Failed(error.to_string())),
        };
        let depth = match active.run.folder {
            Some(folder) => session.depth(folder).await?,
            None => 0,
        };
        let source = Source {
            provider,
            file_name: active.run.file_name.clone().unwrap_or_default(),
            folders: (MAX_FOLDERS - 1).saturating_sub(depth),
            asset_bytes: active.run.object_bytes,
        };
        active.unless_cancelled(scratch.add_parts(&context.reader, &source)).await?;
        let planned = active.unless_cancelled(imports::plan(&scratch, &context.reader, &source)).await?;
        let known = active.baseline.0.values().map(|entry| (entry.kind, entry.id)).collect::<Vec<_>>();
        let mut states = session.states(known).await?;
        active.settle_stale_writes(session, &mut states).await?;
        let decisions = decide(&active.run, &planned.items, &active.baseline, &states);
        Ok(Self { active, scratch, source, planned, decisions, states, failed: HashSet::new() })
    }

    /// Does the remaining work; returns whether there are warnings.
    async fn work(&mut self, session: &ContentSession) -> Result<bool, Halt> {
        self.log_unwritten().await?;
        self.make_folders().await?;
        self.send_assets(session).await?;
        self.write_files(session).await?;
        self.make_databases(false).await?;
        self.make_databases(true).await?;
        self.write_records(false).await?;
        self.write_records(true).await?;
        let has_warnings =
            self.active.unwritten.iter().any(|unwritten| unwritten.action != SyncAction::Skipped);
        let is_warned =
            |finding: &crate::reading::Finding| matches!(finding, crate::reading::Finding::Warning { .. });
        Ok(has_warnings || self.planned.findings.iter().any(is_warned))
    }

    /// Stores which items are not written, and why, before anything is written.
    async fn log_unwritten(&mut self) -> Result<(), Halt> {
        let counted = |item: &Item| item.kind != Kind::Folder;
        self.active.unwritten.clear();
        for (item, decision) in self.planned.items.iter().zip(&self.decisions.items) {
            let (action, why) = match decision.verdict {
                Verdict::Skip => (SyncAction::Skipped, None),
                Verdict::Conflict(code, why) => {
                    (SyncAction::Conflict, Some((code.to_owned(), why.to_owned())))
                }
                Verdict::Create | Verdict::Beside | Verdict::Update | Verdict::Done => continue,
            };
            if counted(item) {
                let (path, kind) = (item.identity.clone(), item.kind);
                self.active.unwritten.push(Unwritten { path, kind, action, id: Some(decision.id), why });
            }
        }
        self.active.run.counters = settle::tally(&self.active.done, &self.active.unwritten);
        self.active.run.total = self.planned.items.iter().filter(|item| counted(item)).count() as u64;
        let mut tx = self.active.context.db.begin_write().await?;
        let (workspace, run) = (self.active.run.workspace, self.active.run.id);
        store::details::set_unwritten(&mut tx, workspace, run, &self.active.unwritten).await?;
        self.active.save(tx).await
    }

    /// Writes the progress so far into the report.
    async fn report(&mut self) -> Result<(), Halt> {
        let active = &self.active;
        let report =
            imports::executed(&active.run, &self.planned, &self.decisions, &active.done, &active.unwritten);
        let mut tx = active.context.db.begin_write().await?;
        store::details::set_report(&mut tx, active.run.workspace, active.run.id, &report).await?;
        match active.save(tx).await {
            // The caller knows why the run ends.
            Ok(()) | Err(Halt::Cancelled) => Ok(()),
            Err(halt) => Err(halt),
        }
    }

    async fn make_folders(&mut self) -> Result<(), Halt> {
        let mut work: Vec<Work> = Vec::new();
        let root = &self.decisions.root;
        if root.verdict == Verdict::Create {
            let folder = self.active.run.folder.map(|id| id.0);
            let write = Write::Create { name: self.planned.root.clone(), folder, file_type: None };
            let before = root.entry.clone();
            work.push((
                Step { before, ..Step::of(Kind::Folder, String::new(), write, root.id) },
                Payload::None,
            ));
        }
        for (item, decision) in self.planned.items.iter().zip(&self.decisions.items) {
            if item.kind == Kind::Folder && decision.verdict == Verdict::Create {
                let write = Write::Create {
                    name: item.name.clone(),
                    folder: Some(self.parent(item)),
                    file_type: None,
                };
                work.push((self.step(item, decision, write), Payload::None));
            }
        }
        for batch in cut(work) {
            self.active.carry_out(batch).await?;
        }
        Ok(())
    }

    async fn send_assets(&mut self, session: &ContentSession) -> Result<(), Halt> {
        let places = self
            .places(Kind::Asset, |decision| matches!(decision.verdict, Verdict::Create | Verdict::Update));
        for some in places.chunks(LOGGED_ASSETS) {
            let create =
                |item: &Item| Write::Create { name: item.name.clone(), folder: None, file_type: None };
            let steps: Vec<Step> = some.iter().filter_map(|place| self.step_at(*place, create)).collect();
            let batch = self.active.log(steps.clone()).await?;
            let sent = self.send_logged(session, some, &steps).await?;
            let (done, rest): (Vec<Step>, Vec<Step>) =
                steps.into_iter().partition(|step| sent.contains(&step.id));
            // The outcome of an interrupted upload is unknown.
            let in_doubt = if self.active.cancellation.is_cancelled() { rest } else { Vec::new() };
            self.active.settle_partly(batch, done, in_doubt).await?;
        }
        Ok(())
    }

    /// Uploads the attachments of logged steps; returns the ids of those that succeeded, or of those before a cancellation.
    async fn send_logged(
        &mut self,
        session: &ContentSession,
        places: &[usize],
        steps: &[Step],
    ) -> Result<HashSet<Uuid>, Halt> {
        let mut sent: HashSet<Uuid> = HashSet::new();
        let mut answers = self.ask(Query::Assets(ranges(places))).await?;
        loop {
            let told = match self.next_frame(&mut answers).await {
                Ok(Some(told)) => told,
                Ok(None) | Err(Halt::Cancelled) => return Ok(sent),
                Err(halt) => return Err(halt),
            };
            let Frame::Asset { item, length } = told else { return Err(Failure::Lost.into()) };
            let (back, refused) = self.send_asset(session, item, length, answers).await?;
            if refused.is_some() && self.active.cancellation.is_cancelled() {
                // Refused because the cancellation truncated it.
                return Ok(sent);
            }
            answers = match back {
                Some(answers) => answers,
                // The upload was refused before its last byte: another child continues with the next attachment.
                None => {
                    let rest: Vec<usize> = places.iter().copied().filter(|place| *place > item).collect();
                    self.ask(Query::Assets(ranges(&rest))).await?
                }
            };
            let decision = self.decisions.items.get(item);
            let step = decision.and_then(|decision| steps.iter().find(|step| step.id == decision.id));
            match (refused, step) {
                (None, Some(step)) => _ = sent.insert(step.id),
                (Some((code, message)), Some(step)) => {
                    self.active.refuse(step, code, &message);
                    self.failed.insert(item);
                }
                (_, None) => return Err(Failure::Lost.into()),
            }
        }
    }

    /// Streams an attachment to the workspace; returns why it was refused, if it was.
    async fn send_asset(
        &self,
        session: &ContentSession,
        place: usize,
        size_bytes: u64,
        answers: Answers,
    ) -> Result<(Option<Answers>, Option<(&'static str, String)>), Halt> {
        let item = self.planned.items.get(place).zip(self.decisions.items.get(place));
        let Some((Item { name, made: ItemDetails::Asset { media_type }, .. }, decision)) = item else {
            return Err(Failure::Lost.into());
        };
        let attachment =
            Attachment { id: decision.id, name: name.clone(), media_type: media_type.clone(), size_bytes };
        let (back, returned) = oneshot::channel();
        let chunks = chunks_of(answers, back, self.active.cancellation.clone());
        let refused = session.upload(attachment, chunks).await?.err();
        Ok((returned.await.ok(), refused))
    }

    async fn write_files(&mut self, session: &ContentSession) -> Result<(), Halt> {
        let places = self.places(Kind::File, |decision| {
            matches!(decision.verdict, Verdict::Create | Verdict::Beside | Verdict::Update)
        });
        let mut names: HashMap<Option<Uuid>, HashSet<String>> = HashMap::new();
        let (mut batch, mut bytes): (Vec<Work>, usize) = (Vec::new(), 0);
        let mut answers = self.ask(Query::Files(ranges(&places))).await?;
        while let Some(told) = self.next_frame(&mut answers).await? {
            let Frame::File { item: place, .. } = told else { return Err(Failure::Lost.into()) };
            let content: Content = answers.body().await?;
            let write = self.write_of_file(session, place, &mut names).await?;
            let Some((item, decision)) = self.at(place) else { return Err(Failure::Lost.into()) };
            let text = content.fill(|target| self.address(target));
            let text_hash = Some(content_hash(&text));
            let step = Step { text_hash, ..self.step(item, decision, write) };
            let work = (step, Payload::Note { text, tags: content.tags });
            bytes += work.1.bytes();
            batch.push(work);
            if batch.len() >= BATCH_STEPS || bytes >= BATCH_BYTES {
                bytes = 0;
                self.active.carry_out(std::mem::take(&mut batch)).await?;
            }
        }
        if batch.is_empty() { Ok(()) } else { self.active.carry_out(batch).await }
    }

    /// The write of a file: created in its folder or beside its former version, or updated.
    async fn write_of_file(
        &self,
        session: &ContentSession,
        place: usize,
        names: &mut HashMap<Option<Uuid>, HashSet<String>>,
    ) -> Result<Write, Halt> {
        let Some((item, decision)) = self.at(place) else { return Err(Failure::Lost.into()) };
        let file_type = if let ItemDetails::File(file_type) = item.made { Some(file_type) } else { None };
        let former = decision.entry.as_ref().and_then(|entry| self.states.get(&entry.id));
        match (decision.verdict, former) {
            (Verdict::Update, _) => Ok(Write::Update),
            (Verdict::Beside, Some(former)) => {
                let folder = former.parent;
                let taken = match names.entry(folder) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(unknown) => unknown.insert(session.names(folder).await?),
                };
                let name = beside(&former.name, taken);
                taken.insert(name.clone());
                Ok(Write::Create { name, folder, file_type })
            }
            _ => Ok(Write::Create { name: item.name.clone(), folder: Some(self.parent(item)), file_type }),
        }
    }

    /// Creates databases with their plain properties, or adds the relations once all databases exist.
    async fn make_databases(&mut self, related: bool) -> Result<(), Halt> {
        let mut work: Vec<Work> = Vec::new();
        let complete = self.related();
        for place in 0..self.planned.items.len() {
            let Some((item, decision)) = self.at(place) else { continue };
            let ItemDetails::Database(properties) = &item.made else { continue };
            let is_made = decision.verdict == Verdict::Create;
            // Creating a database takes many calls. For one that existed when this worker resumed the run, it is unknown how many of
            // them were made.
            let is_begun = related && decision.verdict == Verdict::Done && !complete.contains(&decision.id);
            let wanted = |related| schema(properties, related, |target| self.live_id(target));
            let schema = if is_begun { [wanted(false), wanted(true)].concat() } else { wanted(related) };
            let write = match (related, decision.verdict) {
                (false, Verdict::Create) => {
                    let folder = Some(self.parent(item));
                    Write::Create { name: item.name.clone(), folder, file_type: None }
                }
                (false, Verdict::Update) => Write::Update,
                (true, Verdict::Create | Verdict::Update) if !schema.is_empty() => Write::Relate,
                (true, Verdict::Done) if is_begun && !schema.is_empty() => Write::Relate,
                _ => continue,
            };
            // The version and the entry are as the first write left them.
            let mut step = self.step(item, decision, write);
            if related {
                let entry = self.active.baseline.get(item.kind, &item.identity);
                step.version = entry.map_or(step.version, |entry| entry.version);
                step.before = entry.cloned().filter(|_| !is_made);
            }
            work.push((step, Payload::Schema(schema)));
        }
        for batch in cut(work) {
            self.active.carry_out(batch).await?;
        }
        Ok(())
    }

    /// Ids of objects whose relations this run has written.
    fn related(&self) -> HashSet<Uuid> {
        let related = self.active.done.iter().filter(|step| step.write == Write::Relate);
        related.map(|step| step.id).collect()
    }

    async fn ask(&self, what: Query) -> Result<Answers, Halt> {
        self.active.unless_cancelled(self.scratch.ask(&self.active.context.reader, &self.source, what)).await
    }

    /// The next frame, unless the run is cancelled first.
    async fn next_frame(&self, answers: &mut Answers) -> Result<Option<Frame>, Halt> {
        self.active.unless_cancelled(answers.next()).await
    }

    fn at(&self, place: usize) -> Option<(&Item, &Decision)> {
        self.planned.items.get(place).zip(self.decisions.items.get(place))
    }

    fn places(&self, kind: Kind, wanted: impl Fn(&Decision) -> bool) -> Vec<usize> {
        let items = self.planned.items.iter().zip(&self.decisions.items).enumerate();
        let found = items.filter(|(_, (item, decision))| item.kind == kind && wanted(decision));
        found.map(|(place, _)| place).collect()
    }

    /// The folder that an item is in.
    fn parent(&self, item: &Item) -> Uuid {
        let folder = item.parent.and_then(|place| self.decisions.items.get(place));
        folder.map_or(self.decisions.root.id, |folder| folder.id)
    }

    fn step_at(&self, place: usize, write: impl Fn(&Item) -> Write) -> Option<Step> {
        self.at(place).map(|(item, decision)| self.step(item, decision, write(item)))
    }

    fn step(&self, item: &Item, decision: &Decision, write: Write) -> Step {
        let version = decision.entry.as_ref().map_or(0, |entry| entry.version);
        let is_new = matches!(write, Write::Create { .. });
        let is_of_file = item.kind == Kind::File && !is_new;
        let former = self.states.get(&decision.id).filter(|_| is_of_file);
        Step {
            version: if is_new { 0 } else { version },
            tags: former.map(|former| former.tags.clone()),
            former_hash: former.map(|former| former.hash.clone()),
            // Empty for a folder.
            hash: item.hash.clone(),
            before: decision.entry.clone().filter(|entry| entry.run != self.active.run.id),
            source: Some(item.source.clone()),
            ..Step::of(item.kind, item.identity.clone(), write, decision.id)
        }
    }

    /// Where a link to an item leads.
    fn address(&self, place: usize) -> Option<String> {
        let (item, decision) = self.at(place).filter(|_| !self.failed.contains(&place))?;
        let id = decision.id;
        match item.kind {
            // A record has no address of its own: links lead to its body.
            Kind::Folder | Kind::Record => None,
            Kind::Database => Some(format!("/databases/{id}")),
            Kind::File => Some(format!("/file/{id}")),
            Kind::Asset => Some(format!("/api/assets/{id}/content")),
        }
    }

    /// The id of an item that exists, or will exist before something refers to it.
    fn live_id(&self, place: usize) -> Option<Uuid> {
        let (_, decision) = self.at(place).filter(|_| !self.failed.contains(&place))?;
        decision.is_live.then_some(decision.id)
    }
}

/// The chunks of the current body; returns the reader through `back` after the last. A body that a cancellation or an error truncates is
/// detected by its size.
fn chunks_of(
    answers: Answers,
    back: oneshot::Sender<Answers>,
    cancellation: CancellationToken,
) -> impl Stream<Item = Bytes> + Send + 'static {
    futures::stream::unfold(Some((answers, back, cancellation)), |state| async move {
        let (mut answers, back, cancellation) = state?;
        let heard = tokio::select! {
            () = cancellation.cancelled() => None,
            heard = answers.chunk() => heard.ok().flatten(),
        };
        if let Some(chunk) = heard {
            return Some((chunk, Some((answers, back, cancellation))));
        }
        drop(back.send(answers));
        None
    })
}

/// Merges consecutive places into ranges.
fn ranges(places: &[usize]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for place in places {
        match ranges.last_mut() {
            Some(last) if last.end == *place => last.end += 1,
            _ => ranges.push(*place..*place + 1),
        }
    }
    ranges
}
