//! An in-memory tree, and unlimited runs over it: for tests, benches and fuzzing.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use crate::tree::{Kind, Node, TextFilter, Tree, Unreadable};
use crate::{Limits, Outcome, Session, Watch, run};

/// The current time in tests, in microseconds since 1970.
pub const NOW: i64 = 1_790_000_000_000_000;

/// An in-memory tree. Its filter rejects every file without the literals, so that a search which asks for wrong
/// literals finds too little.
#[derive(Debug, Default)]
pub struct MemoryTree {
    nodes: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    kind: Kind,
    parent: Option<Node>,
    children: Vec<Node>,
    body: Bytes,
    lower: Vec<u8>,
    modified: i64,
    broken: Option<Unreadable>,
}

impl MemoryTree {
    /// A tree of these files and their folders. A path with a trailing slash is a folder.
    pub fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut paths: BTreeMap<Vec<&str>, Option<&[u8]>> = BTreeMap::new();
        for (path, body) in files {
            let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
            for depth in 0..segments.len() {
                paths.entry(segments.iter().take(depth).copied().collect()).or_insert(None);
            }
            paths.insert(segments, (!path.ends_with('/')).then_some(body));
        }
        paths.entry(Vec::new()).or_insert(None);
        let mut tree = Self::default();
        let mut places: BTreeMap<Vec<&str>, Node> = BTreeMap::new();
        for (segments, body) in paths {
            let node = Node(u32::try_from(tree.nodes.len()).unwrap_or(u32::MAX));
            let parent = segments.split_last().and_then(|(_, folder)| places.get(folder)).copied();
            tree.nodes.push(Entry {
                name: segments.last().copied().unwrap_or_default().to_owned(),
                kind: if body.is_some() { Kind::File } else { Kind::Folder },
                parent,
                children: Vec::new(),
                body: Bytes::copy_from_slice(body.unwrap_or_default()),
                lower: body.unwrap_or_default().to_ascii_lowercase(),
                modified: NOW - 3_600_000_000 * i64::from(node.0 % 97),
                broken: None,
            });
            if let Some(parent) = parent.and_then(|parent| tree.nodes.get_mut(parent.0 as usize)) {
                parent.children.push(node);
            }
            places.insert(segments, node);
        }
        tree
    }

    /// The node at an absolute path, which must exist.
    pub fn node(&self, path: &str) -> Option<Node> {
        crate::paths::resolve(self, self.root(), path).ok()
    }

    /// Sets the modification time of a node.
    pub fn set_modified(&mut self, path: &str, modified: i64) {
        let node = self.node(path);
        if let Some(entry) = node.and_then(|node| self.nodes.get_mut(node.0 as usize)) {
            entry.modified = modified;
        }
    }

    /// Makes reads of a file fail.
    pub fn set_broken(&mut self, path: &str, why: Unreadable) {
        let node = self.node(path);
        if let Some(entry) = node.and_then(|node| self.nodes.get_mut(node.0 as usize)) {
            entry.broken = Some(why);
        }
    }

    fn entry(&self, node: Node) -> Option<&Entry> {
        self.nodes.get(node.0 as usize)
    }
}

impl Tree for MemoryTree {
    fn root(&self) -> Node {
        Node(0)
    }

    fn kind(&self, node: Node) -> Kind {
        self.entry(node).map_or(Kind::File, |entry| entry.kind)
    }

    fn parent(&self, node: Node) -> Option<Node> {
        self.entry(node)?.parent
    }

    fn name(&self, node: Node) -> &str {
        self.entry(node).map_or("", |entry| &entry.name)
    }

    fn children(&self, folder: Node) -> &[Node] {
        self.entry(folder).map_or(&[], |entry| &entry.children)
    }

    fn size(&self, node: Node) -> u64 {
        self.entry(node).map_or(0, |entry| entry.body.len() as u64)
    }

    fn modified(&self, node: Node) -> i64 {
        self.entry(node).map_or(0, |entry| entry.modified)
    }

    fn read(&self, file: Node) -> Result<Bytes, Unreadable> {
        let entry = self.entry(file).ok_or(Unreadable::Gone)?;
        entry.broken.map_or_else(|| Ok(entry.body.clone()), Err)
    }

    fn text_filter(&self, texts: &[Vec<u8>]) -> Box<dyn TextFilter + '_> {
        Box::new(Strict { tree: self, texts: texts.to_vec() })
    }

    fn details(&self, node: Node) -> Vec<(&'static str, String)> {
        vec![("Id", format!("node-{}", node.0)), ("Citation", format!("[{}]", self.name(node)))]
    }
}

struct Strict<'a> {
    tree: &'a MemoryTree,
    texts: Vec<Vec<u8>>,
}

impl TextFilter for Strict<'_> {
    fn may_contain(&self, file: Node) -> bool {
        let lower = self.tree.entry(file).map_or(&[][..], |entry| &entry.lower);
        self.texts.iter().any(|text| memchr::memmem::find(lower, text).is_some())
    }
}

/// A test clock. By default it stands still.
#[derive(Debug, Default)]
pub struct StepClock {
    step: Duration,
    leaves_after: Option<u64>,
    looks: Cell<u64>,
}

impl StepClock {
    /// A clock that advances by `step` at each check.
    pub fn stepping(step: Duration) -> Self {
        Self { step, ..Self::default() }
    }

    /// A clock that stands still, and cancels after this many checks.
    pub fn leaving_after(looks: u64) -> Self {
        Self { leaves_after: Some(looks), ..Self::default() }
    }

    /// The number of checks.
    pub fn looks(&self) -> u64 {
        self.looks.get()
    }
}

impl Watch for StepClock {
    fn elapsed(&self) -> Duration {
        self.step.saturating_mul(u32::try_from(self.looks.get()).unwrap_or(u32::MAX))
    }

    fn cancelled(&self) -> bool {
        self.looks.set(self.looks.get() + 1);
        self.leaves_after.is_some_and(|most| self.looks.get() > most)
    }
}

/// Why a script is rejected by the parser, if it is.
pub fn refusal(script: &str) -> Option<String> {
    crate::parse::parse(script).err().map(|refused| refused.why)
}

/// Runs a script from the root, with the product's limits and a clock that stands still.
pub fn run_at_root(tree: &dyn Tree, script: &str) -> Outcome {
    let watch = StepClock::default();
    run(tree, script, &Session { cwd: "/", now: NOW, limits: Limits::default(), watch: &watch })
}
