//! The text of a document, in this process.

use crate::formats;
use crate::kind::Kind;
use crate::model::{Failure, Format, MOST_TEXT_BYTES, Raw, Text};
use crate::{charset, clean, prose};

/// The text of a document, read in this process: what a child does. Whoever is not a child asks [`crate::Extractor`].
///
/// # Errors
/// [`Failure`] for what is no document, holds no text, or too much.
pub fn read(raw: &Raw) -> Result<Text, Failure> {
    let kind = Kind::of(raw)?;
    let text = match kind {
        Kind::Text => plain(raw, Format::Text),
        Kind::Markdown => plain(raw, Format::Markdown),
        Kind::Json => plain(raw, Format::Json),
        Kind::Yaml => plain(raw, Format::Yaml),
        Kind::Html => tidy(formats::html::read(raw)?),
        Kind::Csv => tidy(formats::table::read(raw)?),
        Kind::Notebook => tidy(formats::notebook::read(raw)?),
        Kind::Pdf => tidy(formats::pdf::read(raw)?),
        Kind::Docx => tidy(formats::docx::read(raw)?),
        Kind::Pptx => tidy(formats::pptx::read(raw)?),
        Kind::Sheets => tidy(formats::sheets::read(raw)?),
        Kind::OpenDocument => tidy(formats::opendocument::read(raw)?),
        Kind::Epub => tidy(formats::epub::read(raw)?),
        Kind::Mail => tidy(formats::mail::read(raw)?),
        Kind::Rtf => tidy(formats::rtf::read(raw)?),
    };
    bounded(text)
}

/// Whether a document is text already: decoding it is no risk, so it needs no child.
pub(crate) fn is_plain(raw: &Raw) -> bool {
    // In UTF-16, a text takes twice its bytes.
    raw.bytes.len() <= 2 * MOST_TEXT_BYTES && Kind::of_plain(raw).is_some()
}

/// Text that is what it is: no character is changed but those that are none. Of a provider's text, what people cannot see
/// goes, too; its lines stay.
fn plain(raw: &Raw, format: Format) -> Text {
    let mut content = charset::decode(&raw.bytes, raw.mime.as_deref(), None);
    if raw.of_provider && matches!(format, Format::Text | Format::Markdown) {
        content = clean::seen(&content);
        if format == Format::Markdown {
            content = prose::without_hidden(&content);
        }
    }
    Text { format, content, title: None }
}

/// What was made from a file, without what cannot be seen.
fn tidy(text: Text) -> Text {
    Text {
        content: clean::markdown(&text.content),
        title: text.title.as_deref().and_then(clean::title),
        format: text.format,
    }
}

fn bounded(text: Text) -> Result<Text, Failure> {
    if text.content.len() > MOST_TEXT_BYTES {
        return Err(Failure::text_too_long());
    }
    if text.content.contains('\0') {
        return Err(crate::kind::unsupported(None));
    }
    if text.content.trim().is_empty() {
        return Err(Failure::no_text());
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
