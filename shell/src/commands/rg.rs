//! `rg`

use super::grep::{Dialect, Grep, Names, Options, Show};
use super::{Call, Command, Complaint, Started, writer};
use crate::args::{Arg, Args};
use crate::context::DONE;
use crate::inputs::PIPED;
use crate::paths;
use crate::tree::Kind;
use crate::walk::Walk;

pub(super) const COMMAND: Command = Command {
    name: "rg",
    usage: "rg [-inlvcowxFqHI] [-m N] [-A N] [-B N] [-C N] [-g GLOB] [-t KIND] [-e PATTERN] PATTERN [PATH…]",
    about: "lines that match a pattern, in whole folders",
    details: "Options as of grep, and:\n  -g GLOB  only these files, with ! in front: not these    -t KIND  md, txt, json, yaml, csv, html\n  \
              -S       any case, unless the pattern has capitals       -u, --hidden  also names that begin with a dot\n  \
              -I       no file names                                   --files  only list the files\n  \
              -N       no line numbers                                 -r  nothing: folders are searched anyway\n\
              Without a path it searches the folder that it is in, or what is piped to it.\n",
    start,
};

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("rg", 2, call.args);
    let mut options = Options { recursive: true, ..Options::new(Dialect::Rg) };
    let (mut patterns, mut operands, mut digits) = (Vec::new(), Vec::new(), None);
    let (mut smart, mut lists) = (false, false);
    while let Some(arg) = args.next()? {
        if options.common(arg, &mut args, &mut patterns, &mut digits)? {
            continue;
        }
        match arg {
            Arg::Short('S') | Arg::Long("smart-case") => smart = true,
            Arg::Short('s') => options.syntax.ignore_case = false,
            Arg::Short('I') | Arg::Long("no-filename") => options.names = Names::Never,
            Arg::Short('N') | Arg::Long("no-line-number") => options.numbers = false,
            Arg::Long("files-without-match") => options.show(Show::Files { matching: false }),
            Arg::Long("no-messages") => options.silent = true,
            Arg::Short('u' | '.') | Arg::Long("hidden" | "unrestricted") => options.hidden = true,
            Arg::Short('g') | Arg::Long("glob") => {
                choose(&mut options, args.value()?).map_err(|why| args.complain(&why))?
            }
            Arg::Short('t') | Arg::Long("type") => {
                for glob in kind(&mut args)? {
                    options.chosen.include(glob).map_err(|why| args.complain(&why))?;
                }
            }
            Arg::Short('T') | Arg::Long("type-not") => {
                for glob in kind(&mut args)? {
                    options.chosen.exclude(glob).map_err(|why| args.complain(&why))?;
                }
            }
            Arg::Long("files") => lists = true,
            Arg::Short('P') | Arg::Long("pcre2") => options.perl = true,
            // Accepted without effect: folders are always searched, files are in order, nothing is ignored, coloured or
            // grouped.
            Arg::Short('r' | 'R' | 'E' | 'p')
            | Arg::Long("no-heading" | "no-ignore" | "no-config" | "recursive") => {}
            Arg::Long("sort" | "sortr" | "max-columns") => {
                args.value()?;
            }
            Arg::Short('h') => return super::help::about(&COMMAND),
            Arg::Operand(operand) => operands.push(operand.to_owned()),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    if lists {
        return list(options, operands);
    }
    if patterns.is_empty() {
        if operands.is_empty() {
            return Err(args.complain("a pattern is missing: rg PATTERN [PATH…]"));
        }
        patterns.push(operands.remove(0));
    }
    if smart {
        options.syntax.ignore_case = !patterns.iter().any(|pattern| pattern.chars().any(char::is_uppercase));
    }
    if operands.is_empty() && call.piped {
        operands.push(PIPED.to_owned());
    }
    Grep::start(call, options, &patterns, operands)
}

fn choose(options: &mut Options, glob: &str) -> Result<(), String> {
    match glob.strip_prefix('!') {
        Some(glob) => {
            options.chosen.exclude(glob)?;
            options.chosen.exclude_folder(glob.trim_end_matches("/**").trim_end_matches("/*"))
        }
        None => options.chosen.include(glob),
    }
}

fn kind(args: &mut Args<'_>) -> Result<&'static [&'static str], Complaint> {
    let name = args.value()?;
    Ok(match name {
        "md" | "markdown" => &["*.md", "*.markdown", "*.mdx", "*.mkd"],
        "txt" | "text" => &["*.txt"],
        "json" => &["*.json"],
        "yaml" | "yml" => &["*.yaml", "*.yml"],
        "csv" => &["*.csv"],
        "html" => &["*.html", "*.htm"],
        _ => return Err(args.complain(&format!("unrecognized file type: {name}: use -g '*.EXTENSION'"))),
    })
}

/// `rg --files`
fn list(options: Options, operands: Vec<String>) -> Started {
    let operands = if operands.is_empty() { vec![String::new()] } else { operands };
    writer(move |ctx, out| {
        let mut status = 1;
        for operand in &operands {
            let path = if operand.is_empty() { "." } else { operand };
            let root = match paths::resolve(ctx.tree, ctx.cwd(), path) {
                Ok(root) => root,
                Err(missing) => {
                    status = 2;
                    out.complain(&format!("rg: {operand}: {}", missing.text()))?;
                    continue;
                }
            };
            let mut walk = Walk::below(ctx, root, operand);
            while let Some(step) = walk.next()? {
                let seen = options.hidden || !step.name.starts_with('.');
                if step.kind == Kind::Folder {
                    if seen && options.chosen.takes_folder(walk.folder(), step.name, &ctx.meter)? {
                        walk.enter(step.node, step.name);
                    }
                } else if seen && options.chosen.takes_file(walk.folder(), step.name, &ctx.meter)? {
                    if status == 1 {
                        status = DONE;
                    }
                    out.text(format!("{}{}\n", walk.folder(), step.name));
                    out.flow()?;
                }
            }
        }
        Ok(status)
    })
}
