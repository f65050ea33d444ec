//! Executes an undo: each item by the rules of its kind, in writes with activity of their own.

mod gather;

use std::collections::HashSet;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::ids::FolderId;

use super::plan::{Action, Fields, Item, LeftAlone, Plan, Step, plan};
use super::require_whole;
use crate::Error;
use crate::batch::{Batches, ConditionalWrite, Write};
use crate::checks::Checks;
use crate::context::Context;
use crate::databases::{DatabasePatch, Databases};
use crate::files::FilePatch;
use crate::folders::FolderPatch;
use crate::memories::{MemberDraft, Memories, MemoryPatch};
use crate::model::{ActivityEntry, ActivityId, FormerMember, Member, MemberKind, MemberTarget};
use crate::records::RecordWrite;
use crate::scope::Caller;
use crate::store;

/// The maximum number of entries listed in a request, and of those that the undo of a principal examines.
const MAX_NAMED: usize = 1_000;
const MAX_WANTED: usize = 10_000;
const READ_BATCH: i64 = 1_000;
/// The maximum number of entries of a write: no batch has as many.
const MAX_OF_WRITE: i64 = 10_000;
/// The maximum number of entries that are searched for writes below a folder.
const MAX_SCANNED: i64 = 5_000;
/// The maximum number of items that a call changes, and of those that it tries.
const MAX_AT_ONCE: usize = 200;
const MAX_TRIED: usize = 1_000;

/// The selection of an undo.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) principal_id: Option<String>,
    /// With a principal, only those of that principal.
    pub(crate) entries: Vec<String>,
    /// All entries of one write; with a principal, only if the write is by that principal.
    pub(crate) write: Option<String>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
}

/// The result of an undo.
#[derive(Debug, Default)]
pub(crate) struct Undone {
    pub(crate) steps: Vec<Step>,
    pub(crate) left_alone: Vec<LeftAlone>,
    /// Whether another call would undo more.
    pub(crate) has_more: bool,
    /// Of the last write; 0 when nothing was written.
    pub(crate) position: u64,
}

/// The rules of undos on a store.
#[derive(Debug, Clone)]
pub(crate) struct Undos {
    context: Context,
    batches: Batches,
    databases: Databases,
    memories: Memories,
}

impl Undos {
    pub(crate) fn new(context: Context) -> Self {
        Self {
            batches: Batches::new(context.clone()),
            databases: Databases::new(context.clone()),
            memories: Memories::new(context.clone()),
            context,
        }
    }

    /// What an undo would do.
    pub(crate) async fn plan(&self, caller: &Caller, selection: Selection) -> Result<Plan, Error> {
        require_whole(caller)?;
        let selected = self.selected(caller, selection).await?;
        let ids: HashSet<ActivityId> = selected.iter().map(|entry| entry.id).collect();
        let histories = self.histories(caller, &selected).await?;
        let states = self.states(caller, &histories).await?;
        let mut plan = plan(&histories, &ids, &states);
        self.keep_folders_written_below(caller, &ids, &mut plan).await?;
        Ok(plan)
    }

    /// Undoes what can be undone, and reports what was skipped.
    pub(crate) async fn execute(&self, caller: &Caller, selection: Selection) -> Result<Undone, Error> {
        let plan = self.plan(caller, selection).await?;
        let mut undone = Undone { left_alone: plan.left_alone, ..Undone::default() };
        let (mut open, mut tried) = (plan.steps, 0);
        loop {
            let (before, mut again) = (undone.steps.len(), Vec::new());
            for step in open {
                if undone.steps.len() >= MAX_AT_ONCE || tried >= MAX_TRIED {
                    undone.has_more = !undone.steps.is_empty();
                    return Ok(undone);
                }
                tried += 1;
                match self.take(caller, &step).await {
                    Ok(position) => {
                        undone.position = position;
                        undone.steps.push(step);
                    }
                    Err(error) => {
                        let left = refused(step.what.clone(), error)?;
                        again.push((step, left));
                    }
                }
            }
            // One item may have been blocked by another that is undone now, such as two folders that swap places.
            if undone.steps.len() == before || again.is_empty() {
                undone.left_alone.extend(again.into_iter().map(|(_, left)| left));
                return Ok(undone);
            }
            open = again.into_iter().map(|(step, _)| step).collect();
        }
    }

    async fn selected(&self, caller: &Caller, selection: Selection) -> Result<Vec<ActivityEntry>, Error> {
        let (db, workspace) = (&self.context.db, caller.workspace);
        let _permit = db.read_permit(workspace).await?;
        // An undo can only be undone when it is selected explicitly: otherwise undoing all of one's own writes would
        // never end.
        let is_named = !selection.entries.is_empty() || selection.write.is_some();
        let is_asked = |entry: &ActivityEntry| {
            (entry.undoes.is_none() || is_named)
                && selection.principal_id.as_ref().is_none_or(|id| *id == entry.author.id)
                && selection.since.is_none_or(|since| entry.id.at >= since)
                && selection.until.is_none_or(|until| entry.id.at < until)
        };
        if !selection.entries.is_empty() {
            let mut found = self.named(caller, &selection.entries).await?;
            found.retain(is_asked);
            return Ok(found);
        }
        if let Some(write) = &selection.write {
            let mut found = self.of_write(caller, write).await?;
            found.retain(is_asked);
            return Ok(found);
        }
        let Some(principal) = selection.principal_id.as_deref().filter(|id| !id.contains('\0')) else {
            let message = "name entries, a write, or a principal whose changes are to be undone";
            return Err(Error::invalid("principal", "required", message));
        };
        let mut before = ActivityId::before(selection.until.unwrap_or(Timestamp::from_micros(i64::MAX)));
        let mut selected = Vec::new();
        loop {
            let some = store::activity::list(db, workspace, Some(principal), before, READ_BATCH).await?;
            let Some(last) = some.last() else { return Ok(selected) };
            before = last.id;
            let found = some.len();
            selected.extend(some.into_iter().filter(is_asked));
            if selected.len() > MAX_WANTED {
                let message =
                    format!("choose a shorter time: {}", wording::at_most(MAX_WANTED, Unit::Entries));
                return Err(Error::invalid("from", "too_many", message));
            }
            if selection.since.is_some_and(|since| before.at < since)
                || (found as u64) < READ_BATCH.unsigned_abs()
            {
                return Ok(selected);
            }
        }
    }

    async fn of_write(&self, caller: &Caller, text: &str) -> Result<Vec<ActivityEntry>, Error> {
        let found = match text.parse() {
            Ok(write) => {
                store::activity::of_write(&self.context.db, caller.workspace, write, MAX_OF_WRITE).await?
            }
            Err(_) => Vec::new(),
        };
        if found.is_empty() {
            let message = "names no write that is known: it may be older than entries are kept";
            return Err(Error::invalid("write", "not_found", message));
        }
        Ok(found)
    }

    async fn named(&self, caller: &Caller, ids: &[String]) -> Result<Vec<ActivityEntry>, Error> {
        let mut checks = Checks::default();
        if ids.len() > MAX_NAMED {
            checks.violation("entries", "too_long", wording::at_most(MAX_NAMED, Unit::Entries));
            checks.finish()?;
            return Ok(Vec::new());
        }
        let mut found = Vec::with_capacity(ids.len());
        for (place, text) in ids.iter().enumerate() {
            let entry = match text.parse() {
                Ok(id) => store::activity::get(&self.context.db, caller.workspace, id).await?,
                Err(_) => None,
            };
            match entry {
                Some(entry) => found.push(entry),
                None => checks.violation(
                    &format!("entries[{place}]"),
                    "not_found",
                    "there is no such entry: it may be older than entries are kept",
                ),
            }
        }
        checks.finish()?;
        Ok(found)
    }

    /// A restored folder is moved to trash again with everything in it, unless somebody has written below it since.
    async fn keep_folders_written_below(
        &self,
        caller: &Caller,
        selected: &HashSet<ActivityId>,
        plan: &mut Plan,
    ) -> Result<(), Error> {
        let (db, workspace) = (&self.context.db, caller.workspace);
        for step in std::mem::take(&mut plan.steps) {
            let back =
                step.actions.iter().find(|(action, _)| *action == Action::TrashAgain).map(|(_, id)| *id);
            let folder: Option<FolderId> =
                step.what.id.parse().ok().filter(|_| step.what.kind == Kind::Folder);
            let (Some(back), Some(folder)) = (back, folder) else {
                plan.steps.push(step);
                continue;
            };
            let below: HashSet<FolderId> =
                store::folders::ids_below(db.engine(), workspace, &[folder]).await?.into_iter().collect();
            let last = ActivityId::before(Timestamp::from_micros(i64::MAX));
            let since = store::activity::list(db, workspace, None, last, MAX_SCANNED).await?;
            let is_all = since.last().is_none_or(|one| one.id <= back)
                || (since.len() as u64) < MAX_SCANNED.unsigned_abs();
            let is_theirs = |one: &&ActivityEntry| {
                let is_below = one.what.folder_id.is_some_and(|folder| below.contains(&folder));
                one.id > back && is_below && !selected.contains(&one.id)
            };
            match since.iter().find(is_theirs) {
                None if is_all => plan.steps.push(step),
                found => plan.left_alone.push(LeftAlone {
                    what: step.what,
                    code: "edited_since",
                    reason: "what it holds was changed since: it stays".to_owned(),
                    by: found.map(|one| one.author.clone()),
                }),
            }
        }
        Ok(())
    }

    /// Executes a step; returns the position of its last write.
    async fn take(&self, caller: &Caller, step: &Step) -> Result<u64, Error> {
        let mut position = 0;
        for (action, undoes) in &step.actions {
            let caller = Caller { undoes: Some(*undoes), ..caller.clone() };
            // Only the first action checks the version: later ones see the writes of earlier ones.
            let if_version = step.if_version.filter(|_| position == 0);
            position = match action {
                Action::Restore => {
                    let write = Write::RestoreItem(step.what.kind, step.what.id.clone());
                    self.write(&caller, vec![write.into()]).await?
                }
                Action::Revert(fields) => self.revert(&caller, &step.what, fields, if_version).await?,
                Action::Trash => self.trash(&caller, &step.what, if_version, true).await?,
                Action::TrashAgain => self.trash(&caller, &step.what, if_version, false).await?,
            };
        }
        Ok(position)
    }

    async fn write(&self, caller: &Caller, writes: Vec<ConditionalWrite>) -> Result<u64, Error> {
        Ok(self.batches.write(caller, writes).await?.positions.last)
    }

    async fn revert(
        &self,
        caller: &Caller,
        what: &Item,
        fields: &Fields,
        if_version: Option<u64>,
    ) -> Result<u64, Error> {
        let folder = fields.folder.map(|folder| folder.map(|id| id.to_string()));
        match what.kind {
            Kind::Folder => {
                let patch =
                    FolderPatch { name: fields.name.clone(), parent_id: folder, ..FolderPatch::default() };
                self.write(caller, vec![Write::UpdateFolder(what.id.clone(), patch).into()]).await
            }
            Kind::Database => {
                let patch = DatabasePatch {
                    name: fields.name.clone(),
                    description: fields.description.clone(),
                    icon: fields.icon.clone(),
                    folder_id: folder,
                    ..DatabasePatch::default()
                };
                Ok(self.databases.update(caller, &what.id, patch).await?.position)
            }
            Kind::Record => {
                let write = RecordWrite::RestoreVersion(what.id.clone(), fields.version.unwrap_or_default());
                let write = Write::Record(database_of(what), write);
                self.write(caller, vec![ConditionalWrite { if_version, ..write.into() }]).await
            }
            Kind::Memory => self.revert_memory(caller, what, fields).await,
            Kind::File | Kind::Unspecified | Kind::SourceDocument | Kind::Ingested => {
                let patch = FilePatch {
                    name: fields.name.clone(),
                    folder_id: folder,
                    tags: fields.tags.clone(),
                    description: fields.description.clone(),
                    ..FilePatch::default()
                };
                let of_content =
                    fields.version.map(|version| Write::RestoreVersion(what.id.clone(), version));
                let rest = Write::UpdateFile(what.id.clone(), patch);
                let mut writes: Vec<ConditionalWrite> =
                    of_content.into_iter().chain([rest]).map(ConditionalWrite::from).collect();
                if let Some(first) = writes.first_mut() {
                    first.if_version = if_version;
                }
                self.write(caller, writes).await
            }
        }
    }

    async fn revert_memory(&self, caller: &Caller, what: &Item, fields: &Fields) -> Result<u64, Error> {
        let engine = self.context.db.engine();
        let found = store::memories::get(engine, caller.workspace, &what.id, None).await?;
        let memory = found.ok_or_else(|| Error::no_memory(&what.id))?;
        let patch = MemoryPatch {
            name: fields.name.clone(),
            slug: fields.slug.clone().filter(|slug| *slug != memory.slug),
            description: fields.description.clone(),
            use_when: fields.use_when.clone(),
            is_public: fields.is_public,
            is_listed: fields.is_listed,
            add: fields.add.iter().map(member_draft).collect(),
            remove: members(&memory.members, &fields.remove),
            ..MemoryPatch::default()
        };
        Ok(self.memories.update(caller, &what.id, patch).await?.position)
    }

    async fn trash(
        &self,
        caller: &Caller,
        what: &Item,
        if_version: Option<u64>,
        if_empty: bool,
    ) -> Result<u64, Error> {
        let id = what.id.clone();
        match what.kind {
            Kind::Database => self.databases.delete(caller, &id).await,
            Kind::Memory => self.memories.delete(caller, &id).await,
            Kind::Folder => {
                let write = ConditionalWrite { if_empty, ..Write::DeleteFolder(id).into() };
                self.write(caller, vec![write]).await
            }
            Kind::Record => {
                let write = Write::Record(database_of(what), RecordWrite::Delete(id));
                self.write(caller, vec![ConditionalWrite { if_version, ..write.into() }]).await
            }
            Kind::File | Kind::Unspecified | Kind::SourceDocument | Kind::Ingested => {
                self.write(caller, vec![ConditionalWrite { if_version, ..Write::DeleteFile(id).into() }])
                    .await
            }
        }
    }
}

fn database_of(what: &Item) -> String {
    what.database_id.map(|id| id.to_string()).unwrap_or_default()
}

/// The ids of those members that exist, or of others with the same target: a member that was removed and added again
/// has another id.
fn members(there: &[Member], selected: &[FormerMember]) -> Vec<String> {
    let mut found: Vec<&Member> = Vec::new();
    for former in selected {
        let target = MemberTarget::of(former.kind, former.id);
        let is_it = |one: &&Member| one.id == former.member;
        let is_like = |one: &&Member| one.target == target && one.query == former.query;
        let free: Vec<&Member> =
            there.iter().filter(|one| !found.iter().any(|known| known.id == one.id)).collect();
        let one = free.iter().copied().find(|one| is_it(one));
        found.extend(one.or_else(|| free.iter().copied().find(|one| is_like(one))));
    }
    found.into_iter().map(|member| member.id.to_string()).collect()
}

fn member_draft(former: &FormerMember) -> MemberDraft {
    let id = |kind: MemberKind| (former.kind == kind).then(|| former.id.to_string());
    MemberDraft {
        kind: Some(former.kind),
        file_id: id(MemberKind::File),
        folder_id: id(MemberKind::Folder),
        source_document_id: id(MemberKind::SourceDocument),
        database_id: id(MemberKind::Database),
        query: former.query.clone(),
    }
}

/// Turns a rejection of an item into a skipped item; other errors stay errors.
fn refused(what: Item, error: Error) -> Result<LeftAlone, Error> {
    let (code, reason) = match &error {
        Error::VersionConflict { .. } | Error::RecordConflict { .. } => {
            ("edited_since", "it was changed in this moment: it stays as it is".to_owned())
        }
        Error::NotFound { .. } | Error::WentAlong { .. } | Error::NoTargets(_) => {
            ("not_found", error.to_string())
        }
        Error::Invalid(violations) => {
            let said: Vec<&str> = violations.iter().map(|broken| broken.message.as_str()).collect();
            ("refused", said.join("; "))
        }
        Error::SlugTaken(_)
        | Error::OutOfScope(_)
        | Error::MayNotPublish(_)
        | Error::MayNotRemove
        | Error::LimitExceeded(_)
        | Error::TooLarge(_)
        | Error::OutOfDate(_) => ("refused", error.to_string()),
        Error::LeftOut(_)
        | Error::NotThen(_)
        | Error::Gone(_)
        | Error::Unanswered
        | Error::Storage(_)
        | Error::Objects(_)
        | Error::LostAsset(_)
        | Error::StoreAway { .. }
        | Error::DamagedBody(_) => return Err(error),
    };
    Ok(LeftAlone { what, code, reason, by: None })
}
