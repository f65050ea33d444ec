//! PowerPoint slides in order, with notes. Hidden slides and shapes, footers and slide numbers are skipped.

use roxmltree::Node;

use crate::formats::archive::Archive;
use crate::formats::office::{self, Relations};
use crate::formats::xml;
use crate::markdown::{self, Markdown};
use crate::model::{Failure, Format, Raw, Text};

const WHAT: &str = "PowerPoint slides";
const MAIN: &str = "ppt/presentation.xml";

pub(crate) fn read(raw: &Raw) -> Result<Text, Failure> {
    let mut archive = Archive::open(&raw.bytes)?;
    let text = archive.text(MAIN)?.ok_or_else(|| Failure::broken(WHAT))?;
    let presentation = xml::parse(&text, WHAT)?;
    let relations = office::relations(&mut archive, MAIN)?;
    let mut out = Markdown::default();
    for (index, slide) in xml::all(presentation.root(), "sldId").enumerate() {
        if out.is_full() {
            break;
        }
        // The relationship id and the slide id have the same local name, and differ only in namespace.
        let id = slide
            .attributes()
            .filter(|attribute| attribute.namespace().is_some())
            .map(|id| id.value())
            .next();
        let Some(part) = id.and_then(|id| relations.get(id)) else { continue };
        write_slide(&mut archive, index + 1, &part.target, &mut out)?;
    }
    Ok(Text { format: Format::Markdown, content: out.into_text(), title: office::title(&mut archive)? })
}

fn write_slide(
    archive: &mut Archive<'_>,
    number: usize,
    part: &str,
    out: &mut Markdown,
) -> Result<(), Failure> {
    let Some(text) = archive.text(part)? else { return Ok(()) };
    let document = xml::parse(&text, WHAT)?;
    if xml::attribute(document.root_element(), "show").is_some_and(|show| matches!(show, "0" | "false")) {
        return Ok(());
    }
    let relations = office::relations(archive, part)?;
    let is_seen = |shape: &Node<'_, '_>| !shape.ancestors().any(is_hidden);
    let title = xml::all(document.root(), "sp").find(|shape| is_title(*shape) && is_seen(shape));
    let title = title
        .map(|shape| paragraphs(shape, &relations).into_iter().map(|line| line.text).collect::<Vec<_>>());
    match title.map(|lines| markdown::one_line(&lines.join(" "))).filter(|title| !title.is_empty()) {
        Some(title) => out.heading(2, &format!("Slide {number}: {title}")),
        None => out.heading(2, &format!("Slide {number}")),
    }
    if let Some(tree) = xml::path(document.root_element(), &["cSld", "spTree"]) {
        write_shapes(tree, &relations, out);
    }
    let notes = relations.values().find(|relation| relation.kind == "notesSlide");
    match notes {
        Some(notes) => write_notes(archive, &notes.target, out),
        None => Ok(()),
    }
}

fn write_shapes(tree: Node<'_, '_>, relations: &Relations, out: &mut Markdown) {
    for shape in tree.children().filter(Node::is_element) {
        if out.is_full() || is_hidden(shape) {
            continue;
        }
        match xml::name(shape) {
            "sp" if is_title(shape) || is_furniture(shape) => {}
            "sp" => write_text(shape, relations, out),
            "grpSp" => write_shapes(shape, relations, out),
            "graphicFrame" => {
                for table in xml::all(shape, "tbl") {
                    let rows = xml::children(table, "tr")
                        .map(|row| xml::children(row, "tc").map(|cell| joined(cell, relations)).collect());
                    out.table(&rows.collect::<Vec<_>>());
                }
            }
            "AlternateContent" => {
                if let Some(choice) = xml::child(shape, "Choice") {
                    write_shapes(choice, relations, out);
                }
            }
            _ => {}
        }
    }
}

/// The paragraphs of a shape: list items in the body of a slide, plain lines elsewhere.
fn write_text(shape: Node<'_, '_>, relations: &Relations, out: &mut Markdown) {
    let is_body = placeholder(shape).is_some_and(|kind| matches!(kind, "body" | "obj" | ""));
    let lines = paragraphs(shape, relations);
    let is_list = is_body && lines.len() > 1;
    for line in lines {
        if is_list || line.level > 0 {
            out.item(line.level, "-", &line.text);
        } else {
            out.paragraph(&line.text);
        }
    }
}

fn write_notes(archive: &mut Archive<'_>, part: &str, out: &mut Markdown) -> Result<(), Failure> {
    let Some(text) = archive.text(part)? else { return Ok(()) };
    let document = xml::parse(&text, WHAT)?;
    let relations = office::relations(archive, part)?;
    let is_seen = |shape: &Node<'_, '_>| !shape.ancestors().any(is_hidden);
    let notes = xml::all(document.root(), "sp");
    let notes = notes.filter(|shape| placeholder(*shape) == Some("body") && is_seen(shape));
    let notes: Vec<String> = notes.map(|shape| joined(shape, &relations)).collect();
    let notes = notes.join("\n");
    if !notes.trim().is_empty() {
        out.paragraph(&format!("Notes: {}", notes.trim()));
    }
    Ok(())
}

#[derive(Debug)]
struct Line {
    level: usize,
    text: String,
}

fn paragraphs(shape: Node<'_, '_>, relations: &Relations) -> Vec<Line> {
    let paragraphs = xml::all(shape, "p").map(|paragraph| {
        let level = xml::child(paragraph, "pPr")
            .and_then(|properties| xml::attribute(properties, "lvl")?.parse().ok());
        Line { level: level.unwrap_or_default(), text: runs(paragraph, relations) }
    });
    paragraphs.filter(|line| !line.text.trim().is_empty()).collect()
}

fn joined(shape: Node<'_, '_>, relations: &Relations) -> String {
    let lines = paragraphs(shape, relations).into_iter().map(|line| line.text);
    lines.collect::<Vec<_>>().join("\n")
}

fn runs(paragraph: Node<'_, '_>, relations: &Relations) -> String {
    let mut text = String::new();
    for run in paragraph.children().filter(Node::is_element) {
        match xml::name(run) {
            "br" => text.push('\n'),
            "r" | "fld" => {
                let written = xml::child(run, "t").map(xml::text).unwrap_or_default();
                let link = xml::path(run, &["rPr", "hlinkClick"]).and_then(|link| xml::attribute(link, "id"));
                let address = link.and_then(|id| relations.get(id)).map(|relation| relation.target.as_str());
                text.push_str(&markdown::link(&written, address.unwrap_or_default()));
            }
            _ => {}
        }
    }
    text
}

/// The placeholder type of a shape; empty for the default.
fn placeholder<'a>(shape: Node<'a, '_>) -> Option<&'a str> {
    let placeholder = xml::path(shape, &["nvSpPr", "nvPr", "ph"])?;
    Some(xml::attribute(placeholder, "type").unwrap_or_default())
}

fn is_title(shape: Node<'_, '_>) -> bool {
    placeholder(shape).is_some_and(|kind| matches!(kind, "title" | "ctrTitle"))
}

/// Placeholders that repeat on every slide.
fn is_furniture(shape: Node<'_, '_>) -> bool {
    placeholder(shape).is_some_and(|kind| matches!(kind, "sldNum" | "ftr" | "dt" | "hdr"))
}

fn is_hidden(shape: Node<'_, '_>) -> bool {
    let properties = shape.children().filter(Node::is_element).find_map(|child| xml::child(child, "cNvPr"));
    properties.and_then(|properties| xml::attribute(properties, "hidden")).is_some_and(is_true)
}

/// A boolean of XML Schema.
fn is_true(value: &str) -> bool {
    matches!(value.trim(), "1" | "true")
}

#[cfg(test)]
mod tests;
