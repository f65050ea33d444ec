//! `cut`

use std::ops::Range;

use super::{Call, Command, Complaint, Flow, Started};
use crate::args::{Arg, Args};
use crate::block::Chunk;
use crate::context::{Context, Halt};
use crate::inputs::{Digest, Inputs};
use crate::out::Out;

pub(super) const COMMAND: Command = Command {
    name: "cut",
    usage: "cut -f LIST [-d CHAR] [-s] | -c LIST | -b LIST [FILE…]",
    about: "parts of each line",
    details: "  -f LIST  these fields, as in 1,3-5,7-\n  -d CHAR  what separates fields (a tab)\n  -s       no lines without it\n  \
              -c LIST  these characters\n  -b LIST  these bytes\n  --complement, --output-delimiter TEXT\n",
    start,
};

/// The cost of a field beside its bytes.
const PART_STEPS: u64 = 64;

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("cut", 1, call.args);
    let mut files = Vec::new();
    let mut list = None;
    let (mut delimiter, mut only_delimited, mut complement, mut output) = (None, false, false, None);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('f') | Arg::Long("fields") => choose(&mut list, Unit::Fields, &mut args)?,
            Arg::Short('c') | Arg::Long("characters") => choose(&mut list, Unit::Chars, &mut args)?,
            Arg::Short('b') | Arg::Long("bytes") => choose(&mut list, Unit::Bytes, &mut args)?,
            Arg::Short('d') | Arg::Long("delimiter") => {
                let text = args.value()?;
                if text.chars().count() > 1 {
                    return Err(args.complain("the delimiter must be a single character"));
                }
                // An empty delimiter is NUL, as in GNU.
                delimiter = Some(if text.is_empty() { "\0".to_owned() } else { text.to_owned() });
            }
            Arg::Short('s') | Arg::Long("only-delimited") => only_delimited = true,
            Arg::Short('n') => {}
            Arg::Long("complement") => complement = true,
            Arg::Long("output-delimiter") => output = Some(args.value()?.to_owned()),
            Arg::Operand(file) => files.push(file),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    let Some((unit, ranges)) = list else {
        return Err(args.complain("you must specify a list of bytes, characters, or fields"));
    };
    if unit != Unit::Fields && (delimiter.is_some() || only_delimited) {
        return Err(args.complain("a delimiter may be specified only when operating on fields"));
    }
    let delimiter = delimiter.unwrap_or_else(|| "\t".to_owned());
    let output =
        output.unwrap_or_else(|| if unit == Unit::Fields { delimiter.clone() } else { String::new() });
    let ranges = if complement { complemented(&ranges) } else { ranges };
    Inputs::start(files, call.piped, Cut { unit, ranges, delimiter, output, only_delimited })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Fields,
    Chars,
    Bytes,
}

/// Ascending ranges without overlap, counted from 1, inclusive.
type Ranges = Vec<(usize, usize)>;

fn choose(list: &mut Option<(Unit, Ranges)>, unit: Unit, args: &mut Args<'_>) -> Result<(), Complaint> {
    let text = args.value()?;
    if list.is_some() {
        return Err(args.complain("only one list may be specified"));
    }
    let ranges =
        ranges(text).ok_or_else(|| args.invalid("list of positions, which are counted from 1", text))?;
    *list = Some((unit, ranges));
    Ok(())
}

fn ranges(text: &str) -> Option<Ranges> {
    let mut ranges = Vec::new();
    for item in text.split([',', ' ']) {
        let (first, last) = match item.split_once('-') {
            Some(("", "")) => return None,
            Some(("", last)) => (1, last.parse().ok()?),
            Some((first, "")) => (first.parse().ok()?, usize::MAX),
            Some((first, last)) => (first.parse().ok()?, last.parse().ok()?),
            None => {
                let position = item.parse().ok()?;
                (position, position)
            }
        };
        if first == 0 || last < first {
            return None;
        }
        ranges.push((first, last));
    }
    ranges.sort_unstable();
    let mut merged: Ranges = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(previous) if first <= previous.1 => previous.1 = previous.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    Some(merged)
}

fn complemented(ranges: &Ranges) -> Ranges {
    let mut rest = Vec::new();
    let mut next = 1;
    for &(first, last) in ranges {
        if first > next {
            rest.push((next, first - 1));
        }
        next = last.saturating_add(1);
    }
    if next != usize::MAX {
        rest.push((next, usize::MAX));
    }
    rest
}

struct Cut {
    unit: Unit,
    ranges: Ranges,
    delimiter: String,
    output: String,
    only_delimited: bool,
}

impl Cut {
    fn write_fields(
        &self,
        ctx: &Context<'_>,
        chunk: &Chunk<'_>,
        start: usize,
        text: &[u8],
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        let mut ends = memchr::memmem::find_iter(text, self.delimiter.as_bytes()).peekable();
        if ends.peek().is_none() {
            if !self.only_delimited {
                out.carry(chunk, start..start + text.len())?;
                out.text("\n");
            }
            return Ok(());
        }
        let mut ranges = self.ranges.iter().peekable();
        let (mut field, mut from, mut any) = (1, 0, false);
        loop {
            while ranges.next_if(|(_, last)| *last < field).is_some() {}
            let Some((first, _)) = ranges.peek() else { break };
            let end = ends.next();
            if field >= *first {
                self.part(ctx, chunk, start + from..start + end.unwrap_or(text.len()), &mut any, out)?;
            }
            let Some(end) = end else { break };
            (field, from) = (field + 1, end + self.delimiter.len());
        }
        out.text("\n");
        Ok(())
    }

    /// Writes a range of a line after the output delimiter. A line may have very many ranges.
    fn part(
        &self,
        ctx: &Context<'_>,
        chunk: &Chunk<'_>,
        range: Range<usize>,
        any: &mut bool,
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        ctx.meter.charge(PART_STEPS)?;
        if std::mem::replace(any, true) {
            out.text(&self.output);
        }
        out.carry(chunk, range)?;
        out.flow()
    }

    fn write_places(
        &self,
        ctx: &Context<'_>,
        chunk: &Chunk<'_>,
        start: usize,
        text: &[u8],
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        let mut places = Places::new(text, self.unit == Unit::Chars);
        let mut any = false;
        for &(first, last) in &self.ranges {
            let from = places.of(first - 1);
            if from == text.len() {
                break;
            }
            self.part(ctx, chunk, start + from..start + places.of(last), &mut any, out)?;
        }
        out.text("\n");
        Ok(())
    }
}

/// Iterates over the positions of characters or bytes of a line, in ascending order.
struct Places<'a> {
    text: &'a [u8],
    /// Whether a character may have several bytes.
    wide: bool,
    /// The character of the last query, and its position.
    nth: usize,
    at: usize,
}

impl<'a> Places<'a> {
    fn new(text: &'a [u8], chars: bool) -> Self {
        let at = text.iter().position(|byte| begins(*byte)).unwrap_or(text.len());
        Self { text, wide: chars && !text.is_ascii(), nth: 0, at }
    }

    /// The position of the n-th one, from zero; the end of the line if there is none.
    fn of(&mut self, nth: usize) -> usize {
        if !self.wide {
            return nth.min(self.text.len());
        }
        if let Some(further) = nth.checked_sub(self.nth + 1) {
            let rest = self.text.get(self.at + 1..).unwrap_or_default();
            let next = rest.iter().enumerate().filter(|(_, byte)| begins(**byte)).nth(further);
            self.at = next.map_or(self.text.len(), |(passed, _)| self.at + 1 + passed);
            self.nth = if next.is_some() { nth } else { usize::MAX - 1 };
        }
        self.at
    }
}

/// Whether a byte begins a character.
fn begins(byte: u8) -> bool {
    (byte & 0xC0) != 0x80
}

impl Digest for Cut {
    const NAME: &'static str = "cut";

    fn take(&mut self, ctx: &Context<'_>, chunk: &Chunk<'_>, out: &mut Out<'_>) -> Result<Flow, Halt> {
        for line in chunk.lines() {
            let text = chunk.line(line.clone());
            match self.unit {
                Unit::Fields => self.write_fields(ctx, chunk, line.start, text, out)?,
                Unit::Chars | Unit::Bytes => self.write_places(ctx, chunk, line.start, text, out)?,
            }
            out.flow()?;
        }
        Ok(Flow::More)
    }
}
