//! Child processes of the same binary, with limits.
//!
//! Parsers of what strangers send overflow the stack, loop and ask for all memory when a file is made for that, and nothing
//! inside a process contains those (ADR 44). A [`Program`] is started as a [`Process`] without an environment and in a group of
//! its own; before it reads the first byte, it limits itself ([`confine`], [`allow_cpu`]). Both sides speak in frames: a head in
//! JSON with its length before it ([`encode`], [`head_length`]), then the bytes that it announces.

mod frame;
mod limits;
mod process;

pub use self::frame::{MOST_HEAD_BYTES, encode, head_length};
pub use self::limits::{allow_cpu, confine};
pub use self::process::{Process, Program};
