//! Reads any bytes as a file of each kind that text is taken out of: HTML, tables, notebooks, mail, RTF, Office files and books.
//!
//! What parsers of others do to a process is why files are read in children ([ADR
//! 44](../../../docs/adr/0044-files-are-read-in-child-processes.md)): a panic of theirs is no fault here. PDF and sheets, of which they
//! read the most, `foreign` reads. To run it: `tests/fuzz/run.sh extracted`.
#![no_main]

use cairn_extract::{Kind, Raw};
use cairn_fuzz::{files, parts};
use libfuzzer_sys::fuzz_target;

const PLAIN: [Kind; 9] = [
    Kind::Text,
    Kind::Markdown,
    Kind::Json,
    Kind::Yaml,
    Kind::Html,
    Kind::Csv,
    Kind::Notebook,
    Kind::Mail,
    Kind::Rtf,
];
/// Archives, by the parts of them that are read.
const PACKED: [(Kind, &[&str]); 4] = [
    (
        Kind::Docx,
        &[
            "word/document.xml",
            "word/styles.xml",
            "word/numbering.xml",
            "word/footnotes.xml",
            "word/_rels/document.xml.rels",
            "docProps/core.xml",
        ],
    ),
    (
        Kind::Pptx,
        &[
            "ppt/presentation.xml",
            "ppt/_rels/presentation.xml.rels",
            "ppt/slides/slide1.xml",
            "ppt/slides/_rels/slide1.xml.rels",
            "ppt/notesSlides/notesSlide1.xml",
            "docProps/core.xml",
        ],
    ),
    (Kind::OpenDocument, &["content.xml", "styles.xml", "meta.xml", "META-INF/manifest.xml"]),
    (Kind::Epub, &["META-INF/container.xml", "content.opf", "a.xhtml", "b.xhtml", "META-INF/encryption.xml"]),
];
/// By which a kind is guessed.
const NAMES: [&str; 6] = ["a.pdf", "a.xlsx", "a.docx", "a.eml", "a.html", "a"];

fuzz_target!(init: files::pass(files::is_of_package), |input: &[u8]| {
    let [kind, rest @ ..] = input else { return };
    let raw = raw(usize::from(*kind), rest);
    let is_foreign = Kind::of(&raw).is_ok_and(|kind| matches!(kind, Kind::Pdf | Kind::Sheets));
    if !is_foreign {
        files::read_whole(raw);
    }
});

/// The document of an input. The kind of some is found out, by a name or without one.
fn raw(number: usize, rest: &[u8]) -> Raw {
    let of_provider = number & 0x80 != 0;
    let number = number & 0x7f;
    let (kind, bytes) = match (PLAIN.get(number), PACKED.get(number.wrapping_sub(PLAIN.len()))) {
        (Some(plain), _) => (Some(*plain), rest.to_vec()),
        (None, Some((packed, names))) => (Some(*packed), parts::archive_of(names, rest)),
        (None, None) => (None, rest.to_vec()),
    };
    let name = NAMES.get(number % (NAMES.len() + 1)).map(|name| (*name).to_owned());
    let base_url = Some("https://example.com/a/b".to_owned());
    Raw { bytes: bytes.into(), kind, name, base_url, of_provider, ..Raw::default() }
}
