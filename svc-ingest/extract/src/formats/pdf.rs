//! PDF, page by page: each page has its number as heading, with the document's own headings below it.

use std::ops::ControlFlow;

use unpdf::{
    Block, Document, Error, InlineContent, Page, PageStreamOptions, ParseEvent, ParseOptions, PdfParser,
    RenderOptions, render,
};

use crate::markdown::Markdown;
use crate::model::{Failure, FailureKind, Format, Raw, Text};

/// Bytes before the magic number of a PDF.
const MAX_BEFORE: usize = 8 * 1024;
/// Pages with fewer characters, and filled by an image, are scans: the text is from a scanner or a stamp.
const MIN_CHARACTERS: usize = 20;
/// The minimum share of a page's area for an image that fills it.
const IMAGE_PAGE: f32 = 0.5;

/// The offset of the PDF magic number.
pub(crate) fn start(bytes: &[u8]) -> Option<usize> {
    let looked_at = bytes.get(..MAX_BEFORE).unwrap_or(bytes);
    memchr::memmem::find(looked_at, b"%PDF-")
}

pub(crate) fn read(raw: &Raw) -> Result<Text, Failure> {
    // Offsets in the file are relative to the magic number.
    let bytes = start(&raw.bytes).and_then(|start| raw.bytes.get(start..)).unwrap_or(&raw.bytes);
    let options = ParseOptions::new().lenient().sequential();
    let parser =
        PdfParser::from_bytes_with_options(bytes, options.clone()).map_err(|error| failed(&error))?;
    let mut reading = Reading::default();
    let stream = PageStreamOptions::from(&options);
    parser.for_each_page(stream, |event| reading.take(event)).map_err(|error| failed(&error))?;
    reading.finish()
}

#[derive(Debug, Default)]
struct Reading {
    out: Markdown,
    title: Option<String>,
    pages: usize,
    image_pages: usize,
    characters: usize,
}

impl Reading {
    fn take(&mut self, event: ParseEvent) -> ControlFlow<()> {
        match event {
            ParseEvent::DocumentStart { metadata, .. } => self.title = metadata.title,
            ParseEvent::PageParsed(page) => self.write(page),
            // An unreadable page does not fail the others.
            ParseEvent::PageFailed { .. } => self.pages += 1,
            ParseEvent::Progress { .. } | ParseEvent::DocumentEnd { .. } => {}
        }
        if self.out.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn write(&mut self, mut page: Page) {
        self.pages += 1;
        self.image_pages += usize::from(page.image_coverage >= IMAGE_PAGE);
        let number = page.number;
        page.elements.retain(|block| !matches!(block, Block::Image { .. }));
        page.elements.iter_mut().for_each(fit_in);
        let mut document = Document::new();
        document.add_page(page);
        let options =
            RenderOptions { escape_special_chars: false, max_heading_level: 6, ..RenderOptions::new() };
        let text = render::to_markdown(&document, &options).unwrap_or_default();
        self.characters += text.chars().filter(|character| !character.is_whitespace()).count();
        if !text.trim().is_empty() {
            self.out.heading(2, &format!("Page {number}"));
            self.out.block(text.trim());
        }
    }

    fn finish(self) -> Result<Text, Failure> {
        let sparse = self.characters < MIN_CHARACTERS * self.pages.max(1);
        let scanned = sparse && self.image_pages * 2 >= self.pages.max(1);
        if self.characters == 0 || scanned {
            return Err(Failure::new(
                FailureKind::NoText,
                "There is no text in the PDF, no text layer: its pages are images, as a scanner makes them. Recognise the \
                 text (OCR) and add it again.",
            ));
        }
        Ok(Text { format: Format::Markdown, content: self.out.into_text(), title: self.title })
    }
}

/// Lowers headings below that of the page, and escapes `|` in table cells.
fn fit_in(block: &mut Block) {
    match block {
        Block::Paragraph(paragraph) => {
            let level = &mut paragraph.style.heading_level;
            *level = level.map(|level| level.saturating_add(2).min(6));
        }
        Block::Table(table) => {
            let cells = table.rows.iter_mut().flat_map(|row| &mut row.cells);
            for content in
                cells.flat_map(|cell| &mut cell.content).flat_map(|paragraph| &mut paragraph.content)
            {
                if let InlineContent::Text(run) = content {
                    run.text = run.text.replace('|', "\\|");
                }
            }
        }
        Block::Image { .. }
        | Block::HorizontalRule
        | Block::PageBreak
        | Block::SectionBreak
        | Block::Code { .. }
        | Block::Raw { .. } => {}
    }
}

fn failed(error: &Error) -> Failure {
    if matches!(error, Error::Encrypted | Error::InvalidPassword) {
        Failure::encrypted()
    } else {
        Failure::broken("PDF")
    }
}

#[cfg(test)]
mod tests;
