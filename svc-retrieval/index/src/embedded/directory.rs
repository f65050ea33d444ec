//! The index's files: read by memory map (stored chunks piece by piece, see `stored.rs`), written without fsync.
//!
//! Everything here can be rebuilt from the feeds, so durability is not worth the 50 to 90 ms that fsync
//! adds to each commit. What `write(2)` took survives the death of the process; after the death of the
//! machine the owner of the folder checks it (see `folder.rs`).

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tantivy::directory::error::{DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite,
    WatchCallback, WatchHandle, WritePtr,
};

use super::stored::StoreFile;

/// tantivy's list of the files that it made, by which it later finds those to remove.
const FILE_LIST: &str = ".managed.json";

/// Ending of the files that become visible by a rename.
const UNFINISHED: &str = "unfinished";

/// A folder of index files.
///
/// Locks are those of [`MmapDirectory`] (`flock`): they end with the process, and waiting for one wakes at
/// once, where tantivy's default for own directories sleeps in steps of 100 ms.
#[derive(Clone, Debug)]
pub(super) struct UnsyncedDirectory {
    mapped: MmapDirectory,
    root: PathBuf,
    writes: Arc<AtomicU64>,
}

impl UnsyncedDirectory {
    /// Opens an existing folder and removes what an earlier process left unfinished in it.
    pub(super) fn open(root: &Path) -> Result<Self, OpenDirectoryError> {
        let directory = Self::open_to_read(root)?;
        remove_unfinished(root)
            .map_err(|error| OpenDirectoryError::wrap_io_error(error, root.to_path_buf()))?;
        Ok(directory)
    }

    /// Opens an existing folder that another process may write: nothing in it is removed.
    pub(super) fn open_to_read(root: &Path) -> Result<Self, OpenDirectoryError> {
        Ok(Self { mapped: MmapDirectory::open(root)?, root: root.to_path_buf(), writes: Arc::default() })
    }

    /// The names of all files but locks, as tantivy reads them.
    fn list_files(&self) -> io::Result<Vec<u8>> {
        let mut names = Vec::new();
        for entry in fs_err::read_dir(&self.root)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') {
                names.push(name);
            }
        }
        Ok(serde_json::to_vec(&names)?)
    }
}

fn remove_unfinished(root: &Path) -> io::Result<()> {
    for entry in fs_err::read_dir(root)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == UNFINISHED) {
            fs_err::remove_file(path)?;
        }
    }
    Ok(())
}

impl Directory for UnsyncedDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        if StoreFile::is_store(path) {
            return Ok(Arc::new(StoreFile::open(&self.root, path, &self.mapped)?));
        }
        self.mapped.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.mapped.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.mapped.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let created = OpenOptions::new().write(true).create_new(true).open(self.root.join(path));
        match created {
            Ok(file) => Ok(BufWriter::new(Box::new(UnsyncedFile(file)))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(OpenWriteError::FileAlreadyExists(path.to_path_buf()))
            }
            Err(error) => Err(OpenWriteError::wrap_io_error(error, path.to_path_buf())),
        }
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        if path == Path::new(FILE_LIST) {
            return self
                .list_files()
                .map_err(|error| OpenReadError::wrap_io_error(error, path.to_path_buf()));
        }
        self.mapped.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        // tantivy writes the list for each file of a segment, which would be most of a small commit's time.
        // It reads the list only when it opens the folder, and then the folder itself tells.
        if path == Path::new(FILE_LIST) {
            return Ok(());
        }
        // The number keeps two threads that replace the same file apart.
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.root.join(format!("{number}.{UNFINISHED}"));
        fs_err::write(&unfinished, data)?;
        fs_err::rename(unfinished, self.root.join(path))
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.mapped.acquire_lock(lock)
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        // The one process that writes also reloads: nobody has to be woken.
        Ok(WatchHandle::empty())
    }
}

/// A file that is complete once its last byte was handed to the system.
struct UnsyncedFile(File);

impl Write for UnsyncedFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for UnsyncedFile {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        Ok(())
    }
}
