//! `dirname`

use super::{Call, Command, Started, writer};
use crate::args::{Arg, Args};
use crate::context::DONE;

pub(super) const COMMAND: Command = Command {
    name: "dirname",
    usage: "dirname NAME…",
    about: "a path without its last part",
    details: "",
    start,
};

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("dirname", 1, call.args);
    let mut names = Vec::new();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Operand(name) => names.push(name.to_owned()),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    if names.is_empty() {
        return Err(args.complain("missing operand"));
    }
    writer(move |_, out| {
        for name in &names {
            out.text(folder_part(name));
            out.text("\n");
            out.flow()?;
        }
        Ok(DONE)
    })
}

fn folder_part(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return if path.is_empty() { "." } else { "/" };
    }
    match trimmed.rfind('/').and_then(|at| trimmed.get(..at)) {
        None => ".",
        Some(folder) => match folder.trim_end_matches('/') {
            "" => "/",
            folder => folder,
        },
    }
}
