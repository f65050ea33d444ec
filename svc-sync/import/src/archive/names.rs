//! Decodes the names of entries, whose encoding ZIP leaves open: UTF-8 if valid (macOS does not set the flag), else detected from the bytes.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use unicode_normalization::UnicodeNormalization as _;
use zip::read::OwnedZipFileEntry;

/// The names of entries, with `/` between folders and composed, and whether each was guessed. One tool wrote all of them,
/// so all that are not UTF-8 are guessed at together.
pub(super) fn decode(heads: &[OwnedZipFileEntry]) -> Vec<(String, bool)> {
    let guess = guess(heads.iter().map(OwnedZipFileEntry::name_raw));
    heads.iter().map(|head| name(head, guess)).collect()
}

fn name(head: &OwnedZipFileEntry, guess: Option<&'static Encoding>) -> (String, bool) {
    let raw = head.name_raw();
    if let Ok(text) = std::str::from_utf8(raw) {
        return (tidy(text), false);
    }
    let guessed =
        guess.and_then(|encoding| encoding.decode_without_bom_handling_and_without_replacement(raw));
    match guessed {
        Some(text) => (tidy(&text), true),
        // Where a name is not UTF-8, the crate decodes it as CP437, in which every byte is a character.
        None => (tidy(&head.name().unwrap_or_else(|_| String::from_utf8_lossy(raw))), true),
    }
}

/// The encoding that names look like; `None` for that of DOS, which is what ZIP says in case of doubt.
fn guess<'a>(names: impl Iterator<Item = &'a [u8]> + Clone) -> Option<&'static Encoding> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let mut any = false;
    for name in names.clone().filter(|name| std::str::from_utf8(name).is_err()) {
        any = true;
        detector.feed(name, false);
        detector.feed(b"\n", false);
    }
    if !any {
        return None;
    }
    detector.feed(b"", true);
    let encoding = detector.guess(None, Utf8Detection::Deny);
    if encoding == UTF_8 {
        return None;
    }
    // Windows-1252 is also what the detector says when it knows nothing. Its letters are where CP437 has lines and boxes,
    // and the other way round.
    let high = || {
        names
            .clone()
            .filter(|name| std::str::from_utf8(name).is_err())
            .flatten()
            .filter(|byte| **byte >= 0x80)
    };
    if encoding == WINDOWS_1252 && high().any(|byte| *byte < 0xC0) {
        return None;
    }
    Some(encoding)
}

fn tidy(name: &str) -> String {
    name.chars().map(|char| if char == '\\' { '/' } else { char }).nfc().collect()
}
