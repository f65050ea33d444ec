//! The data folder: created, locked for this process, and closed to other users.

use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use fs_err as fs;

pub(crate) const LOCK_FILE: &str = "cairn.lock";
/// Exists while a restore is under way.
pub(crate) const UNFINISHED: &str = "restore.unfinished";
/// Infix of a file that is to replace a damaged one: `content.db.mended-<time>`.
pub(crate) const MENDED: &str = ".db.mended-";
const OWNER_ONLY: u32 = 0o700;
/// Permission bits of group and others.
const OTHERS: u32 = 0o077;

/// A claimed data folder. The claim is a file lock, so it ends with the process.
#[derive(Debug)]
pub(crate) struct DataFolder {
    path: PathBuf,
    _claim: File,
}

impl DataFolder {
    /// Creates the folder if needed and claims it for `part` (`up`, or a service).
    pub(crate) fn claim(path: &Path) -> anyhow::Result<Self> {
        let folder = Self::claim_for_restore(path)?;
        if folder.join(UNFINISHED).exists() {
            bail!(
                "a restore into {} was cut: run the same `cairn restore` again, which begins anew",
                path.display()
            );
        }
        if let Some(cut) = cut_mends(path)?.first() {
            bail!(
                "a mend of {} was cut ({}): run `cairn doctor --mend` again",
                path.display(),
                cut.display()
            );
        }
        Ok(folder)
    }

    /// Like [`Self::claim`], but also accepts a folder in which a restore was interrupted.
    pub(crate) fn claim_for_restore(path: &Path) -> anyhow::Result<Self> {
        let advice = "choose another folder with --data, or make this one writable";
        // The folder holds password hashes and the signing key: no other user may read it.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(OWNER_ONLY)
            .create(path)
            .with_context(|| format!("cannot make the data folder {}; {advice}", path.display()))?;
        if let Err(error) = restrict(path) {
            tracing::warn!(%error, "others on this machine may be able to read the data folder");
        }
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

/// Replacement files that are complete but have not been moved into place, because a repair was interrupted.
pub(crate) fn cut_mends(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().contains(MENDED)) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Removes the permissions of group and others from the folder and its files, which an earlier release or a copy may
/// have left. A folder that is already closed protects everything below it, so only open ones are descended into, and
/// always the root.
fn restrict(folder: &Path) -> io::Result<()> {
    restrict_one(folder)?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let found = fs::symlink_metadata(&path)?;
        let is_open = found.permissions().mode() & OTHERS != 0;
        if found.is_dir() && is_open {
            restrict(&path)?;
        } else if found.is_file() && is_open {
            restrict_one(&path)?;
        }
    }
    Ok(())
}

fn restrict_one(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & OTHERS == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS))
}

/// Fsyncs the folder, so that the names in it survive a power failure.
pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    match fs::File::open(folder)?.sync_all() {
        // Some file systems do not support fsync on folders.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        ended => ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_others_could_read_is_closed_to_them() {
        let outside = tempfile::tempdir().unwrap();
        let data = tempfile::tempdir().unwrap();
        let (index, within) = (data.path().join("index"), data.path().join("index/one/two"));
        fs::create_dir_all(&within).unwrap();
        let files = [data.path().join("auth.db"), within.join("segment"), outside.path().join("other")];
        for file in &files {
            fs::write(file, "x").unwrap();
            fs::set_permissions(file, Permissions::from_mode(0o644)).unwrap();
        }
        std::os::unix::fs::symlink(&files[2], data.path().join("link")).unwrap();
        for folder in [data.path(), &index, &data.path().join("index/one"), &within] {
            fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        }
        let _claim = DataFolder::claim(data.path()).unwrap();
        for folder in [data.path(), &index, &within] {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
        }
        assert_eq!((mode(&files[0]), mode(&files[1])), (0o600, 0o600));
        assert_eq!(mode(&files[2]), 0o644, "what a link leads to is not ours");
    }
}
