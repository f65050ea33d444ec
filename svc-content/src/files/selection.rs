//! The selection of files for lists and searches.

use crate::Error;
use crate::checks::Checks;

/// The folder of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InFolder {
    /// Absent for the root.
    pub(crate) folder_id: Option<String>,
    pub(crate) is_recursive: bool,
}

/// The selection of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileSelection {
    /// Absent: everywhere.
    pub(crate) folder: Option<InFolder>,
    /// Only files that have all of these tags.
    pub(crate) tags: Vec<String>,
}

impl From<Option<InFolder>> for FileSelection {
    fn from(folder: Option<InFolder>) -> Self {
        Self { folder, tags: Vec::new() }
    }
}

/// Validates the tags of a search: an invalid tag is an error, since no file can have it.
pub(crate) fn checked_tags(tags: Vec<String>) -> Result<Vec<String>, Error> {
    let mut checks = Checks::default();
    let tags = checks.tags(tags);
    checks.finish()?;
    Ok(tags)
}
