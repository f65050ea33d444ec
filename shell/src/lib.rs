//! A small read-only shell over a tree of folders and files: what agents script to look around in a workspace.
//!
//! The crate is pure: it holds no tree, opens no file and knows no clock. Whoever has a [`tree::Tree`] runs scripts on
//! it.

pub mod tree;
