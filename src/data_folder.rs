//! The folder that a process keeps its data in: made, claimed, and left to nobody else while the process runs.

use std::fs::{File, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use fs_err as fs;

const LOCK_FILE: &str = "cairn.lock";
const OWNER_ONLY: u32 = 0o700;

/// A claimed data folder. The claim ends with the process, however it ends.
#[derive(Debug)]
pub(crate) struct DataFolder {
    path: PathBuf,
    _claim: File,
}

impl DataFolder {
    /// Makes the folder if needed and claims it for the part of that name (`up`, or a service).
    pub(crate) fn claim(path: &Path) -> anyhow::Result<Self> {
        let advice = "choose another folder with --data, or make this one writable";
        // It holds password hashes and the signing key: nobody else on the machine may look in.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(OWNER_ONLY)
            .create(path)
            .with_context(|| format!("cannot make the data folder {}; {advice}", path.display()))?;
        let lock = path.join(LOCK_FILE);
        let claim =
            fs::OpenOptions::new().create(true).truncate(false).write(true).open(&lock).context(advice)?;
        let (claim, _path) = claim.into_parts();
        match claim.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _claim: claim }),
            Err(TryLockError::WouldBlock) => bail!(
                "another cairn process uses the data folder {}; stop it, or choose another folder with --data",
                path.display()
            ),
            Err(TryLockError::Error(error)) => Err(error)
                .with_context(|| format!("cannot claim the data folder {}; {advice}", path.display())),
        }
    }

    /// A path in the folder.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
