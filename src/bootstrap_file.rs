//! `<data>/bootstrap.json`: the credentials of the first account, readable by the process's user only.

use std::io::{self, Write as _};
use std::path::Path;

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use serde::{Deserialize, Serialize};

/// The file's name in the data folder.
pub(crate) const FILE_NAME: &str = "bootstrap.json";
const OWNER_ONLY: u32 = 0o600;

/// The file's content (contract, "Starting it").
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BootstrapFile {
    pub(crate) base_url: String,
    pub(crate) email: String,
    pub(crate) password: String,
    pub(crate) workspace_id: String,
    pub(crate) token: String,
}

impl BootstrapFile {
    /// Reads the file in the data folder; `None` if it was removed or is malformed.
    pub(crate) fn read(data: &Path) -> Option<Self> {
        let text = fs::read_to_string(data.join(FILE_NAME)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Replaces the file atomically.
    pub(crate) fn write(&self, data: &Path) -> io::Result<()> {
        let path = data.join(FILE_NAME);
        let unfinished = data.join(format!("{FILE_NAME}.new"));
        let mut file = fs::OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(OWNER_ONLY)
            .open(&unfinished)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(unfinished, path)?;
        Ok(())
    }
}
