//! Document store files, read with `pread` instead of memory-mapped.
//!
//! They are most of the index, and loading the vectors of a workspace reads all of them once. With a mapping, each page ever read
//! would count towards the process's resident memory until the segment is merged. With `pread`, the range is copied and the page
//! cache stays the kernel's, which evicts it before mapped pages.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use tantivy::HasLen;
use tantivy::directory::error::OpenReadError;
use tantivy::directory::{Directory as _, FileHandle, MmapDirectory, OwnedBytes};

/// The extension of document store files.
const EXTENSION: &str = "store";

/// Ranges of at least this many bytes are mapped while they are in use: a merge reads all blocks of a segment at once, and a copy
/// would take as much heap.
const MAPPED_FROM: usize = 1 << 20;

/// An open document store file.
#[derive(Debug)]
pub(super) struct StoreFile {
    file: File,
    length: usize,
    /// Relative to `mapped`.
    path: PathBuf,
    mapped: MmapDirectory,
}

impl StoreFile {
    /// Whether a file of the index is a document store.
    pub(super) fn is_store(path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == EXTENSION)
    }

    /// Opens a file of the folder `root`, which `mapped` maps.
    pub(super) fn open(root: &Path, path: &Path, mapped: &MmapDirectory) -> Result<Self, OpenReadError> {
        let failed = |error: io::Error| {
            if error.kind() == io::ErrorKind::NotFound {
                return OpenReadError::FileDoesNotExist(path.to_path_buf());
            }
            OpenReadError::wrap_io_error(error, path.to_path_buf())
        };
        let file = File::open(root.join(path)).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let length = usize::try_from(bytes).map_err(|error| failed(io::Error::other(error)))?;
        Ok(Self { file, length, path: path.to_path_buf(), mapped: mapped.clone() })
    }
}

impl HasLen for StoreFile {
    fn len(&self) -> usize {
        self.length
    }
}

impl FileHandle for StoreFile {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        // A file that was removed meanwhile is still open here, but can no longer be mapped.
        if range.len() >= MAPPED_FROM
            && let Ok(map) = self.mapped.get_file_handle(&self.path)
        {
            return map.read_bytes(range);
        }
        let mut bytes = vec![0; range.len()];
        self.file.read_exact_at(&mut bytes, range.start as u64)?;
        Ok(OwnedBytes::new(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_pieces_are_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let written: Vec<u8> = (0..3 << 20).map(|place: u32| (place % 251) as u8).collect();
        fs_err::write(folder.path().join("a.store"), &written).unwrap();
        let mapped = MmapDirectory::open(folder.path()).unwrap();
        let open = || StoreFile::open(folder.path(), Path::new("a.store"), &mapped);
        let file = open().unwrap();
        assert_eq!(file.len(), written.len());
        let ranges = [0..0, 7..4_103, 5..MAPPED_FROM + 4, MAPPED_FROM..MAPPED_FROM * 3];
        for range in ranges.clone() {
            assert_eq!(*file.read_bytes(range.clone()).unwrap(), written[range]);
        }
        file.read_bytes(MAPPED_FROM * 3 - 1..MAPPED_FROM * 3 + 1).unwrap_err();

        fs_err::remove_file(folder.path().join("a.store")).unwrap();
        for range in ranges {
            assert_eq!(*file.read_bytes(range.clone()).unwrap(), written[range]);
        }
        assert!(matches!(open().unwrap_err(), OpenReadError::FileDoesNotExist(_)));
    }

    #[test]
    fn only_stored_chunks_are_read_so() {
        assert!(StoreFile::is_store(Path::new("02b1d2e8103d452ea3f31c66637fce39.store")));
        for other in ["02b1d2e8103d452ea3f31c66637fce39.idx", "meta.json", "store", ".tantivy-meta.lock"] {
            assert!(!StoreFile::is_store(Path::new(other)), "{other}");
        }
    }
}
