//! `tree`

use super::{Call, Command, Complaint, Program, Started};
use crate::args::{Arg, Args};
use crate::context::{Context, DONE, Halt, Status};
use crate::glob::Glob;
use crate::out::Out;
use crate::paths;
use crate::tree::{Kind, Node};

pub(super) const COMMAND: Command = Command {
    name: "tree",
    usage: "tree [-L DEPTH] [-dafi] [-I GLOB] [-P GLOB] [FOLDER…]",
    about: "folders and what is in them, drawn",
    details: "  -L DEPTH  no deeper than this\n  -d        only folders\n  -a        also names that begin with a dot\n  \
              -f        whole paths\n  -i        no lines drawn\n  -I GLOB   without these\n  -P GLOB   only these files\n  \
              --dirsfirst, --noreport\n",
    start,
};

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("tree", 1, call.args);
    let mut tree = Drawing { reports: true, depth: usize::MAX, ..Drawing::default() };
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('L') => {
                let text = args.value()?;
                tree.depth = text
                    .parse()
                    .ok()
                    .filter(|depth| *depth > 0)
                    .ok_or_else(|| Complaint::new(1, "tree: Invalid level, must be greater than 0."))?;
            }
            Arg::Short('d') => tree.only_folders = true,
            Arg::Short('a') => tree.hidden = true,
            Arg::Short('f') => tree.whole_paths = true,
            Arg::Short('i') => tree.plain = true,
            Arg::Short('I') => tree.without.extend(globs(&mut args)?),
            Arg::Short('P') => tree.only.extend(globs(&mut args)?),
            Arg::Long("dirsfirst") => tree.folders_first = true,
            Arg::Long("noreport") => tree.reports = false,
            Arg::Short('n' | 'C' | 'N' | 'F' | 'A' | 'S' | 'v') | Arg::Long("charset") => {
                args.glued();
            }
            Arg::Operand(path) => tree.operands.push(path.to_owned()),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    if tree.operands.is_empty() {
        tree.operands.push(".".to_owned());
    }
    Ok(Box::new(tree))
}

fn globs(args: &mut Args<'_>) -> Result<Vec<Glob>, Complaint> {
    let globs = args.value()?.split('|').map(|glob| Glob::new(glob, false)).collect::<Result<_, _>>();
    globs.map_err(|why| args.complain(&why))
}

fn any(globs: &[Glob], name: &str, ctx: &Context<'_>) -> Result<bool, Halt> {
    for glob in globs {
        if glob.matches(name, &ctx.meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[derive(Default)]
struct Drawing {
    operands: Vec<String>,
    depth: usize,
    only_folders: bool,
    hidden: bool,
    whole_paths: bool,
    plain: bool,
    reports: bool,
    folders_first: bool,
    without: Vec<Glob>,
    only: Vec<Glob>,
    folders: u64,
    files: u64,
}

struct Open {
    children: std::vec::IntoIter<Node>,
    /// The length of the folder's path, and of the prefix of its children's lines.
    path: usize,
    margin: usize,
}

impl Program for Drawing {
    fn end(&mut self, ctx: &Context<'_>, out: &mut Out<'_>) -> Result<Status, Halt> {
        let mut status = DONE;
        for path in std::mem::take(&mut self.operands) {
            match paths::resolve(ctx.tree, ctx.cwd(), &path) {
                Ok(node) if ctx.tree.kind(node) == Kind::Folder => {
                    out.text(format!("{path}\n"));
                    self.folders += 1;
                    self.draw(ctx, node, path, out)?;
                }
                Ok(_) | Err(_) => {
                    status = 2;
                    out.text(format!("{path}  [error opening dir]\n"));
                }
            }
        }
        if self.reports {
            let folders = if self.folders == 1 { "directory" } else { "directories" };
            let files = if self.files == 1 { "file" } else { "files" };
            out.text(format!("\n{} {folders}", self.folders));
            out.text(if self.only_folders { "\n".to_owned() } else { format!(", {} {files}\n", self.files) });
        }
        Ok(status)
    }
}

impl Drawing {
    fn draw(
        &mut self,
        ctx: &Context<'_>,
        root: Node,
        mut path: String,
        out: &mut Out<'_>,
    ) -> Result<(), Halt> {
        let mut margin = String::new();
        let mut open = vec![Open { children: self.inside(ctx, root)?, path: path.len(), margin: 0 }];
        while let Some(folder) = open.last_mut() {
            path.truncate(folder.path);
            margin.truncate(folder.margin);
            let Some(node) = folder.children.next() else {
                open.pop();
                continue;
            };
            let last = folder.children.len() == 0;
            let name = ctx.tree.name(node);
            if self.whole_paths {
                path = paths::joined(&path, name);
            }
            if !self.plain {
                out.text(&margin);
                out.text(if last { "└── " } else { "├── " });
            }
            out.text(if self.whole_paths { &path } else { name });
            out.text("\n");
            out.flow()?;
            if ctx.tree.kind(node) == Kind::File {
                self.files += 1;
                continue;
            }
            self.folders += 1;
            if open.len() < self.depth {
                margin.push_str(if last { "    " } else { "│   " });
                open.push(Open { children: self.inside(ctx, node)?, path: path.len(), margin: margin.len() });
            }
        }
        Ok(())
    }

    fn inside(&self, ctx: &Context<'_>, folder: Node) -> Result<std::vec::IntoIter<Node>, Halt> {
        let tree = ctx.tree;
        let mut shown = Vec::new();
        for &node in tree.children(folder) {
            ctx.visit(node)?;
            let name = tree.name(node);
            let is_file = tree.kind(node) == Kind::File;
            let left_out = (!self.hidden && name.starts_with('.'))
                || (self.only_folders && is_file)
                || any(&self.without, name, ctx)?
                || (is_file && !self.only.is_empty() && !any(&self.only, name, ctx)?);
            if !left_out {
                shown.push(node);
            }
        }
        if self.folders_first {
            shown.sort_by_key(|node| tree.kind(*node) == Kind::File);
        }
        Ok(shown.into_iter())
    }
}
