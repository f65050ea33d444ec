//! What a report says beside the items of a plan.

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
}

impl IgnoredReason {
    /// The reason in a report.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::System => "system_file",
        }
    }
}
