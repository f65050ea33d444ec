//! The index's files: memory-mapped (document stores are read with `pread`, see `stored.rs`), written without fsync.
//!
//! Everything here can be rebuilt from the feeds, so durability is not worth the 50 to 90 ms that fsync adds to each commit. What
//! was passed to `write(2)` survives a crash of the process; after a crash of the machine the files are verified (`folder.rs`).

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

/// tantivy's list of its files, which it uses for garbage collection.
const FILE_LIST: &str = ".managed.json";

/// The extension of temporary files that are renamed once they are complete.
const UNFINISHED: &str = "unfinished";

/// A folder of index files.
///
/// Locks are those of [`MmapDirectory`] (`flock`): the kernel releases them with the process, and a waiter wakes at once, whereas
/// tantivy's default for custom directories polls every 100 ms.
#[derive(Clone, Debug)]
pub(super) struct UnsyncedDirectory {
    mapped: MmapDirectory,
    root: PathBuf,
    writes: Arc<AtomicU64>,
}

impl UnsyncedDirectory {
    /// Opens an existing folder and removes temporary files that an earlier process left behind.
    pub(super) fn open(root: &Path) -> Result<Self, OpenDirectoryError> {
        let directory = Self::open_to_read(root)?;
        remove_unfinished(root)
            .map_err(|error| OpenDirectoryError::wrap_io_error(error, root.to_path_buf()))?;
        Ok(directory)
    }

    /// Opens an existing folder that another process may be writing to: nothing in it is removed.
    pub(super) fn open_to_read(root: &Path) -> Result<Self, OpenDirectoryError> {
        Ok(Self { mapped: MmapDirectory::open(root)?, root: root.to_path_buf(), writes: Arc::default() })
    }

    /// The names of all files except locks, in the format of tantivy's file list.
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
        // tantivy rewrites the list for each file of a segment, which would take most of the time of a small commit. It reads the
        // list only when it opens the folder; the directory listing replaces it then.
        if path == Path::new(FILE_LIST) {
            return Ok(());
        }
        // A unique name, since two threads may replace the same file.
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
        // The reader is reloaded by the writing process itself.
        Ok(WatchHandle::empty())
    }
}

/// A file that is not fsynced.
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
