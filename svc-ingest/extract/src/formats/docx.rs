//! Word documents. Headers, footers, comments, deleted and hidden text are skipped.

mod styles;

use std::collections::HashMap;

use roxmltree::Node;

use self::styles::{Numbering, Styles};
use crate::formats::archive::Archive;
use crate::formats::office::{self, Relations};
use crate::formats::xml;
use crate::markdown::{self, Markdown};
use crate::model::{Failure, Format, Raw, Text};

const WHAT: &str = "a Word document";
const MAIN: &str = "word/document.xml";

pub(crate) fn read(raw: &Raw) -> Result<Text, Failure> {
    let mut archive = Archive::open(&raw.bytes)?;
    let main = main_part(&mut archive)?;
    let text = archive.text(&main)?.ok_or_else(|| Failure::broken(WHAT))?;
    let styles = match archive.text("word/styles.xml")? {
        Some(text) => Styles::of(&xml::parse(&text, WHAT)?),
        None => Styles::default(),
    };
    let numbering = match archive.text("word/numbering.xml")? {
        Some(text) => Numbering::of(&xml::parse(&text, WHAT)?),
        None => Numbering::default(),
    };
    let relations = office::relations(&mut archive, &main)?;
    let mut writer = Writer { styles, numbering, relations, ..Writer::default() };
    let document = xml::parse(&text, WHAT)?;
    let body = xml::path(document.root(), &["document", "body"]).ok_or_else(|| Failure::broken(WHAT))?;
    writer.blocks(body);
    writer.end_code();
    for (part, element) in [("word/footnotes.xml", "footnote"), ("word/endnotes.xml", "endnote")] {
        if let Some(text) = archive.text(part)? {
            writer.notes(&xml::parse(&text, WHAT)?, element);
        }
    }
    Ok(Text {
        format: Format::Markdown,
        content: writer.out.into_text(),
        title: office::title(&mut archive)?,
    })
}

fn main_part(archive: &mut Archive<'_>) -> Result<String, Failure> {
    let relations = office::relations(archive, "")?;
    let main = relations.into_values().find(|relation| relation.kind == "officeDocument");
    Ok(main.map_or_else(|| MAIN.to_owned(), |relation| relation.target))
}

#[derive(Debug, Default)]
struct Writer {
    styles: Styles,
    numbering: Numbering,
    relations: Relations,
    out: Markdown,
    /// The current number of each list level.
    counted: HashMap<(String, usize), u32>,
    /// Consecutive code lines.
    code: Vec<String>,
}

/// The content of a paragraph's runs.
#[derive(Debug, Default)]
struct Line<'a, 'i> {
    text: String,
    /// Text boxes anchored in it.
    boxes: Vec<Node<'a, 'i>>,
}

impl Writer {
    /// Writes paragraphs and tables, descending through wrappers.
    fn blocks(&mut self, parent: Node<'_, '_>) {
        for node in parent.children().filter(Node::is_element) {
            if self.out.is_full() {
                return;
            }
            match xml::name(node) {
                "p" => self.paragraph(node),
                "tbl" => {
                    self.end_code();
                    let rows = self.rows(node);
                    self.out.table(&rows);
                }
                // Deleted and moved text, properties and markers.
                "del" | "moveFrom" | "sectPr" | "sdtPr" | "pPr" => {}
                "AlternateContent" => {
                    if let Some(choice) = xml::child(node, "Choice") {
                        self.blocks(choice);
                    }
                }
                _ => self.blocks(node),
            }
        }
    }

    fn paragraph(&mut self, node: Node<'_, '_>) {
        let properties = xml::child(node, "pPr");
        let style = properties.and_then(|properties| xml::child(properties, "pStyle"));
        let style = style.and_then(|style| xml::attribute(style, "val")).unwrap_or_default();
        if self.styles.is_hidden(style) {
            return;
        }
        let mut line = Line::default();
        self.runs(node, &mut line);
        if self.styles.is_code(style) {
            self.code.push(line.text.trim_end().to_owned());
        } else {
            self.end_code();
            self.write_line(properties, style, &line.text);
        }
        for text_box in line.boxes {
            self.blocks(text_box);
        }
    }

    fn write_line(&mut self, properties: Option<Node<'_, '_>>, style: &str, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let level = properties.and_then(styles::outline_level).or_else(|| self.styles.heading_level(style));
        if let Some(level) = level {
            self.out.heading(level, text);
            return;
        }
        let list = properties.and_then(styles::list_of).or_else(|| self.styles.list(style));
        let Some((list, depth)) = list.filter(|(list, _)| list != "0") else {
            self.out.paragraph(text);
            return;
        };
        self.counted.retain(|(counted, level), _| counted != &list || *level <= depth);
        let number = self.counted.entry((list.clone(), depth)).or_default();
        *number += 1;
        let marker =
            if self.numbering.is_ordered(&list, depth) { format!("{number}.") } else { "-".to_owned() };
        self.out.item(depth, &marker, text);
    }

    fn end_code(&mut self) {
        let code = std::mem::take(&mut self.code).join("\n");
        if !code.trim().is_empty() {
            self.out.code("", &code);
        }
    }

    /// Collects the text of runs, descending through wrappers.
    fn runs<'a, 'i>(&self, parent: Node<'a, 'i>, line: &mut Line<'a, 'i>) {
        for node in parent.children().filter(Node::is_element) {
            match xml::name(node) {
                "r" if self.is_hidden(node) => {}
                "t" => line.text.push_str(node.text().unwrap_or_default()),
                "tab" => line.text.push('\t'),
                "br" | "cr" => line.text.push('\n'),
                "noBreakHyphen" => line.text.push('-'),
                "footnoteReference" | "endnoteReference" => {
                    if let Some(id) = xml::attribute(node, "id") {
                        line.text.push_str(&note_mark(xml::name(node), id));
                    }
                }
                "hyperlink" => self.link(node, line),
                "txbxContent" => line.boxes.push(node),
                "AlternateContent" => {
                    if let Some(choice) = xml::child(node, "Choice") {
                        self.runs(choice, line);
                    }
                }
                "del" | "moveFrom" | "pPr" | "rPr" | "sdtPr" | "instrText" | "delText" | "binData" => {}
                _ => self.runs(node, line),
            }
        }
    }

    fn link<'a, 'i>(&self, node: Node<'a, 'i>, line: &mut Line<'a, 'i>) {
        let mut linked = Line::default();
        self.runs(node, &mut linked);
        let relation = xml::attribute(node, "id").and_then(|id| self.relations.get(id));
        let address = relation.map(|relation| relation.target.as_str()).unwrap_or_default();
        line.text.push_str(&markdown::link(&linked.text, address));
        line.boxes.append(&mut linked.boxes);
    }

    fn is_hidden(&self, run: Node<'_, '_>) -> bool {
        xml::child(run, "rPr").is_some_and(|properties| {
            let style = xml::child(properties, "rStyle").and_then(|style| xml::attribute(style, "val"));
            let hidden = |name| office::is_on(properties, name);
            hidden("vanish") || hidden("webHidden") || style.is_some_and(|style| self.styles.is_hidden(style))
        })
    }

    fn rows(&self, table: Node<'_, '_>) -> Vec<Vec<String>> {
        let rows =
            table.descendants().filter(|node| xml::name(*node) == "tr" && owner(*node, "tbl") == Some(table));
        rows.map(|row| {
            let cells =
                row.descendants().filter(|node| xml::name(*node) == "tc" && owner(*node, "tr") == Some(row));
            cells.flat_map(|cell| self.cell(cell)).collect()
        })
        .collect()
    }

    /// The text of a cell, followed by empty cells for the other columns that it spans.
    fn cell(&self, cell: Node<'_, '_>) -> Vec<String> {
        let paragraphs = xml::all(cell, "p").map(|paragraph| {
            let mut line = Line::default();
            self.runs(paragraph, &mut line);
            line.text
        });
        let text = paragraphs.collect::<Vec<_>>().join("\n");
        let span =
            xml::path(cell, &["tcPr", "gridSpan"]).and_then(|span| xml::attribute(span, "val")?.parse().ok());
        let mut cells = vec![text];
        cells.resize(span.unwrap_or(1_usize).clamp(1, 100), String::new());
        cells
    }

    fn notes(&mut self, document: &roxmltree::Document<'_>, element: &'static str) {
        for note in xml::all(document.root(), element) {
            let Some(id) = xml::attribute(note, "id") else { continue };
            // Separators are notes with a type.
            if xml::attribute(note, "type").is_some_and(|kind| kind != "normal") {
                continue;
            }
            let mut line = Line::default();
            self.runs(note, &mut line);
            if !line.text.trim().is_empty() {
                let mark = note_mark(element, id);
                self.out.block(&format!("{mark}: {}", markdown::one_line(&line.text)));
            }
        }
    }
}

fn note_mark(element: &str, id: &str) -> String {
    if element.starts_with("endnote") { format!("[^e{id}]") } else { format!("[^{id}]") }
}

/// The nearest ancestor of that name.
fn owner<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.ancestors().skip(1).find(|ancestor| xml::name(*ancestor) == name)
}

#[cfg(test)]
mod tests;
