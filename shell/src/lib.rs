//! A small read-only shell over a tree of folders and files, with which agents explore a workspace by script.
//!
//! The crate is pure: it holds no tree, opens no file and reads no clock. A caller with a [`tree::Tree`] runs scripts
//! on it. Grammar and commands are documented in `docs/SHELL.md`.

mod args;
mod block;
mod brief;
mod commands;
mod context;
mod dates;
#[cfg(test)]
mod differential;
mod expand;
mod glob;
mod inputs;
mod meter;
mod out;
mod outcome;
mod parse;
mod paths;
mod pattern;
mod pipeline;
mod session;
mod sink;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
pub mod tree;
mod walk;

pub use brief::is_brief;
use context::{Context, DONE, Halt, Status, Stop};
pub use outcome::{Outcome, Read, Stats};
use parse::{Joint, Script};
pub use session::{Limits, Session, Watch};
use tree::{Kind, Tree};

/// Runs a script over a tree. It never panics, whatever the script; every error message is part of the output.
pub fn run(tree: &dyn Tree, script: &str, session: &Session<'_>) -> Outcome {
    let limits = session.limits;
    let cwd = match paths::resolve(tree, tree.root(), session.cwd) {
        Ok(node) if tree.kind(node) == Kind::Folder => node,
        Ok(_) => {
            return refused(
                tree,
                session,
                format!("shell: the folder to start in, {}, is a file", session.cwd),
            );
        }
        Err(missing) => {
            return refused(
                tree,
                session,
                format!("shell: the folder to start in, {}: {}", session.cwd, missing.text()),
            );
        }
    };
    if script.len() > limits.script_bytes {
        let (length, most) = (script.len(), limits.script_bytes);
        return refused(
            tree,
            session,
            format!("shell: the script has {length} bytes, and {most} are the most: split it"),
        );
    }
    let parsed = match parse::parse(script) {
        Ok(parsed) => parsed,
        Err(refusal) => {
            return refused(tree, session, format!("shell: line {}: {}", refusal.line, refusal.why));
        }
    };
    let ctx = Context::new(tree, session, cwd);
    let ended = execute(&ctx, &parsed);
    finish(ctx, ended)
}

/// Runs the steps in order; returns the outcome of the last one that ran.
fn execute(ctx: &Context<'_>, script: &Script) -> Result<Status, Stop> {
    let mut status = DONE;
    for step in &script.steps {
        let runs = match step.joint {
            Joint::Always => true,
            Joint::Success => status == DONE,
            Joint::Failure => status != DONE,
        };
        if runs {
            status = pipeline::run(ctx, step)?;
        }
    }
    Ok(status)
}

fn finish(ctx: Context<'_>, ended: Result<Status, Stop>) -> Outcome {
    let stats = ctx.stats();
    let cwd = paths::absolute(ctx.tree, ctx.cwd());
    // Truncated output is not a failure, and carries its own notice.
    let (failed, farewell) = match ended {
        Ok(status) => (status != DONE, None),
        Err(Stop::Output) => (false, None),
        Err(stop) => (true, Some(ctx.farewell(stop))),
    };
    let written = ctx.sink.into_inner().finish(farewell);
    Outcome { output: written.output, failed, truncated: written.truncated, cwd, reads: written.reads, stats }
}

/// The outcome of a script that was not run.
fn refused(tree: &dyn Tree, session: &Session<'_>, why: String) -> Outcome {
    let mut sink = sink::Sink::new(session.limits.output_bytes);
    // Whatever exceeds the limit is cut when the sink is finished.
    let _: Result<(), Halt> = sink.complain(&format!("{why}\n"));
    let written = sink.finish(None);
    let cwd = paths::resolve(tree, tree.root(), session.cwd).unwrap_or_else(|_| tree.root());
    Outcome {
        output: written.output,
        failed: true,
        truncated: written.truncated,
        cwd: paths::absolute(tree, cwd),
        reads: Vec::new(),
        stats: Stats::default(),
    }
}
