//! HTML: the main content of a page as Markdown.

mod content;
mod hidden;
mod links;
mod shape;
mod sheets;
mod tokens;

pub(crate) use self::hidden::hides;

use dom_query::Document;

use crate::model::{Failure, FailureKind, Format, Raw, Text};
use crate::{charset, clean};

/// Bytes of a page.
const MAX_BYTES: usize = 10 * 1024 * 1024;

/// Extracts the text of a page.
pub(crate) fn read(raw: &Raw) -> Result<Text, Failure> {
    if raw.bytes.len() > MAX_BYTES {
        return Err(Failure::new(
            FailureKind::TooLarge,
            "The page is over 10 MB, which is more than is read of one.",
        ));
    }
    let html = charset::decode(&raw.bytes, raw.mime.as_deref(), charset::named_in_markup(&raw.bytes));
    Ok(page(&html, raw.base_url.as_deref()))
}

/// Extracts the main content of a decoded page.
pub(crate) fn page(html: &str, base_url: Option<&str>) -> Text {
    if !tokens::can_be_a_tree(html) {
        let (title, content) = tokens::words(html);
        return Text { format: Format::Markdown, content, title };
    }
    let document = Document::from(html);
    let title = title(&document);
    prepare(&document, base_url);
    content::drop_surroundings(&document);
    let content = content::main(&document);
    Text { format: Format::Markdown, content, title }
}

/// A placeholder base URL: links between parts of a document cannot be followed from outside.
const NOWHERE: &str = "about:blank";

/// Converts HTML without boilerplate, such as a chapter of a book or the body of a mail.
pub(crate) fn part(html: &str) -> String {
    if !tokens::can_be_a_tree(html) {
        return tokens::words(html).1;
    }
    let document = Document::from(html);
    prepare(&document, Some(NOWHERE));
    content::whole(&document)
}

/// Prepares a page for the conversion: removes hidden content and normalizes the tree.
fn prepare(document: &Document, base_url: Option<&str>) {
    hidden::remove(document);
    links::make_absolute(document, base_url);
    shape::normalize(document);
}

fn title(document: &Document) -> Option<String> {
    let named = document.select_single("head > title, title").text();
    clean::title(&named).or_else(|| clean::title(&document.select_single("h1").text()))
}

#[cfg(test)]
mod tests;
