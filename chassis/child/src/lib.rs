//! Child processes of the same binary, with limits.
//!
//! A malicious file can make a parser overflow the stack, loop forever or exhaust memory, and nothing inside a process contains
//! that (ADR 44). A [`Program`] is started as a [`Process`] without an environment and in its own process group; before it
//! reads the first byte, it limits itself ([`confine`], [`allow_cpu`]). Both sides exchange frames: a length-prefixed JSON head
//! ([`encode`], [`head_length`]), then the bytes that it announces.

mod frame;
mod limits;
mod process;

pub use self::frame::{MAX_HEAD_BYTES, encode, head_length};
pub use self::limits::{allow_cpu, confine};
pub use self::process::{Process, Program};
