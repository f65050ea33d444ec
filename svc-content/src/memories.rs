//! The rules of memories (spec 2.3, 4.3): curated sets that an agent loads whole.
//!
//! A memory belongs to the workspace and is in no folder. A folder-scoped caller sees every memory, but only the
//! members in its folders; it can neither publish nor remove what it cannot see.

mod databases;
mod guidance;
mod input;
mod outside;
mod past;
mod resolve;
mod slug;
mod trash;
mod versions;

use cairn_chassis::feed::Kind;
use cairn_proto::ids::{MemberId, MemoryId, WorkspaceId};

pub(crate) use self::databases::{FieldsOf, RecordEntry};
pub(crate) use self::guidance::document;
pub(crate) use self::input::{MemberDraft, MemoryDraft, MemoryPatch};
pub(crate) use self::outside::DocumentEntry;
pub(crate) use self::resolve::{CoverageNote, Resolved};
pub(crate) use self::trash::{require_trashed, revive};
use crate::Error;
use crate::change::Change;
use crate::context::Context;
use crate::model::{Activity, Former, FormerMember, Member, Memory, Operation, Page, PageRequest, Written};
use crate::scope::Caller;
use crate::store;

/// The rules of memories on a store.
#[derive(Debug, Clone)]
pub(crate) struct Memories {
    context: Context,
}

impl Memories {
    pub(crate) fn new(context: Context) -> Self {
        Self { context }
    }

    /// Creates a memory.
    pub(crate) async fn create(&self, caller: &Caller, draft: MemoryDraft) -> Result<Written<Memory>, Error> {
        let checked = input::check_draft(draft)?;
        if checked.is_public {
            caller.require_publisher("making a public memory")?;
        }
        let wanted = self.targets(caller, checked.members).await?;
        let mut change = Change::begin(&self.context, caller).await?;
        store::memories::lock_slugs(change.tx(), caller.workspace).await?;
        let slug = match checked.slug {
            Some(slug) => free_slug(&mut change, caller.workspace, slug).await?,
            None => {
                let base = slug::derive(&checked.name);
                let taken = store::memories::slugs(change.tx(), caller.workspace, &base).await?;
                slug::first_free(&base, &taken)
            }
        };
        let now = change.now();
        let mut memory = Memory {
            id: self.context.ids.next(),
            workspace_id: caller.workspace,
            slug,
            name: checked.name,
            description: checked.description,
            use_when: checked.use_when,
            is_public: checked.is_public,
            is_listed: false,
            version: 1,
            members: Vec::new(),
            created_at: now,
            updated_at: now,
        };
        store::memories::insert(change.tx(), &memory).await?;
        self.append(&mut change, &mut memory, wanted).await?;
        versions::keep(&mut change, caller, &memory).await?;
        change.note(activity_of(Operation::Create, &memory).versions(None, Some(memory.version)));
        let written = publish(change, memory).await?;
        Ok(self.with_names(caller, written).await)
    }

    /// Adds the names of documents of connected sources.
    async fn with_names(&self, caller: &Caller, mut written: Written<Memory>) -> Written<Memory> {
        self.named(caller, std::iter::once(&mut written.item)).await;
        written
    }

    /// Memories in the order of name, then id.
    pub(crate) async fn list(&self, caller: &Caller, request: PageRequest) -> Result<Page<Memory>, Error> {
        let (db, workspace) = (&self.context.db, caller.workspace);
        let permit = db.read_permit(workspace).await?;
        let mut memories =
            store::memories::list(db, workspace, caller.listed(), request.after.as_ref(), request.fetch())
                .await?;
        let total = match request.known_total(memories.len()) {
            Some(total) => total,
            None => store::memories::count(db, workspace).await?,
        };
        // No read permit may be held while another service is called.
        drop(permit);
        self.named(caller, memories.iter_mut()).await;
        Ok(request.page(memories, total, |memory| (memory.name.clone(), memory.id.to_string())))
    }

    /// Updates a memory and its members as one version. An update without effect keeps version and feed and returns
    /// the feed head.
    pub(crate) async fn update(
        &self,
        caller: &Caller,
        named: &str,
        patch: MemoryPatch,
    ) -> Result<Written<Memory>, Error> {
        let named = parse(named)?;
        let checked = input::check_patch(patch)?;
        let wanted = self.targets(caller, checked.add).await?;
        let mut change = Change::begin(&self.context, caller).await?;
        // Lock order: slugs before the row.
        if checked.slug.is_some() {
            store::memories::lock_slugs(change.tx(), caller.workspace).await?;
        }
        let before = locked(&mut change, caller, &named).await?;
        let mut memory = before.clone();
        if let Some(slug) = checked.slug.filter(|slug| *slug != before.slug) {
            memory.slug = free_slug(&mut change, caller.workspace, slug).await?;
        }
        memory.name = checked.name.unwrap_or(memory.name);
        memory.description = checked.description.unwrap_or(memory.description);
        memory.use_when = checked.use_when.unwrap_or(memory.use_when);
        memory.is_public = checked.is_public.unwrap_or(memory.is_public);
        memory.is_listed = input::listed(&memory, checked.is_listed)?;
        let removed = input::removed(&before, &checked.remove)?;
        if memory.is_public && !wanted.is_empty() {
            caller.require_publisher("adding to a public memory")?;
        }
        if memory.is_listed && !before.is_listed {
            caller.require_publisher("letting search engines list a memory")?;
        }
        if memory == before && removed.is_empty() && wanted.is_empty() {
            let unchanged = change.commit_with(memory).await?;
            return Ok(self.with_names(caller, unchanged).await);
        }
        let mut changed = former(&before, &memory);
        changed.extend(members_removed(&removed));
        remove_members(&mut change, caller, &mut memory, removed).await?;
        let kept = memory.members.len();
        self.append(&mut change, &mut memory, wanted).await?;
        changed.extend(members_added(&memory, kept));
        if memory.is_public && !before.is_public {
            caller.require_publisher("making a memory public")?;
            require_all(caller, &memory.members, "make public")?;
        }
        let written = save(change, caller, memory, changed).await?;
        Ok(self.with_names(caller, written).await)
    }

    /// Appends members, and returns the new ones.
    pub(crate) async fn add_members(
        &self,
        caller: &Caller,
        named: &str,
        members: Vec<MemberDraft>,
    ) -> Result<Written<Vec<Member>>, Error> {
        let named = parse(named)?;
        let wanted = self.targets(caller, input::check_added(members)?).await?;
        let mut change = Change::begin(&self.context, caller).await?;
        let mut memory = locked(&mut change, caller, &named).await?;
        if memory.is_public {
            caller.require_publisher("adding to a public memory")?;
        }
        let before = memory.members.len();
        self.append(&mut change, &mut memory, wanted).await?;
        let changed = members_added(&memory, before).into_iter().collect();
        let written = save(change, caller, memory, changed).await?;
        let added = written.item.members.into_iter().skip(before).collect();
        Ok(Written { item: added, position: written.position })
    }

    /// Moves a member to another position; one past the last is the last. A member that is there already keeps
    /// version and feed.
    pub(crate) async fn move_member(
        &self,
        caller: &Caller,
        named: &str,
        member: &str,
        position: u32,
    ) -> Result<Written<Memory>, Error> {
        let named = parse(named)?;
        let id: MemberId = member.parse().map_err(|_| Error::no_member(member))?;
        let mut change = Change::begin(&self.context, caller).await?;
        let mut memory = locked(&mut change, caller, &named).await?;
        let found = memory.members.iter().enumerate().find(|(_, one)| one.id == id);
        let (from, found) = found.ok_or_else(|| Error::no_member(member))?;
        require_all(caller, std::slice::from_ref(found), "move a member of")?;
        let last = memory.members.len().saturating_sub(1);
        let to = usize::try_from(position).unwrap_or(last).min(last);
        if from == to {
            let unchanged = change.commit_with(memory).await?;
            return Ok(self.with_names(caller, unchanged).await);
        }
        let moved = memory.members.remove(from);
        store::memories::move_member(change.tx(), &memory, &moved, u32::try_from(to).unwrap_or(u32::MAX))
            .await?;
        memory.members.insert(to, moved);
        renumber(&mut memory);
        let written = save(change, caller, memory, vec![Former::MembersMoved]).await?;
        Ok(self.with_names(caller, written).await)
    }

    /// Removes a member.
    pub(crate) async fn remove_member(
        &self,
        caller: &Caller,
        named: &str,
        member: &str,
    ) -> Result<u64, Error> {
        let named = parse(named)?;
        let id: MemberId = member.parse().map_err(|_| Error::no_member(member))?;
        let mut change = Change::begin(&self.context, caller).await?;
        let mut memory = locked(&mut change, caller, &named).await?;
        let found = memory.members.iter().find(|one| one.id == id).cloned();
        let found = found.ok_or_else(|| Error::no_member(member))?;
        let removed = vec![found];
        let changed = members_removed(&removed).into_iter().collect();
        remove_members(&mut change, caller, &mut memory, removed).await?;
        Ok(save(change, caller, memory, changed).await?.position)
    }

    /// Inserts new members; the caller stores the memory itself.
    async fn append(
        &self,
        change: &mut Change,
        memory: &mut Memory,
        wanted: Vec<input::ResolvedTarget>,
    ) -> Result<(), Error> {
        let now = change.now();
        let first = memory.members.len();
        input::check_total(first + wanted.len())?;
        let member = |(place, found): (usize, input::ResolvedTarget)| Member {
            id: self.context.ids.next(),
            target: found.target,
            query: found.query,
            position: u32::try_from(first + place).unwrap_or(u32::MAX),
            added_at: now,
            title: Some(found.title),
            is_live: true,
            is_covered: true,
        };
        let added: Vec<Member> = wanted.into_iter().enumerate().map(member).collect();
        store::memories::insert_members(change.tx(), memory, &added, now).await?;
        memory.members.extend(added);
        Ok(())
    }
}

/// Ends a change that makes a new version of a memory.
async fn save(
    mut change: Change,
    caller: &Caller,
    mut memory: Memory,
    former: Vec<Former>,
) -> Result<Written<Memory>, Error> {
    let before = memory.version;
    memory.version += 1;
    memory.updated_at = change.now();
    store::memories::update(change.tx(), &memory).await?;
    versions::keep(&mut change, caller, &memory).await?;
    let update = activity_of(Operation::Update, &memory).versions(Some(before), Some(memory.version));
    change.note(Activity { former, ..update });
    publish(change, memory).await
}

async fn publish(mut change: Change, memory: Memory) -> Result<Written<Memory>, Error> {
    change.publish_upsert(Kind::Memory, memory.id);
    change.commit_with(memory).await
}

fn activity_of(operation: Operation, memory: &Memory) -> Activity {
    Activity::of(operation, Kind::Memory, memory.id, &memory.name).at(&trash::path(&memory.slug), None)
}

/// The fields of the memory itself that an update changes, with their previous values.
fn former(before: &Memory, after: &Memory) -> Vec<Former> {
    let changes = [
        (before.name != after.name).then(|| Former::Name(before.name.clone())),
        (before.slug != after.slug).then(|| Former::Slug(before.slug.clone())),
        (before.description != after.description).then(|| Former::Description(before.description.clone())),
        (before.use_when != after.use_when).then(|| Former::UseWhen(before.use_when.clone())),
        (before.is_public != after.is_public).then_some(Former::Public(before.is_public)),
        (before.is_listed != after.is_listed).then_some(Former::Listed(before.is_listed)),
    ];
    changes.into_iter().flatten().collect()
}

/// The members after the first `kept`.
fn members_added(memory: &Memory, kept: usize) -> Option<Former> {
    let added: Vec<FormerMember> = memory.members.iter().skip(kept).map(FormerMember::from).collect();
    (!added.is_empty()).then_some(Former::MembersAdded(added))
}

fn members_removed(removed: &[Member]) -> Option<Former> {
    (!removed.is_empty()).then(|| Former::MembersRemoved(removed.iter().map(FormerMember::from).collect()))
}

/// A text that is neither an id nor a slug is not found.
fn parse(named: &str) -> Result<String, Error> {
    if let Ok(id) = named.parse::<MemoryId>() {
        return Ok(id.to_string());
    }
    if slug::is_valid(named) { Ok(named.to_owned()) } else { Err(Error::no_memory(named)) }
}

async fn locked(change: &mut Change, caller: &Caller, named: &str) -> Result<Memory, Error> {
    let found = store::memories::lock(change.tx(), caller.workspace, named, caller.listed()).await?;
    found.ok_or_else(|| Error::no_memory(named))
}

/// A slug that no memory of the workspace has, derived from `slug`.
async fn free_slug(change: &mut Change, workspace: WorkspaceId, slug: String) -> Result<String, Error> {
    let taken = store::memories::slugs(change.tx(), workspace, &slug).await?;
    if taken.contains(&slug) { Err(Error::SlugTaken(slug)) } else { Ok(slug) }
}

async fn remove_members(
    change: &mut Change,
    caller: &Caller,
    memory: &mut Memory,
    mut removed: Vec<Member>,
) -> Result<(), Error> {
    require_all(caller, &removed, "take a member out of")?;
    // From the last, so that the positions read for those before it stay valid.
    removed.sort_by_key(|member| std::cmp::Reverse(member.position));
    for member in &removed {
        store::memories::remove_member(change.tx(), memory, member).await?;
    }
    memory.members.retain(|member| !removed.contains(member));
    renumber(memory);
    Ok(())
}

/// Positions count from 0 without gaps, in the order of the members.
fn renumber(memory: &mut Memory) {
    for (position, member) in (0_u32..).zip(&mut memory.members) {
        member.position = position;
    }
}

/// Checks that all of these members are in the scope: a folder-scoped token must not publish or remove what it cannot
/// see.
fn require_all(caller: &Caller, members: &[Member], action: &str) -> Result<(), Error> {
    if caller.listed().is_none() || members.iter().all(|member| member.is_covered) {
        return Ok(());
    }
    Err(Error::OutOfScope(format!(
        "to {action} this memory, a token must reach what its members refer to: some of that is outside the folders \
         of this token"
    )))
}
