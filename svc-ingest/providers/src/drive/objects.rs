//! Drive's representation of files.

use serde::Deserialize;

use crate::rest::{NO_ZONE, moment};
use crate::{Entry, ExternalId, ItemFault, Version};

/// The requested fields of a file.
pub(super) const FIELDS: &str = "id,name,mimeType,modifiedTime,version,md5Checksum,size,parents,webViewLink,trashed,driveId,shortcutDetails,capabilities/canDownload";

pub(super) const FOLDER: &str = "application/vnd.google-apps.folder";
const SHORTCUT: &str = "application/vnd.google-apps.shortcut";
const APPS: &str = "application/vnd.google-apps.";

/// A file with the requested fields.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct File {
    pub(super) id: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(rename = "mimeType", default)]
    pub(super) mime: String,
    #[serde(rename = "modifiedTime", default)]
    modified: Option<String>,
    #[serde(default)]
    version: Option<Number>,
    #[serde(rename = "md5Checksum", default)]
    md5: Option<String>,
    #[serde(default)]
    size: Option<Number>,
    #[serde(default)]
    pub(super) parents: Vec<String>,
    /// The shared drive that contains it, if any.
    #[serde(rename = "driveId", default)]
    pub(super) drive: Option<String>,
    #[serde(rename = "webViewLink", default)]
    pub(super) web: Option<String>,
    #[serde(default)]
    pub(super) trashed: bool,
    #[serde(default)]
    capabilities: Option<Capabilities>,
}

/// A number that Google serializes as a string.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Number(u64),
}

#[derive(Debug, Clone, Deserialize)]
struct Capabilities {
    #[serde(rename = "canDownload", default = "yes")]
    can_download: bool,
}

const fn yes() -> bool {
    true
}

/// How to get the content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By download.
    Download,
    /// By export to one of these media types, in order of preference.
    Export(&'static [&'static str]),
    /// It has no text.
    None,
}

impl File {
    pub(super) fn is_folder(&self) -> bool {
        self.mime == FOLDER
    }

    /// Whether it is a document: neither a folder nor a shortcut, whose target is listed on its own if it is shared.
    pub(super) fn is_document(&self) -> bool {
        !self.is_folder() && self.mime != SHORTCUT
    }

    pub(super) fn size(&self) -> Option<u64> {
        match self.size.as_ref()? {
            Number::Number(size) => Some(*size),
            Number::Text(size) => size.parse().ok(),
        }
    }

    /// The hash of the bytes and the name, or for Google's own documents, which have no bytes, the revision.
    pub(super) fn version(&self) -> Option<Version> {
        if let Some(md5) = &self.md5 {
            return Some(Version::new(format!("{md5} {}", self.name)));
        }
        match &self.version {
            Some(Number::Text(version)) => Some(Version::new(version.clone())),
            Some(Number::Number(version)) => Some(Version::new(version.to_string())),
            None => self.modified.clone().map(Version::new),
        }
    }

    pub(super) fn way(&self) -> Way {
        match self.mime.strip_prefix(APPS) {
            Some("document") => Way::Export(&["text/markdown", "text/plain"]),
            // A workbook has all sheets; CSV only the first.
            Some("spreadsheet") => Way::Export(&[
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
                "text/csv",
            ]),
            Some("presentation") => Way::Export(&["text/plain"]),
            Some(_) => Way::None,
            None if ["image/", "video/", "audio/"].iter().any(|kind| self.mime.starts_with(kind)) => {
                Way::None
            }
            None => Way::Download,
        }
    }

    /// The document.
    pub(super) fn entry(&self) -> Result<Entry, ItemFault> {
        let id = ExternalId::new(self.id.clone()).map_err(|_| ItemFault::unusable_id(&self.name))?;
        let updated_at = self.modified.as_deref().map(moment);
        let (Some(version), false) = (self.version(), updated_at == Some(None)) else {
            return Err(ItemFault::passing(id, &self.name, NO_ZONE));
        };
        let mut entry = Entry::new(id, version, &self.name);
        entry.mime = Some(self.mime.clone()).filter(|mime| !mime.is_empty());
        entry.size = self.size();
        entry.url.clone_from(&self.web);
        entry.updated_at = updated_at.flatten();
        if self.capabilities.as_ref().is_some_and(|capabilities| !capabilities.can_download) {
            return Err(ItemFault::lasting(&entry, "its owner does not allow it to be downloaded"));
        }
        Ok(entry)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file(mime: &str) -> File {
        serde_json::from_value(json!({"id": "f", "name": "Plan", "mimeType": mime, "modifiedTime": "2026-11-20T12:00:00.000Z", "version": "7"})).unwrap()
    }

    #[test]
    fn documents_are_exported_files_downloaded_and_pictures_left() {
        assert_eq!(
            file("application/vnd.google-apps.document").way(),
            Way::Export(&["text/markdown", "text/plain"])
        );
        assert_eq!(file("application/pdf").way(), Way::Download);
        for none in ["image/png", "video/mp4", "application/vnd.google-apps.form"] {
            assert_eq!(file(none).way(), Way::None);
        }
        assert!(!file("application/vnd.google-apps.shortcut").is_document() && !file(FOLDER).is_document());
    }

    #[test]
    fn a_version_is_of_the_bytes_and_the_name() {
        let mut pdf = file("application/pdf");
        assert_eq!(pdf.version().unwrap().as_str(), "7");
        pdf.md5 = Some("abc".into());
        let before = pdf.version();
        pdf.name = "Renamed".into();
        assert_ne!(pdf.version(), before);
        pdf.size = Some(Number::Text("12".into()));
        assert_eq!(pdf.size(), Some(12));
    }

    #[test]
    fn what_may_not_be_downloaded_or_has_no_zone_is_a_fault() {
        let mut odd = file("application/pdf");
        odd.capabilities = Some(Capabilities { can_download: false });
        assert!(odd.entry().unwrap_err().is_lasting);
        let mut zoneless = file("application/pdf");
        zoneless.modified = Some("2026-11-20 12:00".into());
        assert!(zoneless.entry().is_err());
    }
}
