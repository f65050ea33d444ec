//! How much of the log of a SQLite database is visible to readers, according to the WAL index.
//!
//! The log's own bytes do not tell: a transaction is in it, with its commit frame, before it becomes visible. Both
//! formats are stable and documented (https://sqlite.org/walformat.html, https://sqlite.org/fileformat2.html).

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::Part;

const HEAD_BYTES: usize = 32;
const FRAME_HEAD_BYTES: u64 = 24;
/// The offset of the salt in the header of the log.
const SALT: usize = 16;
/// The index begins with two copies of its header, which differ while it is being written.
const INDEX_HEAD_BYTES: usize = 48;
/// Offsets in the header of the index: page size, number of visible frames, and the salt of the log that it belongs to.
const PAGE_SIZE: usize = 14;
const FRAMES: usize = 16;
const INDEX_SALT: usize = 32;
/// The encoding of a page size that does not fit into two bytes.
const LARGEST_PAGE: (u16, u64) = (1, 65_536);

/// The header of a log. A reset writes a new one first.
pub(super) type Head = [u8; HEAD_BYTES];

/// A log and its index. Both stay open as long as a connection: closing a file releases all POSIX locks of this process
/// on it.
pub(super) struct Log {
    log: File,
    index: File,
}

/// The part of a log that is visible to readers.
pub(super) struct Seen {
    head: Option<Head>,
    length: u64,
}

impl Log {
    /// Opens the files of a database that a connection has read.
    pub(super) fn open(log: &Path, index: &Path) -> io::Result<Self> {
        let open = |path| fs_err::File::open(path).map(|file| file.into_parts().0);
        Ok(Self { log: open(log)?, index: open(index)? })
    }

    /// The part that is visible now; `None` while the index is being written.
    pub(super) fn look(&self) -> io::Result<Option<Seen>> {
        let mut heads = [0; 2 * INDEX_HEAD_BYTES];
        self.index.read_exact_at(&mut heads, 0)?;
        let (first, second) = heads.split_at(INDEX_HEAD_BYTES);
        if first != second {
            return Ok(None);
        }
        let page = bytes_at(first, PAGE_SIZE).map_or(0, u16::from_ne_bytes);
        let frames = u64::from(bytes_at(first, FRAMES).map_or(0, u32::from_ne_bytes));
        if frames == 0 {
            return Ok(Some(Seen { head: None, length: 0 }));
        }
        let Some(head) = head_of(&self.log)? else { return Ok(None) };
        if bytes_at::<8>(first, INDEX_SALT) != bytes_at::<8>(&head, SALT) {
            return Ok(None);
        }
        let page = if page == LARGEST_PAGE.0 { LARGEST_PAGE.1 } else { u64::from(page) };
        let length = HEAD_BYTES as u64 + frames * (FRAME_HEAD_BYTES + page);
        Ok(Some(Seen { head: Some(head), length }))
    }

    /// The visible part of the log, if any, and the index, which must stay open.
    pub(super) fn into_part(self, name: String, seen: Seen) -> (Option<Part>, File) {
        let Self { log, index } = self;
        let Seen { head, length } = seen;
        (head.map(|head| Part { name, file: log, length, head: Some(head) }), index)
    }
}

/// `None` for an empty log.
pub(super) fn head_of(file: &File) -> io::Result<Option<Head>> {
    let mut head = [0; HEAD_BYTES];
    match file.read_exact_at(&mut head, 0) {
        Ok(()) => Ok(Some(head)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn bytes_at<const LENGTH: usize>(bytes: &[u8], at: usize) -> Option<[u8; LENGTH]> {
    bytes.get(at..)?.first_chunk().copied()
}
