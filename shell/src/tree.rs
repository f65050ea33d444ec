//! The tree of folders and files that scripts read, provided by the caller.

use bytes::Bytes;

/// A folder or file, by its index in one tree. An index has no meaning in another tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u32);

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It has children and no body.
    Folder,
    /// It has a body and no children.
    File,
}

/// A node as a walk sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The last segment of its path.
    pub name: &'a str,
    /// What it is.
    pub kind: Kind,
}

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// It was deleted since the tree was built.
    Gone,
    /// Its storage is unavailable; a retry may help.
    Unavailable,
}

/// A read-only tree as one caller may see it: it contains nothing outside of the caller's scope.
///
/// Everything is in memory, except for [`Tree::read`], which may wait for the storage of bodies. It never changes while
/// a script runs.
pub trait Tree: Sync {
    /// The root folder.
    fn root(&self) -> Node;

    /// The kind of the node.
    fn kind(&self, node: Node) -> Kind;

    /// Its folder; `None` for the root.
    fn parent(&self, node: Node) -> Option<Node>;

    /// The last segment of its path; empty for the root. It contains no `/` and no NUL, and is unique in its folder.
    fn name(&self, node: Node) -> &str;

    /// Name and kind in one call, since a walk needs both of thousands of nodes.
    fn entry(&self, node: Node) -> Entry<'_> {
        Entry { name: self.name(node), kind: self.kind(node) }
    }

    /// The children of a folder, in byte order of their names; empty for a file.
    fn children(&self, folder: Node) -> &[Node];

    /// The child with that name.
    fn child(&self, folder: Node, name: &str) -> Option<Node> {
        let children = self.children(folder);
        let at = children.binary_search_by(|child| self.name(*child).as_bytes().cmp(name.as_bytes())).ok()?;
        children.get(at).copied()
    }

    /// The length of a file's body in bytes; 0 for a folder.
    fn size(&self, node: Node) -> u64;

    /// The time of its last change, in microseconds since 1970 UTC.
    fn modified(&self, node: Node) -> i64;

    /// The body of a file.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&self, file: Node) -> Result<Bytes, Unreadable>;

    /// Announces that these files are about to be read in this order, so that they can be fetched in a batch.
    fn announce(&self, files: &[Node]) {
        let _ = files;
    }

    /// A filter for files whose body contains at least one of these literals, ignoring ASCII case. It may have false
    /// positives, but no false negatives.
    fn text_filter(&self, texts: &[Vec<u8>]) -> Box<dyn TextFilter + '_> {
        let _ = texts;
        Box::new(Everything)
    }

    /// Additional properties for `stat`, as names and values in print order (id, deep link, citation label, freshness,
    /// guidance).
    fn details(&self, node: Node) -> Vec<(&'static str, String)>;
}

/// Preselects files for a search.
pub trait TextFilter {
    /// Whether the file may contain one of the literals.
    fn may_contain(&self, file: Node) -> bool;
}

struct Everything;

impl TextFilter for Everything {
    fn may_contain(&self, _: Node) -> bool {
        true
    }
}
