//! `basename`

use super::{Call, Command, Complaint, Started, writer};
use crate::args::{Arg, Args};
use crate::context::DONE;

pub(super) const COMMAND: Command = Command {
    name: "basename",
    usage: "basename NAME [SUFFIX], basename -a [-s SUFFIX] NAME…",
    about: "the last part of a path",
    details: "  -a         all operands are names\n  -s SUFFIX  take this suffix away (implies -a)\n",
    start,
};

fn start(call: &Call<'_>) -> Started {
    let mut args = Args::new("basename", 1, call.args);
    let (mut names, mut suffix, mut many) = (Vec::new(), None, false);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('a') | Arg::Long("multiple") => many = true,
            Arg::Short('s') | Arg::Long("suffix") => (suffix, many) = (Some(args.value()?.to_owned()), true),
            Arg::Operand(name) => names.push(name.to_owned()),
            Arg::Short(_) | Arg::Long(_) => return Err(args.unknown()),
        }
    }
    if names.is_empty() {
        return Err(args.complain("missing operand"));
    }
    if !many && names.len() > 1 {
        suffix = names.pop();
        if names.len() > 1 {
            return Err(Complaint::new(1, "basename: too many operands: write `basename -a NAME…`"));
        }
    }
    writer(move |_, out| {
        for name in &names {
            out.text(last_part(name, suffix.as_deref().unwrap_or_default()));
            out.text("\n");
            out.flow()?;
        }
        Ok(DONE)
    })
}

fn last_part<'a>(path: &'a str, suffix: &str) -> &'a str {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return if path.is_empty() { "" } else { "/" };
    }
    let name = trimmed.rsplit('/').next().unwrap_or(trimmed);
    name.strip_suffix(suffix).filter(|rest| !rest.is_empty()).unwrap_or(name)
}
