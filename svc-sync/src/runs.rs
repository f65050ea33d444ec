//! What carries runs out.
//!
//! `machine` finds runs that are due, holds them while they are worked on, and ends them. `sync` and `import` plan, and write in
//! batches: each is noted before it is written and settled after (`held`, `settle`), so that whoever takes the run after a
//! crash knows what was done, and does nothing twice.

mod held;
mod import;
mod machine;
mod settle;
mod sweep;
mod sync;
mod worker;

#[cfg(test)]
pub(crate) use self::machine::MOST_TRIES;
pub(crate) use self::machine::Machine;
