//! `pwd`

use super::{Call, Command, Started, writer};
use crate::context::DONE;
use crate::paths;

pub(super) const COMMAND: Command =
    Command { name: "pwd", usage: "pwd", about: "the folder that paths are seen from", details: "", start };

fn start(_: &Call<'_>) -> Started {
    writer(|ctx, out| {
        out.text(paths::absolute(ctx.tree, ctx.cwd()));
        out.text("\n");
        Ok(DONE)
    })
}
