//! The projection of a tree for one scope. Valid as long as the shape of the tree stays the same.
//!
//! A caller of some folders sees these with everything below, and the names of their ancestors as path segments, nothing else.
//! Spellings are disambiguated among visible siblings only, so that they leak no invisible ones.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use bytes::Bytes;
use cairn_proto::ids::FolderId;
use cairn_shell::tree::Node;
use uuid::Uuid;

use super::base::{Base, Fixed, Slot};
use super::memories::MemoryFolder;
use super::names::{self, Sibling};
use super::rows::What;
use super::texts;

/// The children of the sources in a past tree.
static ONLY_README: [Node; 1] = [Fixed::SourcesReadme.node()];

/// The projection for one scope.
#[derive(Debug)]
pub(super) struct Lens {
    /// The shape of the tree that it was made for.
    pub(super) shape: u64,
    /// Whether it is of a past tree, which shows no databases and no documents from outside.
    pub(super) is_past: bool,
    /// `None` for the whole workspace.
    narrow: Option<Narrow>,
    memories: OnceLock<Vec<MemoryFolder>>,
    readme: OnceLock<Bytes>,
    sources_readme: OnceLock<Bytes>,
}

/// What differs for a caller of some folders.
#[derive(Debug, Default)]
struct Narrow {
    listed: HashSet<Uuid>,
    /// Of the folders that are not seen whole.
    children: HashMap<Node, Vec<Node>>,
    /// Where they differ.
    names: HashMap<Node, Box<str>>,
    /// Folders above the listed ones.
    ways: HashSet<Node>,
    newest: i64,
}

impl Lens {
    /// Of the whole workspace, or of these folders.
    pub(super) fn new(base: &Base, scope: Option<&[FolderId]>) -> Self {
        Self {
            shape: base.shape,
            is_past: false,
            narrow: scope.map(|listed| Narrow::new(base, listed)),
            memories: OnceLock::new(),
            readme: OnceLock::new(),
            sources_readme: OnceLock::new(),
        }
    }

    /// The same of a tree as it was.
    pub(super) fn of_past(base: &Base, scope: Option<&[FolderId]>) -> Self {
        Self { is_past: true, ..Self::new(base, scope) }
    }

    /// Whether it covers the whole workspace.
    pub(super) const fn is_whole(&self) -> bool {
        self.narrow.is_none()
    }

    /// Whether the node is a folder that is visible only as an ancestor.
    pub(super) fn is_way(&self, node: Node) -> bool {
        self.narrow.as_ref().is_some_and(|narrow| narrow.ways.contains(&node))
    }

    /// Whether the content of this folder is visible.
    pub(super) fn covers(&self, base: &Base, folder: Option<Uuid>) -> bool {
        let Some(narrow) = &self.narrow else { return true };
        folder.and_then(|id| base.node(id)).is_some_and(|node| narrow.is_below(base, node))
    }

    /// Whether a folder is visible, also as an ancestor.
    pub(super) fn shows_folder(&self, base: &Base, node: Node) -> bool {
        self.narrow.as_ref().is_none_or(|narrow| narrow.ways.contains(&node) || narrow.is_below(base, node))
    }

    /// The file of that id, if it is visible.
    pub(super) fn file<'a>(&self, base: &'a Base, id: Uuid) -> Option<(Node, &'a Slot)> {
        let (node, slot) = base.entity(id)?;
        let is_file = matches!(slot.what(), Some(What::File(_)));
        let is_seen = self.narrow.as_ref().is_none_or(|narrow| narrow.is_below(base, node));
        (is_file && is_seen).then_some((node, slot))
    }

    /// The visible children of a folder, except for those in memories.
    pub(super) fn children<'a>(&'a self, base: &'a Base, node: Node) -> &'a [Node] {
        if self.is_past && node == Fixed::Databases.node() {
            return &[];
        }
        if self.is_past && node == Fixed::Sources.node() {
            return &ONLY_README;
        }
        match self.narrow.as_ref().and_then(|narrow| narrow.children.get(&node)) {
            Some(children) => children,
            None => base.children(node),
        }
    }

    /// How a node of the tree is spelled.
    pub(super) fn name<'a>(&'a self, base: &'a Base, node: Node) -> &'a str {
        self.own_name(node).unwrap_or_else(|| base.name(node))
    }

    /// How a node of the tree is spelled, and whether it is a folder.
    pub(super) fn entry<'a>(&'a self, base: &'a Base, node: Node) -> (&'a str, bool) {
        let Some(slot) = base.slot(node) else { return ("", false) };
        (self.own_name(node).unwrap_or(&slot.name), slot.is_folder())
    }

    /// Its spelling where that is not the one of the tree.
    fn own_name(&self, node: Node) -> Option<&str> {
        let name = self.narrow.as_ref()?.names.get(&node)?;
        Some(name)
    }

    /// The path of a node of the tree.
    pub(super) fn path(&self, base: &Base, node: Node) -> String {
        let mut names: Vec<&str> = base.upward(node).map(|(node, _)| self.name(base, node)).collect();
        names.push("");
        names.reverse();
        if names.len() == 1 { "/".to_owned() } else { names.join("/") }
    }

    /// When a node of the tree changed last, as far as the scope sees.
    pub(super) fn modified(&self, base: &Base, node: Node) -> i64 {
        let Some(slot) = base.slot(node) else { return 0 };
        match &self.narrow {
            None if slot.what().is_none() && slot.updated == 0 => base.newest,
            Some(narrow) if narrow.ways.contains(&node) || (slot.what().is_none() && slot.updated == 0) => {
                narrow.newest
            }
            None | Some(_) => slot.updated,
        }
    }

    /// The root's README.
    pub(super) fn readme(&self, base: &Base) -> Bytes {
        self.readme.get_or_init(|| texts::root(base, self).into()).clone()
    }

    /// The README of the sources.
    pub(super) fn sources_readme(&self, base: &Base) -> Bytes {
        self.sources_readme.get_or_init(|| texts::sources(base, self).into()).clone()
    }

    /// A document from outside, if it is visible.
    pub(super) fn document<'a>(&self, base: &'a Base, id: Uuid) -> Option<(Node, &'a Slot)> {
        let found = base.entity(id)?;
        (self.is_whole() && !self.is_past && matches!(found.1.what(), Some(What::Document(_))))
            .then_some(found)
    }

    /// The folder of the memory with this index.
    pub(super) fn memory(&self, base: &Base, place: usize) -> Option<&MemoryFolder> {
        let folders = || base.children(Fixed::Memories.node()).iter().map(|_| MemoryFolder::default());
        self.memories.get_or_init(|| folders().collect()).get(place)
    }
}

impl Narrow {
    fn new(base: &Base, listed: &[FolderId]) -> Self {
        let mut narrow = Self { listed: listed.iter().map(|folder| folder.0).collect(), ..Self::default() };
        narrow.children.insert(Fixed::Files.node(), Vec::new());
        for folder in listed {
            let found = base.entity(folder.0).filter(|(_, slot)| matches!(slot.what(), Some(What::Folder)));
            if let Some((node, slot)) = found {
                narrow.newest = narrow.newest.max(slot.updated);
                narrow.lead_to(base, node);
            }
        }
        let databases = base.children(Fixed::Databases.node()).iter().copied();
        let seen = databases.filter(|node| {
            let folder = base.database(*node).and_then(|(_, folder, _)| folder);
            folder.and_then(|id| base.node(id)).is_some_and(|holder| narrow.is_below(base, holder))
        });
        let seen: Vec<Node> = seen.collect();
        narrow.children.insert(Fixed::Databases.node(), seen);
        // Documents from outside are in no folder.
        narrow.children.insert(Fixed::Sources.node(), vec![Fixed::SourcesReadme.node()]);
        narrow.spell(base);
        narrow
    }

    /// Whether the node is a listed folder or below one.
    fn is_below(&self, base: &Base, node: Node) -> bool {
        base.upward(node).any(|(_, slot)| self.listed.contains(&slot.id))
    }

    /// Makes the ancestors of a folder visible, unless it is below another visible folder.
    fn lead_to(&mut self, base: &Base, folder: Node) {
        let mut child = folder;
        let mut way = Vec::new();
        for (node, slot) in base.upward(folder).skip(1) {
            if self.listed.contains(&slot.id) {
                return;
            }
            way.push((node, child));
            child = node;
        }
        for (node, child) in way {
            let children = self.children.entry(node).or_default();
            if !children.contains(&child) {
                children.push(child);
            }
            if node != Fixed::Files.node() {
                self.ways.insert(node);
            }
        }
    }

    /// Disambiguates and sorts the visible children of each folder.
    fn spell(&mut self, base: &Base) {
        for children in self.children.values_mut() {
            let slots: Vec<(Node, &Slot)> =
                children.iter().filter_map(|node| Some((*node, base.slot(*node)?))).collect();
            let siblings: Vec<Sibling<'_>> = slots
                .iter()
                .map(|(_, slot)| Sibling { id: slot.id, segment: slot.segment(), cut: slot.cut() })
                .collect();
            let mut spelled: Vec<(String, Node)> =
                names::spell(&siblings, None).into_iter().zip(slots.iter().map(|(node, _)| *node)).collect();
            spelled.sort();
            *children = spelled.iter().map(|(_, node)| *node).collect();
            for (name, node) in spelled {
                if name != base.name(node) {
                    self.names.insert(node, name.into());
                }
            }
        }
    }
}
