//! `cat`

use super::{Call, Command, Flow, Started};
use crate::args::{Arg, Args};
use crate::block::Chunk;
use crate::context::{Context, Halt};
use crate::inputs::{Digest, Inputs};
use crate::out::Out;

pub(super) const COMMAND: Command = Command {
    name: "cat",
    usage: "cat [-nbsET] [FILE…]",
    about: "write files one after the other",
    details: "  -n  number all lines\n  -b  number lines that are not empty\n  -s  one empty line in place of several\n  \
              -E  a $ at the end of each line\n  -T  tabs as ^I\n  -A  as -ET\n",
    start,
};

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("cat", 1, call.args);
    let mut files = Vec::new();
    let mut cat = Cat { at_start: true, ..Cat::default() };
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('n') | Arg::Long("number") => cat.numbers = true,
            Arg::Short('b') | Arg::Long("number-nonblank") => cat.numbers_text = true,
            Arg::Short('s') | Arg::Long("squeeze-blank") => cat.squeezes = true,
            Arg::Short('E') | Arg::Long("show-ends") => cat.ends = true,
            Arg::Short('T') | Arg::Long("show-tabs") => cat.tabs = true,
            Arg::Short('A') | Arg::Long("show-all") => (cat.ends, cat.tabs) = (true, true),
            Arg::Short('e') => cat.ends = true,
            Arg::Short('t') => cat.tabs = true,
            Arg::Short('u' | 'v') | Arg::Long("show-nonprinting") => {}
            Arg::Operand(file) => files.push(file),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    Inputs::start(files, call.piped, cat)
}

#[derive(Default)]
struct Cat {
    numbers: bool,
    numbers_text: bool,
    squeezes: bool,
    ends: bool,
    tabs: bool,
    count: u64,
    /// Whether the next byte begins a line.
    at_start: bool,
    /// Whether the previous line was empty.
    after_empty: bool,
}

impl Digest for Cat {
    const NAME: &'static str = "cat";

    fn take(&mut self, _: &Context<'_>, chunk: &Chunk<'_>, out: &mut Out<'_>) -> Result<Flow, Halt> {
        if !(self.numbers || self.numbers_text || self.squeezes || self.ends || self.tabs) {
            out.carry(chunk, 0..chunk.bytes.len())?;
            return Ok(Flow::More);
        }
        for line in chunk.lines() {
            let text = chunk.line(line.clone());
            let ended = text.len() < line.len();
            let empty = self.at_start && text.is_empty();
            if self.squeezes && empty && self.after_empty {
                continue;
            }
            self.after_empty = empty;
            if self.at_start && if self.numbers_text { !text.is_empty() } else { self.numbers } {
                self.count += 1;
                out.text(format!("{:>6}\t", self.count));
            }
            let mut from = line.start;
            let end = line.start + text.len();
            if self.tabs {
                for tab in memchr::memchr_iter(b'\t', text) {
                    out.carry(chunk, from..line.start + tab)?;
                    out.text("^I");
                    from = line.start + tab + 1;
                }
            }
            if self.ends && ended {
                out.carry(chunk, from..end)?;
                out.text("$");
                from = end;
            }
            out.carry(chunk, from..line.end)?;
            self.at_start = ended;
        }
        Ok(Flow::More)
    }
}
