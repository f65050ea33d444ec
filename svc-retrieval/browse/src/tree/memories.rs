//! The content of the folders of memories: their members that are files or folders, as nodes of their own.

use std::collections::HashSet;
use std::sync::OnceLock;

use bytes::Bytes;
use cairn_proto::content::v1::MemberKind;
use cairn_shell::tree::Node;

use super::base::{Base, Fixed, README, Slot};
use super::lens::Lens;
use super::names::{self, Sibling};
use super::rows::What;
use super::texts;

/// Files of one folder member (spec 2.3).
pub(super) const MAX_FILES: usize = 50;

/// Nodes of members have this bit, then the place of the memory among the memories, then their own place.
const MEMBER: u32 = 1 << 31;
const PLACE_BITS: u32 = 16;
/// Memories beyond that have a README only.
const MAX_MEMORIES: usize = 1 << 15;
/// Nodes of one memory.
const MAX_NODES: usize = 60_000;
/// As deep as folders nest, and deeper.
const MAX_DEPTH: usize = 128;

/// A part of a memory, as a file or folder.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: Box<str>,
    pub(super) parent: Node,
    pub(super) children: Vec<Node>,
    /// The node that it shows.
    pub(super) target: Node,
}

/// The folder of one memory, built lazily.
#[derive(Debug, Default)]
pub(super) struct MemoryFolder {
    held: OnceLock<MemoryContents>,
    guide: OnceLock<Bytes>,
}

/// The content of a memory's folder.
#[derive(Debug, Default)]
pub(super) struct MemoryContents {
    /// In byte order of the names, the README among them.
    pub(super) children: Vec<Node>,
    pub(super) members: Vec<Member>,
}

/// Whether the node is that of a member: then the place of its memory, and its own.
pub(super) fn member_of(node: Node) -> Option<(usize, usize)> {
    let rest = node.0.checked_sub(MEMBER)?;
    let place = usize::try_from(rest >> PLACE_BITS).ok()?;
    let own = usize::try_from(rest & ((1 << PLACE_BITS) - 1)).ok()?;
    Some((place, own))
}

fn node_of(place: usize, own: usize) -> Option<Node> {
    let (place, own) = (u32::try_from(place).ok()?, u32::try_from(own).ok()?);
    Some(Node(MEMBER | place << PLACE_BITS | own))
}

/// The place of a memory among the memories.
pub(super) fn place_of(base: &Base, memory: Node) -> Option<usize> {
    super::base::search(base.children(Fixed::Memories.node()), base.name(memory), |node| base.name(node)).ok()
}

impl MemoryFolder {
    /// Its content.
    pub(super) fn held(&self, base: &Base, lens: &Lens, place: usize) -> &MemoryContents {
        self.held.get_or_init(|| MemoryContents::new(base, lens, place).unwrap_or_default())
    }

    /// Its README.
    pub(super) fn guide(&self, base: &Base, lens: &Lens, place: usize) -> Bytes {
        self.guide
            .get_or_init(|| texts::memory(base, lens, place, self.held(base, lens, place)).into())
            .clone()
    }
}

impl MemoryContents {
    fn new(base: &Base, lens: &Lens, place: usize) -> Option<Self> {
        let folder = *base.children(Fixed::Memories.node()).get(place)?;
        let mut held = Self { children: base.children(folder).to_vec(), members: Vec::new() };
        if place >= MAX_MEMORIES {
            return Some(held);
        }
        let shown = shown(base, lens, folder);
        let siblings: Vec<Sibling<'_>> = shown
            .iter()
            .map(|(_, slot)| Sibling { id: slot.id, segment: slot.segment(), cut: slot.cut() })
            .collect();
        let mut named: Vec<(String, Option<Node>)> = vec![(README.to_owned(), None)];
        let spelled = names::spell(&siblings, Some(README));
        named.extend(spelled.into_iter().zip(shown.iter().map(|(node, _)| Some(*node))));
        named.sort();
        let guide = held.children.first().copied()?;
        held.children.clear();
        for (name, target) in named {
            let child = match target {
                None => Some(guide),
                Some(target) => held.add(base, lens, place, name.into(), folder, target),
            };
            held.children.extend(child);
        }
        Some(held)
    }

    /// Adds a node that shows a file, or a folder with what is below it.
    fn add(
        &mut self,
        base: &Base,
        lens: &Lens,
        place: usize,
        name: Box<str>,
        parent: Node,
        target: Node,
    ) -> Option<Node> {
        let node = self.put(place, name, parent, target)?;
        let mut left = MAX_FILES;
        self.fill(base, lens, (place, node), target, &mut left, 0);
        Some(node)
    }

    fn put(&mut self, place: usize, name: Box<str>, parent: Node, target: Node) -> Option<Node> {
        let node = node_of(place, self.members.len()).filter(|_| self.members.len() < MAX_NODES)?;
        self.members.push(Member { name, parent, children: Vec::new(), target });
        Some(node)
    }

    /// Puts the first files below a folder in; folders without any are left out.
    fn fill(
        &mut self,
        base: &Base,
        lens: &Lens,
        (place, node): (usize, Node),
        target: Node,
        left: &mut usize,
        depth: usize,
    ) {
        if depth > MAX_DEPTH {
            return;
        }
        let mut children = Vec::new();
        for child in lens.children(base, target) {
            if *left == 0 {
                break;
            }
            let is_folder = base.slot(*child).is_some_and(Slot::is_folder);
            let name = lens.name(base, *child).into();
            let Some(added) = self.put(place, name, node, *child) else { break };
            if is_folder {
                let before = *left;
                self.fill(base, lens, (place, added), *child, left, depth + 1);
                if *left == before {
                    // It is the last one: nothing below it was added, since it has no file.
                    self.members.pop();
                    continue;
                }
            } else {
                *left -= 1;
            }
            children.push(added);
        }
        if let Some(own) = member_of(node).and_then(|(_, own)| self.members.get_mut(own)) {
            own.children = children;
        }
    }
}

/// The files and folders that are members and seen, each once.
pub(super) fn shown<'a>(base: &'a Base, lens: &Lens, memory: Node) -> Vec<(Node, &'a Slot)> {
    let mut seen = HashSet::new();
    let members = base.memory(memory).map(|memory| memory.members.as_slice()).unwrap_or_default();
    let shown = members.iter().filter_map(|member| {
        let found = match member.kind {
            MemberKind::File => lens.file(base, member.target)?,
            MemberKind::Folder => {
                let found = base.entity(member.target)?;
                let is_seen =
                    matches!(found.1.what(), Some(What::Folder)) && lens.shows_folder(base, found.0);
                is_seen.then_some(found)?
            }
            MemberKind::SourceDocument => lens.document(base, member.target).filter(
                |(_, slot)| matches!(slot.what(), Some(What::Document(found)) if found.text.is_some()),
            )?,
            MemberKind::Unspecified | MemberKind::Database => return None,
        };
        seen.insert(found.0).then_some(found)
    });
    shown.collect()
}
