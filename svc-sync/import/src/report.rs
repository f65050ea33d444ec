//! What a report says beside the items of a plan.

use serde::{Deserialize, Serialize};

/// Something that was imported otherwise than it was, or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// In the vault or the export, so that its owner knows it again.
    pub path: String,
    /// What it is about.
    pub code: WarningCode,
}

impl Warning {
    pub(crate) fn new(path: impl Into<String>, code: WarningCode) -> Self {
        Self { path: path.into(), code }
    }
}

/// What warnings are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WarningCode {
    /// A name that is not UTF-8 was decoded by a guess, or holds characters that no name may hold.
    NameEncoding,
    /// A name was longer than names may be.
    NameShortened,
    /// A path that leads out of the archive: left out.
    UnsafePath,
    /// A symbolic link: left out.
    Symlink,
    /// More text than a file may hold: left out.
    TooLarge,
    /// More folders within each other than there may be: left out.
    TooDeep,
    /// An entry that cannot be read: left out.
    EntryCorrupt,
    /// Two entries with one path: the earlier is left out.
    DuplicatePath,
    /// Paths that differ in case only: both are imported.
    CaseClash,
    /// A text that is not UTF-8, or holds NUL characters.
    TextEncoding,
    /// Front matter that is no YAML mapping.
    FrontMatterInvalid,
    /// More tags than a file may have, or longer ones.
    TagsTruncated,
    /// More links than are looked at in one file.
    LinksTruncated,
    /// A page in a database's folder that is no row's: imported as a file.
    RowPageWithoutRow,
    /// A table that is too large or too damaged for a database: imported as a file.
    TableInvalid,
    /// A part of an export that its other parts speak of.
    PartMissing,
}

impl WarningCode {
    /// The code in a report.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NameEncoding => "name_encoding",
            Self::NameShortened => "name_shortened",
            Self::UnsafePath => "unsafe_path",
            Self::Symlink => "symlink",
            Self::TooLarge => "too_large",
            Self::TooDeep => "too_deep",
            Self::EntryCorrupt => "entry_corrupt",
            Self::DuplicatePath => "duplicate_path",
            Self::CaseClash => "case_clash",
            Self::TextEncoding => "text_encoding",
            Self::FrontMatterInvalid => "front_matter_invalid",
            Self::TagsTruncated => "tags_truncated",
            Self::LinksTruncated => "links_truncated",
            Self::RowPageWithoutRow => "row_page_without_row",
            Self::TableInvalid => "table_invalid",
            Self::PartMissing => "part_missing",
        }
    }

    /// A sentence for whoever reads the report.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::NameEncoding => "The name was not written in UTF-8, or held control characters; check it.",
            Self::NameShortened => "The name was longer than 255 characters and was shortened.",
            Self::UnsafePath => "The path leads out of the archive, so the entry was left out.",
            Self::Symlink => "The entry is a symbolic link and was left out.",
            Self::TooLarge => "The file holds more than may be imported and was left out. Split it.",
            Self::TooDeep => "The path is nested deeper than folders may be, so the entry was left out.",
            Self::EntryCorrupt => "The entry could not be read and was left out. Export it again.",
            Self::DuplicatePath => "The archive holds this path twice; the later entry was imported.",
            Self::CaseClash => "Another path differs from this one in case only; both were imported.",
            Self::TextEncoding => {
                "The text was not clean UTF-8; characters that could not be read were replaced."
            }
            Self::FrontMatterInvalid => {
                "The front matter is no valid YAML. The note was imported with it, without its tags and aliases."
            }
            Self::TagsTruncated => {
                "The file has more tags than it may have, or longer ones; the first 50 were taken."
            }
            Self::LinksTruncated => {
                "The file holds too many links to look at; some stay as they were written."
            }
            Self::RowPageWithoutRow => {
                "The page belongs to no row of its database; it was imported as a file."
            }
            Self::PartMissing => {
                "This part of the export is missing. Export it again, or put all parts into one ZIP file and upload that."
            }
            Self::TableInvalid => "The table is no database that can be imported; it was imported as a file.",
        }
    }
}

/// An entry that is none of the user's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// In the vault or the export.
    pub path: String,
    /// Why it is none.
    pub reason: IgnoredReason,
}

/// Why an entry is not imported without anything being wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoredReason {
    /// A name that begins with a dot: settings and trash.
    Hidden,
    /// What an operating system puts beside files.
    System,
    /// A view of a database that is imported.
    LinkedView,
    /// The table of contents of an export.
    Index,
}

impl IgnoredReason {
    /// The reason in a report.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::System => "system_file",
            Self::LinkedView => "linked_view",
            Self::Index => "index",
        }
    }
}

/// A link that could not be followed, or could be followed in several ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    /// The item whose text it is in, by its place in the plan.
    pub item: usize,
    /// Where it is in that text, from 1.
    pub line: usize,
    /// As it is written.
    pub target: String,
    /// Why it is listed.
    pub reason: UnresolvedReason,
}

/// Why a link is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnresolvedReason {
    /// It leads nowhere, and stays as it is.
    NotFound,
    /// It leads to several files. By path, the first of the resolution's order was taken; by alias, none.
    Ambiguous,
}

impl UnresolvedReason {
    /// The reason in a report.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Ambiguous => "ambiguous",
        }
    }
}

/// How much of what a plan holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Text files.
    pub files: usize,
    /// Folders, without the import's own.
    pub folders: usize,
    /// Attachments.
    pub assets: usize,
    /// Databases.
    pub databases: usize,
    /// Their properties.
    pub properties: usize,
    /// Their records.
    pub records: usize,
    /// Links within the archive.
    pub links: usize,
    /// Links that are replaced.
    pub links_resolved: usize,
    /// Links that stay as they were written.
    pub links_unresolved: usize,
    /// Entries that are none of the user's content.
    pub ignored: usize,
}
