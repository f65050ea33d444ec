use super::*;
use crate::formats::testing::archive;

const CONTAINER: &str =
    "<container><rootfiles><rootfile full-path='OEBPS/book.opf'/></rootfiles></container>";
const PACKAGE: &str = "<package xmlns:dc='d'><metadata><dc:title>A tale</dc:title></metadata><manifest>\
    <item id='nav' href='nav.xhtml' properties='nav'/><item id='two' href='text/two%20b.xhtml'/><item id='one' href='text/one.xhtml'/>\
    </manifest><spine><itemref idref='nav'/><itemref idref='one'/><itemref idref='two'/><itemref idref='none'/></spine></package>";

fn book(encryption: &str) -> Result<Text, Failure> {
    let bytes = archive(&[
        ("mimetype", "application/epub+zip"),
        ("META-INF/container.xml", CONTAINER),
        ("META-INF/encryption.xml", encryption),
        ("OEBPS/book.opf", PACKAGE),
        ("OEBPS/nav.xhtml", "<nav>IGNORE</nav>"),
        (
            "OEBPS/text/one.xhtml",
            "<html><body><h1>One</h1><p>It <a href='two.xhtml'>began</a>.</p></body></html>",
        ),
        (
            "OEBPS/text/two b.xhtml",
            "<?xml version='1.0' encoding='utf-8'?><html><body><h1>Two</h1><p>It ended.</p></body></html>",
        ),
    ]);
    let raw = Raw::file("a.epub", bytes);
    assert_eq!(crate::Kind::of(&raw), Ok(crate::Kind::Epub));
    read(&raw)
}

#[test]
fn chapters_follow_the_order_of_reading() {
    let text = book("<encryption><CipherReference URI='OEBPS/fonts/a.ttf'/></encryption>").unwrap();
    assert_eq!(text.title.as_deref(), Some("A tale"));
    assert_eq!(text.content, "# One\n\nIt began.\n\n# Two\n\nIt ended.\n");
}

#[test]
fn a_book_whose_chapters_are_locked_says_so() {
    let failed = book("<encryption><CipherReference URI='OEBPS/text/one.xhtml'/></encryption>").unwrap_err();
    assert!(failed.kind == FailureKind::Encrypted && failed.message.contains("encrypted"));
}
