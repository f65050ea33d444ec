//! `stat`

use super::{Call, Command, Started, writer};
use crate::args::{Arg, Args};
use crate::context::{Context, DONE, Halt};
use crate::out::Out;
use crate::tree::{Kind, Node};
use crate::{dates, paths};

pub(super) const COMMAND: Command = Command {
    name: "stat",
    usage: "stat [-c FORMAT] PATH…",
    about: "what is known of a file or folder: id, link, citation label, freshness, guidance",
    details: "  -c FORMAT  only this: %n name, %s size, %y time, %Y time in seconds, %F kind\n",
    start,
};

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("stat", 1, call.args);
    let (mut names, mut format) = (Vec::new(), None);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('c') | Arg::Long("format") => format = Some(args.value()?.to_owned()),
            Arg::Short('L' | 't') | Arg::Long("dereference" | "terse") => {}
            Arg::Operand(name) => names.push(name.to_owned()),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    if names.is_empty() {
        return Err(args.complain("missing operand"));
    }
    writer(move |ctx, out| {
        let mut status = DONE;
        for name in &names {
            match paths::resolve(ctx.tree, ctx.cwd(), name) {
                Ok(node) => {
                    ctx.visit(node)?;
                    match &format {
                        Some(format) => write_formatted(ctx, node, name, format, out)?,
                        None => out.text(described(ctx, node)),
                    }
                    out.flow()?;
                }
                Err(missing) => {
                    status = 1;
                    out.complain(&format!("stat: cannot statx '{name}': {}", missing.text()))?;
                }
            }
        }
        Ok(status)
    })
}

fn kind(ctx: &Context<'_>, node: Node) -> &'static str {
    match ctx.tree.kind(node) {
        Kind::Folder => "directory",
        Kind::File if ctx.tree.size(node) == 0 => "regular empty file",
        Kind::File => "regular file",
    }
}

fn described(ctx: &Context<'_>, node: Node) -> String {
    let tree = ctx.tree;
    let mut facts = vec![("File", paths::absolute(tree, node)), ("Type", kind(ctx, node).to_owned())];
    match tree.kind(node) {
        Kind::File => facts.push(("Size", tree.size(node).to_string())),
        Kind::Folder => facts.push(("Entries", tree.children(node).len().to_string())),
    }
    facts.push(("Modify", dates::exact(tree.modified(node))));
    facts.extend(tree.details(node));
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (name, value) in facts {
        // Continuation lines of a value are indented below its first line.
        let value = value.replace('\n', &format!("\n{:width$}  ", ""));
        text.push_str(&format!("{name:>width$}: {value}\n"));
    }
    text
}

/// Writes the expansion of a format piece by piece: it may repeat a long path very often.
fn write_formatted(
    ctx: &Context<'_>,
    node: Node,
    name: &str,
    format: &str,
    out: &mut Out<'_>,
) -> Result<(), Halt> {
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.text(c.encode_utf8(&mut [0; 4]));
            continue;
        }
        match chars.next() {
            Some('n') => out.text(name),
            Some('N') => out.text(format!("'{name}'")),
            Some('s') => out.text(ctx.tree.size(node).to_string()),
            Some('y') => out.text(dates::exact(ctx.tree.modified(node))),
            Some('Y') => out.text(ctx.tree.modified(node).div_euclid(1_000_000).to_string()),
            Some('F') => out.text(kind(ctx, node)),
            Some('%') => out.text("%"),
            Some(_) | None => out.text("?"),
        }
        ctx.meter.charge_bytes(name.len())?;
        out.flow()?;
    }
    out.text("\n");
    Ok(())
}
