//! `head`

use super::{Call, Command, Complaint, Flow, Started};
use crate::args::{Arg, Args};
use crate::block::{Block, Chunk};
use crate::context::{Context, HELD_BYTES, Halt, Stop};
use crate::inputs::{Digest, Inputs, Trouble};
use crate::out::Out;

pub(super) const COMMAND: Command = Command {
    name: "head",
    usage: "head [-n N | -c N | -N] [-qv] [FILE…]",
    about: "the first lines (10) of files",
    details: "  -n N   the first N lines; -n -N: all but the last N\n  -c N   the first N bytes; -c -N: all but the last N\n  \
              -q     no headers\n  -v     always headers\n",
    start,
};

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("head", 1, call.args);
    let mut files = Vec::new();
    let mut part = Part { unit: Unit::Lines, count: 10, all_but: false };
    let mut headers = None;
    let mut digits: Option<u64> = None;
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('n') | Arg::Long("lines") => part = Part::parse(&mut args, Unit::Lines)?,
            Arg::Short('c') | Arg::Long("bytes") => part = Part::parse(&mut args, Unit::Bytes)?,
            Arg::Short('q') | Arg::Long("quiet" | "silent") => headers = Some(false),
            Arg::Short('v') | Arg::Long("verbose") => headers = Some(true),
            Arg::Short(digit @ '0'..='9') => {
                let count = with_digit(digits, digit);
                digits = Some(count);
                part = Part { unit: Unit::Lines, count, all_but: false };
            }
            Arg::Operand(file) => files.push(file),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    let headers = headers.unwrap_or(files.len() > 1);
    Inputs::start(
        files,
        call.piped,
        Head { part, headers: Headers::new(headers), left: 0, held: Block::default() },
    )
}

/// Appends a decimal digit to a number.
pub(super) fn with_digit(number: Option<u64>, digit: char) -> u64 {
    let digit = u64::from(digit.to_digit(10).unwrap_or_default());
    number.unwrap_or_default().saturating_mul(10).saturating_add(digit)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Lines,
    Bytes,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    unit: Unit,
    count: u64,
    all_but: bool,
}

impl Part {
    fn parse(args: &mut Args<'_>, unit: Unit) -> Result<Self, Complaint> {
        let text = args.value()?;
        let (all_but, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let count = amount(digits).ok_or_else(|| args.invalid(what(unit), text))?;
        Ok(Self { unit, count, all_but })
    }
}

pub(super) fn what(unit: Unit) -> &'static str {
    match unit {
        Unit::Lines => "number of lines",
        Unit::Bytes => "number of bytes",
    }
}

/// Parses a count with an optional unit.
pub(super) fn amount(text: &str) -> Option<u64> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(at)?;
    let factor: u64 = match unit {
        "" => 1,
        "b" => 512,
        "kB" => 1000,
        "k" | "K" | "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        _ => return None,
    };
    if digits.is_empty() {
        return None;
    }
    // A number that overflows means everything.
    let count: u64 = digits.parse().unwrap_or(u64::MAX);
    Some(count.saturating_mul(factor))
}

/// The headers between several files.
pub(super) struct Headers {
    shown: bool,
    any: bool,
}

impl Headers {
    pub(super) fn new(shown: bool) -> Self {
        Self { shown, any: false }
    }

    pub(super) fn write(&mut self, name: &str, out: &mut Out<'_>) {
        if self.shown {
            let gap = if self.any { "\n" } else { "" };
            out.text(format!("{gap}==> {name} <==\n"));
            self.any = true;
        }
    }
}

/// The message of `head` and `tail` about an unreadable input.
pub(super) fn trouble(command: &str, name: &str, trouble: Trouble) -> String {
    match trouble {
        Trouble::Missing(_) => format!("{command}: cannot open '{name}' for reading: {}", trouble.text()),
        Trouble::IsFolder | Trouble::Unreadable(_) => {
            format!("{command}: error reading '{name}': {}", trouble.text())
        }
    }
}

/// The start of the last `count` lines or bytes of a text.
pub(super) fn last(unit: Unit, text: &[u8], count: u64) -> usize {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if unit == Unit::Bytes {
        return text.len().saturating_sub(count);
    }
    if count == 0 {
        return text.len();
    }
    let before_end = text.strip_suffix(b"\n").unwrap_or(text);
    memchr::memrchr_iter(b'\n', before_end).nth(count - 1).map_or(0, |at| at + 1)
}

struct Head {
    part: Part,
    headers: Headers,
    /// How much of the current file remains to be written.
    left: u64,
    /// Candidates for the last lines.
    held: Block,
}

impl Digest for Head {
    const NAME: &'static str = "head";

    fn reads(&self) -> bool {
        self.part.count > 0 || self.part.all_but
    }

    fn open(&mut self, name: &str, out: &mut Out<'_>) -> Result<(), Halt> {
        self.headers.write(name, out);
        self.left = self.part.count;
        self.held.clear();
        Ok(())
    }

    fn take(&mut self, _: &Context<'_>, chunk: &Chunk<'_>, out: &mut Out<'_>) -> Result<Flow, Halt> {
        let length = chunk.bytes.len();
        if self.part.all_but {
            if self.held.len() + length > HELD_BYTES {
                return Err(Halt::Stop(Stop::Memory));
            }
            self.held.carry(chunk, 0..length);
            return Ok(Flow::More);
        }
        if self.left == 0 {
            return Ok(Flow::Done);
        }
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX);
        let (end, taken) = match self.part.unit {
            Unit::Bytes => (length.min(wanted), length.min(wanted)),
            Unit::Lines => match memchr::memchr_iter(b'\n', chunk.bytes).nth(wanted - 1) {
                Some(at) => (at + 1, wanted),
                None => (length, memchr::memchr_iter(b'\n', chunk.bytes).count()),
            },
        };
        self.left -= taken as u64;
        out.carry(chunk, 0..end)?;
        Ok(if self.left == 0 { Flow::Done } else { Flow::More })
    }

    fn close(&mut self, _: &str, out: &mut Out<'_>) -> Result<(), Halt> {
        if !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            let end = last(self.part.unit, &held.bytes, self.part.count);
            out.carry(&held.as_chunk(), 0..end)?;
        }
        Ok(())
    }

    fn trouble(&self, name: &str, about: Trouble) -> String {
        trouble("head", name, about)
    }
}
