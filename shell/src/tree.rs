//! What scripts walk and read: a tree of folders and files, held by the caller.

use bytes::Bytes;

/// A folder or file of one tree, by its number there. A number means nothing in another tree.
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

/// What a walk sees of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The last segment of its path.
    pub name: &'a str,
    /// What it is.
    pub kind: Kind,
}

/// A body that could not be read: its holder failed, or it went away since the tree was drawn up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// It is not there any more.
    Gone,
    /// Its holder does not answer; another try may help.
    Unavailable,
}

/// A read-only tree as one caller may see it: what is outside of the caller's scope is not in it.
///
/// Every look at it is from memory, but [`Tree::read`], which may wait for the holder of the bodies. It never changes
/// while a script runs.
pub trait Tree: Sync {
    /// The folder that everything is in.
    fn root(&self) -> Node;

    /// What the node is.
    fn kind(&self, node: Node) -> Kind;

    /// Its folder; none of the root.
    fn parent(&self, node: Node) -> Option<Node>;

    /// The last segment of its path; empty of the root. It holds no `/` and no NUL, and is unique in its folder.
    fn name(&self, node: Node) -> &str;

    /// Name and kind at one look, since a walk asks for both of thousands of nodes.
    fn entry(&self, node: Node) -> Entry<'_> {
        Entry { name: self.name(node), kind: self.kind(node) }
    }

    /// What is in a folder, in byte order of the names; empty of a file.
    fn children(&self, folder: Node) -> &[Node];

    /// The child of that name.
    fn child(&self, folder: Node, name: &str) -> Option<Node> {
        let children = self.children(folder);
        let at = children.binary_search_by(|child| self.name(*child).as_bytes().cmp(name.as_bytes())).ok()?;
        children.get(at).copied()
    }

    /// The length of a file's body in bytes; 0 of a folder.
    fn size(&self, node: Node) -> u64;

    /// When it last changed, in microseconds since 1970 UTC.
    fn modified(&self, node: Node) -> i64;

    /// The body of a file.
    ///
    /// # Errors
    /// When it cannot be had.
    fn read(&self, file: Node) -> Result<Bytes, Unreadable>;

    /// Tells that these files are about to be read in this order, so that their holder can be asked once for many.
    fn announce(&self, files: &[Node]) {
        let _ = files;
    }

    /// A filter for files whose body has at least one of these texts, whatever the case of their ASCII letters. It may
    /// let through a file that has none of them; it never holds one back that has.
    fn text_filter(&self, texts: &[Vec<u8>]) -> Box<dyn TextFilter + '_> {
        let _ = texts;
        Box::new(Everything)
    }

    /// What `stat` tells of a node beyond its kind, size and time: names and values in the order of printing (id, deep
    /// link, citation label, freshness, guidance).
    fn details(&self, node: Node) -> Vec<(&'static str, String)>;
}

/// Which files are worth a look.
pub trait TextFilter {
    /// Whether the file may have one of the texts.
    fn lets_through(&self, file: Node) -> bool;
}

struct Everything;

impl TextFilter for Everything {
    fn lets_through(&self, _: Node) -> bool {
        true
    }
}
