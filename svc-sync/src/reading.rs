//! Archives of strangers, read in a child process (ADR 60): the child inflates and parses, this process writes.
//!
//! A [`Scratch`] is a file of no name on our disk with the archive, its parts, and at its end the question that a child is asked;
//! the child gets it as its standard input, and reads it by places. What it tells comes as frames (`wire`): heads in JSON, and
//! bytes behind them. What a child does not tell in time, or tells in no order, is the failure of the run that asked.

mod answer;
mod child;
mod scratch;
mod wire;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use self::answer::{Answers, Failure, Reader};
pub use self::child::{IMPORT_COMMAND, import_child_main};
pub(crate) use self::scratch::{Scratch, Source};
pub(crate) use self::wire::{Finding, Item, Made, Told, Values, What};
