//! The workspace as a tree of folders and files, kept in memory and current.
//!
//! [`base`] has all items; [`grow`] applies changes to it; [`lens`] is the projection for one scope; [`view`] combines both for one
//! script, and [`rewind`] rolls a view back to a past moment. Content is asked for changes before every script, so that a script sees
//! all writes before its start; so is, for callers of the whole workspace, the owner of documents from outside, which is optional.

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
