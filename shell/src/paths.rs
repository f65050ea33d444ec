//! Resolves paths to nodes and back. The parent of the root is the root.

use crate::tree::{Kind, Node, Tree};

/// Why a path cannot be resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    NotThere,
    NotAFolder,
}

impl Missing {
    /// The message of other shells.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::NotThere => "No such file or directory",
            Self::NotAFolder => "Not a directory",
        }
    }
}

/// Resolves a path relative to a folder.
pub(crate) fn resolve(tree: &dyn Tree, from: Node, path: &str) -> Result<Node, Missing> {
    if path.is_empty() {
        return Err(Missing::NotThere);
    }
    let mut node = if path.starts_with('/') { tree.root() } else { from };
    for segment in path.split('/') {
        if tree.kind(node) != Kind::Folder {
            return Err(Missing::NotAFolder);
        }
        node = match segment {
            "" | "." => node,
            ".." => tree.parent(node).unwrap_or(node),
            name => tree.child(node, name).ok_or(Missing::NotThere)?,
        };
    }
    Ok(node)
}

/// The absolute path of a node.
pub(crate) fn absolute(tree: &dyn Tree, node: Node) -> String {
    let mut names = Vec::new();
    let mut at = node;
    while let Some(parent) = tree.parent(at) {
        names.push(tree.name(at));
        at = parent;
    }
    if names.is_empty() {
        return "/".to_owned();
    }
    let mut path = String::with_capacity(names.iter().map(|name| name.len() + 1).sum());
    for name in names.iter().rev() {
        path.push('/');
        path.push_str(name);
    }
    path
}

/// Joins a folder's path and a name.
pub(crate) fn joined(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        _ if folder.ends_with('/') => format!("{folder}{name}"),
        _ => format!("{folder}/{name}"),
    }
}
