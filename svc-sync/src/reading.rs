//! Reads untrusted archives in a child process (ADR 60): the child inflates and parses, this process writes.
//!
//! A [`Scratch`] is an unlinked file on the local disk with the archive, its parts, and a question at its end. The child gets it as standard
//! input, and reads it by offset. It answers in frames (`wire`): a head in JSON, and a body of bytes. A child that times out or breaks the
//! protocol fails the run.

mod answer;
mod child;
mod scratch;
mod wire;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use self::answer::{Answers, Failure, Reader};
pub use self::child::{IMPORT_COMMAND, import_child_main};
pub(crate) use self::scratch::{Scratch, Source};
pub(crate) use self::wire::{Finding, Frame, Item, ItemDetails, Query, Values};
