//! What travels between this process and a child that reads an archive.

use std::ops::Range;

use cairn_import::{Counts, Property, Value};
use cairn_proto::domain::{FileType, ImportProvider};
use serde::{Deserialize, Serialize};

use crate::model::Kind;

/// The longest body that stands behind one head, but for parts and attachments, which come as they are.
pub(crate) const MOST_BODY_BYTES: u64 = 64 * 1024 * 1024;

/// What a child is asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) provider: ImportProvider,
    /// Of the archive, as it was sent.
    pub(crate) file_name: String,
    /// Where the archive and its parts stand in the file.
    pub(crate) volumes: Vec<Range<u64>>,
    /// Folders that may nest below the import's own.
    pub(crate) folders: usize,
    /// Of an attachment.
    pub(crate) asset_bytes: u64,
    pub(crate) what: What,
}

/// What is wanted of an archive.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum What {
    /// The archives within it that are parts of it.
    Parts,
    /// What becomes of it.
    Plan,
    /// The bytes of these attachments, in the order of the plan.
    Assets(Vec<Range<usize>>),
    /// The texts of these files.
    Files(Vec<Range<usize>>),
    /// The values of these databases' records.
    Records(Vec<Range<usize>>),
}

/// A head that a child sends; `length` bytes follow.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Told {
    /// A part, as it is.
    Part { length: u64 },
    /// The archive is refused, or cannot be read; without a code it is not to blame.
    Refused { code: Option<String>, message: String },
    /// The plan begins.
    Root { name: String, counts: Counts },
    /// Items of the plan: JSON, [`Item`]s.
    Items { length: u64 },
    /// What the report says besides: JSON, [`Finding`]s.
    Findings { length: u64 },
    /// An attachment, as it is.
    Asset { item: usize, length: u64 },
    /// The text of a file with its links: JSON, a [`cairn_import::Content`].
    File { item: usize, length: u64 },
    /// Records: JSON, [`Values`].
    Records { length: u64 },
    /// All was told.
    End,
}

impl Told {
    /// What follows, and whether that may be of any length.
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

/// Something that becomes an object of the workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    /// The folder that it is in, by its place in the plan; absent for the import's own.
    pub(crate) parent: Option<usize>,
    pub(crate) name: String,
    /// By what the next import knows it.
    pub(crate) identity: String,
    /// Where it is in the archive, for a report.
    pub(crate) source: String,
    /// Of what the archive has: other content, another hash. What it links to counts by its identity, so that ids do not
    /// matter.
    pub(crate) hash: String,
    /// Of a file or an attachment, in the archive.
    pub(crate) bytes: u64,
    pub(crate) made: Made,
}

/// What an item is, beyond its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Made {
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

/// What a report says beside the items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Finding {
    Ignored { path: String, reason: String },
    Warning { path: String, code: String, message: String },
    Link { path: String, line: usize, target: String, reason: String },
}
