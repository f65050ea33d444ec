//! Versions of memories (ADR 81): former states can be read and restored.

use cairn_proto::ids::MemberId;

use super::{
    Memories, former, input, locked, members_removed, parse, remove_members, renumber, require_all, save,
};
use crate::change::Change;
use crate::model::{
    Author, Former, FormerMember, Member, MemberTarget, Memory, MemoryState, MemoryVersion, Page,
    PageRequest, Written,
};
use crate::scope::Caller;
use crate::{Error, store};

/// The maximum number of versions of a memory; older ones are deleted. Each has the whole list of members.
const MAX_VERSIONS: u64 = 100;

impl Memories {
    /// The versions of a live memory, the newest first.
    pub(crate) async fn versions(
        &self,
        caller: &Caller,
        named: &str,
        request: PageRequest,
    ) -> Result<Page<MemoryVersion>, Error> {
        let memory = self.readable(caller, named).await?;
        let before = match &request.after {
            None => u64::MAX,
            Some(cursor) => cursor.name.parse::<u64>().map_err(|_| foreign_token())?,
        };
        let (db, workspace) = (&self.context.db, caller.workspace);
        let found = store::memory_versions::list(db, workspace, memory.id, before, request.fetch()).await?;
        let total = match request.known_total(found.len()) {
            Some(total) => total,
            None => store::memory_versions::count(db, workspace, memory.id).await?,
        };
        Ok(request.page(found, total, |version| (version.version.to_string(), String::new())))
    }

    /// A version with the state of the memory as the caller may see it, with the current names of the targets.
    pub(crate) async fn version(
        &self,
        caller: &Caller,
        named: &str,
        version: u64,
    ) -> Result<(MemoryVersion, Memory), Error> {
        let memory = self.readable(caller, named).await?;
        let (found, state) = self.kept(&memory, version).await?;
        let mut was = self.shown(caller, &memory, &found, state).await?;
        self.named(caller, std::iter::once(&mut was)).await;
        Ok((found, was))
    }

    /// Restores the content of a version as a new version: name, guidance, members and their order. Slug and
    /// visibility stay. A version equal to the current state changes nothing.
    pub(crate) async fn restore_version(
        &self,
        caller: &Caller,
        named: &str,
        version: u64,
        may_remove: bool,
    ) -> Result<Written<Memory>, Error> {
        let seen = self.readable(caller, named).await?;
        let (found, state) = self.kept(&seen, version).await?;
        // Before the transaction: acquiring a second connection inside one can deadlock on a small pool.
        let was = self.shown(caller, &seen, &found, state).await?;
        let mut change = Change::begin(&self.context, caller).await?;
        let before = locked(&mut change, caller, &seen.id.to_string()).await?;
        let matched = Matched::of(&before.members, was.members);
        let mut memory =
            Memory { name: was.name, description: was.description, use_when: was.use_when, ..before.clone() };
        if memory == before && matched.changes_nothing() {
            let unchanged = change.commit_with(memory).await?;
            return Ok(self.with_names(caller, unchanged).await);
        }
        matched.check(caller, &memory, may_remove)?;
        let mut changed = former(&before, &memory);
        changed.extend(matched.former());
        let Matched { members, removed, added, is_moved } = matched;
        remove_members(&mut change, caller, &mut memory, removed).await?;
        let (now, kept) = (change.now(), memory.members.len());
        let added = added
            .into_iter()
            .zip(kept..)
            .map(|(member, place)| Member { position: u32::try_from(place).unwrap_or(u32::MAX), ..member });
        let added: Vec<Member> = added.collect();
        store::memories::insert_members(change.tx(), &memory, &added, now).await?;
        memory.members = members;
        renumber(&mut memory);
        for member in memory.members.iter_mut().filter(|one| added.iter().any(|new| new.id == one.id)) {
            member.added_at = now;
        }
        if is_moved || !added.is_empty() {
            store::memories::order_members(change.tx(), &memory).await?;
        }
        let written = save(change, caller, memory, changed).await?;
        Ok(self.with_names(caller, written).await)
    }

    pub(super) async fn readable(&self, caller: &Caller, named: &str) -> Result<Memory, Error> {
        let named = parse(named)?;
        let (engine, scope) = (self.context.db.engine(), caller.listed());
        let found = store::memories::get(engine, caller.workspace, &named, scope).await?;
        found.ok_or_else(|| Error::no_memory(&named))
    }

    pub(super) async fn kept(
        &self,
        memory: &Memory,
        version: u64,
    ) -> Result<(MemoryVersion, MemoryState), Error> {
        let found =
            store::memory_versions::get(&self.context.db, memory.workspace_id, memory.id, version).await?;
        found.ok_or_else(|| Error::NotFound {
            kind: "version",
            id: format!("{version} of the memory {} that is kept", memory.id),
        })
    }

    /// The state of a version as the caller may see it, without the names of documents of sources.
    pub(super) async fn shown(
        &self,
        caller: &Caller,
        memory: &Memory,
        version: &MemoryVersion,
        state: MemoryState,
    ) -> Result<Memory, Error> {
        let targets = state.members.iter().map(|one| MemberTarget::of(one.kind, one.id));
        let here = targets.filter(|target| !matches!(target, MemberTarget::SourceDocument(_)));
        let live = self.live(caller, &here.collect::<Vec<_>>()).await?;
        let member = |(one, position): (FormerMember, u32)| {
            let target = MemberTarget::of(one.kind, one.id);
            let found = live.get(&target);
            let covered = found.filter(|(_, folders)| caller.covers(folders));
            // The query of a database outside of the scope is hidden with the database.
            let query = one.query.filter(|_| covered.is_some() || caller.listed().is_none());
            Member {
                id: one.member,
                target,
                query,
                position,
                added_at: version.created_at,
                title: covered.map(|(title, _)| title.clone()),
                is_live: found.is_some(),
                is_covered: covered.is_some(),
            }
        };
        let members = state.members.into_iter().zip(0_u32..).map(member).collect();
        Ok(Memory {
            id: memory.id,
            workspace_id: memory.workspace_id,
            slug: state.slug,
            name: state.name,
            description: state.description,
            use_when: state.use_when,
            is_public: state.is_public,
            is_listed: state.is_listed,
            version: version.version,
            members,
            created_at: memory.created_at,
            updated_at: version.created_at,
        })
    }
}

/// The current members of a memory matched with those of a version.
#[derive(Debug)]
struct Matched {
    /// The resulting members, in their order.
    members: Vec<Member>,
    removed: Vec<Member>,
    added: Vec<Member>,
    /// Whether the remaining members change their order.
    is_moved: bool,
}

impl Matched {
    /// Members match by id, and members that were removed and added again by target.
    fn of(there: &[Member], wanted: Vec<Member>) -> Self {
        let ids: Vec<MemberId> = wanted.iter().map(|one| one.id).collect();
        let mut left = there.to_vec();
        let (mut members, mut added) = (Vec::with_capacity(wanted.len()), Vec::new());
        for one in wanted {
            let itself = left.iter().position(|known| known.id == one.id);
            let alike = |known: &Member| {
                !ids.contains(&known.id) && known.target == one.target && known.query == one.query
            };
            match itself.or_else(|| left.iter().position(alike)) {
                Some(place) => members.push(left.remove(place)),
                None => {
                    added.push(one.clone());
                    members.push(one);
                }
            }
        }
        let stay = |one: &&Member| !added.iter().any(|new| new.id == one.id);
        let places: Vec<u32> = members.iter().filter(stay).map(|one| one.position).collect();
        let is_moved = !places.is_sorted();
        Self { members, removed: left, added, is_moved }
    }

    fn changes_nothing(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty() && !self.is_moved
    }

    /// The changes for the activity.
    fn former(&self) -> Vec<Former> {
        let added = self.added.iter().map(FormerMember::from).collect();
        let changes = [
            members_removed(&self.removed),
            (!self.added.is_empty()).then_some(Former::MembersAdded(added)),
            self.is_moved.then_some(Former::MembersMoved),
        ];
        changes.into_iter().flatten().collect()
    }

    /// Checks that the caller may restore.
    fn check(&self, caller: &Caller, memory: &Memory, may_remove: bool) -> Result<(), Error> {
        input::check_total(self.members.len())?;
        if !self.removed.is_empty() && !may_remove {
            return Err(Error::MayNotRemove);
        }
        if memory.is_public && !self.added.is_empty() {
            caller.require_publisher("adding to a public memory")?;
        }
        require_all(caller, &self.added, "bring members back into")?;
        if self.is_moved {
            require_all(caller, &self.members, "move members of")?;
        }
        Ok(())
    }
}

/// Stores the current state of a memory as a version.
pub(super) async fn keep(change: &mut Change, caller: &Caller, memory: &Memory) -> Result<(), Error> {
    let whole = match caller.listed() {
        None => None,
        // A scoped caller was not shown all of it.
        Some(_) => {
            let engine = change.tx().engine();
            store::memories::get(engine, caller.workspace, &memory.id.to_string(), None).await?
        }
    };
    let state = MemoryState::from(whole.as_ref().unwrap_or(memory));
    let version = MemoryVersion {
        version: memory.version,
        name: memory.name.clone(),
        members: state.members.len() as u64,
        created_at: change.now(),
        author: Some(Author::of_content(&caller.principal)),
    };
    store::memory_versions::insert(change.tx(), caller.workspace, memory.id, &version, &state).await?;
    match memory.version.checked_sub(MAX_VERSIONS) {
        None | Some(0) => Ok(()),
        Some(last) => {
            Ok(store::memory_versions::delete_up_to(change.tx(), caller.workspace, memory.id, last).await?)
        }
    }
}

fn foreign_token() -> Error {
    Error::invalid("pageToken", "invalid", "send the token of the previous page as it came")
}
