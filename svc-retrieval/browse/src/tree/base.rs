//! All items of a workspace, as folders and files.

use cairn_shell::tree::Node;
use uuid::Uuid;

use super::arena::{Index, Pieces};
use super::names::Cut;
use super::rows::{Memory, Place, Text, What};

/// The approximate memory of a node, with its name and its index entry.
const NODE_BYTES: usize = 288;
/// Above the nesting limit of folders; ends the walk of a cycle, which content prevents.
const MAX_DEPTH: usize = 256;

/// The nodes that every tree has, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fixed {
    Root,
    Readme,
    Databases,
    Files,
    Memories,
    Sources,
    SourcesReadme,
}

impl Fixed {
    const ALL: [(Self, &'static str, Self); 7] = [
        (Self::Root, "", Self::Root),
        (Self::Readme, "README.md", Self::Root),
        (Self::Databases, "databases", Self::Root),
        (Self::Files, "files", Self::Root),
        (Self::Memories, "memories", Self::Root),
        (Self::Sources, "sources", Self::Root),
        (Self::SourcesReadme, "README.md", Self::Sources),
    ];

    pub(super) const fn node(self) -> Node {
        Node(match self {
            Self::Root => 0,
            Self::Readme => 1,
            Self::Databases => 2,
            Self::Files => 3,
            Self::Memories => 4,
            Self::Sources => 5,
            Self::SourcesReadme => 6,
        })
    }
}

/// The item of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// A free slot.
    Free,
    Fixed(Fixed),
    Entity(What),
    /// The schema of the database that holds it.
    Schema,
    /// The README of the memory that holds it.
    Guide,
}

/// A node of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) item: Item,
    /// Of an entity, and of the one that a schema or a guide is about.
    pub(super) id: Uuid,
    pub(super) parent: Node,
    /// Its spelling as a path segment.
    pub(super) name: Box<str>,
    /// Its name as a segment, where its spelling differs.
    pub(super) segment: Option<Box<str>>,
    /// In byte order of their spellings.
    pub(super) children: Vec<Node>,
    pub(super) updated: i64,
    /// The position of its last change.
    pub(super) changed: u64,
}

impl Slot {
    pub(super) fn segment(&self) -> &str {
        self.segment.as_deref().unwrap_or(&self.name)
    }

    pub(super) const fn what(&self) -> Option<&What> {
        match &self.item {
            Item::Entity(what) => Some(what),
            Item::Free | Item::Fixed(_) | Item::Schema | Item::Guide => None,
        }
    }

    pub(super) const fn is_folder(&self) -> bool {
        match &self.item {
            Item::Fixed(fixed) => !matches!(fixed, Fixed::Readme | Fixed::SourcesReadme),
            Item::Entity(what) => {
                matches!(what, What::Folder | What::Database { .. } | What::Memory(_) | What::SourceFolder(_))
            }
            Item::Free | Item::Schema | Item::Guide => false,
        }
    }

    pub(super) const fn cut(&self) -> Cut {
        if self.is_folder() { Cut::End } else { Cut::Extension }
    }
}

/// Counts of items by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) folders: usize,
    pub(super) files: usize,
    pub(super) databases: usize,
    pub(super) records: usize,
    pub(super) memories: usize,
    pub(super) source_folders: usize,
    pub(super) documents: usize,
}

impl Counts {
    pub(super) const fn of(&mut self, what: &What) -> &mut usize {
        match what {
            What::Folder => &mut self.folders,
            What::File(_) => &mut self.files,
            What::Database { .. } => &mut self.databases,
            What::Record { .. } => &mut self.records,
            What::Memory(_) => &mut self.memories,
            What::SourceFolder(_) => &mut self.source_folders,
            What::Document(_) => &mut self.documents,
        }
    }
}

/// The positions of a tree in the feeds of its owners.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Positions {
    /// In content's feed.
    pub(super) content: u64,
    /// In the feed of documents from outside; none when their owner was not asked, or did not answer.
    pub(super) outside: Option<u64>,
}

/// The tree of a workspace at one position of each of its feeds. Clones share unchanged parts (copy-on-write).
#[derive(Debug, Clone)]
pub(super) struct Base {
    pub(super) slots: Pieces<Slot>,
    pub(super) free: Vec<Node>,
    pub(super) index: Index,
    pub(super) counts: Counts,
    /// The positions of the feeds.
    pub(super) positions: Positions,
    /// Identifies the shape: every change but one of a file's or record's body makes a new number, which is given to no
    /// other tree of this process. What depends on the shape alone is cached by it.
    pub(super) shape: u64,
    /// The time of the last change.
    pub(super) newest: i64,
}

impl Base {
    /// The tree of an empty workspace.
    pub(super) fn empty() -> Self {
        let mut slots = Pieces::default();
        for (fixed, name, parent) in Fixed::ALL {
            let held = Fixed::ALL.iter().filter(|(child, _, above)| *above == fixed && *child != Fixed::Root);
            slots.push(Slot {
                item: Item::Fixed(fixed),
                id: Uuid::nil(),
                parent: parent.node(),
                name: name.into(),
                segment: None,
                children: held.map(|(child, ..)| child.node()).collect(),
                updated: 0,
                changed: 0,
            });
        }
        Self {
            slots,
            free: Vec::new(),
            index: Index::default(),
            counts: Counts::default(),
            positions: Positions::default(),
            shape: 0,
            newest: 0,
        }
    }

    /// The slot of a node; `None` out of range.
    pub(super) fn slot(&self, node: Node) -> Option<&Slot> {
        self.slots.get(place(node))
    }

    /// The same, mutable.
    pub(super) fn slot_mut(&mut self, node: Node) -> Option<&mut Slot> {
        self.slots.get_mut(place(node))
    }

    /// The node of an entity.
    pub(super) fn node(&self, id: Uuid) -> Option<Node> {
        self.index.get(id)
    }

    /// The slot of an entity.
    pub(super) fn entity(&self, id: Uuid) -> Option<(Node, &Slot)> {
        let node = self.node(id)?;
        Some((node, self.slot(node)?))
    }

    pub(super) fn children(&self, node: Node) -> &[Node] {
        self.slot(node).map_or(&[], |slot| &slot.children)
    }

    pub(super) fn name(&self, node: Node) -> &str {
        self.slot(node).map_or("", |slot| &slot.name)
    }

    /// The node of a place, if it is there.
    pub(super) fn holder(&self, place: Place) -> Option<Node> {
        match place {
            Place::Folder(None) => Some(Fixed::Files.node()),
            Place::Folder(Some(id)) | Place::Database(id) => self.node(id),
            Place::Databases => Some(Fixed::Databases.node()),
            Place::Memories => Some(Fixed::Memories.node()),
            Place::Sources(None) => Some(Fixed::Sources.node()),
            Place::Sources(Some(id)) => self.node(id),
        }
    }

    /// From the node itself upward, without the root.
    pub(super) fn upward(&self, node: Node) -> impl Iterator<Item = (Node, &Slot)> {
        let mut next = Some(node);
        let step = move || {
            let node = next.filter(|node| *node != Fixed::Root.node())?;
            let slot = self.slot(node)?;
            next = Some(slot.parent);
            Some((node, slot))
        };
        std::iter::from_fn(step).take(MAX_DEPTH)
    }

    /// The path of a node as scripts spell it.
    pub(super) fn path(&self, node: Node) -> String {
        let mut names: Vec<&str> = self.upward(node).map(|(_, slot)| &*slot.name).collect();
        names.push("");
        names.reverse();
        if names.len() == 1 { "/".to_owned() } else { names.join("/") }
    }

    /// The path of something in a folder as other answers spell it: the names as people gave them, from the root of the
    /// files on.
    pub(super) fn given_path(&self, folder: Option<Uuid>, name: &str) -> String {
        let holder = folder.and_then(|id| self.node(id));
        let above = holder.into_iter().flat_map(|node| self.upward(node));
        let mut names: Vec<&str> = vec![name];
        names.extend(above.filter(|(_, slot)| slot.what().is_some()).map(|(_, slot)| slot.segment()));
        names.push("");
        names.reverse();
        names.join("/")
    }

    /// The description of a database, its folder, and the text that stands for its schema.
    pub(super) fn database(&self, node: Node) -> Option<(Option<&str>, Option<Uuid>, Text)> {
        match self.slot(node)?.what()? {
            What::Database { folder, description, schema } => {
                Some((description.as_deref(), *folder, *schema))
            }
            What::Folder
            | What::File(_)
            | What::Record { .. }
            | What::Memory(_)
            | What::SourceFolder(_)
            | What::Document(_) => None,
        }
    }

    /// A memory.
    pub(super) fn memory(&self, node: Node) -> Option<&Memory> {
        match self.slot(node)?.what()? {
            What::Memory(memory) => Some(memory),
            What::Folder
            | What::File(_)
            | What::Record { .. }
            | What::Database { .. }
            | What::SourceFolder(_)
            | What::Document(_) => None,
        }
    }

    /// Whether a rendered text with that hash stands for the entity.
    pub(super) fn shows(&self, id: Uuid, hash: [u8; 32]) -> bool {
        match self.entity(id).and_then(|(_, slot)| slot.what()) {
            Some(What::Database { schema, .. }) => schema.hash == hash,
            Some(What::Record { front, bare, .. }) => {
                front.hash == hash || bare.as_ref().is_some_and(|bare| bare.hash == hash)
            }
            Some(
                What::Folder | What::File(_) | What::Memory(_) | What::SourceFolder(_) | What::Document(_),
            )
            | None => false,
        }
    }

    /// Its approximate memory.
    pub(super) fn bytes(&self) -> usize {
        const MEMORY_BYTES: usize = 4_096;
        self.slots.len() * NODE_BYTES + self.counts.memories * MEMORY_BYTES
    }

    /// The name that a folder keeps for what is not in it by that name.
    pub(super) fn reserved(&self, node: Node) -> Option<&'static str> {
        if node == Fixed::Sources.node() {
            return Some(README);
        }
        self.database(node).map(|_| SCHEMA)
    }
}

/// The file with the schema of a database.
pub(super) const SCHEMA: &str = "_schema.md";
/// The file that describes a folder.
pub(super) const README: &str = "README.md";

pub(super) fn place(node: Node) -> usize {
    usize::try_from(node.0).unwrap_or(usize::MAX)
}

/// Binary search for a child by name; children are in byte order.
pub(super) fn search<'a>(
    children: &[Node],
    name: &str,
    name_of: impl Fn(Node) -> &'a str,
) -> Result<usize, usize> {
    children.binary_search_by(|child| name_of(*child).as_bytes().cmp(name.as_bytes()))
}
