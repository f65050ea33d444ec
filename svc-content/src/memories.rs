//! The rules of memories (spec 2.3, 4.3): curated sets that an agent loads whole.
//!
//! A memory belongs to the workspace and to no folder. A folder-scoped caller sees every memory, but of its members
//! only what its folders hold; what it could not see it can neither publish nor take away.

mod databases;
mod guidance;
mod input;
mod outside;
mod resolve;
mod slug;
mod trash;

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
use crate::model::{Member, Memory, Page, PageRequest, Written};
use crate::scope::Caller;
use crate::store;

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Memories {
    context: Context,
}

impl Memories {
    pub(crate) fn new(context: Context) -> Self {
        Self { context }
    }

    /// Makes a memory.
    pub(crate) async fn create(&self, caller: &Caller, draft: MemoryDraft) -> Result<Written<Memory>, Error> {
        let checked = input::check_draft(draft)?;
        if checked.is_public {
            caller.require_publisher("making a public memory")?;
        }
        let wanted = self.targets(caller, checked.members).await?;
        let mut change = Change::begin(&self.context, caller).await?;
        store::memories::lock_slugs(change.tx(), caller.workspace).await?;
        let slug = match checked.slug {
            Some(slug) => free(&mut change, caller.workspace, slug).await?,
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
            version: 1,
            members: Vec::new(),
            created_at: now,
            updated_at: now,
        };
        store::memories::insert(change.tx(), &memory).await?;
        self.append(&mut change, &mut memory, wanted).await?;
        let written = publish(change, memory).await?;
        Ok(self.with_names(caller, written).await)
    }

    /// What was written, with the names that are not kept here.
    async fn with_names(&self, caller: &Caller, mut written: Written<Memory>) -> Written<Memory> {
        self.named(caller, std::iter::once(&mut written.item)).await;
        written
    }

    /// Memories in the order of name, then id.
    pub(crate) async fn list(&self, caller: &Caller, request: PageRequest) -> Result<Page<Memory>, Error> {
        let (db, workspace) = (&self.context.db, caller.workspace);
        let turn = db.reading_fairly(workspace).await?;
        let mut memories =
            store::memories::list(db, workspace, caller.listed(), request.after.as_ref(), request.fetch())
                .await?;
        let total = match request.known_total(memories.len()) {
            Some(total) => total,
            None => store::memories::count(db, workspace).await?,
        };
        // Another service is asked now.
        drop(turn);
        self.named(caller, memories.iter_mut()).await;
        Ok(request.page(memories, total, |memory| (memory.name.clone(), memory.id.to_string())))
    }

    /// Changes a memory and its members, all in one version. A change that changes nothing leaves version and feed
    /// alone and answers the feed's head.
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
        // Before the row: whoever holds the slugs may wait for a row, never the other way round.
        if checked.slug.is_some() {
            store::memories::lock_slugs(change.tx(), caller.workspace).await?;
        }
        let before = locked(&mut change, caller, &named).await?;
        let mut memory = before.clone();
        if let Some(slug) = checked.slug.filter(|slug| *slug != before.slug) {
            memory.slug = free(&mut change, caller.workspace, slug).await?;
        }
        memory.name = checked.name.unwrap_or(memory.name);
        memory.description = checked.description.unwrap_or(memory.description);
        memory.use_when = checked.use_when.unwrap_or(memory.use_when);
        memory.is_public = checked.is_public.unwrap_or(memory.is_public);
        let removed = input::removed(&before, &checked.remove)?;
        if memory.is_public && !wanted.is_empty() {
            caller.require_publisher("adding to a public memory")?;
        }
        if memory == before && removed.is_empty() && wanted.is_empty() {
            let unchanged = change.commit_with(memory).await?;
            return Ok(self.with_names(caller, unchanged).await);
        }
        take_out(&mut change, caller, &mut memory, removed).await?;
        self.append(&mut change, &mut memory, wanted).await?;
        if memory.is_public && !before.is_public {
            caller.require_publisher("making a memory public")?;
            require_all(caller, &memory.members, "make public")?;
        }
        let written = save(change, memory).await?;
        Ok(self.with_names(caller, written).await)
    }

    /// Puts members behind those that the memory has, and answers the new ones.
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
        let written = save(change, memory).await?;
        let added = written.item.members.into_iter().skip(before).collect();
        Ok(Written { item: added, position: written.position })
    }

    /// Takes a member out of a memory.
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
        take_out(&mut change, caller, &mut memory, vec![found]).await?;
        Ok(save(change, memory).await?.position)
    }

    /// Stores new members; the memory itself is the caller's to store.
    async fn append(
        &self,
        change: &mut Change,
        memory: &mut Memory,
        wanted: Vec<input::FoundTarget>,
    ) -> Result<(), Error> {
        let now = change.now();
        let first = memory.members.len();
        input::check_total(first + wanted.len())?;
        let member = |(place, found): (usize, input::FoundTarget)| Member {
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

/// Ends a change of a memory that makes a version of it.
async fn save(mut change: Change, mut memory: Memory) -> Result<Written<Memory>, Error> {
    memory.version += 1;
    memory.updated_at = change.now();
    store::memories::update(change.tx(), &memory).await?;
    publish(change, memory).await
}

async fn publish(mut change: Change, memory: Memory) -> Result<Written<Memory>, Error> {
    change.publish_upsert(Kind::Memory, memory.id);
    change.commit_with(memory).await
}

/// A text that is neither an id nor a slug names no memory.
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

/// A slug that no memory of the workspace has.
async fn free(change: &mut Change, workspace: WorkspaceId, slug: String) -> Result<String, Error> {
    let taken = store::memories::slugs(change.tx(), workspace, &slug).await?;
    if taken.contains(&slug) { Err(Error::SlugTaken(slug)) } else { Ok(slug) }
}

async fn take_out(
    change: &mut Change,
    caller: &Caller,
    memory: &mut Memory,
    mut removed: Vec<Member>,
) -> Result<(), Error> {
    require_all(caller, &removed, "take a member out of")?;
    // From the last: those before it keep the positions that they were read with.
    removed.sort_by_key(|member| std::cmp::Reverse(member.position));
    for member in &removed {
        store::memories::remove_member(change.tx(), memory, member).await?;
    }
    memory.members.retain(|member| !removed.contains(member));
    for (position, member) in (0_u32..).zip(&mut memory.members) {
        member.position = position;
    }
    Ok(())
}

/// Checks that the scope covers every one of some members: else a folder-scoped token could publish, or take from
/// others, what it may not even see.
fn require_all(caller: &Caller, members: &[Member], action: &str) -> Result<(), Error> {
    if caller.listed().is_none() || members.iter().all(|member| member.is_covered) {
        return Ok(());
    }
    Err(Error::OutOfScope(format!(
        "to {action} this memory, a token must reach what its members refer to: some of that is outside the folders \
         of this token"
    )))
}
