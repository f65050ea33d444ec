//! `uniq`

use std::ops::Range;

use super::{Call, Command, Complaint, Flow, Started};
use crate::args::{Arg, Args};
use crate::block::{Block, Chunk};
use crate::context::{Context, DONE, Halt, Status};
use crate::inputs::{Digest, Inputs, Trouble};
use crate::out::Out;

pub(super) const COMMAND: Command = Command {
    name: "uniq",
    usage: "uniq [-cdui] [-f N] [-s N] [-w N] [FILE]",
    about: "one line in place of several equal ones in a row",
    details: "  -c    how many there were\n  -d    only lines that came several times\n  -u    only lines that came once\n  \
              -i    small and capital letters are the same\n  -f N  the first N fields do not count\n  \
              -s N  the first N characters do not count\n  -w N  only N characters count\n",
    start,
};

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("uniq", 1, call.args);
    let mut files = Vec::new();
    let mut uniq = Uniq::default();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('c') | Arg::Long("count") => uniq.counts = true,
            Arg::Short('d') | Arg::Long("repeated") => uniq.repeated = true,
            Arg::Short('u') | Arg::Long("unique") => uniq.single = true,
            Arg::Short('i') | Arg::Long("ignore-case") => uniq.folds = true,
            Arg::Short('f') | Arg::Long("skip-fields") => {
                uniq.fields = count(&mut args, "number of fields to skip")?
            }
            Arg::Short('s') | Arg::Long("skip-chars") => {
                uniq.bytes = count(&mut args, "number of bytes to skip")?
            }
            Arg::Short('w') | Arg::Long("check-chars") => {
                uniq.width = Some(count(&mut args, "number of bytes to compare")?);
            }
            Arg::Operand(file) => files.push(file),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    if files.len() > 1 {
        return Err(Complaint::new(
            1,
            "uniq: a second file would be written, and this tree is read-only: name one file, or pipe in several with `cat`",
        ));
    }
    Inputs::start(files, call.piped, uniq)
}

fn count(args: &mut Args<'_>, what: &str) -> Result<usize, Complaint> {
    Ok(usize::try_from(args.number(what)?).unwrap_or(usize::MAX))
}

#[derive(Default)]
struct Uniq {
    counts: bool,
    repeated: bool,
    single: bool,
    folds: bool,
    fields: usize,
    bytes: usize,
    width: Option<usize>,
    /// The first line of the current group.
    line: Block,
    /// The compared range of it: located once, however many lines follow.
    key: Range<usize>,
    count: u64,
}

impl Uniq {
    /// The compared range of a line.
    fn key_of(&self, line: &[u8]) -> Range<usize> {
        let mut rest = line;
        for _ in 0..self.fields {
            if rest.is_empty() {
                break;
            }
            let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            let text = rest.iter().skip(blanks).take_while(|byte| !matches!(byte, b' ' | b'\t')).count();
            rest = rest.get(blanks + text..).unwrap_or_default();
        }
        let start = line.len() - rest.len() + self.bytes.min(rest.len());
        let end = self.width.map_or(line.len(), |width| start.saturating_add(width).min(line.len()));
        start..end
    }

    /// Whether a line equals that of the current group.
    fn same(&self, line: &[u8], key: &Range<usize>) -> bool {
        let held = self.line.bytes.get(self.key.clone()).unwrap_or_default();
        let other = line.get(key.clone()).unwrap_or_default();
        if self.folds { held.eq_ignore_ascii_case(other) } else { held == other }
    }

    fn write(&mut self, out: &mut Out<'_>) -> Result<(), Halt> {
        let shown = match self.count {
            0 => return Ok(()),
            1 => !self.repeated,
            _ => !self.single,
        };
        if shown {
            if self.counts {
                out.text(format!("{:>7} ", self.count));
            }
            out.carry(&self.line.as_chunk(), 0..self.line.len())?;
            out.text("\n");
        }
        out.flow()
    }
}

impl Digest for Uniq {
    const NAME: &'static str = "uniq";

    fn take(&mut self, _: &Context<'_>, chunk: &Chunk<'_>, out: &mut Out<'_>) -> Result<Flow, Halt> {
        for line in chunk.lines() {
            let text = chunk.line(line.clone());
            let key = self.key_of(text);
            if self.count > 0 && self.same(text, &key) {
                self.count += 1;
                continue;
            }
            self.write(out)?;
            self.count = 1;
            self.key = key;
            self.line.clear();
            self.line.carry(chunk, line.start..line.start + text.len());
        }
        Ok(Flow::More)
    }

    fn end(&mut self, _: &Context<'_>, out: &mut Out<'_>) -> Result<Status, Halt> {
        self.write(out)?;
        Ok(DONE)
    }

    fn trouble(&self, name: &str, trouble: Trouble) -> String {
        match trouble {
            Trouble::IsFolder => format!("uniq: error reading '{name}'"),
            Trouble::Missing(_) | Trouble::Unreadable(_) => format!("uniq: {name}: {}", trouble.text()),
        }
    }
}
