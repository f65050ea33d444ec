//! The entries of a report that are not items.

use serde::{Deserialize, Serialize};

/// A warning about something that was changed or left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The path in the vault or the export.
    pub path: String,
    /// The code.
    pub code: WarningCode,
}

impl Warning {
    pub(crate) fn new(path: impl Into<String>, code: WarningCode) -> Self {
        Self { path: path.into(), code }
    }
}

/// The codes of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WarningCode {
    /// The encoding of a name was guessed, or the name had invalid characters.
    NameEncoding,
    /// A name was truncated.
    NameShortened,
    /// A path traversal: left out.
    UnsafePath,
    /// A symbolic link: left out.
    Symlink,
    /// A text over the size limit: left out.
    TooLarge,
    /// Folders nested too deep: left out.
    TooDeep,
    /// An unreadable entry: left out.
    EntryCorrupt,
    /// A duplicate path: the earlier entry is left out.
    DuplicatePath,
    /// Paths that differ only in case: both are imported.
    CaseClash,
    /// A text that is not UTF-8, or contains NUL.
    TextEncoding,
    /// Front matter that is not a YAML mapping.
    FrontMatterInvalid,
    /// Too many tags, or too long ones.
    TagsTruncated,
    /// Too many links in one file.
    LinksTruncated,
    /// A page in a database's folder without a row: imported as a file.
    RowPageWithoutRow,
    /// A table that is too large or too damaged for a database: imported as a file.
    TableInvalid,
    /// A missing part of an export.
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

    /// The message for people.
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

/// An entry that is not user content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// In the vault or the export.
    pub path: String,
    /// The reason.
    pub reason: IgnoredReason,
}

/// Why an entry is not user content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoredReason {
    /// A name that begins with a dot: settings and trash.
    Hidden,
    /// Metadata of operating systems.
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

/// An unresolved or ambiguous link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    /// The index of the item with the link.
    pub item: usize,
    /// The line, from 1.
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

/// The totals of a plan.
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
    /// Entries that are not user content.
    pub ignored: usize,
}
