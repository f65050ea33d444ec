//! The common part of most commands: reads the named files, or piped input, one after the other.

use crate::block::{Chunk, Origin};
use crate::commands::{Complaint, Flow, Program};
use crate::context::{Context, DONE, Halt, Status};
use crate::out::Out;
use crate::paths::{self, Missing};
use crate::tree::{Kind, Node, Unreadable};

/// How many files are prefetched at once.
const ANNOUNCED: usize = 256;

/// What a command does with its inputs.
pub(crate) trait Digest {
    /// The name of the command.
    const NAME: &'static str;
    /// The exit status if an input cannot be read.
    const FAILURE: Status = 1;
    /// Whether it does nothing at all if an input cannot be read.
    const ALL_OR_NOTHING: bool = false;

    /// Whether it needs the contents of its inputs.
    fn reads(&self) -> bool {
        true
    }

    /// Begins an input.
    fn open(&mut self, _name: &str, _out: &mut Out<'_>) -> Result<(), Halt> {
        Ok(())
    }

    /// Reads a chunk of it: whole lines, except for the last one.
    fn take(&mut self, ctx: &Context<'_>, chunk: &Chunk<'_>, out: &mut Out<'_>) -> Result<Flow, Halt>;

    /// Ends an input.
    fn close(&mut self, _name: &str, _out: &mut Out<'_>) -> Result<(), Halt> {
        Ok(())
    }

    /// Runs after all inputs.
    fn end(&mut self, _ctx: &Context<'_>, _out: &mut Out<'_>) -> Result<Status, Halt> {
        Ok(DONE)
    }

    /// The message about an unreadable input.
    fn trouble(&self, name: &str, trouble: Trouble) -> String {
        format!("{}: {name}: {}", Self::NAME, trouble.text())
    }
}

/// Why an input cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    Missing(Missing),
    IsFolder,
    Unreadable(Unreadable),
}

impl Trouble {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Missing(missing) => missing.text(),
            Self::IsFolder => "Is a directory",
            Self::Unreadable(Unreadable::Gone) => Missing::NotThere.text(),
            Self::Unreadable(Unreadable::Unavailable) => {
                "Input/output error (who holds it does not answer; try again)"
            }
        }
    }
}

/// The operand that stands for piped input.
pub(crate) const PIPED: &str = "-";

/// Feeds the inputs of a command to its digest.
pub(crate) struct Inputs<D> {
    names: Vec<String>,
    /// The position of piped input among them.
    piped_at: Option<usize>,
    digest: D,
    status: Status,
}

impl<D: Digest + 'static> Inputs<D> {
    /// The command over these inputs; over piped input if none is named.
    pub(crate) fn start(names: Vec<&str>, piped: bool, digest: D) -> Result<Box<dyn Program>, Complaint> {
        if names.is_empty() && !piped {
            let name = D::NAME;
            return Err(Complaint::new(
                D::FAILURE,
                format!(
                    "{name}: no file is named and nothing is piped in: write `{name} FILE` or `COMMAND | {name}`"
                ),
            ));
        }
        let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        if names.is_empty() {
            names.push(PIPED.to_owned());
        }
        let piped_at = names.iter().position(|name| name == PIPED);
        Ok(Box::new(Self { names, piped_at, digest, status: DONE }))
    }
}

impl<D: Digest> Inputs<D> {
    fn broken(&self) -> bool {
        D::ALL_OR_NOTHING && self.status != DONE
    }

    fn complain(&mut self, name: &str, trouble: Trouble, out: &mut Out<'_>) -> Result<(), Halt> {
        self.status = D::FAILURE;
        out.complain(&self.digest.trouble(name, trouble))
    }

    fn read_files(
        &mut self,
        ctx: &Context<'_>,
        from: usize,
        to: usize,
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        let names: Vec<String> = self.names.get(from..to).unwrap_or_default().to_vec();
        for group in names.chunks(ANNOUNCED) {
            let found: Vec<Result<Node, Missing>> =
                group.iter().map(|name| paths::resolve(ctx.tree, ctx.cwd(), name)).collect();
            announce(ctx, found.iter().flatten().copied());
            for (name, found) in group.iter().zip(found) {
                if self.broken() {
                    return Ok(());
                }
                match found {
                    // Piped input has been read to its end already.
                    _ if name == PIPED => {
                        self.digest.open("standard input", out)?;
                        self.digest.close(name, out)?;
                    }
                    Ok(node) => self.read_file(ctx, name, node, out)?,
                    Err(missing) => self.complain(name, Trouble::Missing(missing), out)?,
                }
            }
        }
        Ok(())
    }

    fn read_file(
        &mut self,
        ctx: &Context<'_>,
        name: &str,
        node: Node,
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        if !self.digest.reads() {
            self.digest.open(name, out)?;
            return self.digest.close(name, out);
        }
        if ctx.tree.kind(node) == Kind::Folder {
            self.digest.open(name, out)?;
            self.complain(name, Trouble::IsFolder, out)?;
            return self.digest.close(name, out);
        }
        let body = match ctx.read(node)? {
            Ok(body) => body,
            Err(unreadable) => return self.complain(name, Trouble::Unreadable(unreadable), out),
        };
        self.digest.open(name, out)?;
        if !body.is_empty() {
            ctx.meter.charge_bytes(body.len())?;
            self.digest.take(ctx, &Chunk::new(&body, Origin::File(node)), out)?;
        }
        self.digest.close(name, out)
    }
}

/// Prefetches the files among these nodes, as far as the budget allows.
pub(crate) fn announce(ctx: &Context<'_>, nodes: impl Iterator<Item = Node>) {
    let (most, mut bytes) = ctx.left_to_read();
    let mut files = Vec::new();
    for node in nodes.filter(|node| ctx.tree.kind(*node) == Kind::File) {
        let size = ctx.tree.size(node);
        if files.len() as u64 >= most || size > bytes {
            break;
        }
        bytes -= size;
        files.push(node);
    }
    if files.len() > 1 {
        ctx.tree.announce(&files);
    }
}

impl<D: Digest> Program for Inputs<D> {
    fn reads_input(&self) -> bool {
        self.piped_at.is_some()
    }

    fn begin(&mut self, ctx: &Context<'_>, out: &mut Out<'_>) -> Result<(), Halt> {
        if let Some(piped_at) = self.piped_at {
            self.read_files(ctx, 0, piped_at, out)?;
            if !self.broken() {
                self.digest.open("standard input", out)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, ctx: &Context<'_>, chunk: &Chunk<'_>, out: &mut Out<'_>) -> Result<Flow, Halt> {
        if self.broken() {
            return Ok(Flow::Done);
        }
        self.digest.take(ctx, chunk, out)
    }

    fn end(&mut self, ctx: &Context<'_>, out: &mut Out<'_>) -> Result<Status, Halt> {
        let mut from = 0;
        if let Some(piped_at) = self.piped_at {
            if !self.broken() {
                self.digest.close(PIPED, out)?;
            }
            from = piped_at + 1;
        }
        self.read_files(ctx, from, self.names.len(), out)?;
        if self.broken() {
            return Ok(self.status);
        }
        let status = self.digest.end(ctx, out)?;
        Ok(status.max(self.status))
    }
}
