//! The folder of an index: owned by one process, verified after a reboot, wiped when unusable.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::Error;

/// Locked while an index is open.
const LOCK_FILE: &str = "lock";
/// Contains the boot id under which the files were last known to be intact.
const BOOT_FILE: &str = "boot";
/// The folder of tantivy's files.
pub(super) const SEGMENTS: &str = "segments";

/// Linux's id of the current boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A locked folder.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    _lock: File,
}

impl Folder {
    /// Creates the folder if needed and locks it; fails with [`Error::InUse`] while another process holds the lock.
    pub(super) fn claim(root: &Path) -> Result<Self, Error> {
        fs_err::create_dir_all(root.join(SEGMENTS))?;
        let lock = File::create(root.join(LOCK_FILE))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { root: root.to_path_buf(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Error::InUse),
            Err(TryLockError::Error(error)) => Err(Error::Io(error)),
        }
    }

    /// The folder of tantivy's files.
    pub(super) fn segments(&self) -> PathBuf {
        self.root.join(SEGMENTS)
    }

    /// Whether files may be incomplete: nothing is fsynced, so this is the case after each reboot, and always where the system has
    /// no boot id.
    pub(super) fn may_be_damaged(&self) -> bool {
        let (Ok(now), Ok(then)) = (fs_err::read(BOOT_ID), fs_err::read(self.root.join(BOOT_FILE))) else {
            return true;
        };
        now != then
    }

    /// Records that the files are intact.
    pub(super) fn mark_intact(&self) -> io::Result<()> {
        // Without a boot id the file stays empty and the next start verifies again.
        fs_err::write(self.root.join(BOOT_FILE), fs_err::read(BOOT_ID).unwrap_or_default())
    }

    /// Removes all index files.
    pub(super) fn wipe(&self) -> io::Result<()> {
        fs_err::remove_dir_all(self.segments())?;
        fs_err::create_dir(self.segments())
    }
}
