//! The workspace as a tree of folders and files, kept in memory and current.
//!
//! [`base`] is everything that lives; [`grow`] makes it follow what content tells of a change; [`lens`] is what one scope
//! sees of it; [`view`] puts both together for one script, and [`rewind`] makes that what it was at a moment. Content is asked
//! before every script what has changed since, so a script always sees what was written before it began; and so is, for a
//! caller of the whole workspace, the owner of documents from outside, without which there is a tree all the same.

mod arena;
mod base;
mod grow;
mod holder;
mod lens;
mod memories;
mod mounted;
mod names;
mod past;
mod remote;
mod rewind;
mod rows;
mod spelling;
mod texts;
mod trees;
mod view;

pub(crate) use self::mounted::Mounted;
pub(crate) use self::past::Past;
pub use self::past::PastContainer;
pub(crate) use self::remote::{Content, Outside};
pub(crate) use self::trees::Trees;
pub(crate) use self::view::View;

#[cfg(test)]
mod tests;
