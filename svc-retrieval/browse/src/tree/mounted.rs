//! The tree as scripts walk and read it.

use std::sync::Arc;

use bytes::Bytes;
use cairn_shell::tree::{Entry, Kind, Node, TextFilter, Tree, Unreadable};

use super::base::Fixed;
use super::view::View;
use crate::Indexed;
use crate::bodies::Reader;
use crate::trigrams::TrigramFilter;

/// A view with the reader of bodies for one script.
#[derive(Debug)]
pub(crate) struct Mounted {
    view: Arc<View>,
    reader: Reader,
    indexed: Indexed,
    link_base: String,
}

impl Mounted {
    /// For one script; `indexed` is how far the index has followed the feeds, and `link_base` the address before the
    /// paths of links.
    pub(crate) const fn new(view: Arc<View>, reader: Reader, indexed: Indexed, link_base: String) -> Self {
        Self { view, reader, indexed, link_base }
    }

    /// The view.
    pub(crate) const fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// The reader of bodies.
    pub(crate) const fn reader(&self) -> &Reader {
        &self.reader
    }
}

impl Tree for Mounted {
    fn root(&self) -> Node {
        Fixed::Root.node()
    }

    fn kind(&self, node: Node) -> Kind {
        kind(self.view.is_folder(node))
    }

    fn parent(&self, node: Node) -> Option<Node> {
        self.view.parent(node)
    }

    fn name(&self, node: Node) -> &str {
        self.view.name(node)
    }

    fn entry(&self, node: Node) -> Entry<'_> {
        let (name, is_folder) = self.view.entry(node);
        Entry { name, kind: kind(is_folder) }
    }

    fn children(&self, folder: Node) -> &[Node] {
        self.view.children(folder)
    }

    fn size(&self, node: Node) -> u64 {
        self.view.size(node)
    }

    fn modified(&self, node: Node) -> i64 {
        self.view.modified(node)
    }

    fn read(&self, file: Node) -> Result<Bytes, Unreadable> {
        if let Some(held) = self.view.held(file) {
            return self.reader.read(&held);
        }
        self.view.text(file).ok_or(Unreadable::Gone)
    }

    fn announce(&self, files: &[Node]) {
        self.reader.announce(files.iter().filter_map(|file| self.view.held(*file)));
    }

    fn text_filter(&self, texts: &[Vec<u8>]) -> Box<dyn TextFilter + '_> {
        Box::new(Filtered { view: &self.view, text_filter: self.reader.text_filter(texts) })
    }

    fn details(&self, node: Node) -> Vec<(&'static str, String)> {
        self.view.details(node, self.indexed, &self.link_base)
    }
}

const fn kind(is_folder: bool) -> Kind {
    if is_folder { Kind::Folder } else { Kind::File }
}

/// The text filter of `grep`, by the trigram filters of bodies.
struct Filtered<'a> {
    view: &'a View,
    text_filter: TrigramFilter,
}

impl TextFilter for Filtered<'_> {
    fn may_contain(&self, file: Node) -> bool {
        self.view.held(file).is_none_or(|held| self.text_filter.may_contain(&held.key))
    }
}
