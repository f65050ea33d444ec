//! The staging folder of a model that is being added: not visible as a model, and exclusive to one process.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The lock file, locked while a model is added.
const LOCK_FILE: &str = ".lock";
/// The prefix of a staging folder. No model's name begins with a dot.
const DRAFT: &str = ".adding-";

/// The staging folder; removed on drop unless it is finished.
#[derive(Debug)]
pub(super) struct Draft {
    wanted: PathBuf,
    path: PathBuf,
    is_finished: bool,
    _lock: File,
}

impl Draft {
    /// Creates an empty staging folder beside `wanted`. Removes leftovers of crashed processes.
    ///
    /// # Errors
    /// When it cannot be made, another process adds a model there now ([`io::ErrorKind::ResourceBusy`]), or has added this one
    /// meanwhile ([`io::ErrorKind::AlreadyExists`]).
    pub(super) fn begin(wanted: &Path) -> io::Result<Self> {
        let (Some(models), Some(name)) = (wanted.parent(), wanted.file_name()) else {
            return Err(io::Error::other("a model has no folder"));
        };
        fs_err::create_dir_all(models)?;
        let lock = File::create(models.join(LOCK_FILE))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let busy = format!("another process adds a model to {} now", models.display());
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, busy));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if wanted.exists() {
            // Another process has added it since the caller checked; the rename would fail in the end.
            let there = format!("{} is there by now", wanted.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, there));
        }
        for entry in fs_err::read_dir(models)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(DRAFT)) {
                fs_err::remove_dir_all(path)?;
            }
        }
        let path = models.join(format!("{DRAFT}{}", name.to_string_lossy()));
        fs_err::create_dir(&path)?;
        Ok(Self { wanted: wanted.to_owned(), path, is_finished: false, _lock: lock })
    }

    /// The staging folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the folder to its final name.
    pub(super) fn finish(mut self) -> io::Result<()> {
        fs_err::rename(&self.path, &self.wanted)?;
        self.is_finished = true;
        // The rename is durable only when the parent folder is synced.
        let models = self.wanted.parent().unwrap_or(&self.wanted);
        fs_err::File::open(models)?.sync_all()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_finished {
            // Leftovers are removed by the next [`Self::begin`].
            let _ = fs_err::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_filled_at_a_time_and_what_was_cut_goes() {
        let models = tempfile::tempdir().unwrap();
        let (one, other) = (models.path().join("one-v1.5"), models.path().join("one-v1.6"));
        let cut = models.path().join(".adding-cut");
        fs_err::create_dir_all(cut.join("1_Pooling")).unwrap();
        let draft = Draft::begin(&one).unwrap();
        assert!(!cut.exists());
        assert_eq!(Draft::begin(&other).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        fs_err::write(draft.path().join("config.json"), "{}").unwrap();
        draft.finish().unwrap();
        assert!(one.join("config.json").is_file());
        assert_eq!(Draft::begin(&one).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let path = {
            let draft = Draft::begin(&other).unwrap();
            draft.path().to_owned()
        };
        assert!(!path.exists() && !other.exists());
    }
}
