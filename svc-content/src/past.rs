//! Point-in-time reads of files: at a time, after a write, or with a cited content.
//!
//! Each entry of the activity log has an item's name, folder and version after a write; the versions of a file have its
//! contents. So the past state of a file is its latest entry by then, and the latest entries of its folders. The file must be
//! readable now: the past grants no access that the present does not (ADR 96).

mod many;

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{FileId, FolderId, WorkspaceId};

use crate::context::Context;
use crate::model::{ACTIVITY_RETENTION, ActivityEntry, File, FileVersion, Former, Operation};
use crate::scope::Caller;
use crate::{Error, store};

/// Activity entries of one item that are read; the past state of an item with more changes since is unknown.
const MAX_ENTRIES: i64 = 20_000;
const MAX_HASH_CHARS: usize = 128;
/// The maximum depth of folders.
const MAX_DEPTH: usize = 128;
const MICROS_PER_MILLI: i64 = 1_000;
const REST_OF_MILLISECOND: Duration = Duration::from_micros(999);

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// At a time, inclusive.
    At(Timestamp),
    /// After the write with this position in the feed.
    After(u64),
}

impl Moment {
    /// At a time. Responses have times in milliseconds, so a whole millisecond means its end: a write is visible at the time that
    /// a response reported for it.
    pub(crate) fn at(time: Timestamp) -> Self {
        match time.as_micros() % MICROS_PER_MILLI {
            0 => Self::At(time.plus(REST_OF_MILLISECOND)),
            _ => Self::At(time),
        }
    }

    /// Whether a write is visible at this moment.
    pub(crate) fn has_seen(self, entry: &ActivityEntry) -> bool {
        match self {
            Self::At(time) => entry.id.at <= time,
            Self::After(position) => entry.id.position <= position,
        }
    }
}

/// The metadata of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) name: String,
    /// Absent for the root.
    pub(crate) folder: Option<FolderId>,
    pub(crate) tags: Vec<String>,
    description: Option<String>,
    /// Absent if no entry has it.
    pub(crate) version: Option<u64>,
}

impl Facts {
    /// An item with a name and a folder only.
    pub(crate) fn of(name: &str, folder: Option<FolderId>) -> Self {
        Self { name: name.to_owned(), folder, tags: Vec::new(), description: None, version: None }
    }

    /// The same with these tags.
    pub(crate) fn tagged(self, tags: Vec<String>) -> Self {
        Self { tags, ..self }
    }
}

/// The state of an item at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PastState {
    NotYet,
    InTrash,
    /// Removed permanently.
    Removed,
    Live(Facts),
}

/// A file as it was.
#[derive(Debug)]
struct PastFile {
    file: File,
    /// The version that has its content.
    content: u64,
}

/// Point-in-time reads on a store.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    context: Context,
}

impl Past {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// A file with its content at a moment: its name, path, tags, description, and version then. Its type is the current one.
    pub(crate) async fn file(
        &self,
        caller: &Caller,
        id: &str,
        moment: Moment,
    ) -> Result<(File, String), Error> {
        let now = self.readable(caller, id).await?;
        self.check(caller, moment).await?;
        let _permit = self.context.db.read_permit(caller.workspace).await?;
        let file = self.as_it_was(caller, now, moment).await?;
        self.with_content(caller, file).await
    }

    /// The past state of a file that is readable now, with the hash and the size of its content then.
    async fn as_it_was(&self, caller: &Caller, now: File, moment: Moment) -> Result<PastFile, Error> {
        let id = &now.id.to_string();
        let history = self.history(caller, id, moment).await?;
        let present = Facts {
            name: now.name.clone(),
            folder: now.folder_id(),
            tags: now.tags.clone(),
            description: now.description.clone(),
            version: None,
        };
        let then = match state_at(&history, moment, present) {
            PastState::Live(then) => then,
            PastState::NotYet => return Err(not_then(id, "did not exist yet")),
            PastState::InTrash | PastState::Removed => return Err(not_then(id, "was in trash")),
        };
        let (folders, path) = self.place(caller, id, &then, moment).await?;
        caller.require("file", format!("{id} as it stood then"), &folders)?;
        let version = self.version(caller, now.id, then.version, moment).await?;
        let written = history.iter().find(|entry| moment.has_seen(entry)).map(|entry| entry.id.at);
        let updated_at = written.unwrap_or(version.created_at);
        let number = then.version.unwrap_or(version.version);
        let file = File {
            folders,
            path,
            name: then.name,
            tags: then.tags,
            description: then.description,
            version: number,
            updated_at,
            content_hash: version.content_hash,
            size_bytes: version.size_bytes,
            ..now
        };
        Ok(PastFile { file, content: version.version })
    }

    /// A file with a present or past content, identified by its hash, to resolve citations. All metadata is current.
    pub(crate) async fn cited(&self, caller: &Caller, id: &str, hash: &str) -> Result<(File, String), Error> {
        let now = self.readable(caller, id).await?;
        let (db, workspace) = (&self.context.db, caller.workspace);
        let version = if is_hash(hash) {
            store::versions::of_content(db, workspace, now.id, hash).await?
        } else {
            None
        };
        let id = || format!("of the file {id} with that content");
        let version = version.ok_or_else(|| Error::NotFound { kind: "version", id: id() })?;
        let file = File { version: version.version, updated_at: version.created_at, ..now };
        self.with_content(caller, PastFile { file, content: version.version }).await
    }

    async fn with_content(&self, caller: &Caller, was: PastFile) -> Result<(File, String), Error> {
        let PastFile { file, content } = was;
        let (db, workspace) = (&self.context.db, caller.workspace);
        let found = store::versions::get(db, workspace, file.id, content).await?;
        let (found, body) = found.ok_or_else(|| Error::no_file(file.id.to_string()))?;
        let file = File { content_hash: found.content_hash, size_bytes: found.size_bytes, ..file };
        Ok((file, body.into_text()?))
    }

    async fn readable(&self, caller: &Caller, id: &str) -> Result<File, Error> {
        let file_id: FileId = id.parse().map_err(|_| Error::no_file(id))?;
        let found = store::files::get_many(&self.context.db, caller.workspace, &[file_id]).await?;
        let file = found.into_iter().next().ok_or_else(|| Error::no_file(id))?;
        caller.require("file", id, &file.folders)?;
        Ok(file)
    }

    /// The time of a moment, which must be in the past and within the retention of activity.
    pub(crate) async fn check(&self, caller: &Caller, moment: Moment) -> Result<Timestamp, Error> {
        time_of(&self.context, caller.workspace, moment).await
    }

    /// The activity of an item, latest first.
    async fn history(
        &self,
        caller: &Caller,
        item: &str,
        moment: Moment,
    ) -> Result<Vec<ActivityEntry>, Error> {
        let (db, workspace) = (&self.context.db, caller.workspace);
        let found = store::activity::histories(db, workspace, &[item], 0, MAX_ENTRIES).await?;
        let is_cut = i64::try_from(found.len()).is_ok_and(|count| count >= MAX_ENTRIES);
        if is_cut && !found.last().is_some_and(|oldest| moment.has_seen(oldest)) {
            let message = format!(
                "{item} was changed more than {MAX_ENTRIES} times since: its versions have the contents"
            );
            return Err(Error::Gone(message));
        }
        Ok(found)
    }

    /// The folders that contained it then, from the root on, and its path by their names then.
    async fn place(
        &self,
        caller: &Caller,
        id: &str,
        then: &Facts,
        moment: Moment,
    ) -> Result<(Vec<FolderId>, String), Error> {
        let (mut folders, mut names) = (Vec::new(), vec![then.name.clone()]);
        let mut next = then.folder;
        while let Some(folder) = next {
            let history = self.history(caller, &folder.to_string(), moment).await?;
            let known = store::states::folders(&self.context.db, caller.workspace, &[folder]).await?;
            let present = known.into_iter().next().map(|known| Facts::of(&known.name, known.parent_id));
            let known_by_history =
                history.first().map(|entry| Facts::of(&entry.what.name, entry.what.folder_id));
            let gone = || Error::Gone(format!("a folder that held the file {id} then is gone for good"));
            let facts = match state_at(&history, moment, present.or(known_by_history).ok_or_else(gone)?) {
                PastState::Live(facts) => facts,
                PastState::NotYet | PastState::Removed => return Err(gone()),
                PastState::InTrash => return Err(not_then(id, "was in trash with a folder")),
            };
            folders.push(folder);
            names.push(facts.name);
            next = facts.folder;
            if folders.len() > MAX_DEPTH {
                return Err(gone());
            }
        }
        folders.reverse();
        names.reverse();
        Ok((folders, format!("/{}", names.join("/"))))
    }

    /// The version with the given number, or the latest one by then if no entry has the number.
    async fn version(
        &self,
        caller: &Caller,
        file: FileId,
        number: Option<u64>,
        moment: Moment,
    ) -> Result<FileVersion, Error> {
        let (db, workspace) = (&self.context.db, caller.workspace);
        let before = number.map_or(u64::MAX, |number| number.saturating_add(1));
        let found = store::versions::list(db, workspace, file, before, 1).await?.into_iter().next();
        let found = found.filter(|version| match moment {
            Moment::At(time) => version.created_at <= time,
            Moment::After(_) => true,
        });
        found.ok_or_else(|| Error::Gone(format!("what the file {file} held then is not kept")))
    }
}

/// The time of a moment, which must be in the past and within the retention of activity.
pub(crate) async fn time_of(
    context: &Context,
    workspace: WorkspaceId,
    moment: Moment,
) -> Result<Timestamp, Error> {
    let now = context.clock.now();
    let time = match moment {
        Moment::At(time) => Some(time),
        Moment::After(position) => context.feed.time_of(workspace, position).await?,
    };
    let Some(time) = time else {
        return Err(Error::invalid("asOf", "unknown", "no write of this workspace has that change token"));
    };
    if time > now {
        return Err(Error::invalid("asOf", "future", "lies in the future: leave it out for what is now"));
    }
    let kept = i64::try_from(ACTIVITY_RETENTION.as_micros()).unwrap_or(i64::MAX);
    let oldest = Timestamp::from_micros(now.as_micros().saturating_sub(kept));
    if time < oldest {
        return Err(Error::Gone(format!(
            "how files stood is known from {} on; contents that are older are among a file's versions",
            oldest.to_rfc3339()
        )));
    }
    Ok(time)
}

/// Whether a text has the form of a content hash.
fn is_hash(text: &str) -> bool {
    text.len() <= MAX_HASH_CHARS && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b':')
}

fn not_then(id: &str, what: &str) -> Error {
    Error::NotThen(format!("the file {id} {what} at that time"))
}

/// Reconstructs the state of an item from its activity, latest entry first; `present` is its current state, if it were live.
pub(crate) fn state_at(history: &[ActivityEntry], moment: Moment, present: Facts) -> PastState {
    let since = history.partition_point(|entry| !moment.has_seen(entry));
    let (later, earlier) = history.split_at_checked(since).unwrap_or((history, &[]));
    let is_lifecycle = |entry: &&ActivityEntry| entry.what.operation != Operation::Update;
    let absent = match (earlier.iter().find(is_lifecycle), later.iter().rev().find(is_lifecycle)) {
        (Some(last), _) => match last.what.operation {
            Operation::Trash => Some(PastState::InTrash),
            Operation::Remove => Some(PastState::Removed),
            Operation::Create | Operation::Update | Operation::Restore => None,
        },
        (None, Some(next)) => match next.what.operation {
            Operation::Create => Some(PastState::NotYet),
            // A restore or a permanent removal comes from trash, so the item was there.
            Operation::Restore | Operation::Remove => Some(PastState::InTrash),
            Operation::Trash | Operation::Update => None,
        },
        (None, None) => None,
    };
    if let Some(absent) = absent {
        return absent;
    }
    let mut facts = present;
    // Undo the later entries, newest first.
    for entry in later {
        for former in &entry.what.former {
            if let Former::Tags(tags) = former {
                facts.tags.clone_from(tags);
            } else if let Former::Description(text) = former {
                facts.description.clone_from(text);
            }
        }
    }
    match (earlier.first(), later.last()) {
        (Some(last), _) => {
            facts.name.clone_from(&last.what.name);
            facts.folder = last.what.folder_id;
            facts.version =
                earlier.iter().find_map(|entry| entry.what.version_after.or(entry.what.version_before));
        }
        (None, Some(next)) => {
            facts.name = next.what.former_name().unwrap_or(&next.what.name).to_owned();
            let former =
                next.what.former.iter().find_map(|former| {
                    if let Former::Folder(folder) = former { Some(*folder) } else { None }
                });
            facts.folder = former.unwrap_or(next.what.folder_id);
            facts.version = later.iter().rev().find_map(|entry| entry.what.version_before);
        }
        (None, None) => {}
    }
    PastState::Live(facts)
}
