//! Zip containers of Office files and books, with protection against zip bombs: sizes are checked before and during decompression.

use std::io::{Cursor, Read as _};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::charset;
use crate::kind::{Kind, unsupported};
use crate::model::{Failure, FailureKind};

const MAX_ENTRIES: usize = 10_000;
/// Bytes of all entries, decompressed.
const MAX_BYTES: u64 = 200 * 1024 * 1024;
/// The maximum compression ratio of an entry, above the size up to which text is often this repetitive.
const MAX_RATIO: u64 = 200;
const RATIO_FROM: u64 = 1024 * 1024;

/// A checked archive.
pub(crate) struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
}

impl<'a> Archive<'a> {
    /// Opens an archive, and checks that its entries do not overlap and stay within the limits, by decompressing each once.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, Failure> {
        let mut zip = directory(bytes)?;
        if zip.len() > MAX_ENTRIES {
            return Err(bomb());
        }
        let mut places = Vec::with_capacity(zip.len());
        let mut left = MAX_BYTES;
        for index in 0..zip.len() {
            let entry = zip.by_index_raw(index).map_err(|_| damaged())?;
            if entry.encrypted() {
                return Err(Failure::encrypted());
            }
            let (packed, start) = (entry.compressed_size(), entry.data_start().ok_or_else(damaged)?);
            places.push((entry.header_start(), start.saturating_add(packed)));
            if entry.size() > left || (entry.size() > RATIO_FROM && entry.size() / MAX_RATIO > packed) {
                return Err(bomb());
            }
            drop(entry);
            left -= unpacked(&mut zip, index, left, packed)?;
        }
        places.sort_unstable();
        let overlap = places.windows(2).any(|pair| matches!(pair, [(_, end), (start, _)] if end > start));
        if overlap { Err(bomb()) } else { Ok(Self { zip }) }
    }

    /// The bytes of an entry; `None` if it does not exist.
    pub(crate) fn bytes(&mut self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        let entry = match self.zip.by_name(name) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(_) => return Err(damaged()),
        };
        let mut bytes = Vec::new();
        entry.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|_| damaged())?;
        Ok(Some(bytes))
    }

    /// The text of an XML entry.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let bytes = self.bytes(name)?;
        Ok(bytes.map(|bytes| charset::decode(&bytes, None, charset::named_in_markup(&bytes))))
    }
}

/// Detects the kind of a file by the entries of the archive.
pub(crate) fn kind_of(bytes: &[u8]) -> Result<Kind, Failure> {
    let mut zip = directory(bytes)?;
    if zip.len() > MAX_ENTRIES {
        return Err(bomb());
    }
    let mut declared = String::new();
    if let Ok(entry) = zip.by_name("mimetype") {
        // An unreadable entry declares nothing.
        let _ = entry.take(100).read_to_string(&mut declared);
    }
    let holds = |part: &str| zip.index_for_name(part).is_some();
    let begins = |folder: &str| zip.file_names().flatten().any(|name| name.starts_with(folder));
    let declared = declared.trim();
    match declared {
        "application/epub+zip" => return Ok(Kind::Epub),
        "application/vnd.oasis.opendocument.spreadsheet" => return Ok(Kind::Sheets),
        "application/vnd.oasis.opendocument.text"
        | "application/vnd.oasis.opendocument.text-template"
        | "application/vnd.oasis.opendocument.presentation" => return Ok(Kind::OpenDocument),
        _ => {}
    }
    if holds("META-INF/container.xml") {
        return Ok(Kind::Epub);
    }
    match () {
        () if !holds("[Content_Types].xml") => Err(unsupported(Some("an archive"))),
        () if begins("word/") => Ok(Kind::Docx),
        () if begins("ppt/") => Ok(Kind::Pptx),
        () if begins("xl/") => Ok(Kind::Sheets),
        () => Err(unsupported(None)),
    }
}

fn directory(bytes: &[u8]) -> Result<ZipArchive<Cursor<&[u8]>>, Failure> {
    ZipArchive::new(Cursor::new(bytes)).map_err(|_| damaged())
}

/// The actual size of an entry: the header is untrusted.
fn unpacked(
    zip: &mut ZipArchive<Cursor<&[u8]>>,
    index: usize,
    left: u64,
    packed: u64,
) -> Result<u64, Failure> {
    let entry = zip.by_index(index).map_err(|_| damaged())?;
    let size = std::io::copy(&mut entry.take(left + 1), &mut std::io::sink()).map_err(|_| damaged())?;
    if size > left || (size > RATIO_FROM && size / MAX_RATIO > packed) { Err(bomb()) } else { Ok(size) }
}

fn damaged() -> Failure {
    Failure::broken("an Office file or a book")
}

fn bomb() -> Failure {
    Failure::new(
        FailureKind::TooLarge,
        "The file unpacks to far more than a document holds, and is not read.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::archive;

    fn refused(bytes: &[u8]) -> FailureKind {
        Archive::open(bytes).map(drop).unwrap_err().kind
    }

    #[test]
    fn an_archive_that_unpacks_to_too_much_is_refused() {
        let zeros = "0".repeat(4 * 1024 * 1024);
        assert_eq!(refused(&archive(&[("word/document.xml", zeros.as_str())])), FailureKind::TooLarge);
        let names: Vec<String> = (0..=MAX_ENTRIES).map(|number| number.to_string()).collect();
        let entries: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        assert_eq!(refused(&archive(&entries)), FailureKind::TooLarge);
    }

    #[test]
    fn a_head_that_lies_about_its_size_is_not_believed() {
        let zeros = "0".repeat(4 * 1024 * 1024);
        let mut bytes = archive(&[("a.xml", zeros.as_str())]);
        let size = 4 * 1024 * 1024_u32;
        while let Some(place) = memchr::memmem::find(&bytes, &size.to_le_bytes()) {
            bytes[place..place + 4].copy_from_slice(&10_u32.to_le_bytes());
        }
        // Either too large, or the checksum does not match.
        assert!(matches!(refused(&bytes), FailureKind::TooLarge | FailureKind::Broken));
    }

    #[test]
    fn entries_that_share_their_bytes_are_refused() {
        let mut bytes = archive(&[("one.xml", "some text"), ("two.xml", "some text")]);
        // Makes the second directory entry point to the first one's data.
        let directory = memchr::memmem::rfind(&bytes, b"PK\x01\x02").unwrap();
        bytes[directory + 42..directory + 46].copy_from_slice(&0_u32.to_le_bytes());
        assert!(matches!(refused(&bytes), FailureKind::TooLarge | FailureKind::Broken));
    }

    #[test]
    fn what_is_cut_is_broken_and_what_is_none_of_ours_unsupported() {
        let bytes = archive(&[("word/document.xml", "<a/>"), ("[Content_Types].xml", "<a/>")]);
        assert_eq!(kind_of(&bytes), Ok(Kind::Docx));
        assert_eq!(refused(&bytes[..bytes.len() - 10]), FailureKind::Broken);
        let other = kind_of(&archive(&[("a.txt", "x")])).unwrap_err();
        assert!(other.kind == FailureKind::Unsupported && other.message.contains("an archive"));
    }
}
