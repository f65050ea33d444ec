//! The difference between the current tree and the tree at a past moment (ADR 106).
//!
//! The activity since then has the items that have changed and their former state; versions have their former contents. So the
//! cost is proportional to the changes since, not to the size of the workspace. Items that are not live now are omitted
//! (ADR 96), except for folders, which past paths may lead through.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_proto::ids::{DocumentId, FileId, FolderId, WorkspaceId};

use super::{TreeItems, Trees, parse};
use crate::context::Context;
use crate::model::{
    ActivityEntry, ActivityId, FileVersion, FolderState, FormerMember, MemberTarget, MemoryState, TreeFile,
    TreeFolder, TreeMember, TreeMemory,
};
use crate::past::{Facts, Moment, PastState, state_at, time_of};
use crate::store::tree::TreeSelection;
use crate::{Error, store};

/// Activity entries that are read; a moment with more changes since is refused.
const MAX_ENTRIES: usize = 20_000;
/// The same for feed entries, of which a write has more: trashing a folder publishes all of its contents.
const MAX_FEED_ENTRIES: usize = 100_000;
/// Activity entries per statement.
const PAGE: usize = 1_000;
/// The maximum clock skew between writing processes.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(10);

/// Everything that has changed since a moment, in its state then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PastTree {
    pub(crate) at: Timestamp,
    /// The items in their state then.
    pub(crate) items: TreeItems,
    /// The tags of the files among them; files without tags are omitted.
    pub(crate) tags: Vec<(FileId, Vec<String>)>,
    /// Folders, files and memories that were not live then, or are not live now.
    pub(crate) gone: Vec<(Kind, DocumentId)>,
    /// Databases and records that have changed; their former state is not available.
    pub(crate) untold: Vec<(Kind, DocumentId)>,
    /// How many items of `gone` are live now, and were live then with unknown content.
    pub(crate) unknown: u64,
}

impl Trees {
    /// Everything that has changed since a moment, in its state then.
    pub(crate) async fn past(&self, workspace: &str, moment: Moment) -> Result<PastTree, Error> {
        let workspace = parse(workspace)?;
        let at = time_of(&self.context, workspace, moment).await?;
        let _permit = self.context.db.read_permit(workspace).await?;
        let (entries, seen) = since(&self.context, workspace, moment, at).await?;
        let untold = untold(&self.context, workspace, seen).await?;
        let histories = Histories::of(entries);
        let (items, tags, gone) = (TreeItems::default(), Vec::new(), Vec::new());
        let past = PastTree { at, items, tags, gone, untold, unknown: 0 };
        let mut reader = Reader { context: &self.context, workspace, moment, histories: &histories, past };
        reader.files().await?;
        reader.memories().await?;
        reader.folders().await?;
        Ok(reader.past)
    }
}

/// The activity since a moment, latest first, and the feed position of the last write by then.
async fn since(
    context: &Context,
    workspace: WorkspaceId,
    moment: Moment,
    at: Timestamp,
) -> Result<(Vec<ActivityEntry>, u64), Error> {
    let skew = i64::try_from(MAX_CLOCK_SKEW.as_micros()).unwrap_or(i64::MAX);
    let far_enough = Timestamp::from_micros(at.as_micros().saturating_sub(skew));
    let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let mut before = ActivityId::before(Timestamp::from_micros(i64::MAX));
    let (mut entries, mut seen) = (Vec::new(), 0);
    loop {
        let page = store::activity::list(&context.db, workspace, None, before, limit).await?;
        let is_last = page.len() < PAGE;
        let Some(oldest) = page.last().map(|entry| entry.id) else { break };
        for entry in page {
            if moment.has_seen(&entry) {
                seen = entry.id.position.max(seen);
            } else {
                entries.push(entry);
            }
        }
        if entries.len() > MAX_ENTRIES {
            return Err(too_many());
        }
        if is_last || oldest.at < far_enough {
            break;
        }
        before = oldest;
    }
    // Order the entries by feed position, as timestamps are subject to clock skew.
    entries.sort_by_key(|entry| Reverse((entry.id.position, entry.id.place)));
    Ok((entries, seen))
}

/// The databases and records in the feed after a position, including those that changed along with another item and have no
/// activity entry.
async fn untold(
    context: &Context,
    workspace: WorkspaceId,
    after: u64,
) -> Result<Vec<(Kind, DocumentId)>, Error> {
    let limit = i64::try_from(MAX_FEED_ENTRIES.saturating_add(1)).unwrap_or(i64::MAX);
    let mut tx = context.db.begin_read().await?;
    let changed = store::tree::changed(&mut tx, workspace, after, limit).await?;
    tx.rollback().await?;
    if changed.len() > MAX_FEED_ENTRIES {
        return Err(too_many());
    }
    let is_untold = |kind: Kind| matches!(kind, Kind::Database | Kind::Record);
    let untold = changed.into_iter().filter(|(_, kind, _)| is_untold(*kind)).map(|(_, kind, id)| (kind, id));
    let untold: HashSet<(Kind, DocumentId)> = untold.collect();
    let mut untold: Vec<(Kind, DocumentId)> = untold.into_iter().collect();
    untold.sort_unstable_by_key(|(_, id)| *id);
    Ok(untold)
}

fn too_many() -> Error {
    Error::Gone(format!(
        "more than {MAX_ENTRIES} changes were made since then, and scripts and searches go back no further: take a later moment, or \
         read files by their ids as of then"
    ))
}

/// The activity per item, latest first.
#[derive(Debug, Default)]
struct Histories(HashMap<(Kind, DocumentId), Vec<ActivityEntry>>);

impl Histories {
    fn of(entries: Vec<ActivityEntry>) -> Self {
        let mut histories: HashMap<(Kind, DocumentId), Vec<ActivityEntry>> = HashMap::new();
        for entry in entries {
            if let Ok(id) = entry.what.item_id.parse() {
                histories.entry((entry.what.kind, id)).or_default().push(entry);
            }
        }
        Self(histories)
    }

    fn ids(&self, kind: Kind) -> Vec<(Kind, DocumentId)> {
        let mut ids: Vec<(Kind, DocumentId)> = self.0.keys().filter(|(of, _)| *of == kind).copied().collect();
        ids.sort_unstable_by_key(|(_, id)| *id);
        ids
    }

    fn get(&self, kind: Kind, id: DocumentId) -> &[ActivityEntry] {
        self.0.get(&(kind, id)).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Reads the past state of items.
struct Reader<'a> {
    context: &'a Context,
    workspace: WorkspaceId,
    moment: Moment,
    histories: &'a Histories,
    past: PastTree,
}

impl Reader<'_> {
    /// The past state of an item, from its present one; `None` if it was not live.
    fn state_at(&self, kind: Kind, id: DocumentId, present: Facts) -> Option<Facts> {
        match state_at(self.histories.get(kind, id), self.moment, present) {
            PastState::Live(facts) => Some(facts),
            PastState::NotYet | PastState::InTrash | PastState::Removed => None,
        }
    }

    async fn files(&mut self) -> Result<(), Error> {
        let changed = self.histories.ids(Kind::File);
        let ids: Vec<DocumentId> = changed.iter().map(|(_, id)| *id).collect();
        let mut tx = self.context.db.begin_read().await?;
        let live = store::tree::files(&mut tx, self.workspace, TreeSelection::Some(&ids)).await?;
        let mut tags = store::tree::tags(&mut tx, self.workspace, &ids).await?;
        let then = live.into_iter().filter_map(|file| {
            let present = Facts::of(&file.name, file.folder_id);
            let present = present.tagged(tags.remove(&file.id).unwrap_or_default());
            let facts = self.state_at(Kind::File, DocumentId(file.id.0), present)?;
            Some((file, facts))
        });
        let then: Vec<(TreeFile, Facts)> = then.collect();
        let asked: Vec<(FileId, u64)> = then
            .iter()
            .map(|(file, facts)| {
                (file.id, facts.version.map_or(u64::MAX, |version| version.saturating_add(1)))
            })
            .collect();
        let versions = store::versions::before(&mut tx, self.workspace, &asked).await?;
        tx.rollback().await?;
        let mut versions: HashMap<FileId, FileVersion> =
            versions.into_iter().map(|version| (version.file_id, version)).collect();
        let mut told = HashSet::new();
        for (file, facts) in then {
            let version = versions.remove(&file.id).filter(|version| match self.moment {
                Moment::At(time) => version.created_at <= time,
                Moment::After(_) => true,
            });
            let Some(version) = version else {
                self.past.unknown += 1;
                continue;
            };
            told.insert(DocumentId(file.id.0));
            if !facts.tags.is_empty() {
                self.past.tags.push((file.id, facts.tags));
            }
            self.past.items.files.push(TreeFile {
                folder_id: facts.folder,
                name: facts.name,
                size_bytes: version.size_bytes,
                content_hash: version.content_hash,
                updated_at: version.created_at,
                ..file
            });
        }
        self.past.gone.extend(changed.into_iter().filter(|(_, id)| !told.contains(id)));
        Ok(())
    }

    async fn memories(&mut self) -> Result<(), Error> {
        let changed = self.histories.ids(Kind::Memory);
        if changed.is_empty() {
            return Ok(());
        }
        let ids: Vec<DocumentId> = changed.iter().map(|(_, id)| *id).collect();
        let mut tx = self.context.db.begin_read().await?;
        let live = store::tree::memories(&mut tx, self.workspace, &ids).await?;
        tx.rollback().await?;
        let mut told = HashSet::new();
        for memory in live {
            let id = DocumentId(memory.id.0);
            let Some(facts) = self.state_at(Kind::Memory, id, Facts::of(&memory.name, None)) else {
                continue;
            };
            let Some(version) = facts.version else {
                // It was trashed and restored since, and is otherwise unchanged.
                told.insert(id);
                self.past.items.memories.push(memory);
                continue;
            };
            let db = &self.context.db;
            let kept = store::memory_versions::get(db, self.workspace, memory.id, version).await?;
            let Some((version, state)) = kept else {
                self.past.unknown += 1;
                continue;
            };
            told.insert(id);
            self.past.items.memories.push(at_version(memory, state, version.created_at));
        }
        self.past.gone.extend(changed.into_iter().filter(|(_, id)| !told.contains(id)));
        Ok(())
    }

    /// The changed live folders, and the past parents of everything that was read, level by level upward.
    async fn folders(&mut self) -> Result<(), Error> {
        let changed = self.histories.ids(Kind::Folder);
        let ids: Vec<DocumentId> = changed.iter().map(|(_, id)| *id).collect();
        let mut tx = self.context.db.begin_read().await?;
        let live = store::tree::folders(&mut tx, self.workspace, TreeSelection::Some(&ids)).await?;
        tx.rollback().await?;
        let mut wanted: Vec<FolderId> = live.into_iter().map(|folder| folder.id).collect();
        wanted.extend(self.past.items.files.iter().filter_map(|file| file.folder_id));
        let (mut asked, mut told) = (HashSet::new(), HashSet::new());
        while !wanted.is_empty() {
            wanted.retain(|id| asked.insert(*id));
            let known = store::states::folders(&self.context.db, self.workspace, &wanted).await?;
            let mut known: HashMap<FolderId, FolderState> =
                known.into_iter().map(|state| (state.id, state)).collect();
            let mut above = Vec::new();
            for id in wanted {
                let Some(facts) = self.folder(id, known.remove(&id)) else { continue };
                above.extend(facts.folder);
                told.insert(DocumentId(id.0));
                let (parent_id, updated_at) = (facts.folder, self.past.at);
                self.past.items.folders.push(TreeFolder { id, parent_id, name: facts.name, updated_at });
            }
            wanted = above;
        }
        self.past.gone.extend(changed.into_iter().filter(|(_, id)| !told.contains(id)));
        Ok(())
    }

    /// The past state of a folder; `None` if it was not live, its state is unknown, or it has not changed.
    fn folder(&self, id: FolderId, now: Option<FolderState>) -> Option<Facts> {
        let id = DocumentId(id.0);
        let history = self.histories.get(Kind::Folder, id);
        if history.is_empty() && now.as_ref().is_some_and(|state| !state.in_trash) {
            return None;
        }
        let by_state = now.map(|state| Facts::of(&state.name, state.parent_id));
        let by_history = || history.first().map(|entry| Facts::of(&entry.what.name, entry.what.folder_id));
        self.state_at(Kind::Folder, id, by_state.or_else(by_history)?)
    }
}

/// A live memory in its state at a version.
fn at_version(memory: TreeMemory, state: MemoryState, updated_at: Timestamp) -> TreeMemory {
    let member = |member: FormerMember| TreeMember {
        target: MemberTarget::of(member.kind, member.id),
        is_query: member.query.is_some(),
    };
    TreeMemory {
        id: memory.id,
        slug: state.slug,
        name: state.name,
        description: state.description,
        use_when: state.use_when,
        members: state.members.into_iter().map(member).collect(),
        updated_at,
    }
}
