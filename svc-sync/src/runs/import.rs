//! What a run of an import does, and its rollback.
//!
//! The ids of all objects are known before the first is made (`decision`), so a text is written once, with its links. Folders
//! come first, then attachments, files, databases, records, and last what relates those to each other.

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
use super::held::{BATCH_BYTES, BATCH_STEPS, Halt, Held, cut};
use super::settle;
use crate::content::{Attachment, Opened, Payload, Work};
use crate::decision::{Decided, Decisions, Verdict, decide};
use crate::imports::{self, Planned};
use crate::manifest::MOST_FOLDERS;
use crate::model::{Kind, Report, Step, Still, SyncAction, Write};
use crate::plan::{States, beside};
use crate::reading::{Answers, Failure, Item, Made, Scratch, Source, Told, What};
use crate::{Error, store};

/// Attachments that are noted at once.
const NOTED_ASSETS: usize = 50;

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unavailable => Self::Again(failure.message().to_owned()),
            Failure::Lost | Failure::Refused(..) => Self::Failed(failure.message().to_owned()),
        }
    }
}

/// Does what is left of the run.
pub(super) async fn import(
    held: &mut Held<'_>,
    opened: &Opened,
    provider: ImportProvider,
) -> Result<(), Halt> {
    let mut import = Import::begin(held, opened, provider).await?;
    let outcome = import.work(opened).await;
    if !matches!(outcome, Err(Halt::Lost | Halt::Storage(_))) {
        // Also of what was cut short: it tells what there is to roll back.
        import.report().await?;
    }
    let has_warnings = outcome?;
    held.close().await?;
    held.complete(has_warnings);
    Ok(())
}

/// Takes back what the run did, and says so.
pub(super) async fn roll_back(held: &mut Held<'_>, opened: &Opened) -> Result<(), Halt> {
    let outcome = held.roll_back(opened).await;
    let (db, workspace, run) = (&held.context.db, held.run.workspace, held.run.id);
    let report: Option<Report> = store::details::get(db, workspace, run).await?;
    if let (Ok(()), Some(report)) = (&outcome, report) {
        let report = imports::rolled_back(report, &held.done, &held.kept);
        let mut tx = db.begin_write().await?;
        store::details::set_report(&mut tx, workspace, run, &report).await?;
        held.save(tx).await?;
    }
    outcome
}

/// A run that is under way.
struct Import<'h, 'c> {
    held: &'h mut Held<'c>,
    scratch: Scratch,
    source: Source,
    planned: Planned,
    decisions: Decisions,
    states: States,
    /// What is not there, though it was decided that it would be: by its place.
    failed: HashSet<usize>,
}

impl<'h, 'c> Import<'h, 'c> {
    /// Fetches the archive, plans it anew, and decides against what is there now.
    async fn begin(held: &'h mut Held<'c>, opened: &Opened, provider: ImportProvider) -> Result<Self, Halt> {
        let context = held.context;
        let mut scratch = match imports::fetch(context, held.run.workspace, held.run.id).await {
            Ok(scratch) => scratch,
            Err(Error::Storage(error)) => return Err(error.into()),
            Err(error @ Error::Scratch(_)) => return Err(Halt::Again(error.to_string())),
            Err(error) => return Err(Halt::Failed(error.to_string())),
        };
        let depth = match held.run.folder {
            Some(folder) => opened.depth(folder).await?,
            None => 0,
        };
        let source = Source {
            provider,
            file_name: held.run.file_name.clone().unwrap_or_default(),
            folders: (MOST_FOLDERS - 1).saturating_sub(depth),
            asset_bytes: held.run.object_bytes,
        };
        held.unless_unwanted(scratch.add_parts(&context.reader, &source)).await?;
        let planned = held.unless_unwanted(imports::plan(&scratch, &context.reader, &source)).await?;
        let known = held.memory.0.values().map(|entry| (entry.kind, entry.id)).collect::<Vec<_>>();
        let states = opened.states(known).await?;
        held.settle_late(&states).await?;
        let decisions = decide(&held.run, &planned.items, &held.memory, &states);
        Ok(Self { held, scratch, source, planned, decisions, states, failed: HashSet::new() })
    }

    /// Does what is left; whether there is something to warn of.
    async fn work(&mut self, opened: &Opened) -> Result<bool, Halt> {
        self.note_stills().await?;
        self.make_folders().await?;
        self.send_assets(opened).await?;
        self.write_files(opened).await?;
        self.make_databases(false).await?;
        self.make_databases(true).await?;
        self.write_records(false).await?;
        self.write_records(true).await?;
        let has_warnings = self.held.stills.iter().any(|still| still.action != SyncAction::Skipped);
        let is_warned =
            |finding: &crate::reading::Finding| matches!(finding, crate::reading::Finding::Warning { .. });
        Ok(has_warnings || self.planned.findings.iter().any(is_warned))
    }

    /// Says what is left alone, before anything is written.
    async fn note_stills(&mut self) -> Result<(), Halt> {
        let counted = |item: &Item| item.kind != Kind::Folder;
        self.held.stills.clear();
        for (item, decided) in self.planned.items.iter().zip(&self.decisions.items) {
            let (action, why) = match decided.verdict {
                Verdict::Skip => (SyncAction::Skipped, None),
                Verdict::Conflict(code, why) => {
                    (SyncAction::Conflict, Some((code.to_owned(), why.to_owned())))
                }
                Verdict::Create | Verdict::Beside | Verdict::Update | Verdict::Done => continue,
            };
            if counted(item) {
                let (path, kind) = (item.identity.clone(), item.kind);
                self.held.stills.push(Still { path, kind, action, id: Some(decided.id), why });
            }
        }
        self.held.run.counters = settle::tally(&self.held.done, &self.held.stills);
        self.held.run.total = self.planned.items.iter().filter(|item| counted(item)).count() as u64;
        let mut tx = self.held.context.db.begin_write().await?;
        let (workspace, run) = (self.held.run.workspace, self.held.run.id);
        store::details::set_stills(&mut tx, workspace, run, &self.held.stills).await?;
        self.held.save(tx).await
    }

    /// Writes what was done so far into the report.
    async fn report(&mut self) -> Result<(), Halt> {
        let held = &self.held;
        let report = imports::executed(&held.run, &self.planned, &self.decisions, &held.done, &held.stills);
        let mut tx = held.context.db.begin_write().await?;
        store::details::set_report(&mut tx, held.run.workspace, held.run.id, &report).await?;
        match held.save(tx).await {
            // It is known already why the run ends.
            Ok(()) | Err(Halt::Cancelled) => Ok(()),
            Err(halt) => Err(halt),
        }
    }

    async fn make_folders(&mut self) -> Result<(), Halt> {
        let mut work: Vec<Work> = Vec::new();
        let root = &self.decisions.root;
        if root.verdict == Verdict::Create {
            let folder = self.held.run.folder.map(|id| id.0);
            let write = Write::Create { name: self.planned.root.clone(), folder, file_type: None };
            let before = root.entry.clone();
            work.push((
                Step { before, ..Step::of(Kind::Folder, String::new(), write, root.id) },
                Payload::None,
            ));
        }
        for (item, decided) in self.planned.items.iter().zip(&self.decisions.items) {
            if item.kind == Kind::Folder && decided.verdict == Verdict::Create {
                let write = Write::Create {
                    name: item.name.clone(),
                    folder: Some(self.parent(item)),
                    file_type: None,
                };
                work.push((self.step(item, decided, write), Payload::None));
            }
        }
        for batch in cut(work) {
            self.held.carry_out(batch).await?;
        }
        Ok(())
    }

    async fn send_assets(&mut self, opened: &Opened) -> Result<(), Halt> {
        let places =
            self.places(Kind::Asset, |decided| matches!(decided.verdict, Verdict::Create | Verdict::Update));
        for some in places.chunks(NOTED_ASSETS) {
            let create =
                |item: &Item| Write::Create { name: item.name.clone(), folder: None, file_type: None };
            let steps: Vec<Step> = some.iter().filter_map(|place| self.step_at(*place, create)).collect();
            let batch = self.held.note(steps.clone()).await?;
            let sent = self.send_noted(opened, some, &steps).await?;
            let (done, rest): (Vec<Step>, Vec<Step>) =
                steps.into_iter().partition(|step| sent.contains(&step.id));
            // Of an upload that was cut, or that a worker which was lost has on its way, nobody knows yet.
            let open = if self.held.unwanted.is_cancelled() { rest } else { Vec::new() };
            self.held.settle_but(batch, done, open).await?;
        }
        Ok(())
    }

    /// Sends attachments whose steps are noted; answers which are there. When the run is unwanted, that is told of those that
    /// were sent until then.
    async fn send_noted(
        &mut self,
        opened: &Opened,
        places: &[usize],
        steps: &[Step],
    ) -> Result<HashSet<Uuid>, Halt> {
        let mut sent: HashSet<Uuid> = HashSet::new();
        let mut answers = self.ask(What::Assets(ranges(places))).await?;
        loop {
            let told = match self.hear(&mut answers).await {
                Ok(Some(told)) => told,
                Ok(None) | Err(Halt::Cancelled) => return Ok(sent),
                Err(halt) => return Err(halt),
            };
            let Told::Asset { item, length } = told else { return Err(Failure::Lost.into()) };
            let (back, refused) = self.send_asset(opened, item, length, answers).await?;
            if refused.is_some() && self.held.unwanted.is_cancelled() {
                // It was cut, so it is refused for that.
                return Ok(sent);
            }
            answers = match back {
                Some(answers) => answers,
                // A refusal came before all of it was heard: another child goes on behind it.
                None => {
                    let rest: Vec<usize> = places.iter().copied().filter(|place| *place > item).collect();
                    self.ask(What::Assets(ranges(&rest))).await?
                }
            };
            let decided = self.decisions.items.get(item);
            let step = decided.and_then(|decided| steps.iter().find(|step| step.id == decided.id));
            match (refused, step) {
                (None, Some(step)) => _ = sent.insert(step.id),
                (Some((code, message)), Some(step)) => {
                    self.held.refuse(step, code, &message);
                    self.failed.insert(item);
                }
                (_, None) => return Err(Failure::Lost.into()),
            }
        }
    }

    /// Sends an attachment on as its bytes come; why it was refused, if it was.
    async fn send_asset(
        &self,
        opened: &Opened,
        place: usize,
        size_bytes: u64,
        answers: Answers,
    ) -> Result<(Option<Answers>, Option<(&'static str, String)>), Halt> {
        let item = self.planned.items.get(place).zip(self.decisions.items.get(place));
        let Some((Item { name, made: Made::Asset { media_type }, .. }, decided)) = item else {
            return Err(Failure::Lost.into());
        };
        let attachment =
            Attachment { id: decided.id, name: name.clone(), media_type: media_type.clone(), size_bytes };
        let (back, returned) = oneshot::channel();
        let chunks = passing_on(answers, back, self.held.unwanted.clone());
        let refused = opened.upload(attachment, chunks).await?.err();
        Ok((returned.await.ok(), refused))
    }

    async fn write_files(&mut self, opened: &Opened) -> Result<(), Halt> {
        let places = self.places(Kind::File, |decided| {
            matches!(decided.verdict, Verdict::Create | Verdict::Beside | Verdict::Update)
        });
        let mut names: HashMap<Option<Uuid>, HashSet<String>> = HashMap::new();
        let (mut batch, mut bytes): (Vec<Work>, usize) = (Vec::new(), 0);
        let mut answers = self.ask(What::Files(ranges(&places))).await?;
        while let Some(told) = self.hear(&mut answers).await? {
            let Told::File { item: place, .. } = told else { return Err(Failure::Lost.into()) };
            let content: Content = answers.body().await?;
            let write = self.write_of_file(opened, place, &mut names).await?;
            let Some((item, decided)) = self.at(place) else { return Err(Failure::Lost.into()) };
            let text = content.fill(|target| self.address(target));
            let text_hash = Some(content_hash(&text));
            let step = Step { text_hash, ..self.step(item, decided, write) };
            let work = (step, Payload::Note { text, tags: content.tags });
            bytes += work.1.bytes();
            batch.push(work);
            if batch.len() >= BATCH_STEPS || bytes >= BATCH_BYTES {
                bytes = 0;
                self.held.carry_out(std::mem::take(&mut batch)).await?;
            }
        }
        if batch.is_empty() { Ok(()) } else { self.held.carry_out(batch).await }
    }

    /// What is done to a file: made in its folder, beside its former version, or changed.
    async fn write_of_file(
        &self,
        opened: &Opened,
        place: usize,
        names: &mut HashMap<Option<Uuid>, HashSet<String>>,
    ) -> Result<Write, Halt> {
        let Some((item, decided)) = self.at(place) else { return Err(Failure::Lost.into()) };
        let file_type = if let Made::File(file_type) = item.made { Some(file_type) } else { None };
        let former = decided.entry.as_ref().and_then(|entry| self.states.get(&entry.id));
        match (decided.verdict, former) {
            (Verdict::Update, _) => Ok(Write::Update),
            (Verdict::Beside, Some(former)) => {
                let folder = former.parent;
                let taken = match names.entry(folder) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(unknown) => unknown.insert(opened.names(folder).await?),
                };
                let name = beside(&former.name, taken);
                taken.insert(name.clone());
                Ok(Write::Create { name, folder, file_type })
            }
            _ => Ok(Write::Create { name: item.name.clone(), folder: Some(self.parent(item)), file_type }),
        }
    }

    /// Makes databases with the properties that need nothing else, or gives them their relations, when all are there.
    async fn make_databases(&mut self, related: bool) -> Result<(), Halt> {
        let mut work: Vec<Work> = Vec::new();
        let complete = self.related();
        for place in 0..self.planned.items.len() {
            let Some((item, decided)) = self.at(place) else { continue };
            let Made::Database(properties) = &item.made else { continue };
            let is_made = decided.verdict == Verdict::Create;
            // A database is made by many calls: of one that was there when this process took the run up, nobody knows how many
            // were made.
            let is_begun = related && decided.verdict == Verdict::Done && !complete.contains(&decided.id);
            let wanted = |related| schema(properties, related, |target| self.live_id(target));
            let schema = if is_begun { [wanted(false), wanted(true)].concat() } else { wanted(related) };
            let write = match (related, decided.verdict) {
                (false, Verdict::Create) => {
                    let folder = Some(self.parent(item));
                    Write::Create { name: item.name.clone(), folder, file_type: None }
                }
                (false, Verdict::Update) => Write::Update,
                (true, Verdict::Create | Verdict::Update) if !schema.is_empty() => Write::Relate,
                (true, Verdict::Done) if is_begun && !schema.is_empty() => Write::Relate,
                _ => continue,
            };
            // Those of one that is there come with the others: it may have lacked them.
            let mut step = self.step(item, decided, write);
            if related {
                let entry = self.held.memory.get(item.kind, &item.identity);
                step.version = entry.map_or(step.version, |entry| entry.version);
                step.before = entry.cloned().filter(|_| !is_made);
            }
            work.push((step, Payload::Schema(schema)));
        }
        for batch in cut(work) {
            self.held.carry_out(batch).await?;
        }
        Ok(())
    }

    /// What this run made and completed.
    fn related(&self) -> HashSet<Uuid> {
        let related = self.held.done.iter().filter(|step| step.write == Write::Relate);
        related.map(|step| step.id).collect()
    }

    async fn ask(&self, what: What) -> Result<Answers, Halt> {
        self.held.unless_unwanted(self.scratch.ask(&self.held.context.reader, &self.source, what)).await
    }

    /// What is told next.
    async fn hear(&self, answers: &mut Answers) -> Result<Option<Told>, Halt> {
        self.held.unless_unwanted(answers.next()).await
    }

    fn at(&self, place: usize) -> Option<(&Item, &Decided)> {
        self.planned.items.get(place).zip(self.decisions.items.get(place))
    }

    fn places(&self, kind: Kind, wanted: impl Fn(&Decided) -> bool) -> Vec<usize> {
        let items = self.planned.items.iter().zip(&self.decisions.items).enumerate();
        let found = items.filter(|(_, (item, decided))| item.kind == kind && wanted(decided));
        found.map(|(place, _)| place).collect()
    }

    /// The folder that an item is in.
    fn parent(&self, item: &Item) -> Uuid {
        let folder = item.parent.and_then(|place| self.decisions.items.get(place));
        folder.map_or(self.decisions.root.id, |folder| folder.id)
    }

    fn step_at(&self, place: usize, write: impl Fn(&Item) -> Write) -> Option<Step> {
        self.at(place).map(|(item, decided)| self.step(item, decided, write(item)))
    }

    fn step(&self, item: &Item, decided: &Decided, write: Write) -> Step {
        let version = decided.entry.as_ref().map_or(0, |entry| entry.version);
        let is_new = matches!(write, Write::Create { .. });
        let is_of_file = item.kind == Kind::File && !is_new;
        let former = self.states.get(&decided.id).filter(|_| is_of_file);
        Step {
            version: if is_new { 0 } else { version },
            tags: former.map(|former| former.tags.clone()),
            former_hash: former.map(|former| former.hash.clone()),
            // Of a folder there is none.
            hash: item.hash.clone(),
            before: decided.entry.clone().filter(|entry| entry.run != self.held.run.id),
            source: Some(item.source.clone()),
            ..Step::of(item.kind, item.identity.clone(), write, decided.id)
        }
    }

    /// Where a link to an item leads.
    fn address(&self, place: usize) -> Option<String> {
        let (item, decided) = self.at(place).filter(|_| !self.failed.contains(&place))?;
        let id = decided.id;
        match item.kind {
            // A record is found with its database: a link to it leads to its body.
            Kind::Folder | Kind::Record => None,
            Kind::Database => Some(format!("/databases/{id}")),
            Kind::File => Some(format!("/file/{id}")),
            Kind::Asset => Some(format!("/api/assets/{id}/content")),
        }
    }

    /// The id of an item that is there, or will be before it is named.
    fn live_id(&self, place: usize) -> Option<Uuid> {
        let (_, decided) = self.at(place).filter(|_| !self.failed.contains(&place))?;
        decided.is_live.then_some(decided.id)
    }
}

/// The bytes that are announced; who tells them is given back behind the last. A body that was cut, also because nobody wants it
/// any more, is told by its size.
fn passing_on(
    answers: Answers,
    back: oneshot::Sender<Answers>,
    unwanted: CancellationToken,
) -> impl Stream<Item = Bytes> + Send + 'static {
    futures::stream::unfold(Some((answers, back, unwanted)), |state| async move {
        let (mut answers, back, unwanted) = state?;
        let heard = tokio::select! {
            () = unwanted.cancelled() => None,
            heard = answers.chunk() => heard.ok().flatten(),
        };
        if let Some(chunk) = heard {
            return Some((chunk, Some((answers, back, unwanted))));
        }
        drop(back.send(answers));
        None
    })
}

/// Places in ranges.
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
