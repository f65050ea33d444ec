//! Which files a list is about.

use crate::Error;
use crate::checks::Checks;

/// Which folder a list is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InFolder {
    /// Absent for the root.
    pub(crate) folder_id: Option<String>,
    pub(crate) is_recursive: bool,
}

/// Which files a list is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileSelection {
    /// Absent: everywhere.
    pub(crate) folder: Option<InFolder>,
    /// All of which a file must bear.
    pub(crate) tags: Vec<String>,
}

impl From<Option<InFolder>> for FileSelection {
    fn from(folder: Option<InFolder>) -> Self {
        Self { folder, tags: Vec::new() }
    }
}

/// Tags that files are looked for by: what no file can bear is a mistake.
pub(crate) fn checked_tags(tags: Vec<String>) -> Result<Vec<String>, Error> {
    let mut checks = Checks::default();
    let tags = checks.tags(tags);
    checks.finish()?;
    Ok(tags)
}
