//! The target directory of a pull. No link is followed, and nothing outside of the directory is read or written.

use std::fs::Metadata;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::NamedTempFile;

/// The directory's metadata. `cairn sync` ignores it.
const OWN_FOLDER: &str = ".cairn";

/// What exists at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Local {
    Missing,
    /// A file with this hash, in the service's format.
    File(String),
    /// A link or a folder, at the path or at one of its parents.
    Blocked,
}

/// A directory on this machine.
#[derive(Debug, Clone)]
pub(super) struct Place {
    root: PathBuf,
}

impl Place {
    /// Opens the directory; it is created if it does not exist.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        fs_err::create_dir_all(path)?;
        let place = Self { root: fs_err::canonicalize(path)? };
        let own = place.root.join(OWN_FOLDER);
        if fs_err::symlink_metadata(&own).is_ok_and(|found| !found.is_dir()) {
            anyhow::bail!("{} is no folder: remove it", own.display());
        }
        fs_err::create_dir_all(own)?;
        Ok(place)
    }

    /// The path of a metadata file.
    pub(super) fn own(&self, name: &str) -> PathBuf {
        self.root.join(OWN_FOLDER).join(name)
    }

    /// A temporary file for a download, deleted unless it is persisted.
    pub(super) fn scratch(&self) -> anyhow::Result<NamedTempFile> {
        Ok(tempfile::Builder::new().prefix("part-").tempfile_in(self.root.join(OWN_FOLDER))?)
    }

    /// Whether the file system is case-insensitive.
    pub(super) fn folds_case(&self) -> anyhow::Result<bool> {
        let probe = tempfile::Builder::new().prefix("case-").tempfile_in(self.root.join(OWN_FOLDER))?;
        let name = probe.path().file_name().map(|name| name.to_string_lossy().to_uppercase());
        // The random part may contain no letters; the prefix does.
        Ok(name.is_some_and(|name| fs_err::symlink_metadata(self.own(&name)).is_ok()))
    }

    /// What exists at a path below the directory.
    pub(super) fn look(&self, path: &str) -> anyhow::Result<Local> {
        let mut here = self.root.clone();
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            here.push(name);
            let found = match fs_err::symlink_metadata(&here) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Local::Missing),
                found => found?,
            };
            let fits = if names.peek().is_some() { Metadata::is_dir } else { Metadata::is_file };
            if !fits(&found) {
                return Ok(Local::Blocked);
            }
        }
        Ok(Local::File(hash_of(&here)?))
    }

    /// Creates the folders of a path; false if something else is in the way.
    pub(super) fn make_folder(&self, path: &str) -> anyhow::Result<bool> {
        let mut here = self.root.clone();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            here.push(name);
            match fs_err::symlink_metadata(&here) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Ok(false),
                Err(error) if error.kind() == ErrorKind::NotFound => fs_err::create_dir(&here)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Atomically puts a file at a path where [`Self::look`] found a file or nothing; false if something else is in the
    /// way.
    pub(super) fn put(&self, file: NamedTempFile, path: &str) -> anyhow::Result<bool> {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        if !self.make_folder(folder)? {
            return Ok(false);
        }
        let target = self.root.join(path);
        file.persist(&target).with_context(|| format!("{} cannot be written", target.display()))?;
        Ok(true)
    }

    /// Removes a file, and its parent folders if they are empty.
    pub(super) fn remove(&self, path: &str) -> anyhow::Result<()> {
        fs_err::remove_file(self.root.join(path))?;
        let mut folder = path;
        while let Some((above, _)) = folder.rsplit_once('/') {
            // A folder that is not empty stays, and so do its parents.
            if std::fs::remove_dir(self.root.join(above)).is_err() {
                break;
            }
            folder = above;
        }
        Ok(())
    }
}

/// The hash of a file, in the service's format.
pub(super) fn hash_of(path: &Path) -> anyhow::Result<String> {
    let mut file = fs_err::File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(format!("blake3:{}", hasher.finalize().to_hex()));
        }
        hasher.update(buffer.get(..read).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn put(place: &Place, path: &str, text: &str) -> bool {
        let mut file = place.scratch().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        place.put(file, path).unwrap()
    }

    #[test]
    fn files_are_put_found_and_removed_with_their_folders() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::open(&folder.path().join("new")).unwrap();
        assert_eq!(place.look("files/a/b.md").unwrap(), Local::Missing);
        assert!(put(&place, "files/a/b.md", "text"));
        let expected = format!("blake3:{}", blake3::hash(b"text").to_hex());
        assert_eq!(place.look("files/a/b.md").unwrap(), Local::File(expected));
        assert_eq!(place.look("files/a").unwrap(), Local::Blocked);
        assert_eq!(place.look("files/a/b.md/c").unwrap(), Local::Blocked);
        assert!(put(&place, "files/c.md", "other"));
        place.remove("files/a/b.md").unwrap();
        assert!(!folder.path().join("new/files/a").exists() && folder.path().join("new/files/c.md").exists());
        let left = fs_err::read_dir(place.own("")).unwrap().count();
        assert_eq!(left, 0, "nothing of what was coming is left");
    }

    #[test]
    fn no_link_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs_err::write(outside.path().join("own.md"), "mine").unwrap();
        let place = Place::open(folder.path()).unwrap();
        fs_err::create_dir(folder.path().join("files")).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("files/out")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("own.md"), folder.path().join("files/own.md"))
            .unwrap();
        assert_eq!(place.look("files/out/own.md").unwrap(), Local::Blocked);
        assert_eq!(place.look("files/out/new.md").unwrap(), Local::Blocked);
        assert_eq!(place.look("files/own.md").unwrap(), Local::Blocked);
        assert!(!put(&place, "files/out/new.md", "x"));
        assert!(!place.make_folder("files/out/deeper").unwrap());
        assert_eq!(fs_err::read_dir(outside.path()).unwrap().count(), 1);
        assert_eq!(fs_err::read_to_string(outside.path().join("own.md")).unwrap(), "mine");
    }
}
