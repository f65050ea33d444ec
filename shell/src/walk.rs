//! Walks a tree, parents before children, children in byte order of their names. Nothing recurses.

use crate::context::{Context, Halt};
use crate::tree::{Kind, Node};

/// A walk below some folder.
pub(crate) struct Walk<'a> {
    ctx: &'a Context<'a>,
    open: Vec<Open<'a>>,
    path: String,
}

struct Open<'a> {
    children: std::slice::Iter<'a, Node>,
    /// How long the path of the folder is.
    path: usize,
}

/// What a walk comes across.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) node: Node,
    pub(crate) kind: Kind,
    /// 1 for what is directly in the folder that the walk began in.
    pub(crate) depth: usize,
}

impl<'a> Walk<'a> {
    /// A walk below a folder that is spelt like this; paths are empty where it is spelt empty.
    pub(crate) fn below(ctx: &'a Context<'a>, folder: Node, spelling: &str) -> Self {
        let mut walk = Self { ctx, open: Vec::new(), path: spelling.to_owned() };
        walk.enter(folder);
        walk
    }

    /// Goes into the folder that the last step came to.
    pub(crate) fn enter(&mut self, folder: Node) {
        self.open.push(Open { children: self.ctx.tree.children(folder).iter(), path: self.path.len() });
    }

    pub(crate) fn next(&mut self) -> Result<Option<Step>, Halt> {
        loop {
            let depth = self.open.len();
            let Some(open) = self.open.last_mut() else { return Ok(None) };
            self.path.truncate(open.path);
            let Some(&node) = open.children.next() else {
                self.open.pop();
                continue;
            };
            self.ctx.visit(node)?;
            if !self.path.is_empty() && !self.path.ends_with('/') {
                self.path.push('/');
            }
            self.path.push_str(self.ctx.tree.name(node));
            return Ok(Some(Step { node, kind: self.ctx.tree.kind(node), depth }));
        }
    }

    /// The path of the last step.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}
