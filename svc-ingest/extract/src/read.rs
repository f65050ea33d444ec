//! Extracts the text of a document, in this process.

use crate::formats;
use crate::kind::Kind;
use crate::model::{Failure, Format, MAX_TEXT_BYTES, Raw, Text};
use crate::{charset, clean, prose};

/// Extracts the text of a document without isolation. Only for children; everyone else uses [`crate::Extractor`].
///
/// # Errors
/// [`Failure`] when the file is invalid, has no text, or too much.
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

/// Whether a document is plain text, which is safe to decode without a child.
pub(crate) fn is_plain(raw: &Raw) -> bool {
    // UTF-16 takes up to twice the bytes of UTF-8.
    raw.bytes.len() <= 2 * MAX_TEXT_BYTES && Kind::of_plain(raw).is_some()
}

/// Decodes plain text, and changes only invalid characters. Invisible ones are removed from a provider's text; its lines stay.
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

/// The converted text, without invisible characters.
fn tidy(text: Text) -> Text {
    Text {
        content: clean::markdown(&text.content),
        title: text.title.as_deref().and_then(clean::title),
        format: text.format,
    }
}

fn bounded(text: Text) -> Result<Text, Failure> {
    if text.content.len() > MAX_TEXT_BYTES {
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
