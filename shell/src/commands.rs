//! The commands, one file each, and their common parts.

mod basename;
mod cat;
mod cd;
mod cut;
mod dirname;
mod echo;
mod elsewhere;
mod find;
mod grep;
mod head;
mod help;
mod ls;
mod pwd;
mod rg;
mod sort;
mod stat;
mod status;
mod tail;
mod tree;
mod uniq;
mod wc;

use crate::block::Chunk;
use crate::context::{Context, Halt, Status};
use crate::expand;
use crate::out::Out;
use crate::parse::Word;

/// A running command.
///
/// Its piped input arrives between `begin` and `end`, in chunks of whole lines; only the very last line may lack its
/// terminator.
pub(crate) trait Program {
    /// Whether it reads piped input.
    fn reads_input(&self) -> bool {
        false
    }

    /// Runs before any piped input is read.
    fn begin(&mut self, _: &Context<'_>, _: &mut Out<'_>) -> Result<(), Halt> {
        Ok(())
    }

    /// Reads a chunk of piped input.
    fn take(&mut self, _: &Context<'_>, _: &Chunk<'_>, _: &mut Out<'_>) -> Result<Flow, Halt> {
        Ok(Flow::Done)
    }

    /// Runs at the end of piped input; returns the exit status.
    fn end(&mut self, ctx: &Context<'_>, out: &mut Out<'_>) -> Result<Status, Halt>;
}

/// Whether a command wants more input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    Done,
}

/// A command that failed to start: its message and exit status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) text: String,
    pub(crate) status: Status,
}

impl Complaint {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        Self { text: text.into(), status }
    }
}

impl Program for Complaint {
    fn end(&mut self, _: &Context<'_>, out: &mut Out<'_>) -> Result<Status, Halt> {
        out.complain(&self.text)?;
        Ok(self.status)
    }
}

/// A command that only writes.
struct Writer<F>(F);

impl<F> Program for Writer<F>
where
    F: FnMut(&Context<'_>, &mut Out<'_>) -> Result<Status, Halt>,
{
    fn end(&mut self, ctx: &Context<'_>, out: &mut Out<'_>) -> Result<Status, Halt> {
        (self.0)(ctx, out)
    }
}

fn writer<F>(write: F) -> Started
where
    F: FnMut(&Context<'_>, &mut Out<'_>) -> Result<Status, Halt> + 'static,
{
    Ok(Box::new(Writer(write)))
}

type Started = Result<Box<dyn Program>, Complaint>;

/// A command of this shell.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// Its synopsis.
    pub(crate) usage: &'static str,
    /// A short description.
    pub(crate) about: &'static str,
    /// Its options and peculiarities, one per line.
    pub(crate) details: &'static str,
    start: fn(&Call<'_>) -> Started,
}

/// The invocation of a command.
pub(crate) struct Call<'a> {
    pub(crate) ctx: &'a Context<'a>,
    pub(crate) args: &'a [String],
    /// Whether it has piped input.
    pub(crate) piped: bool,
}

pub(crate) const COMMANDS: &[&Command] = &[
    &basename::COMMAND,
    &cat::COMMAND,
    &cd::COMMAND,
    &cut::COMMAND,
    &dirname::COMMAND,
    &echo::COMMAND,
    &status::FALSE,
    &find::COMMAND,
    &grep::COMMAND,
    &head::COMMAND,
    &help::COMMAND,
    &ls::COMMAND,
    &pwd::COMMAND,
    &rg::COMMAND,
    &sort::COMMAND,
    &stat::COMMAND,
    &tail::COMMAND,
    &tree::COMMAND,
    &status::TRUE,
    &uniq::COMMAND,
    &wc::COMMAND,
];

/// Expands the words of a command and starts it; an error is reported when the command would run.
///
/// Paths from globs are charged to `room`.
pub(crate) fn start(
    ctx: &Context<'_>,
    words: &[Word],
    piped: bool,
    room: &mut usize,
) -> Result<Box<dyn Program>, Halt> {
    let mut words = match expand::expand(ctx, words, room)? {
        Ok(words) => words,
        Err(too_long) => return Ok(Box::new(Complaint::new(126, too_long))),
    };
    if words.is_empty() {
        return Ok(Box::new(Complaint::new(127, "shell: a command is missing")));
    }
    let mut args = words.split_off(1);
    let mut name = words.pop().unwrap_or_default();
    for (alias, means, option) in [("egrep", "grep", "-E"), ("fgrep", "grep", "-F"), (":", "true", "")] {
        if name == alias {
            name = means.to_owned();
            args.splice(0..0, (!option.is_empty()).then(|| option.to_owned()));
        }
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        return Ok(Box::new(elsewhere::complain(&name, &args)));
    };
    let wants_help = args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--help");
    let started = if wants_help && name != "echo" {
        help::about(command)
    } else {
        (command.start)(&Call { ctx, args: &args, piped })
    };
    Ok(started.unwrap_or_else(|complaint| Box::new(complaint)))
}
