//! Untrusted ZIP files: validated as a whole before anything is decompressed, and bounded while it is.
//!
//! The `zip` crate reads the format. This module enforces the limits of the import's contract: the number of entries, their declared size
//! relative to the archive, no overlapping entries, and no entry larger than declared. An archive that violates one is refused; an
//! unreadable entry only fails itself.

mod names;
mod tree;

#[cfg(test)]
pub(crate) mod testing;

use std::collections::BTreeSet;
use std::io::{self, Read, Seek, SeekFrom};

use zip::ZipReadOptions;

use zip::read::{Config, OwnedZipFileEntry};
use zip::result::ZipError;
use zip::unstable::read::ZipIterable;

pub(crate) use self::tree::shortened;
pub use self::tree::{Tree, TreeFile};
use crate::report::{Warning, WarningCode};
use crate::text::{self, MAX_TEXT_BYTES};

/// Entries of an archive and its parts.
pub const MAX_ENTRIES: usize = 100_000;
/// Decompressed bytes of all entries, in addition to [`MAX_RATIO`] times the archive's size.
const MAX_BYTES: u64 = 100 * 1024 * 1024;
const MAX_RATIO: u64 = 50;
/// Bytes of the central directory, which is held in memory.
const MAX_DIRECTORY_BYTES: u64 = 32 * 1024 * 1024;
/// The size of a local header without its name (APPNOTE 4.3.7).
const LOCAL_HEADER: usize = 30;
const LOCAL_MAGIC: [u8; 4] = *b"PK\x03\x04";
const CHUNK: usize = 64 * 1024;
/// Missing parts that are reported.
const MAX_MISSING: usize = 20;

/// Why an archive is refused as a whole.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Not a ZIP file, truncated, or inconsistent.
    #[error("the file is not a ZIP archive that can be read: {0}")]
    Invalid(&'static str),
    /// Encrypted entries.
    #[error("the archive is encrypted")]
    Encrypted,
    /// More entries or decompressed bytes than an archive of its size may have.
    #[error("the archive unpacks to far more than an import may hold")]
    Bomb,
    /// Nothing in it can be imported.
    #[error("the archive holds nothing that can be imported")]
    Empty,
    /// An I/O error while reading the archive.
    #[error("the archive could not be read")]
    Io(#[source] io::Error),
}

impl ArchiveError {
    /// The code of the violation for the caller; `None` when the failure is on our side.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Invalid(_) => Some("archive_invalid"),
            Self::Encrypted => Some("archive_encrypted"),
            Self::Bomb => Some("archive_bomb"),
            Self::Empty => Some("nothing_to_import"),
            Self::Io(_) => None,
        }
    }
}

/// Why an entry could not be read.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// Its bytes contradict its declared size or checksum.
    #[error("the entry is damaged")]
    Corrupt,
    /// It is larger than the caller's limit.
    #[error("the entry is too large")]
    TooLarge,
    /// The sink failed.
    #[error("the entry's bytes could not be passed on")]
    Sink(#[source] io::Error),
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// Bytes.
    File,
    /// A folder by itself.
    Folder,
    /// A symbolic link, which is never followed.
    Symlink,
}

/// An entry of an archive.
#[derive(Debug)]
pub struct Entry {
    /// The decoded name, with `/` as separator and in NFC. Never used as a path on disk.
    pub name: String,
    /// Its kind.
    pub kind: EntryKind,
    /// The declared decompressed size, which is enforced.
    pub size: u64,
    volume: usize,
    head: OwnedZipFileEntry,
}

/// Receives the bytes of an entry in chunks.
pub type Sink<'a> = dyn FnMut(&[u8]) -> io::Result<()> + 'a;

/// An archive, with the parts that were added to it.
#[derive(Debug)]
pub struct Archive<R> {
    volumes: Vec<R>,
    entries: Vec<Entry>,
    warnings: Vec<Warning>,
    /// The remaining budget of decompressed bytes.
    left: u64,
}

impl<R: Read + Seek> Archive<R> {
    /// Opens an archive: reads its directory and the local headers, and decompresses nothing.
    ///
    /// # Errors
    /// [`ArchiveError`] when it is refused as a whole.
    pub fn open(mut file: R) -> Result<Self, ArchiveError> {
        let size = file.seek(SeekFrom::End(0)).map_err(ArchiveError::Io)?;
        let left = size.saturating_mul(MAX_RATIO).saturating_add(MAX_BYTES);
        let mut archive = Self { volumes: Vec::new(), entries: Vec::new(), warnings: Vec::new(), left };
        archive.add_part(file)?;
        Ok(archive)
    }

    /// Adds the entries of a nested archive. They count toward the limits of the whole.
    ///
    /// # Errors
    /// [`ArchiveError`] when it is refused; the import is then refused with it.
    pub fn add_part(&mut self, mut file: R) -> Result<(), ArchiveError> {
        let volume = self.volumes.len();
        let heads = self.heads(&mut file)?;
        no_overlap(&mut file, &heads)?;
        let names = names::decode(&heads);
        self.entries.reserve_exact(heads.len());
        for (head, (name, guessed)) in heads.into_iter().zip(names) {
            if guessed {
                self.warnings.push(Warning::new(&name, WarningCode::NameEncoding));
            }
            let kind = match () {
                () if head.is_symlink() => EntryKind::Symlink,
                () if head.is_dir() || name.ends_with('/') => EntryKind::Folder,
                () => EntryKind::File,
            };
            self.entries.push(Entry { name, kind, size: head.size(), volume, head });
        }
        self.volumes.push(file);
        Ok(())
    }

    /// Reads and validates the directory.
    fn heads(&mut self, file: &mut R) -> Result<Vec<OwnedZipFileEntry>, ArchiveError> {
        let mut zip = ZipIterable::try_new(&mut *file, Config::default()).map_err(|error| refused(&error))?;
        if zip.len() > MAX_ENTRIES.saturating_sub(self.entries.len()) {
            return Err(ArchiveError::Bomb);
        }
        let mut heads: Vec<OwnedZipFileEntry> = Vec::new();
        let mut begin = None;
        for head in zip.files().map_err(|error| refused(&error))? {
            let head = OwnedZipFileEntry::from(head.map_err(|error| refused(&error))?);
            if head.encrypted() {
                return Err(ArchiveError::Encrypted);
            }
            let place = head.central_header_start();
            if place.saturating_sub(*begin.get_or_insert(place)) > MAX_DIRECTORY_BYTES {
                return Err(ArchiveError::Bomb);
            }
            self.left = self.left.checked_sub(head.size()).ok_or(ArchiveError::Bomb)?;
            heads.push(head);
        }
        match heads.last() {
            Some(last) if goes_on(file, last.central_header_start()) => {
                Err(ArchiveError::Invalid("its directory holds more entries than it says"))
            }
            _ => Ok(heads),
        }
    }

    /// The entries of all parts, in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Names whose encoding was guessed.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The entries that are parts of this archive by their names: `…Part-N.zip` at the root, or in a single top folder. The caller extracts
    /// each and passes it to [`Archive::add_part`].
    #[must_use]
    pub fn parts(&self) -> Vec<usize> {
        let files = || {
            self.entries
                .iter()
                .filter(|entry| entry.kind == EntryKind::File && !tree::is_ignored(&entry.name))
        };
        let top = files().next().and_then(|entry| entry.name.split_once('/')).map(|(top, _)| top);
        let top = top.filter(|top| files().all(|entry| entry.name.split('/').next() == Some(top)));
        let is_part = |entry: &Entry| {
            let in_top = top.and_then(|top| entry.name.strip_prefix(top)?.strip_prefix('/'));
            entry.kind == EntryKind::File
                && !tree::is_ignored(&entry.name)
                && is_part(in_top.unwrap_or(&entry.name))
        };
        self.entries.iter().enumerate().filter(|(_, entry)| is_part(entry)).map(|(index, _)| index).collect()
    }

    /// Names of missing parts, according to the numbers of the others or of the archive's own name. Limited in number.
    pub(crate) fn missing_parts(&self, parts: &[usize], file_name: &str) -> Vec<Warning> {
        let of_parts = parts.iter().filter_map(|index| self.entries.get(*index));
        let mut names: Vec<&str> = of_parts.map(|entry| entry.name.as_str()).collect();
        if names.is_empty() {
            names.push(file_name);
        }
        let mut before = "";
        let mut known = BTreeSet::new();
        for (begin, number) in names.into_iter().filter_map(|name| split_part(name.rsplit('/').next()?)) {
            before = begin;
            known.extend(number.parse::<u32>());
        }
        let last = known.last().copied().unwrap_or_default();
        let missing = (1..last).filter(|number| !known.contains(number)).take(MAX_MISSING);
        missing
            .map(|number| Warning::new(format!("{before}{number}.zip"), WarningCode::PartMissing))
            .collect()
    }

    /// The bytes of an entry.
    ///
    /// # Errors
    /// [`EntryError::TooLarge`] when it says that it holds more than `most` bytes, [`EntryError::Corrupt`] when it holds
    /// other bytes than it says.
    pub fn read(&mut self, index: usize, most: u64) -> Result<Vec<u8>, EntryError> {
        let entry = self.entries.get(index).ok_or(EntryError::Corrupt)?;
        if entry.size > most {
            return Err(EntryError::TooLarge);
        }
        let mut bytes = Vec::new();
        self.copy(index, &mut |chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// The text of an entry, and whether it was clean: UTF-8, or UTF-16 with its byte order mark, and without NUL characters.
    ///
    /// # Errors
    /// As [`Archive::read`], with [`MAX_TEXT_BYTES`] for the entry and for its text.
    pub fn text(&mut self, index: usize) -> Result<(String, bool), EntryError> {
        let most = u64::try_from(MAX_TEXT_BYTES).unwrap_or(u64::MAX);
        let (text, is_clean) = text::decode(self.read(index, most)?);
        if text.len() > MAX_TEXT_BYTES { Err(EntryError::TooLarge) } else { Ok((text, is_clean)) }
    }

    /// Streams the bytes of an entry. After an error, the bytes before it must be discarded.
    ///
    /// # Errors
    /// [`EntryError::Corrupt`] when it holds other bytes than it says, [`EntryError::Sink`] when the sink fails.
    pub fn copy(&mut self, index: usize, sink: &mut Sink<'_>) -> Result<u64, EntryError> {
        let entry = self.entries.get(index).ok_or(EntryError::Corrupt)?;
        let volume = self.volumes.get_mut(entry.volume).ok_or(EntryError::Corrupt)?;
        let opened = entry.head.as_ref().with_reader(volume, ZipReadOptions::new());
        let mut reader = opened.map_err(|_| EntryError::Corrupt)?;
        let mut chunk = vec![0; CHUNK];
        let mut copied = 0_u64;
        loop {
            // The reader verifies the checksum at the end.
            let count = reader.read(&mut chunk).map_err(|_| EntryError::Corrupt)?;
            let bytes = chunk.get(..count).ok_or(EntryError::Corrupt)?;
            copied = copied.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
            if copied > entry.size || (count == 0 && copied < entry.size) {
                return Err(EntryError::Corrupt);
            }
            if count == 0 {
                return Ok(copied);
            }
            sink(bytes).map_err(EntryError::Sink)?;
        }
    }
}

/// Whether a file name is that of a part of an export: `…Part-1.zip`.
fn is_part(name: &str) -> bool {
    split_part(name).is_some()
}

/// The name of a part of an export, up to its number and the number.
fn split_part(name: &str) -> Option<(&str, &str)> {
    let lower = name.to_ascii_lowercase();
    let stem = lower.strip_suffix(".zip")?;
    let begin = stem.rfind("part-")? + "part-".len();
    let (before, number) = (name.get(..begin)?, name.get(begin..stem.len())?);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !name.contains('/')).then_some((before, number))
}

/// Whether the directory has more entries than it declares.
fn goes_on<R: Read + Seek>(file: &mut R, last: u64) -> bool {
    const CENTRAL_HEADER: usize = 46;
    const CENTRAL_MAGIC: [u8; 4] = *b"PK\x01\x02";
    let mut head = [0; CENTRAL_HEADER];
    let lengths = |head: &[u8; CENTRAL_HEADER]| {
        [28, 30, 32].into_iter().map(|place| u64::from(short(head, place))).sum::<u64>() + 46
    };
    let mut magic = [0; 4];
    let read = read_at(file, last, &mut head).and_then(|()| read_at(file, last + lengths(&head), &mut magic));
    read.is_ok() && magic == CENTRAL_MAGIC
}

/// Refuses entries that overlap with each other or the directory: a zip bomb stores data once and references it many times. An entry without
/// a local header is unreadable and only fails itself.
fn no_overlap<R: Read + Seek>(file: &mut R, heads: &[OwnedZipFileEntry]) -> Result<(), ArchiveError> {
    let directory = heads.first().map_or(u64::MAX, OwnedZipFileEntry::central_header_start);
    let mut places = Vec::with_capacity(heads.len());
    for head in heads {
        let begin = head.header_start();
        if begin >= directory {
            return Err(ArchiveError::Invalid("an entry begins behind the directory"));
        }
        let mut local = [0; LOCAL_HEADER];
        if read_at(file, begin, &mut local).is_err() || !local.starts_with(&LOCAL_MAGIC) {
            continue;
        }
        let head_bytes = 30 + u64::from(short(&local, 26)) + u64::from(short(&local, 28));
        let end = begin.saturating_add(head_bytes).saturating_add(head.compressed_size());
        places.push((begin, end));
    }
    places.sort_unstable();
    let overlaps = places.windows(2).any(|pair| matches!(pair, [(_, end), (begin, _)] if end > begin));
    let ends_late = places.last().is_some_and(|(_, end)| *end > directory);
    if overlaps || ends_late {
        return Err(ArchiveError::Invalid("entries overlap each other or the directory"));
    }
    Ok(())
}

fn read_at<R: Read + Seek>(file: &mut R, place: u64, bytes: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(place))?;
    file.read_exact(bytes)
}

/// A two-byte number in a header.
fn short(head: &[u8], place: usize) -> u16 {
    let byte = |place: usize| head.get(place).copied().unwrap_or_default();
    u16::from_le_bytes([byte(place), byte(place + 1)])
}

/// Maps an error of the `zip` crate. It also reports invalid offsets as I/O errors.
fn refused(error: &ZipError) -> ArchiveError {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    if let ZipError::Io(error) = error
        && !matches!(error.kind(), UnexpectedEof | InvalidInput | InvalidData | Other)
    {
        return ArchiveError::Io(error.kind().into());
    }
    ArchiveError::Invalid("its directory cannot be read")
}

#[cfg(test)]
mod tests;
