//! The protocol between this process and a child that reads an archive.

use std::ops::Range;

use cairn_import::{Counts, Property, Value};
use cairn_proto::domain::{FileType, ImportProvider};
use serde::{Deserialize, Serialize};

use crate::model::Kind;

/// The longest body of a frame, except parts and attachments, which are sent as they are.
pub(crate) const MAX_BODY_BYTES: u64 = 64 * 1024 * 1024;

/// The question to a child.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) provider: ImportProvider,
    /// Of the archive, as it was sent.
    pub(crate) file_name: String,
    /// The ranges of the archive and its parts in the file.
    pub(crate) volumes: Vec<Range<u64>>,
    /// Folders that may nest below the import's own.
    pub(crate) folders: usize,
    /// Of an attachment.
    pub(crate) asset_bytes: u64,
    pub(crate) what: Query,
}

/// What a question asks for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Query {
    /// The archives within it that are parts of it.
    Parts,
    /// The plan of its import.
    Plan,
    /// The bytes of these attachments, in the order of the plan.
    Assets(Vec<Range<usize>>),
    /// The texts of these files.
    Files(Vec<Range<usize>>),
    /// The values of these databases' records.
    Records(Vec<Range<usize>>),
}

/// The head of a frame from a child; a body of `length` bytes follows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Frame {
    /// A part, as it is.
    Part { length: u64 },
    /// The archive is refused; without a code, the failure is on our side.
    Refused { code: Option<String>, message: String },
    /// The plan begins.
    Root { name: String, counts: Counts },
    /// Items of the plan: JSON, [`Item`]s.
    Items { length: u64 },
    /// Other entries of the report: JSON, [`Finding`]s.
    Findings { length: u64 },
    /// An attachment, as it is.
    Asset { item: usize, length: u64 },
    /// The text of a file with its links: JSON, a [`cairn_import::Content`].
    File { item: usize, length: u64 },
    /// Records: JSON, [`Values`].
    Records { length: u64 },
    /// The end of the answer.
    End,
}

impl Frame {
    /// The length of the body, and whether it is exempt from [`MAX_BODY_BYTES`].
    pub(crate) const fn length(&self) -> (u64, bool) {
        match self {
            Self::Part { length } | Self::Asset { length, .. } => (*length, true),
            Self::Items { length }
            | Self::Findings { length }
            | Self::File { length, .. }
            | Self::Records { length } => (*length, false),
            Self::Refused { .. } | Self::Root { .. } | Self::End => (0, false),
        }
    }
}

/// An item of the plan, which becomes an object of the workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    /// The folder that it is in, by its place in the plan; absent for the import's own.
    pub(crate) parent: Option<usize>,
    pub(crate) name: String,
    /// Identifies the object across imports.
    pub(crate) identity: String,
    /// Where it is in the archive, for a report.
    pub(crate) source: String,
    /// Changes with the content in the archive. Links count by the identity of their targets, so the hash does not depend on ids.
    pub(crate) hash: String,
    /// Of a file or an attachment, in the archive.
    pub(crate) bytes: u64,
    pub(crate) made: ItemDetails,
}

/// The properties of an item that depend on its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum ItemDetails {
    Folder,
    File(FileType),
    Asset {
        media_type: String,
    },
    /// The primary property first.
    Database(Vec<Property>),
    Record {
        database: usize,
        body: Option<usize>,
    },
}

/// The values of a record, by the places of properties.
pub(crate) type Values = (usize, Vec<(usize, Value)>);

/// An entry of the report that is not an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Finding {
    Ignored { path: String, reason: String },
    Warning { path: String, code: String, message: String },
    Link { path: String, line: usize, target: String, reason: String },
}
