//! Runs: what reads connected sources.
//!
//! `document`, `absence`, `fault` and `next` decide, and touch nothing. `worker` reads pages and bodies and writes what it
//! finds together with how far it is (`batch`, `write`), so that a run goes on where it was cut. `machine` finds runs that
//! are due, holds them while they are worked on, and ends them.

mod absence;
mod account;
mod batch;
mod connect;
mod document;
mod fault;
mod ledger;
mod machine;
pub(crate) mod next;
mod path;
mod read;
pub(crate) mod removal;
mod room;
mod till;
mod worker;
mod write;

pub(crate) use self::connect::Connect;
pub(crate) use self::document::entry_of;
pub(crate) use self::fault::Failure;
pub(crate) use self::ledger::{Check, Purse};
pub(crate) use self::machine::Machine;
pub(crate) use self::path::segment;
pub(crate) use self::read::{Unread, read_live};
pub(crate) use self::till::Till;
