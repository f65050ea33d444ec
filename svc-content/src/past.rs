//! Files as they were: at a time, after a write, or with the content that somebody cited.
//!
//! The list of activity says of each write what an item was called after it, where it stood and which version that made; the
//! versions of a file keep its contents. So a file as it was is its newest entry by then, and its folders' newest. What is asked
//! for must be readable now: nobody is shown more of the past than of the present (ADR 96).

mod many;

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{FileId, FolderId, WorkspaceId};

use crate::context::Context;
use crate::model::{ACTIVITY_KEPT, ActivityEntry, File, FileVersion, Former, Operation};
use crate::scope::Caller;
use crate::{Error, store};

/// Entries of one item that are looked at; of an item that was changed more often since, nobody knows how it stood.
const MOST_ENTRIES: i64 = 20_000;
const LONGEST_HASH: usize = 128;
/// As deep as folders go.
const DEEPEST: usize = 128;
const MICROS_PER_MILLI: i64 = 1_000;
const REST_OF_MILLISECOND: Duration = Duration::from_micros(999);

/// When.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// As it stood at that time.
    At(Timestamp),
    /// As it stood after the write with that position in the feed.
    After(u64),
}

impl Moment {
    /// At that time. Answers tell times to the millisecond, so one of these stands for all of its millisecond: what was written
    /// at a time that an answer told is seen at that time.
    pub(crate) fn at(time: Timestamp) -> Self {
        match time.as_micros() % MICROS_PER_MILLI {
            0 => Self::At(time.plus(REST_OF_MILLISECOND)),
            _ => Self::At(time),
        }
    }

    /// Whether a write was made by then.
    pub(crate) fn has_seen(self, entry: &ActivityEntry) -> bool {
        match self {
            Self::At(time) => entry.id.at <= time,
            Self::After(position) => entry.id.position <= position,
        }
    }
}

/// What an item is, apart from its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) name: String,
    /// Absent: the root.
    pub(crate) folder: Option<FolderId>,
    pub(crate) tags: Vec<String>,
    description: Option<String>,
    /// Absent where no entry tells it.
    pub(crate) version: Option<u64>,
}

impl Facts {
    /// A name in a folder, and nothing more.
    pub(crate) fn of(name: &str, folder: Option<FolderId>) -> Self {
        Self { name: name.to_owned(), folder, tags: Vec::new(), description: None, version: None }
    }

    /// The same with these tags.
    pub(crate) fn tagged(self, tags: Vec<String>) -> Self {
        Self { tags, ..self }
    }
}

/// How an item stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    NotYet,
    InTrash,
    Gone,
    Live(Facts),
}

/// A file as it stood.
#[derive(Debug)]
struct Was {
    file: File,
    /// The version that has its content of then.
    content: u64,
}

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    context: Context,
}

impl Past {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// A file with its content as it stood then: its name, its path, its tags, its description, its version. Its type is
    /// what it is now.
    pub(crate) async fn file(
        &self,
        caller: &Caller,
        id: &str,
        moment: Moment,
    ) -> Result<(File, String), Error> {
        let now = self.readable(caller, id).await?;
        self.check(caller, moment).await?;
        let _turn = self.context.db.reading_fairly(caller.workspace).await?;
        let file = self.as_it_was(caller, now, moment).await?;
        self.with_content(caller, file).await
    }

    /// A file that is readable now, as it stood then, with the hash and the size of its content.
    async fn as_it_was(&self, caller: &Caller, now: File, moment: Moment) -> Result<Was, Error> {
        let id = &now.id.to_string();
        let history = self.history(caller, id, moment).await?;
        let present = Facts {
            name: now.name.clone(),
            folder: now.folder_id(),
            tags: now.tags.clone(),
            description: now.description.clone(),
            version: None,
        };
        let then = match stood(&history, moment, present) {
            Standing::Live(then) => then,
            Standing::NotYet => return Err(not_then(id, "did not exist yet")),
            Standing::InTrash | Standing::Gone => return Err(not_then(id, "was in trash")),
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
        Ok(Was { file, content: version.version })
    }

    /// A file with a content that it has or had, named by its hash: what a citation was of. All else is as it is now.
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
        self.with_content(caller, Was { file, content: version.version }).await
    }

    async fn with_content(&self, caller: &Caller, was: Was) -> Result<(File, String), Error> {
        let Was { file, content } = was;
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

    /// The time of a moment: it is past, and not so long ago that nobody knows.
    pub(crate) async fn check(&self, caller: &Caller, moment: Moment) -> Result<Timestamp, Error> {
        time_of(&self.context, caller.workspace, moment).await
    }

    /// What was done to an item, the latest first.
    async fn history(
        &self,
        caller: &Caller,
        item: &str,
        moment: Moment,
    ) -> Result<Vec<ActivityEntry>, Error> {
        let (db, workspace) = (&self.context.db, caller.workspace);
        let found = store::activity::histories(db, workspace, &[item], 0, MOST_ENTRIES).await?;
        let is_cut = i64::try_from(found.len()).is_ok_and(|count| count >= MOST_ENTRIES);
        if is_cut && !found.last().is_some_and(|oldest| moment.has_seen(oldest)) {
            let message = format!(
                "{item} was changed more than {MOST_ENTRIES} times since: its versions have the contents"
            );
            return Err(Error::Gone(message));
        }
        Ok(found)
    }

    /// The folders that held it then, from the root on, and its path by their names then.
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
            let facts = match stood(&history, moment, present.or(known_by_history).ok_or_else(gone)?) {
                Standing::Live(facts) => facts,
                Standing::NotYet | Standing::Gone => return Err(gone()),
                Standing::InTrash => return Err(not_then(id, "was in trash with a folder")),
            };
            folders.push(folder);
            names.push(facts.name);
            next = facts.folder;
            if folders.len() > DEEPEST {
                return Err(gone());
            }
        }
        folders.reverse();
        names.reverse();
        Ok((folders, format!("/{}", names.join("/"))))
    }

    /// The content that the file had in a version, or at a time where no entry tells the version.
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

/// The time of a moment: it is past, and not so long ago that nobody knows.
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
    let kept = i64::try_from(ACTIVITY_KEPT.as_micros()).unwrap_or(i64::MAX);
    let oldest = Timestamp::from_micros(now.as_micros().saturating_sub(kept));
    if time < oldest {
        return Err(Error::Gone(format!(
            "how files stood is known from {} on; contents that are older are among a file's versions",
            oldest.to_rfc3339()
        )));
    }
    Ok(time)
}

/// Whether a text has the looks of a content's hash; no content has another.
fn is_hash(text: &str) -> bool {
    text.len() <= LONGEST_HASH && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b':')
}

fn not_then(id: &str, what: &str) -> Error {
    Error::NotThen(format!("the file {id} {what} at that time"))
}

/// How an item stood by its history, the latest entry first; `present` is what it is now, and live.
pub(crate) fn stood(history: &[ActivityEntry], moment: Moment, present: Facts) -> Standing {
    let since = history.partition_point(|entry| !moment.has_seen(entry));
    let (later, earlier) = history.split_at_checked(since).unwrap_or((history, &[]));
    let turns = |entry: &&ActivityEntry| entry.what.operation != Operation::Update;
    let turned = match (earlier.iter().find(turns), later.iter().rev().find(turns)) {
        (Some(last), _) => match last.what.operation {
            Operation::Trash => Some(Standing::InTrash),
            Operation::Remove => Some(Standing::Gone),
            Operation::Create | Operation::Update | Operation::Restore => None,
        },
        (None, Some(next)) => match next.what.operation {
            Operation::Create => Some(Standing::NotYet),
            // Out of trash, or out of it for good: so it was there.
            Operation::Restore | Operation::Remove => Some(Standing::InTrash),
            Operation::Trash | Operation::Update => None,
        },
        (None, None) => None,
    };
    if let Some(turned) = turned {
        return turned;
    }
    let mut facts = present;
    // Back through the later ones: what each was before.
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
    Standing::Live(facts)
}
