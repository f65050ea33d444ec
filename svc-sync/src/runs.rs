//! What carries runs out.
//!
//! `machine` finds runs that are due, holds them while they are worked on, and ends them. `worker` plans and writes in
//! batches: each is noted before it is written and settled after (`settle`), so that whoever takes the run after a crash
//! knows what was done, and does nothing twice.

mod machine;
mod settle;
mod sweep;
mod worker;

pub(crate) use self::machine::Machine;
