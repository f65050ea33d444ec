//! `sort`, by bytes, as with `LC_ALL=C`.

mod keys;
mod merge;

use std::cmp::Ordering;
use std::ops::Range;

use keys::{Key, Order, compare_by};

use super::{Call, Command, Flow, Started};
use crate::args::{Arg, Args};
use crate::block::{Block, Chunk};
use crate::context::{Context, DONE, HELD_BYTES, Halt, Status, Stop};
use crate::inputs::{Digest, Inputs, Trouble};
use crate::meter::Meter;
use crate::out::Out;

pub(super) const COMMAND: Command = Command {
    name: "sort",
    usage: "sort [-rnufsbdhV] [-k FROM[,TO]] [-t CHAR] [FILE…]",
    about: "put lines in order",
    details: "  -r  the other way round\n  -n  by number\n  -h  by number with a unit (2K, 1G)\n  -V  by version\n  \
              -u  one of each\n  -f  small and capital letters are the same\n  -b  leading blanks do not count\n  \
              -d  only letters, digits and blanks count\n  \
              -k  by a field, as in -k2, -k2,2, -k2nr (at most 16)\n  -t  what separates fields\n  -s  keep the order of equals\n  \
              -c  only tell whether lines are in order\n",
    start,
};

/// More keys than anybody sorts by; each is located in both lines of a comparison.
const MAX_KEYS: usize = 16;

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("sort", 2, call.args);
    let mut files = Vec::new();
    let mut sort = Sort { lines: Vec::new(), held: Block::default(), how: How::default() };
    while let Some(arg) = args.next()? {
        let how = &mut sort.how;
        match arg {
            Arg::Short('u') | Arg::Long("unique") => how.unique = true,
            Arg::Short('s') | Arg::Long("stable") => how.stable = true,
            Arg::Short('c' | 'C') | Arg::Long("check") => {
                args.glued();
                how.check = true;
            }
            Arg::Short('k') | Arg::Long("key") => {
                let text = args.value()?;
                how.keys.push(Key::parse(text).ok_or_else(|| args.invalid("key", text))?);
                if how.keys.len() > MAX_KEYS {
                    return Err(args.complain(&format!(
                        "more than {MAX_KEYS} keys (-k): sort by the first {MAX_KEYS}, or leave out keys that rarely differ"
                    )));
                }
            }
            Arg::Short('t') | Arg::Long("field-separator") => {
                let text = args.value()?;
                how.separator = match text.as_bytes() {
                    [byte] => Some(*byte),
                    b"\\t" => Some(b'\t'),
                    _ => return Err(args.complain(&format!("multi-character tab '{text}'"))),
                };
            }
            Arg::Short('o') | Arg::Long("output") => {
                return Err(args.complain("writing a file (-o) is not supported, this tree is read-only"));
            }
            Arg::Short(letter) if how.order.set(letter) => {}
            Arg::Long(name) if how.order.set_long(name) => {}
            Arg::Operand(file) => files.push(file),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    sort.how.inherit();
    Inputs::start(files, call.piped, sort)
}

#[derive(Default)]
struct How {
    order: Order,
    keys: Vec<Key>,
    separator: Option<u8>,
    unique: bool,
    stable: bool,
    check: bool,
}

impl How {
    /// A key without ordering options inherits those of the command.
    fn inherit(&mut self) {
        for key in &mut self.keys {
            key.inherit(self.order);
        }
    }

    /// The range of the first key, which is located only once per line.
    fn first_key(&self, line: &[u8]) -> Range<usize> {
        match self.keys.first() {
            Some(key) => key.range(line, self.separator),
            None => keys::whole(self.order, line),
        }
    }

    /// Compares by the keys alone. Each further one is charged for both lines, in which it has to be located.
    fn compare_keys(&self, meter: &Meter<'_>, left: Row<'_>, right: Row<'_>) -> Result<Ordering, Halt> {
        meter.charge_bytes(left.key.len() + right.key.len())?;
        let order = self.keys.first().map_or(self.order, |key| key.order);
        let ordering = compare_by(order, left.key, right.key);
        if ordering.is_ne() {
            return Ok(ordering);
        }
        for key in self.keys.iter().skip(1) {
            meter.charge_bytes(left.text.len() + right.text.len())?;
            let (left, right) = (key.of(left.text, self.separator), key.of(right.text, self.separator));
            let ordering = compare_by(key.order, left, right);
            if ordering.is_ne() {
                return Ok(ordering);
            }
        }
        Ok(Ordering::Equal)
    }

    fn compare(&self, meter: &Meter<'_>, left: Row<'_>, right: Row<'_>) -> Result<Ordering, Halt> {
        let ordering = self.compare_keys(meter, left, right)?;
        if ordering.is_ne() || self.unique || self.stable {
            return Ok(ordering);
        }
        meter.charge_bytes(left.text.len().min(right.text.len()))?;
        let ordering = left.text.cmp(right.text);
        Ok(if self.order.reverse { ordering.reverse() } else { ordering })
    }
}

/// A line in a comparison.
#[derive(Debug, Clone, Copy)]
struct Row<'a> {
    text: &'a [u8],
    key: &'a [u8],
}

/// The range of a line without its terminator, and of its first key. `u32` suffices for the memory limit.
#[derive(Debug, Clone, Copy)]
struct Line {
    start: u32,
    end: u32,
    key_start: u32,
    key_end: u32,
}

impl Line {
    fn new(text: Range<usize>, key: Range<usize>) -> Self {
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let (start, end) = (place(text.start), place(text.end));
        Self { start, end, key_start: place(text.start + key.start), key_end: place(text.start + key.end) }
    }

    fn text(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    fn row(self, held: &[u8]) -> Row<'_> {
        let key = self.key_start as usize..self.key_end as usize;
        Row { text: held.get(self.text()).unwrap_or_default(), key: held.get(key).unwrap_or_default() }
    }
}

struct Sort {
    held: Block,
    lines: Vec<Line>,
    how: How,
}

impl Sort {
    fn in_order(&mut self, meter: &Meter<'_>) -> Result<Vec<Line>, Halt> {
        let mut lines = std::mem::take(&mut self.lines);
        let held = &self.held.bytes;
        merge::sort(&mut lines, |left, right| self.how.compare(meter, left.row(held), right.row(held)))?;
        Ok(lines)
    }

    fn disorder(&self, meter: &Meter<'_>, out: &mut Out<'_>) -> Result<Status, Halt> {
        let held = &self.held.bytes;
        for (number, pair) in self.lines.windows(2).enumerate() {
            let [left, right] = pair else { continue };
            let ordering = self.how.compare(meter, left.row(held), right.row(held))?;
            if ordering == Ordering::Greater || (self.how.unique && ordering == Ordering::Equal) {
                let text = String::from_utf8_lossy(right.row(held).text);
                out.complain(&format!("sort: -:{}: disorder: {text}", number + 2))?;
                return Ok(1);
            }
        }
        Ok(DONE)
    }
}

impl Digest for Sort {
    const NAME: &'static str = "sort";
    const FAILURE: Status = 2;
    const ALL_OR_NOTHING: bool = true;

    fn take(&mut self, _: &Context<'_>, chunk: &Chunk<'_>, _: &mut Out<'_>) -> Result<Flow, Halt> {
        let lines = self.lines.len() * size_of::<Line>();
        if self.held.len() + lines + chunk.bytes.len() > HELD_BYTES {
            return Err(Halt::Stop(Stop::Memory));
        }
        let base = self.held.len();
        self.held.carry(chunk, 0..chunk.bytes.len());
        self.lines.extend(chunk.lines().map(|line| {
            let text = chunk.line(line.clone());
            Line::new(base + line.start..base + line.start + text.len(), self.how.first_key(text))
        }));
        Ok(Flow::More)
    }

    fn end(&mut self, ctx: &Context<'_>, out: &mut Out<'_>) -> Result<Status, Halt> {
        if self.how.check {
            return self.disorder(&ctx.meter, out);
        }
        let lines = self.in_order(&ctx.meter)?;
        let chunk = self.held.as_chunk();
        let mut previous: Option<Row<'_>> = None;
        for line in lines {
            let row = line.row(chunk.bytes);
            if let Some(previous) = previous.filter(|_| self.how.unique)
                && self.how.compare_keys(&ctx.meter, previous, row)?.is_eq()
            {
                continue;
            }
            previous = Some(row);
            out.carry(&chunk, line.text())?;
            out.text("\n");
            out.flow()?;
        }
        Ok(DONE)
    }

    fn trouble(&self, name: &str, trouble: Trouble) -> String {
        match trouble {
            Trouble::Missing(_) => format!("sort: cannot read: {name}: {}", trouble.text()),
            Trouble::IsFolder | Trouble::Unreadable(_) => {
                format!("sort: read failed: {name}: {}", trouble.text())
            }
        }
    }
}
