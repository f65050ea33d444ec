//! An XML tree with the queries that extractors need. Prefixes differ between programs, so names are local names.

use roxmltree::{Document, Node, ParsingOptions};

use crate::model::Failure;

const MAX_NODES: u32 = 4_000_000;

/// Parses XML without a document type: no entities, nothing external.
pub(crate) fn parse<'a>(text: &'a str, what: &str) -> Result<Document<'a>, Failure> {
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|_| Failure::broken(what))
}

/// The local name of an element; empty for other nodes.
pub(crate) fn name<'a>(node: Node<'a, '_>) -> &'a str {
    node.tag_name().name()
}

/// The value of an attribute, by local name.
pub(crate) fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.attributes().find(|attribute| attribute.name() == name).map(|attribute| attribute.value())
}

/// The first child of that name.
pub(crate) fn child<'a, 'i>(node: Node<'a, 'i>, wanted: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| name(*child) == wanted)
}

/// The descendant at a path of child names.
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

/// All descendants of that name.
pub(crate) fn all<'a, 'i>(node: Node<'a, 'i>, wanted: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.descendants().filter(move |child| name(*child) == wanted)
}

/// The text of all descendants.
pub(crate) fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect()
}
