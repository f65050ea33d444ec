//! Citations of what a script returned: one for each contiguous range of lines of each file.

use cairn_proto::document::v1::ConfirmedDocument;
use cairn_proto::retrieval::v1::{Citation, Location};
use cairn_shell::Read;
use cairn_shell::tree::{Node, Tree};

use crate::citation;

/// More than an agent follows up. A search for a common word returns lines of as many ranges as the output holds.
const MAX_CITATIONS: usize = 200;

/// The citations, and how many were left out.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Cited {
    pub(crate) citations: Vec<Citation>,
    /// Ranges beyond the most that are cited.
    pub(crate) uncited: u32,
}

/// Cites the ranges that were read, in order. `document` returns the document of a file; a generated file, such as the README of the
/// root, has none and is not cited. The content hash is that of the text that the line numbers refer to.
pub(crate) fn cite(
    tree: &impl Tree,
    reads: &[Read],
    document: impl Fn(Node) -> Option<ConfirmedDocument>,
) -> Cited {
    let mut cited = Cited::default();
    for read in reads {
        let Some(document) = document(read.node) else { continue };
        let free = MAX_CITATIONS.saturating_sub(cited.citations.len());
        let body = if free > 0 { tree.read(read.node).ok() } else { None };
        let shown = if body.is_some() { free.min(read.lines.len()) } else { 0 };
        let left_out = u32::try_from(read.lines.len().saturating_sub(shown)).unwrap_or(u32::MAX);
        cited.uncited = cited.uncited.saturating_add(left_out);
        let Some(body) = body else { continue };
        let content_hash = format!("blake3:{}", blake3::hash(&body).to_hex());
        cited.citations.extend(read.lines.iter().take(shown).map(|lines| {
            let location = Location {
                start_line: line_number(*lines.start()),
                end_line: line_number(*lines.end()),
                heading_path: Vec::new(),
            };
            citation::of_lines(location, content_hash.clone(), &document)
        }));
    }
    cited
}

fn line_number(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use cairn_shell::testing::MemoryTree;

    use super::*;

    fn tree() -> MemoryTree {
        MemoryTree::new([("/a.md", b"1\n2\n3\n".as_slice()), ("/b.md", b"x\n".as_slice())])
    }

    fn read(tree: &MemoryTree, name: &str, lines: Vec<RangeInclusive<u64>>) -> Read {
        Read { node: tree.child(tree.root(), name).unwrap(), lines }
    }

    fn titled(tree: &MemoryTree, node: Node) -> ConfirmedDocument {
        ConfirmedDocument { title: tree.name(node).to_owned(), ..ConfirmedDocument::default() }
    }

    #[test]
    fn each_range_is_cited_with_the_hash_of_the_whole() {
        let tree = tree();
        let reads = [read(&tree, "a.md", vec![1..=1, 3..=3]), read(&tree, "b.md", vec![1..=1])];
        let cited = cite(&tree, &reads, |node| (tree.name(node) == "a.md").then(|| titled(&tree, node)));
        let lines: Vec<(u32, u32)> = cited
            .citations
            .iter()
            .filter_map(|citation| citation.location.as_ref())
            .map(|place| (place.start_line, place.end_line))
            .collect();
        assert_eq!((lines, cited.uncited), (vec![(1, 1), (3, 3)], 0), "what is no document is not cited");
        let hash = format!("blake3:{}", blake3::hash(b"1\n2\n3\n").to_hex());
        assert!(cited.citations.iter().all(|citation| citation.content_hash == hash));
    }

    #[test]
    fn there_is_a_most_and_the_rest_is_counted() {
        let tree = tree();
        let many = |name| read(&tree, name, (1..=150).map(|line| line * 2..=line * 2).collect());
        let cited =
            cite(&tree, &[many("a.md"), many("b.md"), many("a.md")], |node| Some(titled(&tree, node)));
        assert_eq!((cited.citations.len(), cited.uncited), (MAX_CITATIONS, 250));
    }
}
