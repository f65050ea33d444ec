//! Reads archives of other tools within limits, and plans the workspace content that they become.
//!
//! [`Archive`] reads an untrusted ZIP file. [`obsidian`] and [`notion`] make a [`Plan`] of it: items in an order in which they can be
//! created, and the contents of the report. Once all items have ids, [`Plan::content`] reads a file again and [`Content::fill`] fills in
//! its links. The crate knows no service, no database and no network, and writes no file.

mod address;
mod archive;
mod content;
mod kind;
mod markdown;
mod notion;
mod obsidian;
mod plan;
mod report;
mod text;

pub use self::archive::{Archive, ArchiveError, Entry, EntryError, EntryKind, MAX_ENTRIES, Sink};
pub use self::archive::{Tree, TreeFile};
pub use self::content::{Content, Link, Listed};
pub use self::kind::Kind;
pub use self::notion::notion;
pub use self::obsidian::obsidian;
pub use self::plan::{Item, ItemKind, Limits, Plan, Property, PropertyKind, Value};
pub use self::report::{Counts, Ignored, IgnoredReason, Unresolved, UnresolvedReason, Warning, WarningCode};
pub use self::text::MAX_TEXT_BYTES;
