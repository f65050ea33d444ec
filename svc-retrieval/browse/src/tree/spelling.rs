//! Keeps the children of a folder disambiguated and sorted while they are added and removed.

use cairn_shell::tree::Node;

use super::base::{Base, search};
use super::names::{self, Cut, Sibling};

impl Base {
    /// Appends a child, to be spelled with all of them.
    pub(super) fn push(&mut self, folder: Node, node: Node, segment: &str) {
        self.rename(node, folder, segment.into(), segment);
        if let Some(slot) = self.slot_mut(folder) {
            slot.children.push(node);
        }
    }

    /// Spells all children of a folder.
    pub(super) fn spell(&mut self, folder: Node) {
        let mut children = self.children(folder).to_vec();
        let slots = children.iter().filter(|child| !self.is_text(**child));
        let slots: Vec<_> = slots.filter_map(|child| Some((*child, self.slot(*child)?))).collect();
        let siblings: Vec<Sibling<'_>> = slots
            .iter()
            .map(|(_, slot)| Sibling { id: slot.id, segment: slot.segment(), cut: slot.cut() })
            .collect();
        let spelled = names::spell(&siblings, self.reserved(folder));
        let changed: Vec<(Node, String, Box<str>)> = slots
            .iter()
            .zip(spelled)
            .filter(|((_, slot), name)| *slot.name != **name)
            .map(|((node, slot), name)| (*node, name, slot.segment().into()))
            .collect();
        for (node, name, segment) in changed {
            self.rename(node, folder, name, &segment);
        }
        children.sort_by(|one, other| self.name(*one).as_bytes().cmp(self.name(*other).as_bytes()));
        if let Some(slot) = self.slot_mut(folder) {
            slot.children = children;
        }
    }

    /// Removes a child; `false` when its siblings must be spelled again.
    pub(super) fn remove_child(&mut self, folder: Node, node: Node) -> bool {
        let Some(slot) = self.slot(node) else { return true };
        let (name, segment, is_marked) =
            (slot.name.clone(), slot.segment().to_owned(), slot.segment.is_some());
        self.detach(folder, node);
        if is_marked {
            return !names::is_long(&name, &segment);
        }
        let heirs = self.marked(folder, &segment);
        let Some(heir) = heirs.iter().copied().min_by_key(|heir| self.slot(*heir).map(|slot| slot.id)) else {
            return true;
        };
        if heirs.iter().any(|heir| names::is_long(self.name(*heir), &segment)) {
            return false;
        }
        self.detach(folder, heir);
        self.attach(folder, heir, segment.clone(), &segment);
        true
    }

    /// Inserts a child at its sorted position; `false`, without inserting it, when its siblings must be spelled again.
    pub(super) fn insert_child(&mut self, folder: Node, node: Node, segment: &str) -> bool {
        let Some(slot) = self.slot(node) else { return true };
        let (id, cut) = (slot.id, slot.cut());
        let taken = self.child(folder, segment);
        if names::needs_mark(segment, self.reserved(folder))
            || taken.is_some_and(|owner| self.precedes(owner, node))
        {
            if self.has_prefix(folder, &names::prefix_of(segment, cut, id)) {
                return false;
            }
            self.attach(folder, node, names::marked(segment, cut, id), segment);
            return true;
        }
        if let Some(owner) = taken {
            let Some(owned) = self.slot(owner) else { return false };
            let (owner_id, owner_cut) = (owned.id, owned.cut());
            if self.has_prefix(folder, &names::prefix_of(segment, owner_cut, owner_id)) {
                return false;
            }
            self.detach(folder, owner);
            self.attach(folder, owner, names::marked(segment, owner_cut, owner_id), segment);
        }
        self.attach(folder, node, segment.to_owned(), segment);
        true
    }

    fn precedes(&self, one: Node, other: Node) -> bool {
        let id = |node: Node| self.slot(node).map(|slot| slot.id);
        id(one) < id(other)
    }

    fn child(&self, folder: Node, name: &str) -> Option<Node> {
        let children = self.children(folder);
        let place = search(children, name, |child| self.name(child)).ok()?;
        children.get(place).copied()
    }

    fn beginning(&self, folder: Node, prefix: &str) -> impl Iterator<Item = Node> {
        let children = self.children(folder);
        let from = children.partition_point(|child| self.name(*child).as_bytes() < prefix.as_bytes());
        let rest = children.get(from..).unwrap_or_default().iter().copied();
        rest.take_while(move |child| self.name(*child).starts_with(prefix))
    }

    fn has_prefix(&self, folder: Node, prefix: &str) -> bool {
        self.beginning(folder, prefix).next().is_some()
    }

    /// The marked children of that segment.
    fn marked(&self, folder: Node, segment: &str) -> Vec<Node> {
        let mut marked = Vec::new();
        for cut in [Cut::Extension, Cut::End] {
            let prefix = names::marked_prefix(segment, cut);
            let is_one = |child: &Node| {
                self.slot(*child).is_some_and(|slot| slot.cut() == cut && slot.segment() == segment)
            };
            marked.extend(self.beginning(folder, &prefix).filter(is_one));
        }
        marked
    }

    fn detach(&mut self, folder: Node, node: Node) {
        let name = self.name(node);
        let found = search(self.children(folder), name, |child| self.name(child));
        if let Some(slot) = self.slot_mut(folder) {
            match found {
                Ok(place) if slot.children.get(place) == Some(&node) => drop(slot.children.remove(place)),
                Ok(_) | Err(_) => slot.children.retain(|child| *child != node),
            }
        }
    }

    fn attach(&mut self, folder: Node, node: Node, name: String, segment: &str) {
        let (Ok(place) | Err(place)) = search(self.children(folder), &name, |child| self.name(child));
        self.rename(node, folder, name, segment);
        if let Some(slot) = self.slot_mut(folder) {
            slot.children.insert(place.min(slot.children.len()), node);
        }
    }

    fn rename(&mut self, node: Node, folder: Node, name: String, segment: &str) {
        if let Some(slot) = self.slot_mut(node) {
            slot.segment = (name != segment).then(|| segment.into());
            slot.name = name.into();
            slot.parent = folder;
        }
    }
}
