//! `ls`

use super::{Call, Command, Program, Started};
use crate::args::{Arg, Args};
use crate::context::{Context, DONE, HELD_BYTES, Halt, Status, Stop};
use crate::out::Out;
use crate::tree::{Kind, Node, Tree};
use crate::{dates, paths};

pub(super) const COMMAND: Command = Command {
    name: "ls",
    usage: "ls [-laARtSrd1hFp] [PATH…]",
    about: "what is in folders",
    details: "  -l  with kind, size and time\n  -a  also names that begin with a dot, `.` and `..`\n  -A  as -a without those two\n  \
              -R  folders in folders, too\n  -t  newest first\n  -S  largest first\n  -r  the other way round\n  \
              -d  folders themselves, not what is in them\n  -1  one name a line (always so)\n  -h  sizes in K, M, G\n  \
              -F, -p  a slash after folders\n",
    start,
};

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("ls", 2, call.args);
    let mut ls = Ls::default();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('l' | 'o' | 'g' | 'n') | Arg::Long("full-time" | "numeric-uid-gid") => ls.long = true,
            Arg::Short('a') | Arg::Long("all") => (ls.hidden, ls.dots) = (true, true),
            Arg::Short('A') | Arg::Long("almost-all") => (ls.hidden, ls.dots) = (true, false),
            Arg::Short('R') | Arg::Long("recursive") => ls.recursive = true,
            Arg::Short('t') => ls.by = By::Time,
            Arg::Short('S') => ls.by = By::Size,
            Arg::Short('r') | Arg::Long("reverse") => ls.reverse = true,
            Arg::Short('d') | Arg::Long("directory") => ls.themselves = true,
            Arg::Short('h') | Arg::Long("human-readable") => ls.human = true,
            Arg::Short('F' | 'p') | Arg::Long("classify") => {
                args.glued();
                ls.slashes = true;
            }
            Arg::Long("group-directories-first") => ls.folders_first = true,
            Arg::Long("color") => {
                args.glued();
            }
            Arg::Short('1' | 'C' | 'x' | 'm' | 'q' | 'N' | 'G' | 'k' | 's' | 'U' | 'v' | 'L' | 'H')
            | Arg::Long("no-group") => {}
            Arg::Operand(path) => ls.operands.push(path.to_owned()),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    if ls.operands.is_empty() {
        ls.operands.push(".".to_owned());
    }
    Ok(Box::new(ls))
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum By {
    #[default]
    Name,
    Time,
    Size,
}

#[derive(Default)]
struct Ls {
    operands: Vec<String>,
    long: bool,
    hidden: bool,
    dots: bool,
    recursive: bool,
    by: By,
    reverse: bool,
    themselves: bool,
    human: bool,
    slashes: bool,
    folders_first: bool,
}

/// A node and its path as spelled.
struct Entry {
    node: Node,
    name: String,
}

impl Program for Ls {
    fn end(&mut self, ctx: &Context<'_>, out: &mut Out<'_>) -> Result<Status, Halt> {
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        let mut status = DONE;
        for path in &self.operands {
            match paths::resolve(ctx.tree, ctx.cwd(), path) {
                Ok(node) => {
                    ctx.visit(node)?;
                    let listed_itself = self.themselves || ctx.tree.kind(node) == Kind::File;
                    let place = if listed_itself { &mut files } else { &mut folders };
                    place.push(Entry { node, name: path.clone() });
                }
                Err(missing) => {
                    status = 2;
                    out.complain(&format!("ls: cannot access '{path}': {}", missing.text()))?;
                }
            }
        }
        self.sort(ctx.tree, &mut files);
        self.sort(ctx.tree, &mut folders);
        self.write(ctx, &files, out)?;
        let titled = self.recursive || self.operands.len() > 1;
        let mut any = !files.is_empty();
        folders.reverse();
        // The total length of the paths of pending folders.
        let mut held: usize = 0;
        while let Some(folder) = folders.pop() {
            held = held.saturating_sub(folder.name.len());
            if titled {
                let gap = if any { "\n" } else { "" };
                out.text(format!("{gap}{}:\n", folder.name));
            }
            any = true;
            let inside = self.inside(ctx, folder.node)?;
            if self.long {
                let blocks: u64 = inside.iter().map(|entry| ctx.tree.size(entry.node).div_ceil(1024)).sum();
                let blocks = if self.human { in_units(blocks * 1024) } else { blocks.to_string() };
                out.text(format!("total {blocks}\n"));
            }
            self.write(ctx, &inside, out)?;
            if self.recursive {
                let is_inner = |entry: &Entry| {
                    ctx.tree.kind(entry.node) == Kind::Folder && entry.name != "." && entry.name != ".."
                };
                let inner = inside.into_iter().filter(is_inner).rev();
                let inner =
                    inner.map(|entry| Entry { name: paths::joined(&folder.name, &entry.name), ..entry });
                for entry in inner {
                    held += entry.name.len();
                    folders.push(entry);
                    if held > HELD_BYTES {
                        return Err(Halt::Stop(Stop::Memory));
                    }
                }
            }
        }
        Ok(status)
    }
}

impl Ls {
    fn inside(&self, ctx: &Context<'_>, folder: Node) -> Result<Vec<Entry>, Halt> {
        let tree = ctx.tree;
        let mut entries = Vec::new();
        if self.dots {
            entries.push(Entry { node: folder, name: ".".to_owned() });
            entries.push(Entry { node: tree.parent(folder).unwrap_or(folder), name: "..".to_owned() });
        }
        for &node in tree.children(folder) {
            ctx.visit(node)?;
            let name = tree.name(node);
            if self.hidden || !name.starts_with('.') {
                entries.push(Entry { node, name: name.to_owned() });
            }
        }
        self.sort(tree, &mut entries);
        Ok(entries)
    }

    fn sort(&self, tree: &dyn Tree, entries: &mut [Entry]) {
        entries.sort_by(|left, right| {
            let by = match self.by {
                By::Name => std::cmp::Ordering::Equal,
                By::Time => tree.modified(right.node).cmp(&tree.modified(left.node)),
                By::Size => tree.size(right.node).cmp(&tree.size(left.node)),
            };
            let by = by.then_with(|| left.name.as_bytes().cmp(right.name.as_bytes()));
            if self.reverse { by.reverse() } else { by }
        });
        if self.folders_first {
            entries.sort_by_key(|entry| tree.kind(entry.node) != Kind::Folder);
        }
    }

    fn write(&self, ctx: &Context<'_>, entries: &[Entry], out: &mut Out<'_>) -> Result<(), Halt> {
        let tree = ctx.tree;
        let sizes: Vec<String> = if self.long {
            let size = |entry: &Entry| tree.size(entry.node);
            entries
                .iter()
                .map(|entry| if self.human { in_units(size(entry)) } else { size(entry).to_string() })
                .collect()
        } else {
            Vec::new()
        };
        let width = sizes.iter().map(String::len).max().unwrap_or_default();
        for (at, entry) in entries.iter().enumerate() {
            let is_folder = tree.kind(entry.node) == Kind::Folder;
            if let Some(size) = sizes.get(at) {
                let mode = if is_folder { "dr-xr-xr-x" } else { "-r--r--r--" };
                let date = dates::listed(tree.modified(entry.node), ctx.now);
                out.text(format!("{mode} 1 cairn cairn {size:>width$} {date} "));
            }
            out.text(&entry.name);
            out.text(if self.slashes && is_folder { "/\n" } else { "\n" });
            out.flow()?;
        }
        Ok(())
    }
}

/// A size in the format of `ls -h`, rounded up.
fn in_units(bytes: u64) -> String {
    let units = ["", "K", "M", "G", "T"];
    let (mut unit, mut factor) = (0, 1_u64);
    while unit + 1 < units.len() && bytes.div_ceil(factor) >= 1024 {
        (unit, factor) = (unit + 1, factor * 1024);
    }
    let name = units.get(unit).copied().unwrap_or_default();
    let tenths = (u128::from(bytes) * 10).div_ceil(u128::from(factor));
    if unit > 0 && tenths < 100 {
        return format!("{}.{}{name}", tenths / 10, tenths % 10);
    }
    format!("{}{name}", bytes.div_ceil(factor))
}
