//! OpenDocument texts and presentations. Deleted and hidden text, comments, headers and footers are skipped.

mod styles;

use std::collections::HashSet;

use roxmltree::{Document, Node};

use self::styles::Styles;
use crate::formats::archive::Archive;
use crate::formats::xml;
use crate::markdown::{self, Markdown};
use crate::model::{Failure, Format, Raw, Text};

const WHAT: &str = "an OpenDocument file";
/// Repetitions of one column or row element.
const MAX_REPEATED: usize = 100;

pub(crate) fn read(raw: &Raw) -> Result<Text, Failure> {
    let mut archive = Archive::open(&raw.bytes)?;
    if archive.text("META-INF/manifest.xml")?.is_some_and(|manifest| manifest.contains("encryption-data")) {
        return Err(Failure::encrypted());
    }
    let text = archive.text("content.xml")?.ok_or_else(|| Failure::broken(WHAT))?;
    let document = xml::parse(&text, WHAT)?;
    let body = xml::path(document.root_element(), &["body"]).ok_or_else(|| Failure::broken(WHAT))?;
    let shared = archive.text("styles.xml")?;
    let shared = shared.as_deref().map(|shared| xml::parse(shared, WHAT)).transpose()?;
    let mut writer = Writer {
        styles: Styles::of(shared.as_ref(), &document),
        code: code_styles(&document),
        ordered: ordered_levels(&document),
        ..Writer::default()
    };
    for content in body.children() {
        match xml::name(content) {
            "presentation" => writer.slides(content),
            _ => writer.blocks(content),
        }
    }
    writer.end_code();
    let title = archive.text("meta.xml")?.and_then(|meta| title(&meta));
    Ok(Text { format: Format::Markdown, content: writer.out.into_text(), title })
}

fn title(meta: &str) -> Option<String> {
    let document = xml::parse(meta, WHAT).ok()?;
    xml::all(document.root(), "title").next().map(xml::text)
}

/// Styles of code lines, including derived ones.
fn code_styles(document: &Document<'_>) -> HashSet<String> {
    let based = xml::all(document.root(), "style")
        .filter(|style| xml::attribute(*style, "parent-style-name").is_some_and(is_code_name));
    based.filter_map(|style| xml::attribute(style, "name").map(str::to_owned)).collect()
}

/// The numbered levels of lists, by list style.
fn ordered_levels(document: &Document<'_>) -> HashSet<(String, usize)> {
    let levels = xml::all(document.root(), "list-level-style-number").filter_map(|level| {
        let style = xml::attribute(level.parent()?, "name")?.to_owned();
        let depth: usize = xml::attribute(level, "level")?.parse().ok()?;
        xml::attribute(level, "num-format").filter(|format| !format.is_empty())?;
        Some((style, depth.checked_sub(1)?))
    });
    levels.collect()
}

fn is_code_name(name: &str) -> bool {
    name.starts_with("Preformatted") || name.starts_with("Source_20_Code")
}

#[derive(Debug, Default)]
struct Writer {
    styles: Styles,
    code: HashSet<String>,
    ordered: HashSet<(String, usize)>,
    out: Markdown,
    lines_of_code: Vec<String>,
}

impl Writer {
    fn slides(&mut self, presentation: Node<'_, '_>) {
        for (index, page) in xml::children(presentation, "page").enumerate() {
            let frames = || page.children().filter(|child| xml::attribute(*child, "class") == Some("title"));
            let title =
                frames().map(|frame| markdown::one_line(&self.joined(frame))).find(|title| !title.is_empty());
            let number = index + 1;
            let heading =
                title.map_or_else(|| format!("Slide {number}"), |title| format!("Slide {number}: {title}"));
            self.out.heading(2, &heading);
            for child in page.children().filter(Node::is_element) {
                match (xml::name(child), xml::attribute(child, "class")) {
                    (_, Some("title" | "footer" | "date-time" | "page-number" | "header")) => {}
                    ("notes", _) => {
                        let notes = markdown::one_line(&self.joined(child));
                        if !notes.is_empty() {
                            self.out.paragraph(&format!("Notes: {notes}"));
                        }
                    }
                    _ => self.blocks(child),
                }
            }
        }
    }

    fn blocks(&mut self, parent: Node<'_, '_>) {
        for node in parent.children().filter(Node::is_element) {
            if self.out.is_full() {
                return;
            }
            match xml::name(node) {
                "h" | "p" if self.is_hidden(node) => {}
                "h" => {
                    self.end_code();
                    let level = xml::attribute(node, "outline-level").and_then(|level| level.parse().ok());
                    let text = self.line(node);
                    self.out.heading(level.unwrap_or(1), &text);
                }
                "p" => self.paragraph(node),
                "list" => {
                    self.end_code();
                    self.list(node, "", 0);
                }
                "table" => {
                    self.end_code();
                    let rows = self.rows(node);
                    self.out.table(&rows);
                }
                "tracked-changes" | "annotation" | "forms" | "sequence-decls" | "variable-decls" => {}
                "section" if is_hidden_section(node) => {}
                _ => self.blocks(node),
            }
        }
    }

    fn paragraph(&mut self, node: Node<'_, '_>) {
        let text = self.line(node);
        let style = xml::attribute(node, "style-name").unwrap_or_default();
        if is_code_name(style) || self.code.contains(style) {
            self.lines_of_code.push(text.trim_end().to_owned());
        } else {
            self.end_code();
            match style {
                "Title" => self.out.heading(1, &text),
                _ => self.out.paragraph(&text),
            }
        }
        // Frames are anchored in paragraphs, and contain paragraphs of their own.
        for text_box in node.descendants().filter(|node| xml::name(*node) == "text-box") {
            self.blocks(text_box);
        }
        self.write_notes(node);
    }

    fn end_code(&mut self) {
        let code = std::mem::take(&mut self.lines_of_code).join("\n");
        if !code.trim().is_empty() {
            self.out.code("", &code);
        }
    }

    fn write_notes(&mut self, node: Node<'_, '_>) {
        let notes: Vec<Node<'_, '_>> = xml::all(node, "note").collect();
        for note in notes {
            if let Some(body) = xml::child(note, "note-body") {
                let text = markdown::one_line(&self.joined(body));
                let text = format!("[^{}]: {text}", citation(note));
                self.out.block(&text);
            }
        }
    }

    /// Writes a list; a nested list without a style inherits it.
    fn list(&mut self, list: Node<'_, '_>, style: &str, depth: usize) {
        let style = xml::attribute(list, "style-name").unwrap_or(style);
        let ordered = self.ordered.contains(&(style.to_owned(), depth));
        let items = list.children().filter(|child| matches!(xml::name(*child), "list-item" | "list-header"));
        for (index, item) in items.enumerate() {
            for node in item.children().filter(Node::is_element) {
                match xml::name(node) {
                    "list" => self.list(node, style, depth + 1),
                    "p" | "h" if !self.is_hidden(node) => {
                        let text = self.line(node);
                        let marker = if ordered { format!("{}.", index + 1) } else { "-".to_owned() };
                        self.out.item(depth, &marker, &text);
                    }
                    _ => {}
                }
            }
        }
    }

    fn rows(&self, table: Node<'_, '_>) -> Vec<Vec<String>> {
        let is_own = |row: &Node<'_, '_>| {
            row.ancestors().skip(1).find(|above| xml::name(*above) == "table") == Some(table)
        };
        let rows = xml::all(table, "table-row").filter(is_own).map(|row| {
            let cells =
                row.children().filter(|cell| matches!(xml::name(*cell), "table-cell" | "covered-table-cell"));
            cells.flat_map(|cell| vec![self.joined(cell); repeated(cell)]).collect::<Vec<_>>()
        });
        rows.collect()
    }

    /// The text of all descendant paragraphs, one per line.
    fn joined(&self, node: Node<'_, '_>) -> String {
        let lines =
            node.descendants().filter(|node| matches!(xml::name(*node), "p" | "h") && !self.is_hidden(*node));
        lines.map(|node| self.line(node)).collect::<Vec<_>>().join("\n")
    }

    /// The text of one paragraph.
    fn line(&self, node: Node<'_, '_>) -> String {
        let mut text = String::new();
        self.runs(node, &mut text);
        text
    }

    fn runs(&self, parent: Node<'_, '_>, text: &mut String) {
        for node in parent.children() {
            if node.is_text() {
                text.push_str(node.text().unwrap_or_default());
                continue;
            }
            match xml::name(node) {
                "s" => {
                    let spaces =
                        xml::attribute(node, "c").and_then(|count| count.parse().ok()).unwrap_or(1_usize);
                    text.push_str(&" ".repeat(spaces.min(MAX_REPEATED)));
                }
                "tab" => text.push('\t'),
                "line-break" => text.push('\n'),
                "a" => {
                    let mut linked = String::new();
                    self.runs(node, &mut linked);
                    text.push_str(&markdown::link(&linked, xml::attribute(node, "href").unwrap_or_default()));
                }
                "note" => text.push_str(&format!("[^{}]", citation(node))),
                "annotation" | "annotation-end" | "text-box" | "hidden-paragraph" | "page-number" => {}
                "hidden-text" if is_hidden_now(node) => {}
                "span" if self.is_hidden(node) => {}
                _ => self.runs(node, text),
            }
        }
    }

    /// Whether a paragraph or span is hidden, by its style or by a hidden-paragraph field.
    fn is_hidden(&self, node: Node<'_, '_>) -> bool {
        let (is_piece, style) = (xml::name(node) == "span", xml::attribute(node, "style-name"));
        if style.is_some_and(|style| self.styles.hides(is_piece, style)) {
            return true;
        }
        let is_own = |field: &Node<'_, '_>| {
            field.ancestors().skip(1).find(|above| matches!(xml::name(*above), "p" | "h")) == Some(node)
        };
        let mut fields = xml::all(node, "hidden-paragraph").filter(|field| !is_piece && is_own(field));
        fields.any(is_hidden_now)
    }
}

/// Whether the hide condition was true when the file was saved; true if that is not stored.
fn is_hidden_now(node: Node<'_, '_>) -> bool {
    xml::attribute(node, "is-hidden") != Some("false")
}

fn is_hidden_section(section: Node<'_, '_>) -> bool {
    match xml::attribute(section, "display") {
        Some("none") => true,
        Some("condition") => is_hidden_now(section),
        _ => false,
    }
}

/// The label of a note in the text.
fn citation(note: Node<'_, '_>) -> String {
    let citation = xml::child(note, "note-citation").map(xml::text).unwrap_or_default();
    let prefix = if xml::attribute(note, "note-class") == Some("endnote") { "e" } else { "" };
    format!("{prefix}{}", citation.trim())
}

fn repeated(cell: Node<'_, '_>) -> usize {
    let times = xml::attribute(cell, "number-columns-repeated").and_then(|times| times.parse().ok());
    // Empty columns at the right are one element that is repeated thousands of times.
    times.filter(|times| (1..=MAX_REPEATED).contains(times)).unwrap_or(1)
}

#[cfg(test)]
mod tests;
