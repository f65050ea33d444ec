//! `sort`, by bytes, as with `LC_ALL=C`.

mod keys;

use std::cmp::Ordering;
use std::ops::Range;

use keys::{Key, Order, compare_by, compare_lines};

use super::{Call, Command, Flow, Started};
use crate::args::{Arg, Args};
use crate::block::{Block, Chunk};
use crate::context::{Context, DONE, HELD_BYTES, Halt, Status, Stop};
use crate::inputs::{Digest, Inputs, Trouble};
use crate::out::Out;

pub(super) const COMMAND: Command = Command {
    name: "sort",
    usage: "sort [-rnufsbdhV] [-k FROM[,TO]] [-t CHAR] [FILE…]",
    about: "put lines in order",
    details: "  -r  the other way round\n  -n  by number\n  -h  by number with a unit (2K, 1G)\n  -V  by version\n  \
              -u  one of each\n  -f  small and capital letters are the same\n  -b  leading blanks do not count\n  \
              -d  only letters, digits and blanks count\n  \
              -k  by a field, as in -k2, -k2,2, -k2nr\n  -t  what separates fields\n  -s  keep the order of equals\n  \
              -c  only tell whether lines are in order\n",
    start,
};

/// So many lines are compared between two looks at the clock, at least.
const COMPARED: usize = 1 << 16;

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
    /// A key without an order of its own has that of the command.
    fn inherit(&mut self) {
        for key in &mut self.keys {
            key.inherit(self.order);
        }
    }

    /// By the keys alone.
    fn compare_keys(&self, left: &[u8], right: &[u8]) -> Ordering {
        if self.keys.is_empty() {
            return compare_lines(self.order, left, right);
        }
        self.keys
            .iter()
            .map(|key| {
                let (left, right) = (key.of(left, self.separator), key.of(right, self.separator));
                compare_by(key.order, left, right)
            })
            .find(|ordering| ordering.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        let ordering = self.compare_keys(left, right);
        if ordering.is_ne() || self.unique || self.stable {
            return ordering;
        }
        let ordering = left.cmp(right);
        if self.order.reverse { ordering.reverse() } else { ordering }
    }
}

struct Sort {
    held: Block,
    /// Each line without its end.
    lines: Vec<Range<usize>>,
    how: How,
}

impl Sort {
    fn text(&self, line: &Range<usize>) -> &[u8] {
        self.held.bytes.get(line.clone()).unwrap_or_default()
    }

    /// Sorts in runs that are merged, so that the clock is looked at in between.
    fn in_order(&self, ctx: &Context<'_>) -> Result<Vec<Range<usize>>, Halt> {
        let mut lines = self.lines.clone();
        for run in lines.chunks_mut(COMPARED) {
            ctx.check()?;
            run.sort_by(|left, right| self.how.compare(self.text(left), self.text(right)));
        }
        // The runs are in order already, which the sort makes use of.
        ctx.check()?;
        lines.sort_by(|left, right| self.how.compare(self.text(left), self.text(right)));
        ctx.check()?;
        Ok(lines)
    }

    fn disorder(&self, out: &mut Out<'_>) -> Result<Status, Halt> {
        for (number, pair) in self.lines.windows(2).enumerate() {
            let [left, right] = pair else { continue };
            let ordering = self.how.compare(self.text(left), self.text(right));
            if ordering == Ordering::Greater || (self.how.unique && ordering == Ordering::Equal) {
                let text = String::from_utf8_lossy(self.text(right));
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
        let lines = self.lines.len() * size_of::<Range<usize>>();
        if self.held.len() + lines + chunk.bytes.len() > HELD_BYTES {
            return Err(Halt::Stop(Stop::Memory));
        }
        let base = self.held.len();
        self.held.carry(chunk, 0..chunk.bytes.len());
        self.lines.extend(chunk.lines().map(|line| {
            let text = chunk.line(line.clone());
            base + line.start..base + line.start + text.len()
        }));
        Ok(Flow::More)
    }

    fn end(&mut self, ctx: &Context<'_>, out: &mut Out<'_>) -> Result<Status, Halt> {
        if self.how.check {
            return self.disorder(out);
        }
        let lines = self.in_order(ctx)?;
        let chunk = self.held.as_chunk();
        let mut previous: Option<&[u8]> = None;
        for line in lines {
            let text = chunk.line(line.clone());
            if self.how.unique
                && previous.is_some_and(|previous| self.how.compare_keys(previous, text).is_eq())
            {
                continue;
            }
            previous = Some(text);
            out.carry(&chunk, line)?;
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
