//! Reads any bytes as a PDF or a sheet of Excel or OpenDocument: files that packages of others read for the most part.
//!
//! These may loop, take all memory and overflow the stack, which a child contains ([ADR
//! 44](../../../docs/adr/0044-files-are-read-in-child-processes.md)), so the run goes on after each process that ends by that:
//! `tests/fuzz/run.sh foreign`.
#![no_main]

use std::panic::PanicHookInfo;

use cairn_extract::{Kind, Raw};
use cairn_fuzz::{files, parts};
use libfuzzer_sys::fuzz_target;

const XLSX: &[&str] = &[
    "[Content_Types].xml",
    "_rels/.rels",
    "xl/workbook.xml",
    "xl/_rels/workbook.xml.rels",
    "xl/worksheets/sheet1.xml",
    "xl/sharedStrings.xml",
    "xl/styles.xml",
];
const XLSB: &[&str] =
    &["xl/workbook.bin", "xl/_rels/workbook.bin.rels", "xl/worksheets/sheet1.bin", "xl/sharedStrings.bin"];
const ODS: &[&str] = &["mimetype", "content.xml", "META-INF/manifest.xml"];

fuzz_target!(init: files::pass(is_foreign), |input: &[u8]| {
    let [number, rest @ ..] = input else { return };
    let (kind, bytes) = match number % 6 {
        0 => (Kind::Pdf, rest.to_vec()),
        1 => (Kind::Pdf, parts::pdf(rest)),
        2 => (Kind::Sheets, rest.to_vec()),
        3 => (Kind::Sheets, parts::archive_of(XLSX, rest)),
        4 => (Kind::Sheets, parts::archive_of(XLSB, rest)),
        _ => (Kind::Sheets, parts::archive_of(ODS, rest)),
    };
    files::read_whole(Raw { bytes: bytes.into(), kind: Some(kind), ..Raw::default() });
});

/// A panic in the standard library whose caller is not told is none of ours, either: where packages loop, they ask for more than there is.
fn is_foreign(info: &PanicHookInfo<'_>) -> bool {
    let of_std = info.location().is_some_and(|location| location.file().starts_with("/rustc/"));
    of_std || files::is_of_package(info)
}
