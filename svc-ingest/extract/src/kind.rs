//! Detects the kind of a file: by magic numbers, then by the file name, and last by the declared media type.

use serde::{Deserialize, Serialize};

use crate::formats::{archive, pdf};
use crate::model::{Failure, FailureKind, Raw};

/// A supported kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Plain text, source code, logs.
    Text,
    /// Markdown.
    Markdown,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// HTML and XHTML.
    Html,
    /// Values separated by commas, semicolons or tabs.
    Csv,
    /// A Jupyter notebook.
    Notebook,
    /// PDF.
    Pdf,
    /// A Word document.
    Docx,
    /// A PowerPoint presentation.
    Pptx,
    /// An Excel or OpenDocument spreadsheet.
    Sheets,
    /// An OpenDocument text or presentation.
    OpenDocument,
    /// An EPUB book.
    Epub,
    /// An e-mail with its headers.
    Mail,
    /// Rich Text Format.
    Rtf,
}

/// Bytes that are searched for magic numbers.
const LOOKED_AT: usize = 8 * 1024;
const OLE: &[u8] = &[0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];

impl Kind {
    /// Detects the kind of a document.
    ///
    /// # Errors
    /// [`FailureKind::Unsupported`] if it is none of these, [`FailureKind::Encrypted`] if it is password-protected.
    pub fn of(raw: &Raw) -> Result<Self, Failure> {
        if let Some(kind) = raw.kind {
            return Ok(kind);
        }
        let start = raw.bytes.get(..LOOKED_AT).unwrap_or(&raw.bytes);
        let named = raw.name.as_deref().and_then(by_name);
        let sent = raw.mime.as_deref().and_then(by_media_type);
        if let Some(kind) = by_magic(&raw.bytes, start, named.or(sent))? {
            return Ok(kind);
        }
        if is_binary(start) {
            return Err(unsupported(what_it_is(start)));
        }
        // From here on, it is text. A binary extension is wrong then: error pages are often saved under such names.
        let guessed = || by_beginning(start);
        let textual = |kind: &Self| kind.is_written_as_text();
        if let Some(kind) = named.filter(textual).filter(|kind| *kind != Self::Text) {
            return Ok(kind);
        }
        if let Some(broken) = named.filter(|kind| !textual(kind))
            && guessed() != Some(Self::Html)
        {
            return Err(Failure::broken(broken.label()));
        }
        Ok(guessed().or(named.filter(textual)).or(sent.filter(textual)).unwrap_or(Self::Text))
    }

    /// The kind of a textual document, if it can be detected without opening an archive.
    pub(crate) fn of_plain(raw: &Raw) -> Option<Self> {
        let container = raw.bytes.starts_with(b"PK") || raw.bytes.starts_with(OLE);
        let kind = if container && raw.kind.is_none() { None } else { Self::of(raw).ok() };
        kind.filter(|kind| matches!(kind, Self::Text | Self::Markdown | Self::Json | Self::Yaml))
    }

    fn is_written_as_text(self) -> bool {
        matches!(
            self,
            Self::Text
                | Self::Markdown
                | Self::Json
                | Self::Yaml
                | Self::Html
                | Self::Csv
                | Self::Notebook
                | Self::Mail
        )
    }

    /// The name for messages: "the file cannot be read as …".
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "Markdown",
            Self::Json => "JSON",
            Self::Yaml => "YAML",
            Self::Html => "HTML",
            Self::Csv => "CSV",
            Self::Notebook => "a notebook",
            Self::Pdf => "PDF",
            Self::Docx => "a Word document",
            Self::Pptx => "PowerPoint slides",
            Self::Sheets => "a spreadsheet",
            Self::OpenDocument => "an OpenDocument file",
            Self::Epub => "EPUB",
            Self::Mail => "an e-mail",
            Self::Rtf => "RTF",
        }
    }
}

/// Kinds with an unambiguous magic number.
fn by_magic(bytes: &[u8], start: &[u8], expected: Option<Kind>) -> Result<Option<Kind>, Failure> {
    if start.starts_with(b"%PDF-") {
        return Ok(Some(Kind::Pdf));
    }
    // Some files have other bytes before the magic number, such as output of the program that wrote them.
    if expected == Some(Kind::Pdf) && pdf::start(start).is_some() {
        return Ok(Some(Kind::Pdf));
    }
    if start.starts_with(b"{\\rtf") {
        return Ok(Some(Kind::Rtf));
    }
    if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
        return archive::kind_of(bytes).map(Some);
    }
    if start.starts_with(OLE) {
        return by_ole(bytes, expected).map(Some);
    }
    Ok(None)
}

/// The container of legacy Office files, and of password-protected new ones.
fn by_ole(bytes: &[u8], expected: Option<Kind>) -> Result<Kind, Failure> {
    let names = |name: &str| {
        let utf16: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        memchr::memmem::find(bytes, &utf16).is_some()
    };
    if names("EncryptedPackage") {
        return Err(Failure::encrypted());
    }
    if names("__properties_version1.0") {
        return Err(unsupported(Some("a message of Outlook; saved as .eml it can be read")));
    }
    if expected == Some(Kind::Sheets) || names("Workbook") {
        return Ok(Kind::Sheets);
    }
    Err(unsupported(Some("an Office file from before 2007; saved as .docx or .pptx it can be read")))
}

fn is_binary(start: &[u8]) -> bool {
    let utf16 = start.starts_with(&[0xFF, 0xFE]) || start.starts_with(&[0xFE, 0xFF]);
    // Text may start with the two letters of a bitmap or an executable.
    let is_text = || match std::str::from_utf8(start) {
        Ok(_) => true,
        // Only the last character is truncated.
        Err(error) => error.error_len().is_none(),
    };
    let foreign = || infer::get(start).is_some_and(|found| is_foreign(found.matcher_type()));
    !utf16 && (start.contains(&0) || (!is_text() && foreign()))
}

fn is_foreign(kind: infer::MatcherType) -> bool {
    use infer::MatcherType as Of;
    match kind {
        Of::App | Of::Archive | Of::Audio | Of::Book | Of::Doc | Of::Font | Of::Image | Of::Video => true,
        Of::Text | Of::Custom => false,
    }
}

fn what_it_is(start: &[u8]) -> Option<&'static str> {
    use infer::MatcherType as Of;
    match infer::get(start)?.matcher_type() {
        Of::Image => Some("an image"),
        Of::Audio => Some("a recording"),
        Of::Video => Some("a video"),
        Of::Archive => Some("an archive"),
        Of::App => Some("a program"),
        Of::Font => Some("a font"),
        Of::Book | Of::Doc | Of::Text | Of::Custom => None,
    }
}

pub(crate) fn unsupported(what: Option<&str>) -> Failure {
    let what = what.map(|what| format!(": it is {what}")).unwrap_or_default();
    Failure::new(
        FailureKind::Unsupported,
        format!(
            "No text is read from this kind of file{what}. PDF, DOCX, PPTX, XLSX, ODS, ODT, EPUB, e-mail, RTF, HTML, CSV, \
             notebooks and text are read."
        ),
    )
}

fn by_beginning(start: &[u8]) -> Option<Kind> {
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    let head: String = text.chars().take(1_000).collect::<String>().to_ascii_lowercase();
    let head = match head.strip_prefix("<?xml") {
        Some(rest) => rest.split_once("?>").map_or("", |(_, rest)| rest.trim_start()),
        None => head.as_str(),
    };
    if ["<!doctype html", "<html", "<head>", "<body"].iter().any(|mark| head.starts_with(mark)) {
        return Some(Kind::Html);
    }
    is_mail(text).then_some(Kind::Mail)
}

/// Whether the text starts with mail headers: at least two of the usual ones.
fn is_mail(text: &str) -> bool {
    const USUAL: [&str; 9] = [
        "from:",
        "to:",
        "subject:",
        "date:",
        "message-id:",
        "mime-version:",
        "received:",
        "return-path:",
        "content-type:",
    ];
    let headers = text.lines().take_while(|line| !line.is_empty());
    let mut usual = 0;
    for line in headers.take(60) {
        let line = line.to_ascii_lowercase();
        if USUAL.iter().any(|header| line.starts_with(header)) {
            usual += 1;
        } else if !line.starts_with([' ', '\t']) && !is_header(&line) {
            return false;
        }
    }
    usual >= 3
}

fn is_header(line: &str) -> bool {
    line.split_once(':').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    })
}

fn by_name(name: &str) -> Option<Kind> {
    let (_, extension) = name.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "md" | "markdown" | "mdown" | "mkd" | "mdx" => Kind::Markdown,
        "html" | "htm" | "xhtml" => Kind::Html,
        "json" => Kind::Json,
        "yaml" | "yml" => Kind::Yaml,
        "csv" | "tsv" | "tab" => Kind::Csv,
        "ipynb" => Kind::Notebook,
        "pdf" => Kind::Pdf,
        "docx" | "docm" | "dotx" => Kind::Docx,
        "pptx" | "pptm" | "ppsx" => Kind::Pptx,
        "xlsx" | "xlsm" | "xlsb" | "xls" | "ods" => Kind::Sheets,
        "odt" | "ott" | "odp" => Kind::OpenDocument,
        "epub" => Kind::Epub,
        "eml" => Kind::Mail,
        "rtf" => Kind::Rtf,
        "txt" | "text" | "log" | "rst" | "adoc" | "org" | "tex" | "xml" | "jsonl" | "ndjson" | "toml"
        | "ini" => Kind::Text,
        _ => return None,
    })
}

fn by_media_type(sent: &str) -> Option<Kind> {
    let essence = sent.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    Some(match essence.as_str() {
        "text/markdown" | "text/x-markdown" => Kind::Markdown,
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "application/json" | "text/json" => Kind::Json,
        "application/yaml" | "text/yaml" | "application/x-yaml" | "text/x-yaml" => Kind::Yaml,
        "text/csv" | "text/tab-separated-values" => Kind::Csv,
        "application/x-ipynb+json" => Kind::Notebook,
        "application/pdf" => Kind::Pdf,
        "application/vnd.ms-excel" => Kind::Sheets,
        "message/rfc822" => Kind::Mail,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str, mime: &str, bytes: &[u8]) -> Result<Kind, FailureKind> {
        let raw = Raw {
            mime: (!mime.is_empty()).then(|| mime.to_owned()),
            ..Raw::file(name.to_owned(), bytes.to_vec())
        };
        Kind::of(&raw).map_err(|failure| failure.kind)
    }

    #[test]
    fn content_decides_before_the_name_and_the_name_before_what_was_sent() {
        assert_eq!(kind("report.txt", "text/plain", b"%PDF-1.7\n"), Ok(Kind::Pdf));
        assert_eq!(kind("notes.md", "text/html", b"# Notes"), Ok(Kind::Markdown));
        assert_eq!(kind("page", "text/plain", b"<!DOCTYPE html><p>x"), Ok(Kind::Html));
        assert_eq!(kind("x", "text/markdown; charset=utf-8", b"# Notes"), Ok(Kind::Markdown));
        assert_eq!(kind("main.rs", "application/octet-stream", b"fn main() {}"), Ok(Kind::Text));
        assert_eq!(kind("a.xml", "", b"<?xml version=\"1.0\"?><note/>"), Ok(Kind::Text));
        assert_eq!(kind("a", "", b"<?xml version=\"1.0\"?>\n<html xmlns=\"x\"/>"), Ok(Kind::Html));
    }

    #[test]
    fn something_before_the_mark_of_a_pdf_is_allowed_where_a_pdf_is_expected() {
        assert_eq!(kind("a.pdf", "", b"\n\n%PDF-1.4"), Ok(Kind::Pdf));
        assert_eq!(kind("a.txt", "", b"The mark is %PDF-1.4"), Ok(Kind::Text));
    }

    #[test]
    fn a_page_saved_under_the_name_of_a_document_is_a_page() {
        assert_eq!(kind("a.pdf", "", b"<html><p>Not found"), Ok(Kind::Html));
        assert_eq!(kind("a.pdf", "", b"plain words"), Err(FailureKind::Broken));
    }

    #[test]
    fn what_holds_no_text_is_refused_by_its_content() {
        assert_eq!(kind("a.md", "text/markdown", b"\x89PNG\r\n\x1a\n\0\0"), Err(FailureKind::Unsupported));
        assert_eq!(kind("a.txt", "", b"\x7fELF\x02\x01\x01\0"), Err(FailureKind::Unsupported));
        let png = Kind::of(&Raw::file("a.png", &b"\x89PNG\r\n\x1a\n\0\0"[..]));
        assert!(png.is_err_and(|failure| failure.message.contains("it is an image")));
    }

    #[test]
    fn a_message_is_known_by_its_headers() {
        let message = b"From: a@example.com\r\nTo: b@example.com\r\nX-Spam: no\r\nSubject: Hi\r\n\r\nHello";
        assert_eq!(kind("x", "", message), Ok(Kind::Mail));
        assert_eq!(kind("x", "", b"From: here\nwe went on to: there"), Ok(Kind::Text));
    }

    #[test]
    fn old_office_files_say_what_to_do() {
        let workbook: Vec<u8> =
            OLE.iter().copied().chain("Workbook".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert_eq!(kind("a", "", &workbook), Ok(Kind::Sheets));
        let locked: Vec<u8> =
            OLE.iter().copied().chain("EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert_eq!(kind("a.docx", "", &locked), Err(FailureKind::Encrypted));
        assert_eq!(kind("a.doc", "", OLE), Err(FailureKind::Unsupported));
    }
}
