//! `true` and `false`

use super::{Command, writer};
use crate::context::DONE;

pub(super) const TRUE: Command = Command {
    name: "true",
    usage: "true",
    about: "do nothing, and succeed",
    details: "",
    start: |_| writer(|_, _| Ok(DONE)),
};

pub(super) const FALSE: Command = Command {
    name: "false",
    usage: "false",
    about: "do nothing, and fail",
    details: "",
    start: |_| writer(|_, _| Ok(1)),
};
