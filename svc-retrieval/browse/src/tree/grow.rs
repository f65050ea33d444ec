//! Applies changes to a tree incrementally; the result equals a rebuilt tree.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_shell::tree::Node;
use uuid::Uuid;

use super::base::{Base, Fixed, Item, README, SCHEMA, Slot};
use super::rows::{Place, Row, Rows, What};

/// All children of a folder are spelled again when more than one in 8 of them come or go.
const WHOLE: usize = 8;
/// The last shape number.
static SHAPES: AtomicU64 = AtomicU64::new(0);
/// The parent of a node that is not placed yet.
const NOWHERE: Node = Node(u32::MAX);

/// The changes are inconsistent with the tree, which must be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inconsistent;

/// The children that leave a folder and those that enter it, with their segments.
#[derive(Debug, Default)]
struct Touched<'a> {
    out: Vec<Node>,
    into: Vec<(Node, &'a str)>,
}

impl Base {
    /// Applies content's changes up to a position. After an error the tree must be discarded.
    pub(super) fn apply(&mut self, rows: &Rows, position: u64) -> Result<(), Inconsistent> {
        self.positions.content = position;
        self.follow(rows, position)
    }

    /// Applies the changes of documents from outside up to a position. After an error the tree must be discarded.
    pub(super) fn apply_outside(&mut self, rows: &Rows, position: u64) -> Result<(), Inconsistent> {
        self.positions.outside = Some(position);
        self.follow(rows, position)
    }

    fn follow(&mut self, rows: &Rows, position: u64) -> Result<(), Inconsistent> {
        let mut dead = Vec::new();
        let mut live = Vec::with_capacity(rows.0.len());
        let is_gone = |id: Uuid| matches!(rows.0.get(&id), Some(None));
        for (id, row) in &rows.0 {
            match row {
                // Trashing a folder trashes its databases without changes of their records.
                Some(Row { place: Place::Database(database), .. }) if is_gone(*database) => {
                    dead.extend(self.node(*id));
                }
                Some(row) => live.push(row),
                None => dead.extend(self.node(*id)),
            }
        }
        // In traversal order, for cache locality of later walks.
        live.sort_unstable_by(|one, other| (one.place, &one.segment).cmp(&(other.place, &other.segment)));
        for row in &live {
            if self.node(row.id).is_none() {
                self.add(row);
            }
        }
        let mut touched: HashMap<Node, Touched<'_>> = HashMap::new();
        let mut is_shaped_anew = !dead.is_empty();
        for row in live {
            is_shaped_anew |= self.renew(row, position, &mut touched)?;
        }
        if is_shaped_anew {
            self.shape = SHAPES.fetch_add(1, Ordering::Relaxed) + 1;
        }
        for node in &dead {
            let parent = self.slot(*node).map(|slot| slot.parent).ok_or(Inconsistent)?;
            touched.entry(parent).or_default().out.push(*node);
        }
        self.rearrange(&touched);
        dead.into_iter().try_for_each(|node| self.remove(node))?;
        let left = touched.iter().filter(|(_, touched)| !touched.out.is_empty()).map(|(folder, _)| *folder);
        left.collect::<Vec<_>>().into_iter().try_for_each(|folder| self.prune(folder))
    }

    /// Removes an empty folder below the sources, and ancestors that become empty.
    fn prune(&mut self, folder: Node) -> Result<(), Inconsistent> {
        let mut folder = folder;
        while let Some(slot) = self.slot(folder) {
            let is_empty = matches!(slot.what(), Some(What::SourceFolder(_))) && slot.children.is_empty();
            if !is_empty {
                return Ok(());
            }
            let parent = slot.parent;
            if !self.remove_child(parent, folder) {
                self.spell(parent);
            }
            self.remove(folder)?;
            folder = parent;
        }
        Ok(())
    }

    /// Adds a node for a new entity, not placed yet.
    fn add(&mut self, row: &Row) {
        let slot = |item: Item, name: Box<str>, parent: Node| Slot {
            item,
            id: row.id,
            parent,
            name,
            segment: None,
            children: Vec::new(),
            updated: row.updated,
            changed: 0,
        };
        let node = self.put(slot(Item::Entity(row.what.clone()), row.segment.clone(), NOWHERE));
        self.index.insert(row.id, node);
        *self.counts.of(&row.what) += 1;
        let (item, name) = match &row.what {
            What::Database { .. } => (Item::Schema, SCHEMA),
            What::Memory(_) => (Item::Guide, README),
            What::Folder
            | What::File(_)
            | What::Record { .. }
            | What::SourceFolder(_)
            | What::Document(_) => return,
        };
        let child = self.put(slot(item, name.into(), node));
        if let Some(slot) = self.slot_mut(node) {
            slot.children.push(child);
        }
    }

    fn put(&mut self, slot: Slot) -> Node {
        if let Some(node) = self.free.pop() {
            if let Some(free) = self.slot_mut(node) {
                *free = slot;
            }
            return node;
        }
        let node = Node(u32::try_from(self.slots.len()).unwrap_or(u32::MAX));
        self.slots.push(slot);
        node
    }

    /// Makes a node what its row says, all but where it stands and how it is spelled there; whether more changes than its
    /// text.
    fn renew<'a>(
        &mut self,
        row: &'a Row,
        position: u64,
        touched: &mut HashMap<Node, Touched<'a>>,
    ) -> Result<bool, Inconsistent> {
        let parent = self.holder(row.place).ok_or(Inconsistent)?;
        let (node, before) = self.entity(row.id).ok_or(Inconsistent)?;
        let stands = before.parent == parent && before.segment() == &*row.segment;
        if !stands {
            if before.parent != NOWHERE {
                touched.entry(before.parent).or_default().out.push(node);
            }
            touched.entry(parent).or_default().into.push((node, &row.segment));
        }
        let is_shown = !stands || shows_elsewhere(before.what(), &row.what);
        // Its schema or README is its first child, or among the records.
        let about = before.children.iter().copied().find(|child| self.is_text(*child));
        self.newest = self.newest.max(row.updated);
        if let Some(slot) = self.slot_mut(node) {
            slot.item = Item::Entity(row.what.clone());
            slot.updated = row.updated;
            slot.changed = position;
        }
        if let Some(slot) = about.and_then(|child| self.slot_mut(child)) {
            slot.updated = row.updated;
            slot.changed = position;
        }
        Ok(is_shown)
    }

    /// Whether it is a schema or README, and no entity.
    pub(super) fn is_text(&self, node: Node) -> bool {
        let is_text =
            |item: &Item| matches!(item, Item::Schema | Item::Guide | Item::Fixed(Fixed::SourcesReadme));
        self.slot(node).is_some_and(|slot| is_text(&slot.item))
    }

    /// All removals are applied before any insertion.
    fn rearrange(&mut self, touched: &HashMap<Node, Touched<'_>>) {
        let mut whole = HashSet::new();
        for (folder, touched) in touched {
            let changes = touched.out.len() + touched.into.len();
            if changes.saturating_mul(WHOLE) > self.children(*folder).len() {
                whole.insert(*folder);
                let out: HashSet<Node> = touched.out.iter().copied().collect();
                if !out.is_empty()
                    && let Some(slot) = self.slot_mut(*folder)
                {
                    slot.children.retain(|child| !out.contains(child));
                }
                continue;
            }
            for node in &touched.out {
                if !self.remove_child(*folder, *node) {
                    whole.insert(*folder);
                }
            }
        }
        for (folder, touched) in touched {
            for (node, segment) in &touched.into {
                if whole.contains(folder) || !self.insert_child(*folder, *node, segment) {
                    whole.insert(*folder);
                    self.push(*folder, *node, segment);
                }
            }
        }
        for folder in whole {
            self.spell(folder);
        }
    }

    /// Frees a node that was removed from its folder.
    fn remove(&mut self, node: Node) -> Result<(), Inconsistent> {
        let slot = self.slot(node).ok_or(Inconsistent)?;
        let is_folder = matches!(slot.what(), Some(What::Folder | What::SourceFolder(_)));
        let held = slot.children.clone();
        if is_folder && !held.is_empty() {
            return Err(Inconsistent);
        }
        for child in held {
            self.release(child);
        }
        self.release(node);
        Ok(())
    }

    fn release(&mut self, node: Node) {
        let Some(slot) = self.slot_mut(node) else { return };
        let (id, item) = (slot.id, std::mem::replace(&mut slot.item, Item::Free));
        slot.children = Vec::new();
        slot.parent = NOWHERE;
        if let Item::Entity(what) = item {
            self.index.remove(id);
            *self.counts.of(&what) -= 1;
        }
        self.free.push(node);
    }
}

/// Whether a change affects more than the text of the changed item.
fn shows_elsewhere(before: Option<&What>, after: &What) -> bool {
    match (before, after) {
        (
            Some(What::Database { folder, description, .. }),
            What::Database { folder: new_folder, description: new_description, .. },
        ) => folder != new_folder || description != new_description,
        (Some(before), What::Memory(_) | What::SourceFolder(_)) => before != after,
        (Some(What::Document(before)), What::Document(after)) => {
            before.text.is_some() != after.text.is_some()
        }
        (
            _,
            What::Folder | What::File(_) | What::Record { .. } | What::Database { .. } | What::Document(_),
        )
        | (None, What::Memory(_) | What::SourceFolder(_)) => false,
    }
}
