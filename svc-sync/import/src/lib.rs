//! Archives of other tools, read with bounds and turned into a plan of workspace content.
//!
//! [`Archive`] reads a ZIP file that a stranger sent. [`Tree`] is what of it can be imported: clean paths, what is ignored,
//! and what is left out with the reason. It knows no service, no database and no network, and it writes no file.

mod archive;
mod report;
mod text;

pub use self::archive::{Archive, ArchiveError, Entry, EntryError, EntryKind, MOST_ENTRIES, Sink};
pub use self::archive::{Tree, TreeFile};
pub use self::report::{Ignored, IgnoredReason, Warning, WarningCode};
pub use self::text::MOST_TEXT_BYTES;
