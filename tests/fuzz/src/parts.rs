//! Archives and PDFs out of inputs: a fuzzer finds texts by itself, and no checksum or place.

use std::io::{Cursor, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// More entries are no other archive.
const MAX_ENTRIES: usize = 64;
/// A line that ends an entry.
const END: &[u8] = b"\n%%%%\n";

/// An archive of the entries in an input: each a line with its name, then what it holds, up to a line of `%%%%`. What is no name
/// that can be written is left out.
pub fn archive(input: &[u8]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for entry in divided(input).take(MAX_ENTRIES) {
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

/// A PDF of the objects in an input, which lines of `%%%%` divide: the first is the catalog. Where each begins is right, which no input
/// finds by chance.
pub fn pdf(input: &[u8]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n".to_vec();
    let mut table = String::new();
    let mut size = 1;
    for object in divided(input).take(MAX_ENTRIES) {
        table.push_str(&format!("{:010} 00000 n \n", bytes.len()));
        bytes.extend(format!("{size} 0 obj\n").as_bytes());
        bytes.extend(object);
        bytes.extend(b"\nendobj\n");
        size += 1;
    }
    let start = bytes.len();
    let end = format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    bytes.extend(format!("xref\n0 {size}\n0000000000 65535 f \n{table}{end}").as_bytes());
    bytes
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
