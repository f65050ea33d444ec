//! The types that the store persists and the rules operate on. Nothing here knows SQL, rules or callers.

mod document;
mod extraction;
mod ingested;
mod names;
mod run;
mod source;
mod source_document;
mod usage;
mod webhook;

use cairn_chassis::paging::Sizes;

pub(crate) use cairn_chassis::bodies::{Body, MAX_CONTENT_BYTES};
pub(crate) use cairn_chassis::paging::{Cursor, Page, PageRequest};
pub(crate) use cairn_proto::domain::{ContentType, FileType, IngestStatus};

pub(crate) use self::document::{Document, DocumentRef, Key};
pub(crate) use self::extraction::{Extraction, Pieces, Place, Upload};
pub(crate) use self::ingested::{Indexed, Ingested, Outcome, Retained};
pub(crate) use self::names::{INGESTED_FOLDER, name_of, with_id_suffix};
pub(crate) use self::run::{Absent, Counters, Missing, Run, Stage, Warning};
#[cfg(test)]
pub(crate) use self::source::Status as SourceStatus;
pub(crate) use self::source::{SealedCredentials, Source, SourceDetails, Spending};
pub(crate) use self::source_document::{
    DocumentStatus, Fault, ListedDocument, LiveText, Metadata, RetainedText, Retention, SourceView,
    StoredDocument,
};
pub(crate) use self::usage::{Growth, Usage};
pub(crate) use self::webhook::{Contents, Delivery, LastAttempt, Positions, Webhook, WebhookDetails};

/// Pages of ingested documents.
pub(crate) const PAGES: Sizes = Sizes { default: 50, most: 1_000 };
/// Pages of sources' documents, runs and deliveries.
pub(crate) const SOURCE_PAGES: Sizes = Sizes { default: 50, most: 200 };
