//! Walks a tree, parents before children, children in byte order of their names. Nothing recurses.

use crate::context::{Context, Halt};
use crate::tree::{Kind, Node};

/// A walk below some folder.
pub(crate) struct Walk<'a> {
    ctx: &'a Context<'a>,
    open: Vec<Open<'a>>,
    /// The path of the folder that the walk is in, spelt so that a name can follow.
    folder: String,
}

struct Open<'a> {
    children: std::slice::Iter<'a, Node>,
    /// How long the path of the folder around it is.
    around: usize,
}

/// What a walk comes across.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) node: Node,
    pub(crate) kind: Kind,
    pub(crate) name: &'a str,
    /// 1 for what is directly in the folder that the walk began in.
    pub(crate) depth: usize,
}

impl<'a> Walk<'a> {
    /// A walk below a folder that is spelt like this; paths are empty where it is spelt empty.
    pub(crate) fn below(ctx: &'a Context<'a>, folder: Node, spelling: &str) -> Self {
        let mut walk = Self { ctx, open: Vec::new(), folder: String::new() };
        walk.enter(folder, spelling);
        walk
    }

    /// Goes into the folder that the last step came to, by its name.
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

    /// What comes before the name in the path of the last step, which nothing is put together for unless it is needed.
    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }
}
