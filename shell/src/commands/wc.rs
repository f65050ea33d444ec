//! `wc`

use super::{Call, Command, Flow, Started};
use crate::args::{Arg, Args};
use crate::block::{self, Chunk};
use crate::context::{Context, DONE, Halt, Status};
use crate::inputs::{Digest, Inputs, PIPED};
use crate::out::Out;
use crate::paths;
use crate::tree::Kind;

pub(super) const COMMAND: Command = Command {
    name: "wc",
    usage: "wc [-lwmcL] [FILE…]",
    about: "count lines, words and bytes",
    details: "  -l  lines\n  -w  words\n  -m  characters\n  -c  bytes\n  -L  the length of the longest line\n",
    start,
};

/// The width of numbers if the sizes are not known beforehand.
const UNKNOWN_WIDTH: usize = 7;

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("wc", 1, call.args);
    let mut files = Vec::new();
    let mut chosen = Chosen::default();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('l') | Arg::Long("lines") => chosen.lines = true,
            Arg::Short('w') | Arg::Long("words") => chosen.words = true,
            Arg::Short('m') | Arg::Long("chars") => chosen.chars = true,
            Arg::Short('c') | Arg::Long("bytes") => chosen.bytes = true,
            Arg::Short('L') | Arg::Long("max-line-length") => chosen.longest = true,
            Arg::Operand(file) => files.push(file),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    if chosen == Chosen::default() {
        chosen = Chosen { lines: true, words: true, bytes: true, ..chosen };
    }
    let width = width(call, &files, chosen);
    let named = !files.is_empty();
    let totals = files.len() > 1;
    let wc = Wc { chosen, width, named, totals, current: Counts::default(), total: Counts::default() };
    Inputs::start(files, call.piped, wc)
}

/// The width of the sum of the sizes, as in GNU: wide enough for every count and for the total.
fn width(call: &Call<'_>, files: &[&str], chosen: Chosen) -> usize {
    if files.len() <= 1 && chosen.count() == 1 {
        return 1;
    }
    let tree = call.ctx.tree;
    let mut sum: u64 = 0;
    let mut least = if files.is_empty() { UNKNOWN_WIDTH } else { 1 };
    for file in files {
        match paths::resolve(tree, call.ctx.cwd(), file) {
            _ if *file == PIPED => least = UNKNOWN_WIDTH,
            Ok(node) if tree.kind(node) == Kind::File => sum = sum.saturating_add(tree.size(node)),
            Ok(_) => least = UNKNOWN_WIDTH,
            Err(_) => {}
        }
    }
    least.max(sum.to_string().len())
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Chosen {
    lines: bool,
    words: bool,
    chars: bool,
    bytes: bool,
    longest: bool,
}

impl Chosen {
    fn count(self) -> usize {
        [self.lines, self.words, self.chars, self.bytes, self.longest]
            .into_iter()
            .filter(|chosen| *chosen)
            .count()
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    lines: u64,
    words: u64,
    chars: u64,
    bytes: u64,
    longest: u64,
}

struct Wc {
    chosen: Chosen,
    width: usize,
    named: bool,
    totals: bool,
    current: Counts,
    total: Counts,
}

impl Wc {
    fn write(&self, counts: Counts, name: Option<&str>, out: &mut Out<'_>) -> Result<(), Halt> {
        let chosen = self.chosen;
        let columns = [
            (chosen.lines, counts.lines),
            (chosen.words, counts.words),
            (chosen.chars, counts.chars),
            (chosen.bytes, counts.bytes),
            (chosen.longest, counts.longest),
        ];
        let numbers: Vec<String> = columns
            .into_iter()
            .filter(|(shown, _)| *shown)
            .map(|(_, count)| format!("{count:>width$}", width = self.width))
            .collect();
        out.text(numbers.join(" "));
        if let Some(name) = name {
            out.text(" ");
            out.text(name);
        }
        out.text("\n");
        out.flow()
    }
}

impl Digest for Wc {
    const NAME: &'static str = "wc";

    fn open(&mut self, _: &str, _: &mut Out<'_>) -> Result<(), Halt> {
        self.current = Counts::default();
        Ok(())
    }

    fn take(&mut self, _: &Context<'_>, chunk: &Chunk<'_>, _: &mut Out<'_>) -> Result<Flow, Halt> {
        let text = chunk.bytes;
        let counts = &mut self.current;
        counts.bytes += text.len() as u64;
        counts.lines += block::newlines(text);
        if self.chosen.words {
            // No word continues in the next chunk, since chunks end at line terminators.
            let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0B;
            counts.words += text.split(is_space).filter(|word| !word.is_empty()).count() as u64;
        }
        if self.chosen.chars {
            counts.chars += text.iter().filter(|byte| (**byte & 0xC0) != 0x80).count() as u64;
        }
        if self.chosen.longest {
            let widths =
                chunk.lines().map(|line| String::from_utf8_lossy(chunk.line(line)).chars().count() as u64);
            counts.longest = counts.longest.max(widths.max().unwrap_or_default());
        }
        Ok(Flow::More)
    }

    fn close(&mut self, name: &str, out: &mut Out<'_>) -> Result<(), Halt> {
        let counts = self.current;
        self.total.lines += counts.lines;
        self.total.words += counts.words;
        self.total.chars += counts.chars;
        self.total.bytes += counts.bytes;
        self.total.longest = self.total.longest.max(counts.longest);
        self.write(counts, self.named.then_some(name), out)
    }

    fn end(&mut self, _: &Context<'_>, out: &mut Out<'_>) -> Result<Status, Halt> {
        if self.totals {
            self.write(self.total, Some("total"), out)?;
        }
        Ok(DONE)
    }
}
