//! Executes runs.
//!
//! `runner` claims runs that are due, renews their leases while a worker executes them, and writes how they end. `sync` and `import` plan
//! the writes and send them in batches. Each batch is logged before it is sent and settled afterwards (`active`, `settle`): whichever
//! worker resumes the run after a crash can tell what was written, and writes nothing twice.

mod active;
mod import;
mod runner;
mod settle;
mod sweep;
mod sync;
mod worker;

#[cfg(test)]
pub(crate) use self::runner::MAX_TRIES;
pub(crate) use self::runner::Runner;
