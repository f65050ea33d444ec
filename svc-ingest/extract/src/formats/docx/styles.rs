//! Styles and lists of a Word document: determine which paragraphs are headings, list items, code, or hidden.

use std::collections::{HashMap, HashSet};

use roxmltree::{Document, Node};

use crate::formats::{office, xml};

/// The maximum depth of style inheritance.
const MAX_ANCESTORS: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Styles {
    by_id: HashMap<String, Style>,
}

#[derive(Debug, Default)]
struct Style {
    based_on: Option<String>,
    level: Option<usize>,
    list: Option<(String, usize)>,
    hidden: bool,
    code: bool,
}

impl Styles {
    pub(super) fn of(document: &Document<'_>) -> Self {
        let styles = xml::all(document.root(), "style").filter_map(|node| {
            let id = xml::attribute(node, "styleId")?.to_owned();
            Some((id, Style::of(node)))
        });
        Self { by_id: styles.collect() }
    }

    /// The level of a heading, 1 to 6.
    pub(super) fn heading_level(&self, id: &str) -> Option<usize> {
        self.lineage(id).find_map(|style| style.level)
    }

    /// The list and level of a paragraph style.
    pub(super) fn list(&self, id: &str) -> Option<(String, usize)> {
        self.lineage(id).find_map(|style| style.list.clone())
    }

    pub(super) fn is_hidden(&self, id: &str) -> bool {
        self.lineage(id).any(|style| style.hidden)
    }

    pub(super) fn is_code(&self, id: &str) -> bool {
        self.lineage(id).any(|style| style.code)
    }

    /// A style, followed by its base styles.
    fn lineage(&self, id: &str) -> impl Iterator<Item = &Style> {
        let mut next = self.by_id.get(id);
        std::iter::from_fn(move || {
            let style = next?;
            next = style.based_on.as_deref().and_then(|id| self.by_id.get(id));
            Some(style)
        })
        .take(MAX_ANCESTORS)
    }
}

impl Style {
    fn of(node: Node<'_, '_>) -> Self {
        let value = |name| xml::child(node, name).and_then(|child| xml::attribute(child, "val"));
        let name = value("name").unwrap_or_default().to_ascii_lowercase();
        let named = name.strip_prefix("heading ").and_then(|level| level.parse().ok());
        let named = named.or_else(|| (name == "title").then_some(1));
        let properties = xml::child(node, "pPr");
        Self {
            based_on: value("basedOn").map(str::to_owned),
            level: named.or_else(|| properties.and_then(outline_level)),
            list: properties.and_then(list_of),
            hidden: xml::child(node, "rPr").is_some_and(|properties| office::is_on(properties, "vanish")),
            code: ["source code", "html preformatted", "preformatted text", "code", "code block"]
                .contains(&name.as_str()),
        }
    }
}

/// The heading level in paragraph properties.
pub(super) fn outline_level(properties: Node<'_, '_>) -> Option<usize> {
    let level: usize = xml::attribute(xml::child(properties, "outlineLvl")?, "val")?.parse().ok()?;
    (level < 9).then_some(level + 1)
}

/// The list and level in paragraph properties.
pub(super) fn list_of(properties: Node<'_, '_>) -> Option<(String, usize)> {
    let numbering = xml::child(properties, "numPr")?;
    let list = xml::attribute(xml::child(numbering, "numId")?, "val")?.to_owned();
    let depth = xml::child(numbering, "ilvl").and_then(|depth| xml::attribute(depth, "val")?.parse().ok());
    Some((list, depth.unwrap_or_default()))
}

/// The numbered levels of lists.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    ordered: HashSet<(String, usize)>,
}

impl Numbering {
    pub(super) fn of(document: &Document<'_>) -> Self {
        let mut abstracts: HashMap<&str, Vec<usize>> = HashMap::new();
        for definition in xml::all(document.root(), "abstractNum") {
            let Some(id) = xml::attribute(definition, "abstractNumId") else { continue };
            let ordered = xml::children(definition, "lvl").filter_map(|level| {
                let format = xml::attribute(xml::child(level, "numFmt")?, "val")?;
                let depth = xml::attribute(level, "ilvl")?.parse().ok()?;
                (!matches!(format, "bullet" | "none")).then_some(depth)
            });
            abstracts.insert(id, ordered.collect());
        }
        let mut ordered = HashSet::new();
        for list in xml::all(document.root(), "num") {
            let definition = xml::child(list, "abstractNumId").and_then(|child| xml::attribute(child, "val"));
            let (Some(id), Some(definition)) = (xml::attribute(list, "numId"), definition) else { continue };
            for depth in abstracts.get(definition).into_iter().flatten() {
                ordered.insert((id.to_owned(), *depth));
            }
        }
        Self { ordered }
    }

    pub(super) fn is_ordered(&self, list: &str, depth: usize) -> bool {
        self.ordered.contains(&(list.to_owned(), depth))
    }
}
