//! The child's side: reads one archive from standard input, answers one question about it on standard output, and exits.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cairn_import::{
    Archive, ArchiveError, EntryError, ItemKind, Kind as TextKind, Limits, Plan, PropertyKind, Value, notion,
    obsidian,
};
use cairn_proto::domain::{FileType, ImportProvider};
use serde::Serialize;

use super::wire::{Finding, Frame, Item, ItemDetails, Query, Question, Values};
use crate::model::Kind;

/// The hidden subcommand that starts the binary as a child. The offset of the question in the file follows.
pub const IMPORT_COMMAND: &str = "import-child";

/// Address space: allocating more kills the child.
const MAX_MEMORY_BYTES: u64 = 1024 * 1024 * 1024;
/// CPU time of one question: the largest archive of the largest plan.
const MAX_CPU: Duration = Duration::from_secs(600);
/// Stack of the reading thread: parsers recurse into nested input.
const STACK_BYTES: usize = 64 * 1024 * 1024;
/// Items or findings of one frame.
const PER_FRAME: usize = 256;
const OUTPUT_BYTES: usize = 256 * 1024;

/// Runs the hidden subcommand: answers the question in the file on standard input, at the offset in the second argument. Exits when the
/// parent closes the pipe.
pub fn import_child_main() -> ExitCode {
    // Panic messages may contain parts of notes.
    panic::set_hook(Box::new(|_| {}));
    let place = std::env::args().nth(2).and_then(|text| text.parse().ok());
    // Before the limit of open files.
    let input = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let (Some(place), Ok(input)) = (place, input) else { return ExitCode::FAILURE };
    if cairn_child::confine(MAX_MEMORY_BYTES).and_then(|()| cairn_child::allow_cpu(MAX_CPU)).is_err() {
        return ExitCode::FAILURE;
    }
    let work = move || {
        let mut output = BufWriter::with_capacity(OUTPUT_BYTES, io::stdout().lock());
        let answer = AssertUnwindSafe(|| answer(input, place, &mut output));
        // After a panic the parent sees an answer without an end, as after a crash.
        matches!(panic::catch_unwind(answer), Ok(Ok(())))
    };
    let worker = thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
    match worker.map(thread::JoinHandle::join) {
        Ok(Ok(true)) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Answers the question at an offset of a file.
pub(super) fn answer(input: File, place: u64, output: &mut impl Write) -> io::Result<()> {
    let input = Arc::new(input);
    let end = input.metadata()?.len();
    let question = io::BufReader::new(Volume::new(&input, place..end));
    let question: Question = serde_json::from_reader(question)?;
    let volumes = question.volumes.iter().map(|range| Volume::new(&input, range.clone()));
    match tell(&question, volumes.collect(), output) {
        Ok(()) => {}
        Err(ReadError::Archive(error)) => refuse(&error, output)?,
        Err(ReadError::Entry(EntryError::Sink(error)) | ReadError::Io(error)) => return Err(error),
        Err(ReadError::Entry(_)) => {
            // The archive was intact when it was planned: the disk has failed.
            let message = "the archive can no longer be read".to_owned();
            head(output, &Frame::Refused { code: None, message })?;
        }
    }
    head(output, &Frame::End)?;
    output.flush()
}

enum ReadError {
    Archive(ArchiveError),
    Entry(EntryError),
    Io(io::Error),
}

impl From<ArchiveError> for ReadError {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}

impl From<EntryError> for ReadError {
    fn from(error: EntryError) -> Self {
        Self::Entry(error)
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn refuse(error: &ArchiveError, output: &mut impl Write) -> io::Result<()> {
    let code = error.code().map(str::to_owned);
    head(output, &Frame::Refused { code, message: error.to_string() })
}

fn tell(question: &Question, volumes: Vec<Volume>, output: &mut impl Write) -> Result<(), ReadError> {
    let mut volumes = volumes.into_iter();
    let first = volumes.next().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let mut archive = Archive::open(first)?;
    if matches!(question.what, Query::Parts) {
        return Ok(parts(&mut archive, output)?);
    }
    let limits = Limits { folders: question.folders, asset_bytes: question.asset_bytes };
    let mut plan = match question.provider {
        ImportProvider::ObsidianZip => obsidian(&mut archive, &question.file_name, &limits)?,
        ImportProvider::NotionZip => {
            let parts = archive.parts();
            for volume in volumes {
                archive.add_part(volume)?;
            }
            notion(&mut archive, &parts, &question.file_name, &limits)?
        }
    };
    match &question.what {
        Query::Parts => Ok(()),
        Query::Plan => tell_plan(&mut plan, &mut archive, output),
        Query::Assets(wanted) => tell_assets(&plan, &mut archive, wanted, output),
        Query::Files(wanted) => tell_files(&mut plan, &mut archive, wanted, output),
        Query::Records(wanted) => tell_records(&plan, &mut archive, wanted, output),
    }
}

fn parts(archive: &mut Archive<Volume>, output: &mut impl Write) -> Result<(), EntryError> {
    for part in archive.parts() {
        let length = archive.entries().get(part).map_or(0, |entry| entry.size);
        head(output, &Frame::Part { length }).map_err(EntryError::Sink)?;
        archive.copy(part, &mut |bytes| output.write_all(bytes))?;
    }
    Ok(())
}

fn tell_plan(
    plan: &mut Plan,
    archive: &mut Archive<Volume>,
    output: &mut impl Write,
) -> Result<(), ReadError> {
    head(output, &Frame::Root { name: plan.root.clone(), counts: plan.counts })?;
    let hashes = Hashes::of(plan, archive)?;
    let places: Vec<usize> = (0..plan.items.len()).collect();
    for some in places.chunks(PER_FRAME) {
        let items: Vec<Item> = some.iter().filter_map(|place| item(plan, *place, &hashes)).collect();
        body(output, &items, |length| Frame::Items { length })?;
    }
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(plan.ignored.iter().map(|ignored| Finding::Ignored {
        path: ignored.path.clone(),
        reason: ignored.reason.as_str().to_owned(),
    }));
    findings.extend(plan.warnings.iter().map(|warning| Finding::Warning {
        path: warning.path.clone(),
        code: warning.code.as_str().to_owned(),
        message: warning.code.message().to_owned(),
    }));
    findings.extend(plan.unresolved.iter().map(|link| Finding::Link {
        path: plan.source(link.item),
        line: link.line,
        target: link.target.clone(),
        reason: link.reason.as_str().to_owned(),
    }));
    for some in findings.chunks(PER_FRAME) {
        body(output, &some, |length| Frame::Findings { length })?;
    }
    Ok(())
}

fn item(plan: &Plan, place: usize, hashes: &Hashes) -> Option<Item> {
    let item = plan.items.get(place)?;
    let (kind, made) = match &item.kind {
        ItemKind::Folder => (Kind::Folder, ItemDetails::Folder),
        ItemKind::File { kind, .. } => (Kind::File, ItemDetails::File(file_type(*kind))),
        ItemKind::Asset { media_type, .. } => {
            (Kind::Asset, ItemDetails::Asset { media_type: (*media_type).to_owned() })
        }
        ItemKind::Database { properties, .. } => (Kind::Database, ItemDetails::Database(properties.clone())),
        ItemKind::Record { database, body } => {
            (Kind::Record, ItemDetails::Record { database: *database, body: *body })
        }
    };
    let bytes = match kind {
        Kind::File | Kind::Asset => plan.entry(place).map_or(0, |(_, size)| size),
        Kind::Folder | Kind::Database | Kind::Record => 0,
    };
    Some(Item {
        kind,
        parent: item.parent,
        name: item.name.clone(),
        identity: plan.identity(place),
        source: plan.source(place),
        hash: hashes.0.get(&place).cloned().unwrap_or_default(),
        bytes,
        made,
    })
}

const fn file_type(kind: TextKind) -> FileType {
    match kind {
        TextKind::Markdown => FileType::Markdown,
        TextKind::Json => FileType::Json,
        TextKind::Yaml => FileType::Yaml,
        TextKind::Text | TextKind::Asset(_) => FileType::Text,
    }
}

/// The hashes of items, except folders.
struct Hashes(HashMap<usize, String>);

impl Hashes {
    fn of(plan: &mut Plan, archive: &mut Archive<Volume>) -> Result<Self, ReadError> {
        let mut hashes = Self(HashMap::new());
        // Attachments first: a changed attachment gets a new id, so notes that link to it change, too.
        for place in 0..plan.items.len() {
            let Some(ItemKind::Asset { .. }) = plan.items.get(place).map(|item| &item.kind) else { continue };
            let entry = plan.entry(place).map_or(usize::MAX, |(entry, _)| entry);
            let mut hasher = blake3::Hasher::new();
            archive.copy(entry, &mut |bytes| {
                hasher.update(bytes);
                Ok(())
            })?;
            hashes.0.insert(place, hasher.finalize().to_hex().to_string());
        }
        for place in 0..plan.items.len() {
            let Some(content) = plan.content(archive, place)? else { continue };
            let text = content.fill(|target| Some(hashes.stable(plan, target)));
            let mut hasher = blake3::Hasher::new();
            hasher.update(text.as_bytes());
            for tag in &content.tags {
                hasher.update(b"\0");
                hasher.update(tag.as_bytes());
            }
            hashes.0.insert(place, hasher.finalize().to_hex().to_string());
        }
        hashes.add_tables(plan, archive)?;
        Ok(hashes)
    }

    fn add_tables(&mut self, plan: &Plan, archive: &mut Archive<Volume>) -> Result<(), ReadError> {
        for (place, item) in plan.items.iter().enumerate() {
            let ItemKind::Database { properties, .. } = &item.kind else { continue };
            let mut told: Vec<(&str, String)> = Vec::new();
            for property in properties {
                let kind = if let PropertyKind::Relation(database) = &property.kind {
                    self.stable(plan, *database)
                } else {
                    format!("{:?}", property.kind)
                };
                told.push((&property.name, kind));
            }
            self.0.insert(place, hashed(&told));
            let mut records: Vec<Values> = Vec::new();
            plan.records(archive, place, &mut |record, values| records.push((record, values)))?;
            for (record, values) in records {
                let told: Vec<(&str, String)> = values
                    .iter()
                    .filter_map(|(property, value)| {
                        let name = properties.get(*property)?.name.as_str();
                        let value = if let Value::Items(items) = value {
                            let items: Vec<String> =
                                items.iter().map(|item| self.stable(plan, *item)).collect();
                            items.join("\n")
                        } else {
                            format!("{value:?}")
                        };
                        Some((name, value))
                    })
                    .collect();
                self.0.insert(record, hashed(&told));
            }
        }
        Ok(())
    }

    /// Stands for the address of an item in hashes: stable as long as the object keeps its id.
    fn stable(&self, plan: &Plan, item: usize) -> String {
        let is_asset = plan.items.get(item).is_some_and(|item| matches!(item.kind, ItemKind::Asset { .. }));
        let hash = self.0.get(&item).filter(|_| is_asset).map_or("", String::as_str);
        format!("{}@{hash}", plan.identity(item))
    }
}

fn hashed(told: &impl Serialize) -> String {
    let json = serde_json::to_vec(told).unwrap_or_default();
    blake3::hash(&json).to_hex().to_string()
}

fn wanted_of(wanted: &[Range<usize>]) -> impl Iterator<Item = usize> {
    wanted.iter().flat_map(Clone::clone)
}

fn tell_assets(
    plan: &Plan,
    archive: &mut Archive<Volume>,
    wanted: &[Range<usize>],
    output: &mut impl Write,
) -> Result<(), ReadError> {
    for item in wanted_of(wanted) {
        let Some((entry, length)) = plan.entry(item) else { continue };
        head(output, &Frame::Asset { item, length })?;
        archive.copy(entry, &mut |bytes| output.write_all(bytes))?;
    }
    Ok(())
}

fn tell_files(
    plan: &mut Plan,
    archive: &mut Archive<Volume>,
    wanted: &[Range<usize>],
    output: &mut impl Write,
) -> Result<(), ReadError> {
    for item in wanted_of(wanted) {
        if let Some(content) = plan.content(archive, item)? {
            body(output, &content, |length| Frame::File { item, length })?;
        }
    }
    Ok(())
}

fn tell_records(
    plan: &Plan,
    archive: &mut Archive<Volume>,
    wanted: &[Range<usize>],
    output: &mut impl Write,
) -> Result<(), ReadError> {
    for database in wanted_of(wanted) {
        let mut records: Vec<Values> = Vec::new();
        plan.records(archive, database, &mut |record, values| records.push((record, values)))?;
        for some in records.chunks(PER_FRAME) {
            body(output, &some, |length| Frame::Records { length })?;
        }
    }
    Ok(())
}

fn head(output: &mut impl Write, told: &Frame) -> io::Result<()> {
    output.write_all(&cairn_child::encode(told)?)
}

fn body(output: &mut impl Write, value: &impl Serialize, told: impl Fn(u64) -> Frame) -> io::Result<()> {
    let bytes = serde_json::to_vec(value)?;
    head(output, &told(bytes.len() as u64))?;
    output.write_all(&bytes)
}

/// A range of a file as a reader with its own position.
#[derive(Debug)]
pub(super) struct Volume {
    file: Arc<File>,
    range: Range<u64>,
    place: u64,
}

impl Volume {
    fn new(file: &Arc<File>, range: Range<u64>) -> Self {
        Self { file: Arc::clone(file), range, place: 0 }
    }

    const fn length(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }
}

impl Read for Volume {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.length().saturating_sub(self.place);
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let Some(wanted) = buffer.get_mut(..most) else { return Ok(0) };
        let count = self.file.read_at(wanted, self.range.start.saturating_add(self.place))?;
        self.place += count as u64;
        Ok(count)
    }
}

impl Seek for Volume {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(by) => self.length().checked_add_signed(by),
            SeekFrom::Current(by) => self.place.checked_add_signed(by),
        };
        self.place = place.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.place)
    }
}
