//! The folder of an index: owned by one process, checked after a restart of the machine, wiped when unfit.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::Error;

/// Held locked while an index is open.
const LOCK_FILE: &str = "lock";
/// Names the machine's run in which the files were last known to be whole.
const BOOT_FILE: &str = "boot";
/// Holds tantivy's files.
pub(super) const SEGMENTS: &str = "segments";

/// Where Linux tells one run of the machine from the next.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The claimed folder.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    _lock: File,
}

impl Folder {
    /// Creates the folder if needed and claims it; fails with [`Error::InUse`] while another process has it.
    pub(super) fn claim(root: &Path) -> Result<Self, Error> {
        fs_err::create_dir_all(root.join(SEGMENTS))?;
        let lock = File::create(root.join(LOCK_FILE))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { root: root.to_path_buf(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Error::InUse),
            Err(TryLockError::Error(error)) => Err(Error::Io(error)),
        }
    }

    /// Where the index's files are.
    pub(super) fn segments(&self) -> PathBuf {
        self.root.join(SEGMENTS)
    }

    /// Whether files may have lost what was written: nothing is fsynced, so this holds after each restart
    /// of the machine (and always where its runs cannot be told apart).
    pub(super) fn may_be_damaged(&self) -> bool {
        let (Ok(now), Ok(then)) = (fs_err::read(BOOT_ID), fs_err::read(self.root.join(BOOT_FILE))) else {
            return true;
        };
        now != then
    }

    /// Notes that the files are whole.
    pub(super) fn mark_intact(&self) -> io::Result<()> {
        // Where the run has no name, none is noted and the next opening checks again.
        fs_err::write(self.root.join(BOOT_FILE), fs_err::read(BOOT_ID).unwrap_or_default())
    }

    /// Removes all index files.
    pub(super) fn wipe(&self) -> io::Result<()> {
        fs_err::remove_dir_all(self.segments())?;
        fs_err::create_dir(self.segments())
    }
}
