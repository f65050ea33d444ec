//! XML as a tree, and the few questions that readers ask it. Prefixes differ between programs, so names are local ones.

use roxmltree::{Document, Node, ParsingOptions};

use crate::model::Failure;

const MOST_NODES: u32 = 4_000_000;

/// A tree of XML without a document type: nothing is defined in it and nothing is fetched.
pub(crate) fn parse<'a>(text: &'a str, what: &str) -> Result<Document<'a>, Failure> {
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|_| Failure::broken(what))
}

/// The name of an element without its prefix; empty for what is none.
pub(crate) fn name<'a>(node: Node<'a, '_>) -> &'a str {
    node.tag_name().name()
}

/// The value of an attribute by its name without a prefix.
pub(crate) fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.attributes().find(|attribute| attribute.name() == name).map(|attribute| attribute.value())
}

/// The first child of that name.
pub(crate) fn child<'a, 'i>(node: Node<'a, 'i>, wanted: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| name(*child) == wanted)
}

/// What is found by going down through children of those names.
pub(crate) fn path<'a, 'i>(node: Node<'a, 'i>, names: &[&str]) -> Option<Node<'a, 'i>> {
    names.iter().try_fold(node, |node, name| child(node, name))
}

/// The children of that name.
pub(crate) fn children<'a, 'i>(
    node: Node<'a, 'i>,
    wanted: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| name(*child) == wanted)
}

/// All elements of that name below.
pub(crate) fn all<'a, 'i>(node: Node<'a, 'i>, wanted: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.descendants().filter(move |child| name(*child) == wanted)
}

/// All text below.
pub(crate) fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect()
}
