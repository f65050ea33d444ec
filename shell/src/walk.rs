//! Walks a tree in pre-order, children in byte order of their names, without recursion.

use crate::context::{Context, Halt};
use crate::tree::{Kind, Node};

/// A walk below a folder.
pub(crate) struct Walk<'a> {
    ctx: &'a Context<'a>,
    open: Vec<Open<'a>>,
    /// The path of the current folder, to which a name can be appended.
    folder: String,
}

struct Open<'a> {
    children: std::slice::Iter<'a, Node>,
    /// The length of the parent's path.
    around: usize,
}

/// A node that a walk visits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) node: Node,
    pub(crate) kind: Kind,
    pub(crate) name: &'a str,
    /// 1 for children of the folder that the walk began in.
    pub(crate) depth: usize,
}

impl<'a> Walk<'a> {
    /// Walks below a folder with this path; paths are empty if it is.
    pub(crate) fn below(ctx: &'a Context<'a>, folder: Node, spelling: &str) -> Self {
        let mut walk = Self { ctx, open: Vec::new(), folder: String::new() };
        walk.enter(folder, spelling);
        walk
    }

    /// Descends into the folder of the last step.
    pub(crate) fn enter(&mut self, folder: Node, name: &str) {
        self.open.push(Open { children: self.ctx.tree.children(folder).iter(), around: self.folder.len() });
        self.folder.push_str(name);
        if !name.is_empty() && !name.ends_with('/') {
            self.folder.push('/');
        }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Step<'a>>, Halt> {
        loop {
            let depth = self.open.len();
            let Some(open) = self.open.last_mut() else { return Ok(None) };
            let Some(&node) = open.children.next() else {
                self.folder.truncate(open.around);
                self.open.pop();
                continue;
            };
            self.ctx.visit(node)?;
            let entry = self.ctx.tree.entry(node);
            return Ok(Some(Step { node, kind: entry.kind, name: entry.name, depth }));
        }
    }

    /// The path before the name of the last step; joined only on demand.
    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }
}
