//! What is kept of documents from outside: the types that the store keeps and the rules are about. Nothing here knows SQL,
//! a rule or who calls.

mod document;
mod extraction;
mod ingested;
mod names;
mod paging;
mod usage;

pub(crate) use cairn_chassis::bodies::{Body, MAX_CONTENT_BYTES};
pub(crate) use cairn_proto::domain::{ContentType, FileType, IngestStatus};

pub(crate) use self::document::{Document, DocumentRef, Key};
pub(crate) use self::extraction::{Extraction, Pieces, Place, Upload};
pub(crate) use self::ingested::{Indexed, Ingested, Outcome, Retained};
pub(crate) use self::names::{INGESTED_FOLDER, name_of, twin_of};
pub(crate) use self::paging::{Cursor, Page, PageRequest};
pub(crate) use self::usage::{Growth, Usage};
