//! The plan of an undo (console.md, M4): what was done is reverted, except where somebody else has changed it since.
//!
//! The rule is that of the rollback of a sync run, applied to single writes: an item is reverted as far as the newest
//! of its entries are all selected. Pure computation.

use std::collections::{HashMap, HashSet};

use cairn_chassis::feed::Kind;
use cairn_proto::ids::{DatabaseId, FolderId};
use uuid::Uuid;

use crate::model::{ActivityEntry, ActivityId, Author, Former, FormerMember, Operation};

/// The current state of an item, as far as an undo needs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ItemState {
    pub(crate) in_trash: bool,
    /// For kinds with versions.
    pub(crate) version: Option<u64>,
    /// Its container.
    pub(crate) parent: Option<Uuid>,
    /// The number of items in it.
    pub(crate) children: u64,
    /// The container that it went to trash with.
    pub(crate) along: Option<String>,
}

/// The fields to restore; absent ones stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    /// The version whose content or values are restored.
    pub(crate) version: Option<u64>,
    pub(crate) name: Option<String>,
    /// `Some(None)` is the root.
    pub(crate) folder: Option<Option<FolderId>>,
    pub(crate) tags: Option<Vec<String>>,
    pub(crate) description: Option<Option<String>>,
    pub(crate) icon: Option<Option<String>>,
    pub(crate) slug: Option<String>,
    pub(crate) use_when: Option<Option<String>>,
    pub(crate) is_public: Option<bool>,
    pub(crate) is_listed: Option<bool>,
    /// Members to remove; and members to add.
    pub(crate) remove: Vec<FormerMember>,
    pub(crate) add: Vec<FormerMember>,
}

/// An action on an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Restore,
    Revert(Box<Fields>),
    /// Moves a created item to trash; a folder only when it is empty.
    Trash,
    /// Moves a restored item to trash again, with everything that was restored with it.
    TrashAgain,
}

impl Action {
    pub(crate) const fn moves_to_trash(&self) -> bool {
        matches!(self, Self::Trash | Self::TrashAgain)
    }
}

/// The actions on an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) what: Item,
    /// In order, each with the entry whose previous state the item has afterwards.
    pub(crate) actions: Vec<(Action, ActivityId)>,
    /// The precondition on the version of the item.
    pub(crate) if_version: Option<u64>,
    /// The newest entry that is undone.
    pub(crate) newest: ActivityId,
}

/// The item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) database_id: Option<DatabaseId>,
}

impl Item {
    fn of(entry: &ActivityEntry) -> Self {
        Self {
            kind: entry.what.kind,
            id: entry.what.item_id.clone(),
            name: entry.what.name.clone(),
            path: entry.what.path.clone(),
            database_id: entry.what.database_id,
        }
    }
}

/// An item that is skipped, wholly or in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftAlone {
    pub(crate) what: Item,
    pub(crate) code: &'static str,
    pub(crate) reason: String,
    pub(crate) by: Option<Author>,
}

/// What an undo does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// In the order of execution.
    pub(crate) steps: Vec<Step>,
    pub(crate) left_alone: Vec<LeftAlone>,
}

/// How far an item is reverted.
#[derive(Debug, Default)]
struct Walk<'a> {
    /// The entries that are undone, the newest first.
    undone: Vec<&'a ActivityEntry>,
    /// The author of the oldest later change that blocks selected entries.
    blocked: Option<&'a Author>,
    /// Whether selected entries changed properties or views.
    changes_schema: bool,
}

impl Walk<'_> {
    /// Whether it is reverted to before its creation or restoration.
    fn was_made(&self) -> bool {
        let oldest = self.undone.last();
        oldest.is_some_and(|one| matches!(one.what.operation, Operation::Create | Operation::Restore))
    }
}

/// Others may have written into properties and views by now, so they are never reverted, and block nothing.
fn is_of_schema(entry: &ActivityEntry) -> bool {
    entry.what.operation == Operation::Update
        && !entry.what.former.is_empty()
        && entry.what.former.iter().all(|former| matches!(former, Former::Fields | Former::Views))
}

const fn order(id: ActivityId) -> (u64, u64) {
    (id.position, id.place)
}

/// Scans the history of an item from the newest entry back, as long as entries are selected or already undone.
fn walk<'a>(history: &'a [ActivityEntry], selected: &HashSet<ActivityId>) -> Walk<'a> {
    let mut walk = Walk::default();
    let mut rest = history;
    while let Some((entry, older)) = rest.split_first() {
        if is_of_schema(entry) {
            walk.changes_schema |= selected.contains(&entry.id);
            rest = older;
        } else if selected.contains(&entry.id) {
            walk.undone.push(entry);
            rest = older;
        } else if let Some(undoes) = entry.undoes {
            // After it, the item has the state before the entry that it undoes.
            let next = older.iter().position(|one| order(one.id) < order(undoes)).unwrap_or(older.len());
            rest = older.get(next..).unwrap_or_default();
        } else {
            if older.iter().any(|one| selected.contains(&one.id)) {
                walk.blocked = Some(&entry.author);
            }
            break;
        }
    }
    walk
}

/// Plans the undo of the selected entries from the histories of their items, each from the newest entry back to the
/// oldest selected one, and from their current states.
pub(crate) fn plan(
    histories: &HashMap<String, Vec<ActivityEntry>>,
    selected: &HashSet<ActivityId>,
    states: &HashMap<String, ItemState>,
) -> Plan {
    let mut plan = Plan::default();
    let mut all: Vec<Planned<'_>> = Vec::new();
    for history in histories.values() {
        let Some(newest) = history.first() else { continue };
        match states.get(&newest.what.item_id) {
            Some(state) => all.push(Planned { newest, history, state, walk: walk(history, selected) }),
            // A created item that was removed needs no undo.
            None if walk(history, selected).was_made() => {}
            None => {
                let reason = "it was deleted for good and cannot come back";
                plan.keep(Item::of(newest), "deleted_for_good", reason, None);
            }
        }
    }
    all.sort_by_key(|one| std::cmp::Reverse(order(one.newest.id)));
    let opened: HashSet<&str> = all.iter().filter(|one| one.is_restored()).map(Planned::id).collect();
    for one in &all {
        plan.item(one, &opened);
    }
    plan.keep_nonempty_containers(states);
    plan.steps.sort_by_cached_key(place);
    plan
}

/// Containers are restored before their contents, and moved to trash after them.
fn place(step: &Step) -> (u8, u8, std::cmp::Reverse<(u64, u64)>) {
    const CONTAINERS_FIRST: [Kind; 5] =
        [Kind::Folder, Kind::Database, Kind::File, Kind::Record, Kind::Memory];
    let holder =
        CONTAINERS_FIRST.iter().position(|kind| *kind == step.what.kind).unwrap_or(CONTAINERS_FIRST.len());
    let holder = u8::try_from(holder).unwrap_or(u8::MAX);
    let newest = std::cmp::Reverse(order(step.newest));
    match step.actions.last() {
        _ if step.actions.iter().any(|(action, _)| *action == Action::Restore) => (0, holder, newest),
        Some((action, _)) if action.moves_to_trash() => (2, u8::MAX - holder, newest),
        _ => (1, holder, newest),
    }
}

/// An item with selected entries.
struct Planned<'a> {
    newest: &'a ActivityEntry,
    history: &'a [ActivityEntry],
    state: &'a ItemState,
    walk: Walk<'a>,
}

impl Planned<'_> {
    fn id(&self) -> &str {
        &self.newest.what.item_id
    }

    /// Its deletion that it is in trash with, if that is selected.
    fn own_deletion(&self) -> Option<&ActivityEntry> {
        let newest = self.walk.undone.first().copied();
        newest.filter(|newest| newest.what.operation == Operation::Trash && self.state.in_trash)
    }

    /// Whether it leaves the trash, with its contents, even if it is moved there again later.
    fn is_restored(&self) -> bool {
        let holds_others = |trash: &ActivityEntry| trash.what.items > 1 || trash.what.kind == Kind::Database;
        self.own_deletion().is_some_and(|trash| holds_others(trash) || !self.walk.was_made())
    }

    /// The actions; `is_live` says whether the item is, or will be, out of trash.
    fn actions(&self, is_live: bool) -> Vec<(Action, ActivityId)> {
        let Some(oldest) = self.walk.undone.last() else { return Vec::new() };
        // The folder that it was restored into matters only if it stays live.
        let kept = usize::from(oldest.what.operation == Operation::Restore);
        let fields = fields(self.walk.undone.iter().rev().skip(kept).rev());
        let fields = (fields != Fields::default()).then(|| Action::Revert(Box::new(fields)));
        let mut actions = Vec::new();
        if self.is_restored() {
            let is_all = fields.is_none() && !self.walk.was_made();
            let trash = self.own_deletion().map_or(oldest.id, |trash| trash.id);
            actions.push((Action::Restore, if is_all { oldest.id } else { trash }));
        }
        if !is_live {
            return actions;
        }
        match (oldest.what.operation, fields) {
            (Operation::Create, _) => actions.push((Action::Trash, oldest.id)),
            (Operation::Restore, fields) => {
                // The state right after it was restored.
                let next = self.walk.undone.iter().rev().nth(1).map_or(oldest.id, |next| next.id);
                actions.extend(fields.map(|fields| (fields, next)));
                actions.push((Action::TrashAgain, oldest.id));
            }
            (Operation::Update | Operation::Trash | Operation::Remove, fields) => {
                actions.extend(fields.map(|fields| (fields, oldest.id)));
            }
        }
        actions
    }
}

impl Plan {
    fn item(&mut self, one: &Planned<'_>, opened: &HashSet<&str>) {
        let (what, walk, state) = (Item::of(one.newest), &one.walk, one.state);
        if let Some(by) = walk.blocked {
            self.keep(what.clone(), "edited_since", "it was changed since: that stays as it is", Some(by));
        }
        let goes = one.walk.was_made();
        if walk.changes_schema && !goes {
            let reason = "its fields and views stay: others may have used them since";
            self.keep(what.clone(), "fields_kept", reason, None);
        }
        if walk.undone.iter().any(|one| one.what.former.contains(&Former::MembersMoved)) && !goes {
            self.keep(what.clone(), "order_kept", "the order of its members stays as it is", None);
        }
        let is_along = state.along.as_deref().is_some_and(|holder| opened.contains(holder));
        let is_live = !state.in_trash || one.is_restored() || is_along;
        let actions = one.actions(is_live);
        if actions.is_empty() {
            if !is_live && !goes && !walk.undone.is_empty() {
                let reason = "it is in trash along with what held it: restore that first";
                self.keep(what, "in_trash", reason, None);
            }
            return;
        }
        // Changes without an entry of their own, such as the deletion of a property with its values.
        let told = one.history.iter().find_map(|one| one.what.version_after);
        let is_as_told = told.is_none() || state.version.is_none() || told == state.version;
        if !is_as_told {
            let reason = "it was changed since along with its database: it stays as it is";
            return self.keep(what, "edited_since", reason, None);
        }
        let (if_version, newest) = (state.version, one.newest.id);
        // An item that is restored only to release its contents is moved to trash again after that.
        let (back, rest): (Vec<_>, Vec<_>) =
            actions.into_iter().partition(|(action, _)| goes && *action == Action::Restore);
        for actions in [back, rest] {
            if !actions.is_empty() {
                self.steps.push(Step { what: what.clone(), actions, if_version, newest });
            }
        }
    }

    fn keep(&mut self, what: Item, code: &'static str, reason: &str, by: Option<&Author>) {
        self.left_alone.push(LeftAlone { what, code, reason: reason.to_owned(), by: by.cloned() });
    }

    /// A created folder or database is moved to trash only when everything in it is, too.
    fn keep_nonempty_containers(&mut self, states: &HashMap<String, ItemState>) {
        let mut open = std::mem::take(&mut self.steps);
        let mut going: HashMap<Uuid, u64> = HashMap::new();
        loop {
            let before = open.len();
            let (taken, waiting): (Vec<Step>, Vec<Step>) =
                open.into_iter().partition(|step| is_emptied(step, states, &going));
            for step in &taken {
                let leaves = step.actions.iter().any(|(action, _)| action.moves_to_trash()) || moves(step);
                let parent = states.get(&step.what.id).and_then(|now| now.parent).filter(|_| leaves);
                if let Some(parent) = parent {
                    *going.entry(parent).or_default() += 1;
                }
            }
            self.steps.extend(taken);
            open = waiting;
            if open.len() == before || open.is_empty() {
                break;
            }
        }
        for step in open {
            self.keep(step.what, "not_empty", "other things stand in it by now: it stays", None);
        }
    }
}

/// Whether everything in the containers that a step moves to trash is moved there, too.
fn is_emptied(step: &Step, states: &HashMap<String, ItemState>, going: &HashMap<Uuid, u64>) -> bool {
    if !step.actions.iter().any(|(action, _)| *action == Action::Trash) {
        return true;
    }
    let children = states.get(&step.what.id).map_or(0, |now| now.children);
    let id: Option<Uuid> = step.what.id.parse().ok();
    children <= id.and_then(|id| going.get(&id).copied()).unwrap_or(0)
}

fn moves(step: &Step) -> bool {
    step.actions.iter().any(|(action, _)| matches!(action, Action::Revert(fields) if fields.folder.is_some()))
}

/// The fields before all of these entries, the newest of which comes first.
fn fields<'a>(undone: impl Iterator<Item = &'a &'a ActivityEntry>) -> Fields {
    let mut fields = Fields::default();
    for entry in undone {
        for former in &entry.what.former {
            fields.take(former, entry.what.version_before);
        }
    }
    fields
}

impl Fields {
    fn take(&mut self, former: &Former, version: Option<u64>) {
        match former.clone() {
            Former::Content | Former::Values => self.version = version,
            Former::Name(name) => self.name = Some(name),
            Former::Folder(folder) => self.folder = Some(folder),
            Former::Tags(tags) => self.tags = Some(tags),
            Former::Description(description) => self.description = Some(description),
            Former::Icon(icon) => self.icon = Some(icon),
            Former::Slug(slug) => self.slug = Some(slug),
            Former::UseWhen(use_when) => self.use_when = Some(use_when),
            Former::Public(is_public) => self.is_public = Some(is_public),
            Former::Listed(is_listed) => self.is_listed = Some(is_listed),
            // A member that a newer entry has removed again need not be added.
            Former::MembersAdded(added) => {
                for member in added {
                    let known = self.add.len();
                    self.add.retain(|one| one.member != member.member);
                    if self.add.len() == known {
                        self.remove.push(member);
                    }
                }
            }
            Former::MembersRemoved(removed) => self.add.extend(removed),
            Former::MembersMoved | Former::Fields | Former::Views => {}
        }
    }
}
