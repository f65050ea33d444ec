//! `grep`, and what it shares with `rg`.

mod options;
mod search;
mod targets;

pub(super) use options::{Dialect, Names, Options, Show};
use search::Search;
use targets::{Target, Targets};

use super::{Call, Command, Complaint, Flow, Program, Started};
use crate::args::{Arg, Args};
use crate::block::{Block, Chunk, Origin};
use crate::context::{Context, DONE, HELD_BYTES, Halt, Status, Stop};
use crate::inputs::{PIPED, Trouble, announce};
use crate::out::Out;
use crate::pattern::Pattern;
use crate::tree::Node;

pub(super) const COMMAND: Command = Command {
    name: "grep",
    usage: "grep [-rinlLvcowxFEqsHh] [-m N] [-A N] [-B N] [-C N] [-e PATTERN] PATTERN [PATH…]",
    about: "lines that match a pattern",
    details: "  -r, -R  whole folders    -i  any case          -n  with line numbers\n  \
              -l      only file names  -L  files without     -c  only counts\n  \
              -v      lines without    -o  only the matches  -q  only the status\n  \
              -w      whole words      -x  whole lines       -F  plain text\n  \
              -H, -h  always, never with file names          -s  no word of missing files\n  \
              -m N    at most N lines a file                 -A, -B, -C N  lines after, before, around\n  \
              -e PATTERN (may be repeated), --include GLOB, --exclude GLOB, --exclude-dir GLOB\n\
              Patterns are RE2 (also without -E): a|b, a+, (a), [a-z], \\b, \\d, (?i). \\| is a plain bar.\n\
              No lookahead, lookbehind or backreferences.\n",
    start,
};

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("grep", 2, call.args);
    let mut options = Options::new(Dialect::Grep);
    let mut patterns = Vec::new();
    let mut operands = Vec::new();
    let mut digits = None;
    while let Some(arg) = args.next()? {
        if options.common(arg, &mut args, &mut patterns, &mut digits)? {
            continue;
        }
        match arg {
            Arg::Short('r' | 'R') | Arg::Long("recursive" | "dereference-recursive") => {
                options.recursive = true
            }
            Arg::Short('h') | Arg::Long("no-filename") => options.names = Names::Never,
            Arg::Short('L') | Arg::Long("files-without-match") => {
                options.show(Show::Files { matching: false })
            }
            Arg::Short('s') | Arg::Long("no-messages") => options.silent = true,
            Arg::Short('I') => options.skips_binary = true,
            Arg::Short('b' | 'U' | 'Z' | 'z' | 'd' | 'D' | 'f') => return Err(args.unknown()),
            Arg::Short('P') | Arg::Long("perl-regexp") => options.perl = true,
            Arg::Short('E' | 'G' | 'T') | Arg::Long("extended-regexp" | "basic-regexp" | "line-buffered") => {
                options.extended |= arg == Arg::Short('E') || arg == Arg::Long("extended-regexp");
            }
            Arg::Long("include") => {
                options.chosen.include(args.value()?).map_err(|why| args.complain(&why))?
            }
            Arg::Long("exclude") => {
                options.chosen.exclude(args.value()?).map_err(|why| args.complain(&why))?
            }
            Arg::Long("exclude-dir") => {
                options.chosen.exclude_folder(args.value()?).map_err(|why| args.complain(&why))?
            }
            Arg::Operand(operand) => operands.push(operand.to_owned()),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    if patterns.is_empty() {
        if operands.is_empty() {
            return Err(args.complain("a pattern is missing: grep PATTERN [PATH…]"));
        }
        patterns.push(operands.remove(0));
    }
    if operands.is_empty() && !options.recursive && !call.piped {
        return Err(Complaint::new(
            2,
            "grep: no file is named and nothing is piped in: write `grep -rn PATTERN PATH`, or `grep PATTERN FILE`",
        ));
    }
    Grep::start(call, options, &patterns, operands)
}

/// A running search.
pub(super) struct Grep {
    options: Options,
    pattern: Pattern,
    operands: Vec<String>,
    piped_at: Option<usize>,
    search: Search,
    /// Piped input, if it must be buffered.
    held: Block,
    complained: bool,
    /// Printed at the end if nothing was found.
    hint: Option<&'static str>,
}

const BAR_HINT: &str =
    "grep: note: patterns are RE2, where `\\|` is a plain bar: for alternatives write `a|b`";

impl Grep {
    pub(super) fn start(
        call: &Call<'_>,
        options: Options,
        patterns: &[String],
        mut operands: Vec<String>,
    ) -> Started {
        let name = options.dialect.name();
        let complaint = |why| Complaint::new(2, format!("{name}: {why}"));
        let pattern = Pattern::new(patterns, options.syntax).map_err(complaint)?;
        call.ctx.hold_pattern(pattern.bytes()).map_err(complaint)?;
        let grepped_bars = options.dialect == Dialect::Grep && !options.extended && !options.syntax.fixed;
        let hint =
            (grepped_bars && patterns.iter().any(|pattern| pattern.contains("\\|"))).then_some(BAR_HINT);
        if operands.is_empty() {
            operands.push(if options.recursive { String::new() } else { PIPED.to_owned() });
        }
        let piped_at = operands.iter().position(|operand| operand == PIPED);
        let search = Search::new(&options);
        let held = Block::default();
        Ok(Box::new(Self { options, pattern, operands, piped_at, search, held, complained: false, hint }))
    }

    fn read_operands(
        &mut self,
        ctx: &Context<'_>,
        from: usize,
        to: usize,
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        let operands = self.operands.get(from..to).unwrap_or_default().to_vec();
        let required = self.pattern.required().filter(|_| !self.options.invert);
        let text_filter = required.map(|texts| ctx.tree.text_filter(texts));
        let mut targets = Targets::new(ctx, operands, self.options.clone(), text_filter);
        loop {
            let batch = targets.next()?;
            if batch.is_empty() {
                return Ok(());
            }
            announce(ctx, batch.iter().filter_map(Target::to_read));
            for target in batch {
                if self.search.is_over(&self.options) {
                    return Ok(());
                }
                match target {
                    Target::Complaint(text) => self.complain(&text, out)?,
                    Target::Folder { path, named } => {
                        self.complain(
                            &format!("grep: {path}: Is a directory (grep -r searches what is in it)"),
                            out,
                        )?;
                        self.search.open(&path, named);
                        self.search.close(&self.options, out)?;
                    }
                    Target::Piped => {
                        self.search.open(self.options.piped_name(), self.operands.len() > 1);
                        self.search.close(&self.options, out)?;
                    }
                    Target::HeldBack { path, named } => {
                        self.search.open(&path, named);
                        self.search.close(&self.options, out)?;
                    }
                    Target::File { node, path, named } => self.read_file(ctx, node, &path, named, out)?,
                }
            }
        }
    }

    fn complain(&mut self, text: &str, out: &mut Out<'_>) -> Result<(), Halt> {
        self.complained = true;
        if self.options.silent { Ok(()) } else { out.complain(text) }
    }

    fn read_file(
        &mut self,
        ctx: &Context<'_>,
        node: Node,
        path: &str,
        named: bool,
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        let body = match ctx.read(node)? {
            Ok(body) => body,
            Err(unreadable) => {
                let text = Trouble::Unreadable(unreadable).text();
                return self.complain(&format!("{}: {path}: {text}", self.options.dialect.name()), out);
            }
        };
        self.search.open(path, named);
        self.search.read(ctx, &self.pattern, &self.options, &Chunk::new(&body, Origin::File(node)), out)?;
        self.search.close(&self.options, out)
    }

    /// Whether context lines are requested, for which piped input must be buffered.
    fn holds_pipe(&self) -> bool {
        self.options.before > 0 || self.options.after > 0
    }
}

impl Program for Grep {
    fn reads_input(&self) -> bool {
        self.piped_at.is_some()
    }

    fn begin(&mut self, ctx: &Context<'_>, out: &mut Out<'_>) -> Result<(), Halt> {
        if let Some(piped_at) = self.piped_at {
            self.read_operands(ctx, 0, piped_at, out)?;
            self.search.open(self.options.piped_name(), self.options.names_all(self.operands.len()));
        }
        Ok(())
    }

    fn take(&mut self, ctx: &Context<'_>, chunk: &Chunk<'_>, out: &mut Out<'_>) -> Result<Flow, Halt> {
        if self.search.is_over(&self.options) {
            return Ok(Flow::Done);
        }
        if self.holds_pipe() {
            if self.held.len() + chunk.bytes.len() > HELD_BYTES {
                return Err(Halt::Stop(Stop::Memory));
            }
            self.held.carry(chunk, 0..chunk.bytes.len());
            return Ok(Flow::More);
        }
        self.search.read(ctx, &self.pattern, &self.options, chunk, out)?;
        Ok(if self.search.has_enough(&self.options) { Flow::Done } else { Flow::More })
    }

    fn end(&mut self, ctx: &Context<'_>, out: &mut Out<'_>) -> Result<Status, Halt> {
        let mut from = 0;
        if let Some(piped_at) = self.piped_at {
            let held = std::mem::take(&mut self.held);
            if !held.is_empty() {
                self.search.read(ctx, &self.pattern, &self.options, &held.as_chunk(), out)?;
            }
            self.search.close(&self.options, out)?;
            from = piped_at + 1;
        }
        self.read_operands(ctx, from, self.operands.len(), out)?;
        let found = self.search.found();
        if let Some(hint) = self.hint.filter(|_| !found && !self.complained) {
            out.complain(hint)?;
        }
        Ok(match (found, self.complained) {
            // With -q, only a match matters.
            (true, true) if self.options.show == Show::Nothing => DONE,
            (_, true) => 2,
            (found, false) => Status::from(!found),
        })
    }
}
