//! How far the log of a SQLite database is committed, from its own bytes (https://sqlite.org/fileformat2.html, "The
//! Write-Ahead Log").

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::Part;

const HEAD_BYTES: usize = 32;
const FRAME_HEAD_BYTES: usize = 24;
/// Where the numbers of a head are.
const PAGE_SIZE: usize = 8;
const SALT: usize = 16;
/// Where those of a frame are.
const PAGES_AFTER_COMMIT: usize = 4;
const FRAME_SALT: usize = 8;

/// What a log begins with. Whoever begins it anew writes another one first.
pub(super) type Head = [u8; HEAD_BYTES];

/// A log that is looked at now and again.
pub(super) struct Log {
    /// None where there is no log.
    file: Option<File>,
    head: Option<Head>,
    /// Where the last commit ends that was seen.
    committed: u64,
}

impl Log {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = match fs_err::File::open(path) {
            Ok(file) => Some(file.into_parts().0),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self { file, head: None, committed: 0 })
    }

    /// Finds the last commit. What stands behind it belongs to a transaction that is under way, or to nothing any more.
    pub(super) fn look(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let head = head_of(file)?;
        if head != self.head || self.committed == 0 {
            (self.head, self.committed) = (head, HEAD_BYTES as u64);
        }
        let Some(head) = self.head else { return Ok(()) };
        let (Some(page), Some(salt)) = (number(&head, PAGE_SIZE), head.get(SALT..SALT + 8)) else {
            return Ok(());
        };
        let step = FRAME_HEAD_BYTES as u64 + u64::from(page);
        let (length, mut at) = (file.metadata()?.len(), self.committed);
        while at + step <= length {
            let mut frame = [0; FRAME_HEAD_BYTES];
            file.read_exact_at(&mut frame, at)?;
            if frame.get(FRAME_SALT..FRAME_SALT + 8) != Some(salt) {
                break;
            }
            at += step;
            if number(&frame, PAGES_AFTER_COMMIT).is_some_and(|pages| pages > 0) {
                self.committed = at;
            }
        }
        Ok(())
    }

    /// What of it is committed, if anything is.
    pub(super) fn into_part(self, name: String) -> Option<Part> {
        let is_empty = self.committed <= HEAD_BYTES as u64;
        let (file, head) = (self.file?, self.head?);
        // Kept open even so, for the locks.
        Some(Part { name, file, length: if is_empty { 0 } else { self.committed }, head: Some(head) })
    }
}

/// None of a log to which nothing was written.
pub(super) fn head_of(file: &File) -> io::Result<Option<Head>> {
    let mut head = [0; HEAD_BYTES];
    match file.read_exact_at(&mut head, 0) {
        Ok(()) => Ok(Some(head)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes))
}
