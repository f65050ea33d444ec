//! The files that a search reads, in batches, so that they can be fetched together.

use std::collections::VecDeque;

use super::options::{Dialect, Options, Show};
use crate::context::{Context, Halt};
use crate::inputs::PIPED;
use crate::paths;
use crate::tree::{Kind, Node, TextFilter};
use crate::walk::Walk;

/// The first batch is small, since the first files may suffice.
const FIRST_BATCH: usize = 16;
const MAX_BATCH: usize = 512;
const BATCH_BYTES: u64 = 8 << 20;

/// The next item of a search.
#[derive(Debug)]
pub(super) enum Target {
    File {
        node: Node,
        path: String,
        named: bool,
    },
    /// A file that the filter excludes, if files without matches are listed.
    HeldBack {
        path: String,
        named: bool,
    },
    Piped,
    /// A folder that is not descended into.
    Folder {
        path: String,
        named: bool,
    },
    Complaint(String),
}

impl Target {
    pub(super) fn to_read(&self) -> Option<Node> {
        match self {
            Self::File { node, .. } => Some(*node),
            Self::HeldBack { .. } | Self::Piped | Self::Folder { .. } | Self::Complaint(_) => None,
        }
    }
}

pub(super) struct Targets<'a> {
    ctx: &'a Context<'a>,
    operands: VecDeque<String>,
    options: Options,
    text_filter: Option<Box<dyn TextFilter + 'a>>,
    walk: Option<Walk<'a>>,
    /// Whether a single operand is prefixed with its name.
    named: bool,
    batch: usize,
}

impl<'a> Targets<'a> {
    pub(super) fn new(
        ctx: &'a Context<'a>,
        operands: Vec<String>,
        options: Options,
        text_filter: Option<Box<dyn TextFilter + 'a>>,
    ) -> Self {
        let named = options.names_all(operands.len());
        Self { ctx, operands: operands.into(), options, text_filter, walk: None, named, batch: FIRST_BATCH }
    }

    /// The next batch; empty at the end.
    pub(super) fn next(&mut self) -> Result<Vec<Target>, Halt> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < self.batch && bytes < BATCH_BYTES {
            let Some(target) = self.next_target()? else { break };
            if let Some(node) = target.to_read() {
                bytes += self.ctx.tree.size(node);
            }
            batch.push(target);
        }
        self.batch = (self.batch * 4).min(MAX_BATCH);
        Ok(batch)
    }

    fn next_target(&mut self) -> Result<Option<Target>, Halt> {
        loop {
            if let Some(walk) = &mut self.walk {
                let target = next_of(self.ctx, walk, &self.options, self.text_filter.as_deref())?;
                if target.is_some() {
                    return Ok(target);
                }
                self.walk = None;
            }
            let Some(operand) = self.operands.pop_front() else { return Ok(None) };
            if let Some(target) = self.operand(operand)? {
                return Ok(Some(target));
            }
        }
    }

    /// The target of an operand, or a walk if it is a folder.
    fn operand(&mut self, operand: String) -> Result<Option<Target>, Halt> {
        if operand == PIPED {
            return Ok(Some(Target::Piped));
        }
        let ctx = self.ctx;
        let found = if operand.is_empty() && self.options.recursive {
            Ok(ctx.cwd())
        } else {
            paths::resolve(ctx.tree, ctx.cwd(), &operand)
        };
        let program = self.options.dialect.name();
        let node = match found {
            Ok(node) => node,
            Err(missing) => {
                return Ok(Some(Target::Complaint(format!("{program}: {operand}: {}", missing.text()))));
            }
        };
        if ctx.tree.kind(node) == Kind::File {
            ctx.visit(node)?;
            let name = ctx.tree.name(node);
            let folder = operand.strip_suffix(name).unwrap_or_default();
            let chosen = &self.options.chosen;
            if self.options.dialect == Dialect::Grep && !chosen.takes_file(folder, name, &ctx.meter)? {
                return Ok(None);
            }
            return Ok(target_of(
                &self.options,
                self.text_filter.as_deref(),
                node,
                [folder, name],
                self.named,
            ));
        }
        if !self.options.recursive {
            return Ok(Some(Target::Folder { path: operand, named: self.named }));
        }
        let path = operand.trim_end_matches('/');
        let (folder, name) = path.split_at(path.rfind('/').map_or(0, |slash| slash + 1));
        if !name.is_empty() && !self.options.chosen.takes_folder(folder, name, &ctx.meter)? {
            return Ok(None);
        }
        self.walk = Some(Walk::below(ctx, node, &operand));
        Ok(None)
    }
}

/// The next file of a walk.
fn next_of(
    ctx: &Context<'_>,
    walk: &mut Walk<'_>,
    options: &Options,
    text_filter: Option<&dyn TextFilter>,
) -> Result<Option<Target>, Halt> {
    let named = options.names != super::Names::Never;
    while let Some(step) = walk.next()? {
        if !options.hidden && step.name.starts_with('.') {
            continue;
        }
        if step.kind == Kind::Folder {
            if options.chosen.takes_folder(walk.folder(), step.name, &ctx.meter)? {
                walk.enter(step.node, step.name);
            }
            continue;
        }
        if !options.chosen.takes_file(walk.folder(), step.name, &ctx.meter)? {
            continue;
        }
        let target = target_of(options, text_filter, step.node, [walk.folder(), step.name], named);
        if target.is_some() {
            return Ok(target);
        }
    }
    Ok(None)
}

/// How a search treats the file with this path, which is given in two parts.
fn target_of(
    options: &Options,
    text_filter: Option<&dyn TextFilter>,
    node: Node,
    path: [&str; 2],
    named: bool,
) -> Option<Target> {
    if text_filter.is_none_or(|text_filter| text_filter.may_contain(node)) {
        return Some(Target::File { node, path: path.concat(), named });
    }
    let shown = match options.show {
        Show::Counts => options.dialect == Dialect::Grep,
        Show::Files { matching } => !matching,
        Show::Lines | Show::Matches | Show::Nothing => false,
    };
    shown.then(|| Target::HeldBack { path: path.concat(), named })
}
