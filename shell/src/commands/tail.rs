//! `tail`

use super::head::{Headers, Unit, amount, last, trouble, what, with_digit};
use super::{Call, Command, Complaint, Flow, Started, writer};
use crate::args::{Arg, Args};
use crate::block::{Block, Chunk};
use crate::context::{Context, DONE, HELD_BYTES, Halt, Stop};
use crate::inputs::{Digest, Inputs, Trouble};
use crate::out::Out;

pub(super) const COMMAND: Command = Command {
    name: "tail",
    usage: "tail [-n N | -n +N | -c N | -c +N | -N] [-qv] [FILE…]",
    about: "the last lines (10) of files, or all from one on",
    details: "  -n N   the last N lines; -n +N: all from line N on\n  -c N   the last N bytes; -c +N: all from byte N on\n  \
              -q     no headers\n  -v     always headers\n",
    start,
};

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("tail", 1, call.args);
    let mut files = Vec::new();
    let mut part = Part { unit: Unit::Lines, from: From::End(10) };
    let mut headers = None;
    let mut digits: Option<u64> = None;
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('n') | Arg::Long("lines") => part = Part::parse(&mut args, Unit::Lines)?,
            Arg::Short('c') | Arg::Long("bytes") => part = Part::parse(&mut args, Unit::Bytes)?,
            Arg::Short('q') | Arg::Long("quiet" | "silent") => headers = Some(false),
            Arg::Short('v') | Arg::Long("verbose") => headers = Some(true),
            Arg::Short('f' | 'F') | Arg::Long("follow") => {
                return Err(args.complain(
                    "following a file (-f) is not supported: the tree does not change while a script runs",
                ));
            }
            Arg::Short(digit @ '0'..='9') => {
                let count = with_digit(digits, digit);
                digits = Some(count);
                part = Part { unit: Unit::Lines, from: From::End(count) };
            }
            // The obsolete form, if no file can be meant.
            Arg::Operand(old) if files.is_empty() && is_old_form(old) => {
                part = Part {
                    unit: Unit::Lines,
                    from: From::Start(amount(old.trim_start_matches('+')).unwrap_or(1)),
                };
            }
            Arg::Operand(file) => files.push(file),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    if matches!(part.from, From::End(0)) {
        // As in GNU, the input is not read at all.
        return writer(|_, _| Ok(DONE));
    }
    let headers = headers.unwrap_or(files.len() > 1);
    Inputs::start(
        files,
        call.piped,
        Tail { part, headers: Headers::new(headers), skipped: 0, held: Block::default() },
    )
}

fn is_old_form(text: &str) -> bool {
    text.strip_prefix('+')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

#[derive(Debug, Clone, Copy)]
struct Part {
    unit: Unit,
    from: From,
}

#[derive(Debug, Clone, Copy)]
enum From {
    /// From this line or byte on, counted from 1.
    Start(u64),
    /// The last ones.
    End(u64),
}

impl Part {
    fn parse(args: &mut Args<'_>, unit: Unit) -> Result<Self, Complaint> {
        let text = args.value()?;
        let (from_start, digits) = match text.strip_prefix('+') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('-').unwrap_or(text)),
        };
        let count = amount(digits).ok_or_else(|| args.invalid(what(unit), text))?;
        Ok(Self { unit, from: if from_start { From::Start(count) } else { From::End(count) } })
    }
}

struct Tail {
    part: Part,
    headers: Headers,
    /// How much of the start of the current file has been skipped.
    skipped: u64,
    /// Candidates for the last lines.
    held: Block,
}

impl Tail {
    fn take_from_start(&mut self, first: u64, chunk: &Chunk<'_>, out: &mut Out<'_>) -> Result<Flow, Halt> {
        let length = chunk.bytes.len();
        let to_skip =
            usize::try_from(first.saturating_sub(1).saturating_sub(self.skipped)).unwrap_or(usize::MAX);
        let (start, skipped) = match self.part.unit {
            _ if to_skip == 0 => (0, 0),
            Unit::Bytes => (length.min(to_skip), length.min(to_skip)),
            Unit::Lines => match memchr::memchr_iter(b'\n', chunk.bytes).nth(to_skip - 1) {
                Some(at) => (at + 1, to_skip),
                None => (length, memchr::memchr_iter(b'\n', chunk.bytes).count()),
            },
        };
        self.skipped += skipped as u64;
        out.carry(chunk, start..length)?;
        Ok(Flow::More)
    }

    fn hold(&mut self, count: u64, chunk: &Chunk<'_>) -> Result<Flow, Halt> {
        let length = chunk.bytes.len();
        let start = last(self.part.unit, chunk.bytes, count);
        if start > 0 {
            // The earlier candidates are not among the last ones any more.
            self.held.clear();
        }
        self.held.carry(chunk, start..length);
        if self.held.len() > HELD_BYTES / 2 {
            self.trim(count);
        }
        if self.held.len() > HELD_BYTES {
            return Err(Halt::Stop(Stop::Memory));
        }
        Ok(Flow::More)
    }

    fn trim(&mut self, count: u64) {
        let start = last(self.part.unit, &self.held.bytes, count);
        if start > 0 {
            let mut kept = Block::default();
            kept.carry(&self.held.as_chunk(), start..self.held.len());
            self.held = kept;
        }
    }
}

impl Digest for Tail {
    const NAME: &'static str = "tail";

    fn open(&mut self, name: &str, out: &mut Out<'_>) -> Result<(), Halt> {
        self.headers.write(name, out);
        self.skipped = 0;
        self.held.clear();
        Ok(())
    }

    fn take(&mut self, _: &Context<'_>, chunk: &Chunk<'_>, out: &mut Out<'_>) -> Result<Flow, Halt> {
        match self.part.from {
            From::Start(first) => self.take_from_start(first, chunk, out),
            From::End(count) => self.hold(count, chunk),
        }
    }

    fn close(&mut self, _: &str, out: &mut Out<'_>) -> Result<(), Halt> {
        if let From::End(count) = self.part.from {
            self.trim(count);
            let held = std::mem::take(&mut self.held);
            out.carry(&held.as_chunk(), 0..held.len())?;
        }
        Ok(())
    }

    fn trouble(&self, name: &str, about: Trouble) -> String {
        trouble("tail", name, about)
    }
}
