//! Archives out of inputs: a fuzzer finds texts by itself, and no checksum.

use std::io::{Cursor, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// More entries are no other archive.
const MOST_ENTRIES: usize = 64;
/// A line that ends an entry.
const END: &[u8] = b"\n%%%%\n";

/// An archive of the entries in an input: each a line with its name, then what it holds, up to a line of `%%%%`. What is no name
/// that can be written is left out.
pub fn archive(input: &[u8]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for entry in divided(input).take(MOST_ENTRIES) {
        let (name, bytes) =
            entry.split_at(entry.iter().position(|byte| *byte == b'\n').unwrap_or(entry.len()));
        add(&mut zip, &String::from_utf8_lossy(name), bytes.get(1..).unwrap_or_default());
    }
    finish(zip)
}

/// An archive with these names, what they hold from an input that is divided by lines of `%%%%`. Names without anything have no
/// entry.
pub fn archive_of(names: &[&str], input: &[u8]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in names.iter().zip(divided(input)).filter(|(_, bytes)| !bytes.is_empty()) {
        add(&mut zip, name, bytes);
    }
    finish(zip)
}

fn add(zip: &mut ZipWriter<Cursor<Vec<u8>>>, name: &str, bytes: &[u8]) {
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    // A name that is there already is refused.
    if zip.start_file(name, options).is_ok() {
        zip.write_all(bytes).expect("memory takes it");
    }
}

fn finish(zip: ZipWriter<Cursor<Vec<u8>>>) -> Vec<u8> {
    zip.finish().expect("memory takes it").into_inner()
}

/// The parts of an input, which lines of `%%%%` divide.
pub fn divided(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(input);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(at) = text.windows(END.len()).position(|window| window == END) else {
            rest = None;
            return Some(text);
        };
        rest = text.get(at + END.len()..);
        text.get(..at)
    })
}
