//! Runs, which read connected sources.
//!
//! `document`, `absence`, `fault` and `next` are pure and decide. `worker` reads pages and bodies, and writes its findings together with
//! its checkpoint (`batch`, `write`), so that a run resumes where it was interrupted. `runner` claims runs that are due, renews their leases
//! while workers execute them, and ends them.

mod absence;
mod account;
mod batch;
mod budget_queue;
mod connect;
mod document;
mod fault;
mod ledger;
pub(crate) mod next;
mod path;
mod read;
pub(crate) mod removal;
mod room;
mod runner;
mod worker;
mod write;

pub(crate) use self::budget_queue::BudgetQueue;
pub(crate) use self::connect::Connect;
pub(crate) use self::document::entry_of;
pub(crate) use self::fault::Failure;
pub(crate) use self::ledger::{Charge, Check};
pub(crate) use self::path::segment;
pub(crate) use self::read::{Unread, read_live};
pub(crate) use self::runner::Runner;
