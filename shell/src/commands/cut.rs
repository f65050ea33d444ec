//! `cut`

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
                // An empty one is NUL, as in GNU's.
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

/// Ascending ranges that do not overlap, counted from 1, ends included.
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
    /// Where the n-th parts of a line lie, from one on.
    fn fields(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let delimiter = self.delimiter.as_bytes();
        let mut fields = Vec::new();
        let mut start = 0;
        for at in memchr::memmem::find_iter(text, delimiter) {
            fields.push((start, at));
            start = at + delimiter.len();
        }
        fields.push((start, text.len()));
        fields
    }

    fn write_fields(
        &self,
        chunk: &Chunk<'_>,
        start: usize,
        text: &[u8],
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        let fields = self.fields(text);
        if fields.len() == 1 {
            if !self.only_delimited {
                out.carry(chunk, start..start + text.len())?;
                out.text("\n");
            }
            return Ok(());
        }
        let mut any = false;
        for &(first, last) in &self.ranges {
            for &(from, to) in fields.get(first - 1..last.min(fields.len())).unwrap_or_default() {
                if any {
                    out.text(&self.output);
                }
                any = true;
                out.carry(chunk, start + from..start + to)?;
            }
        }
        out.text("\n");
        Ok(())
    }

    fn write_places(
        &self,
        chunk: &Chunk<'_>,
        start: usize,
        text: &[u8],
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        // Where each character begins; bytes need no such list.
        let begins: Vec<usize> = match self.unit {
            Unit::Chars if !text.is_ascii() => text
                .iter()
                .enumerate()
                .filter(|(_, byte)| (**byte & 0xC0) != 0x80)
                .map(|(at, _)| at)
                .collect(),
            Unit::Chars | Unit::Bytes | Unit::Fields => Vec::new(),
        };
        let length = if begins.is_empty() { text.len() } else { begins.len() };
        let place =
            |nth: usize| begins.get(nth).copied().unwrap_or(if begins.is_empty() { nth } else { text.len() });
        let mut any = false;
        for &(first, last) in &self.ranges {
            if first > length {
                break;
            }
            if any {
                out.text(&self.output);
            }
            any = true;
            out.carry(chunk, start + place(first - 1)..start + place(last.min(length)))?;
        }
        out.text("\n");
        Ok(())
    }
}

impl Digest for Cut {
    const NAME: &'static str = "cut";

    fn take(&mut self, ctx: &Context<'_>, chunk: &Chunk<'_>, out: &mut Out<'_>) -> Result<Flow, Halt> {
        for (number, line) in chunk.lines().enumerate() {
            if number % 4096 == 0 {
                ctx.check()?;
            }
            let text = chunk.line(line.clone());
            match self.unit {
                Unit::Fields => self.write_fields(chunk, line.start, text, out)?,
                Unit::Chars | Unit::Bytes => self.write_places(chunk, line.start, text, out)?,
            }
            out.flow()?;
        }
        Ok(Flow::More)
    }
}
