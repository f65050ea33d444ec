//! `cd`

use super::{Call, Command, Complaint, Started, writer};
use crate::args::{Arg, Args};
use crate::context::DONE;
use crate::paths;
use crate::tree::Kind;

pub(super) const COMMAND: Command = Command {
    name: "cd",
    usage: "cd [FOLDER]",
    about: "see paths from another folder",
    details: "  cd        goes to /\n  cd -      goes back\nIt holds until the end of the script; in a pipe, for its own command only.\n",
    start,
};

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("cd", 1, call.args);
    let mut target = None;
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('L' | 'P') => {}
            Arg::Operand(_) if target.is_some() => {
                return Err(Complaint::new(1, "cd: too many arguments: quote a path that has spaces"));
            }
            Arg::Operand(path) => target = Some(path.to_owned()),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    let target = target.unwrap_or_else(|| "/".to_owned());
    writer(move |ctx, out| {
        let back = target == "-";
        let found = if back { Ok(ctx.previous()) } else { paths::resolve(ctx.tree, ctx.cwd(), &target) };
        let trouble = match found {
            Ok(node) if ctx.tree.kind(node) == Kind::Folder => {
                ctx.enter(node);
                if back {
                    out.text(paths::absolute(ctx.tree, node));
                    out.text("\n");
                }
                return Ok(DONE);
            }
            Ok(_) => paths::Missing::NotAFolder,
            Err(missing) => missing,
        };
        out.complain(&format!("cd: {target}: {}", trouble.text()))?;
        Ok(1)
    })
}
