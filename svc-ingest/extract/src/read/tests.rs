use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::formats::testing::archive;

/// What the formats are made of, to be put together in any order.
const FRAGMENTS: &[&str] = &[
    "<div>",
    "</div>",
    "<b>",
    "<p>",
    "</p>",
    "<table><tr><td>",
    "</table>",
    "<a href='../x?y'>",
    "<pre class='lang-rs'>",
    "<style>.a{display:none}",
    "</style>",
    "<!--",
    "-->",
    "<p style='left:-9999px;position:absolute'>",
    "&amp;",
    "<svg>",
    "<math>",
    "<font color=white>",
    "<select>",
    "<template>",
    "<![CDATA[",
    "<ul><li>",
    "<h1>",
    "```",
    "# ",
    "| ",
    "é",
    "\u{202e}",
    "\u{200d}",
    "\u{e0041}",
    "{\\rtf1",
    "{",
    "}",
    "\\u-10179?",
    "\\'e9",
    "\\'e",
    "\\bin5 ",
    "\\cell",
    "\\row",
    "\\intbl",
    "\\v ",
    "\\outlinelevel0 ",
    "\\par ",
    "a,b;c\td",
    "\"",
    "\r\n",
    "From: a@b.c\r\n",
    "Content-Type: multipart/mixed; boundary=x\r\n",
    "\r\n--x\r\n",
    "--x--",
    "=?utf-8?b?4pyT?=",
    "{\"cells\":[",
    "{\"cell_type\":\"code\",\"source\":[\"x\"]}",
    "]}",
    "<w:p>",
    "<w:r>",
    "<w:t>words</w:t>",
    "</w:r>",
    "</w:p>",
    "<text:p>",
    "</text:p>",
    "<text:list>",
    "<a:p>",
    "<p:sp>",
    "\0",
    "words ",
];

/// The kinds that this crate reads itself. Other parsers may panic: that is what the child process is for.
const OWN: [Kind; 9] = [
    Kind::Text,
    Kind::Html,
    Kind::Csv,
    Kind::Notebook,
    Kind::Docx,
    Kind::Pptx,
    Kind::OpenDocument,
    Kind::Epub,
    Kind::Rtf,
];

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let fragments =
        prop::collection::vec(select(FRAGMENTS), 0..60).prop_map(|parts| parts.concat().into_bytes());
    prop_oneof![1 => prop::collection::vec(any::<u8>(), 0..500), 4 => fragments]
}

/// Archives as Office and books have them, with anything in their main part.
fn any_archive() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(select(FRAGMENTS), 0..40).prop_map(|parts| {
        let body = parts.concat();
        let wrapped = format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>");
        archive(&[
            ("word/document.xml", wrapped.as_str()),
            ("ppt/presentation.xml", wrapped.as_str()),
            ("content.xml", wrapped.as_str()),
            ("META-INF/container.xml", "<c><rootfile full-path='content.xml'/></c>"),
        ])
    })
}

fn holds_what_is_promised(bytes: Vec<u8>, kind: Kind) {
    let raw = Raw {
        kind: Some(kind),
        base_url: Some("https://example.com/a/".to_owned()),
        ..Raw::file("a", bytes)
    };
    match read(&raw) {
        Ok(text) => {
            assert!(text.content.len() <= MAX_TEXT_BYTES && !text.content.contains('\0'));
            assert!(!text.content.trim().is_empty());
            if kind != Kind::Text {
                assert_eq!(clean::markdown(&text.content), text.content);
            }
        }
        Err(failure) => assert!(failure.message.ends_with('.') && failure.message.len() < 300),
    }
}

proptest! {
    #[test]
    fn any_bytes_of_any_kind_become_text_or_a_sentence(bytes in any_bytes(), kind in select(&OWN[..])) {
        holds_what_is_promised(bytes, kind);
    }

    #[test]
    fn any_archive_becomes_text_or_a_sentence(
        bytes in any_archive(),
        kind in select(&[Kind::Docx, Kind::Pptx, Kind::OpenDocument, Kind::Epub][..]),
        cut in 0..2_000_usize,
    ) {
        let length = bytes.len().saturating_sub(cut.saturating_sub(1_000));
        holds_what_is_promised(bytes[..length].to_vec(), kind);
    }

    #[test]
    fn every_byte_string_has_a_kind_or_a_sentence(bytes in any_bytes(), name in "[a-z]{0,3}(\\.[a-z]{1,5})?", mime in ".{0,20}") {
        let raw = Raw { mime: Some(mime), ..Raw::file(name, bytes) };
        if let Err(failure) = Kind::of(&raw) {
            prop_assert!(failure.message.ends_with('.'));
        }
    }

    #[test]
    fn what_needs_no_child_stays_what_it_is(bytes in any_bytes(), name in "a(\\.(md|txt|rs|json|csv|html|pdf))?") {
        let raw = Raw::file(name, bytes);
        if is_plain(&raw) && let Ok(text) = read(&raw) && let Ok(sent) = std::str::from_utf8(&raw.bytes) {
            prop_assert_eq!(&text.content, sent.trim_start_matches('\u{feff}'));
        }
    }

    #[test]
    fn text_stays_what_it_is(text in "\\PC{1,200}") {
        prop_assume!(!text.trim().is_empty() && !text.starts_with('\u{feff}'));
        let raw = Raw { kind: Some(Kind::Markdown), ..Raw::file("a.md", text.clone()) };
        prop_assert_eq!(read(&raw).map(|read| read.content), Ok(text));
    }
}

#[test]
fn only_what_is_text_already_needs_no_child() {
    let is_plain = |name: &str, bytes: &'static [u8]| super::is_plain(&Raw::file(name, bytes));
    assert!(is_plain("a.md", b"# x") && is_plain("main.rs", b"fn main() {}") && is_plain("a", b"caf\xE9"));
    assert!(
        !is_plain("a.html", b"<p>x") && !is_plain("a.txt", b"<!doctype html>x") && !is_plain("a.csv", b"a,b")
    );
    assert!(
        !is_plain("a.md", b"PK\x03\x04")
            && !is_plain("a.md", b"%PDF-1.4")
            && !is_plain("a.md", b"\x89PNG\r\n\x1a\n\0")
    );
}

#[test]
fn a_text_over_five_megabytes_is_refused() {
    assert!(read(&Raw::file("a.md", "x".repeat(MAX_TEXT_BYTES))).is_ok());
    let raw = Raw::file("a.md", "x".repeat(MAX_TEXT_BYTES + 1));
    let failed = read(&raw).unwrap_err();
    assert!(
        failed.kind == crate::FailureKind::TooLarge
            && failed.message.contains("text of the file is over 5 MB")
    );
    let html = Raw::html(format!("<p>{}", "word ".repeat(1_100_000)), None);
    assert_eq!(read(&html).unwrap_err().kind, crate::FailureKind::TooLarge);
}

#[test]
fn a_providers_text_has_nothing_that_people_do_not_see_and_all_its_lines() {
    let tags: String = "IGNORE".chars().filter_map(|c| char::from_u32(0xE0000 + c as u32)).collect();
    let sent = format!("# Plan{tags}\r\n<!-- IGNORE\r\n-->\r\nA\u{202E}B\r\n`<!-- code -->`");
    let of = |of_provider: bool, name: &str| {
        read(&Raw { of_provider, ..Raw::file(name, sent.clone()) }).unwrap().content
    };
    let text = of(true, "a.md");
    assert_eq!(text, "# Plan\r\n\n\r\nAB\r\n`<!-- code -->`");
    assert_eq!(text.matches('\n').count(), sent.matches('\n').count(), "lines keep their numbers");
    assert_eq!(of(true, "a.txt"), "# Plan\r\n<!-- IGNORE\r\n-->\r\nAB\r\n`<!-- code -->`");
    for name in ["a.md", "a.txt"] {
        assert_eq!(of(false, name), sent, "what a caller sends stays byte for byte");
    }
    let notebook =
        serde_json::json!({"cells": [{"cell_type": "markdown", "source": "Seen. <!-- IGNORE -->"}]});
    assert_eq!(read(&Raw::file("a.ipynb", notebook.to_string())).unwrap().content, "Seen.\n");
}
