//! The manifest of a backup: its files, each as a sequence of pieces.

use std::path::PathBuf;

use anyhow::bail;
use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{ObjectId, WorkspaceId};
use serde::{Deserialize, Serialize};

use super::ROLES;
use super::repository::PIECE_BYTES;
use crate::secret_keys;

/// The folder of assets in a backup.
pub(super) const ASSETS: &str = "assets";
/// The format version; increased on incompatible changes.
const FORMAT: u32 = 1;

/// The manifest of a backup.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    format: u32,
    /// RFC 3339: the moment that the backup captures.
    pub(super) created_at: String,
    /// The version of Cairn that made it.
    pub(super) version: String,
    pub(super) files: Vec<FileEntry>,
}

/// A file in a backup.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileEntry {
    pub(super) path: String,
    /// Bytes.
    pub(super) size: u64,
    pub(super) pieces: Vec<Piece>,
}

/// A piece of a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Piece {
    /// BLAKE3 of the file's bytes, hexadecimal.
    pub(super) hash: String,
    /// BLAKE3 of the stored bytes, which is the object's name.
    pub(super) object: String,
    /// Length in the file, in bytes.
    pub(super) size: u32,
}

/// The destination of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// A file of the data folder, with that name.
    Data(PathBuf),
    /// An asset, with that key.
    Asset { workspace: String, object: String },
}

impl Manifest {
    pub(super) fn new(created_at: Timestamp, version: String, files: Vec<FileEntry>) -> Self {
        Self { format: FORMAT, created_at: created_at.to_rfc3339(), version, files }
    }

    /// Parses a manifest.
    ///
    /// # Errors
    /// When it is malformed, or of a later format.
    pub(super) fn read(bytes: &[u8]) -> anyhow::Result<Self> {
        let manifest: Self = serde_json::from_slice(bytes)?;
        if manifest.format != FORMAT {
            bail!("the backup is of format {}, and this version reads format {FORMAT}", manifest.format);
        }
        for file in &manifest.files {
            file.place()?;
            if file.pieces.iter().any(|piece| piece.size as usize > PIECE_BYTES) {
                bail!("the backup lists a piece of {} that is longer than pieces are", file.path);
            }
        }
        Ok(manifest)
    }

    /// The total size of all files, in bytes.
    pub(super) fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

impl FileEntry {
    /// The destination; rejects every path that a backup does not produce.
    pub(super) fn place(&self) -> anyhow::Result<Destination> {
        let of_database = |role: crate::cli::Role| {
            let database = format!("{}.db", role.name());
            self.path == database || self.path == format!("{database}-wal")
        };
        if ROLES.into_iter().any(of_database) || self.path == secret_keys::FILE_NAME {
            return Ok(Destination::Data(PathBuf::from(&self.path)));
        }
        let asset = self.path.strip_prefix(ASSETS).and_then(|rest| rest.strip_prefix('/'));
        if let Some((workspace, object)) = asset.and_then(|rest| rest.split_once('/'))
            && workspace.parse::<WorkspaceId>().is_ok()
            && object.parse::<ObjectId>().is_ok()
        {
            return Ok(Destination::Asset { workspace: workspace.to_owned(), object: object.to_owned() });
        }
        bail!("the backup lists a file that is none of Cairn's: {:?}", self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> anyhow::Result<Destination> {
        FileEntry { path: path.to_owned(), size: 0, pieces: Vec::new() }.place()
    }

    #[test]
    fn a_file_goes_nowhere_but_where_it_came_from() {
        assert_eq!(place("auth.db").unwrap(), Destination::Data("auth.db".into()));
        assert_eq!(place("content.db-wal").unwrap(), Destination::Data("content.db-wal".into()));
        assert_eq!(place("secret.key").unwrap(), Destination::Data("secret.key".into()));
        let (workspace, object) = (
            "0190a6b2-0000-7000-8000-000000000001".to_owned(),
            "0190a6b2-0000-7000-8000-000000000002".to_owned(),
        );
        let asset = Destination::Asset { workspace: workspace.clone(), object: object.clone() };
        assert_eq!(place(&format!("assets/{workspace}/{object}")).unwrap(), asset);
        for path in [
            "",
            "/etc/passwd",
            "../auth.db",
            "gateway.db",
            "auth.db-shm",
            "assets/../../x",
            "assets/a/b",
            "index/x",
        ] {
            assert!(place(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_list_of_another_format_is_not_read() {
        let manifest = Manifest::new(Timestamp::from_seconds(1), String::new(), Vec::new());
        let mut text = serde_json::to_value(&manifest).unwrap();
        assert!(Manifest::read(text.to_string().as_bytes()).is_ok());
        text["format"] = 2.into();
        assert!(Manifest::read(text.to_string().as_bytes()).unwrap_err().to_string().contains("format 2"));
        assert!(Manifest::read(b"{}").is_err());
    }
}
