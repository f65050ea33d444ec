//! Reads any bytes as a file of each kind that text is taken out of: HTML, tables, notebooks, mail, RTF, Office files and books.
//!
//! What parsers of others do to a process is why files are read in children ([ADR
//! 44](../../../docs/adr/0044-files-are-read-in-child-processes.md)): a panic of theirs is no fault here. PDF and sheets, of which they read
//! the most (`unpdf`, `calamine`), are read when `CAIRN_FUZZ_FOREIGN` is set: they may also loop and take all memory. To run it:
//! `tests/fuzz/run.sh extracted`.
#![no_main]

use std::panic::{self, PanicHookInfo};
use std::sync::LazyLock;
use std::thread;

use cairn_extract::{Failure, Format, Kind, MOST_TEXT_BYTES, Raw, Text, read, visible};
use cairn_fuzz::parts;
use libfuzzer_sys::fuzz_target;

/// As in a child: parsers descend into what is nested.
const STACK_BYTES: usize = 64 << 20;
/// What the title of a document may have.
const MOST_TITLE_CHARS: usize = 500;

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

/// Whether those are read that others wrote.
static READS_FOREIGN: LazyLock<bool> = LazyLock::new(|| {
    let ends = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !is_foreign(info) {
            ends(info);
        }
    }));
    std::env::var_os("CAIRN_FUZZ_FOREIGN").is_some()
});

/// Whether a panic is one of a package that is not ours.
fn is_foreign(info: &PanicHookInfo<'_>) -> bool {
    info.location().is_some_and(|location| location.file().contains("/registry/src/"))
}

fuzz_target!(|input: &[u8]| {
    let [kind, rest @ ..] = input else { return };
    let reads_foreign = *READS_FOREIGN;
    let Some(raw) = raw(usize::from(*kind), rest, reads_foreign) else { return };
    let reading = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || (read(&raw), raw));
    let outcome = reading.expect("a thread").join();
    // A panic of ours has ended the process by the hook; one of others ends a child.
    if let Ok((outcome, raw)) = outcome {
        check(outcome, &raw);
    }
});

/// The document of an input. The kind of some is found out, by a name or without one.
fn raw(number: usize, rest: &[u8], reads_foreign: bool) -> Option<Raw> {
    let of_provider = number & 0x80 != 0;
    let number = number & 0x7f;
    let (kind, bytes) = match (PLAIN.get(number), PACKED.get(number.wrapping_sub(PLAIN.len()))) {
        (Some(plain), _) => (Some(*plain), rest.to_vec()),
        (None, Some((packed, names))) => (Some(*packed), parts::archive_of(names, rest)),
        (None, None) => (None, rest.to_vec()),
    };
    let name = NAMES.get(number % (NAMES.len() + 1)).map(|name| (*name).to_owned());
    let base_url = Some("https://example.com/a/b".to_owned());
    let raw = Raw { bytes: bytes.into(), kind, name, base_url, of_provider, ..Raw::default() };
    let is_foreign = Kind::of(&raw).is_ok_and(|kind| matches!(kind, Kind::Pdf | Kind::Sheets));
    (reads_foreign || !is_foreign).then_some(raw)
}

/// A text is one that is kept: bounded, without what nobody sees; a failure is a sentence that holds nothing of the document.
fn check(outcome: Result<Text, Failure>, raw: &Raw) {
    let text = match outcome {
        Ok(text) => text,
        Err(failure) => {
            assert!(failure.message.ends_with('.') && failure.message.len() < 400, "{failure:?}");
            return;
        }
    };
    assert!(text.content.len() <= MOST_TEXT_BYTES && !text.content.contains('\0'));
    assert!(!text.content.trim().is_empty());
    if let Some(title) = &text.title {
        assert!(!title.is_empty() && !title.contains('\n') && title.chars().count() <= MOST_TITLE_CHARS);
        assert_eq!(without_joiners(&visible(title)), without_joiners(title));
    }
    // Text of a caller is kept as it is; what is made from a file, and what a provider sent, holds nothing that is not seen.
    let is_as_sent = match text.format {
        Format::Json | Format::Yaml => true,
        Format::Text | Format::Markdown => {
            !raw.of_provider && matches!(Kind::of(raw), Ok(Kind::Text | Kind::Markdown))
        }
    };
    if !is_as_sent {
        assert_eq!(without_joiners(&visible(&text.content)), without_joiners(&text.content));
    }
}

/// A text without what shapes its neighbours: whether that is seen depends on what stands beside it, which may have gone.
fn without_joiners(text: &str) -> String {
    let is_joiner = |letter: &char| matches!(letter, '\u{200C}' | '\u{200D}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}');
    text.chars().filter(|letter| !is_joiner(letter)).collect()
}
