//! `find`

mod expression;

use expression::{Expression, Verdict, Visited};

use super::{Call, Command, Complaint, Program, Started};
use crate::context::{Context, DONE, Halt, Status};
use crate::out::Out;
use crate::paths;
use crate::tree::Kind;
use crate::walk::Walk;

pub(super) const COMMAND: Command = Command {
    name: "find",
    usage: "find [PATH…] [EXPRESSION]",
    about: "files and folders below a path, by name, kind, size or time",
    details: "  -name GLOB, -iname GLOB   the name (a glob, not a regular expression)\n  \
              -path GLOB, -ipath GLOB   the whole path\n  -type f, -type d          files, folders\n  \
              -maxdepth N, -mindepth N  how deep\n  -size [+-]N[ckMG]         the size (in units of 512 bytes without a letter)\n  \
              -newer FILE               changed after that file\n  -mtime [+-]N, -mmin [+-]N changed so many days, minutes ago\n  \
              -empty                    nothing in it\n  ! -not, -a -and, -o -or, \\( \\)\n  -prune, -print\n\
              There is no -exec and no -delete.\n",
    start,
};

fn start(call: &Call<'_>) -> Started {
    let is_expression =
        |arg: &String| (arg.starts_with('-') && arg.len() > 1) || arg == "(" || arg == "!" || arg == ")";
    let leading = call.args.iter().take_while(|arg| matches!(arg.as_str(), "-L" | "-H" | "-P")).count();
    let args = call.args.get(leading..).unwrap_or_default();
    let paths_end = args.iter().position(is_expression).unwrap_or(args.len());
    let (operands, words) = args.split_at(paths_end);
    let mut operands = operands.to_vec();
    if operands.is_empty() {
        operands.push(".".to_owned());
    }
    let parsed =
        expression::parse(call.ctx, words).map_err(|why| Complaint::new(1, format!("find: {why}")))?;
    Ok(Box::new(Find { operands, expression: parsed.expression, least: parsed.least, most: parsed.most }))
}

struct Find {
    operands: Vec<String>,
    expression: Expression,
    least: usize,
    most: usize,
}

impl Program for Find {
    fn end(&mut self, ctx: &Context<'_>, out: &mut Out<'_>) -> Result<Status, Halt> {
        let mut status = DONE;
        for path in &self.operands {
            let node = match paths::resolve(ctx.tree, ctx.cwd(), path) {
                Ok(node) => node,
                Err(missing) => {
                    status = 1;
                    out.complain(&format!("find: '{path}': {}", missing.text()))?;
                    continue;
                }
            };
            ctx.visit(node)?;
            let trimmed = path.trim_end_matches('/');
            let name = if trimmed.is_empty() { "/" } else { trimmed.rsplit('/').next().unwrap_or(trimmed) };
            let kind = ctx.tree.kind(node);
            let pruned = self.judge(&Visited { ctx, node, kind, path: ["", path], name }, 0, out)?;
            if kind == Kind::Folder && !pruned && self.most > 0 {
                self.walk(ctx, Walk::below(ctx, node, path), out)?;
            }
        }
        Ok(status)
    }
}

impl Find {
    fn walk(&self, ctx: &Context<'_>, mut walk: Walk<'_>, out: &mut Out<'_>) -> Result<(), Halt> {
        while let Some(step) = walk.next()? {
            let path = [walk.folder(), step.name];
            let seen = Visited { ctx, node: step.node, kind: step.kind, path, name: step.name };
            let pruned = self.judge(&seen, step.depth, out)?;
            if step.kind == Kind::Folder && !pruned && step.depth < self.most {
                walk.enter(step.node, step.name);
            }
        }
        Ok(())
    }

    /// Evaluates the expression and prints; returns whether to prune.
    fn judge(&self, seen: &Visited<'_>, depth: usize, out: &mut Out<'_>) -> Result<bool, Halt> {
        if depth < self.least {
            return Ok(false);
        }
        let mut verdict = Verdict::default();
        self.expression.holds(seen, &mut verdict)?;
        for _ in 0..verdict.prints {
            seen.path.iter().for_each(|part| out.text(part));
            out.text("\n");
            out.flow()?;
        }
        Ok(verdict.prunes)
    }
}
