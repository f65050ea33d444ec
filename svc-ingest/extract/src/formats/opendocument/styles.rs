//! OpenDocument styles: finds hidden text.

use std::collections::HashMap;

use roxmltree::{Document, Node};

use crate::formats::xml;

/// The maximum depth of style inheritance.
const MAX_ANCESTORS: usize = 20;

/// Text and paragraph styles, by name.
#[derive(Debug, Default)]
pub(super) struct Styles {
    of_pieces: HashMap<String, Style>,
    of_paragraphs: HashMap<String, Style>,
}

#[derive(Debug)]
struct Style {
    parent: Option<String>,
    /// Absent if the style does not define it.
    hides: Option<bool>,
}

impl Styles {
    /// The common styles of a file (`styles.xml`), and the automatic styles of the part, whose names are only unique in the part.
    pub(super) fn of(shared: Option<&Document<'_>>, content: &Document<'_>) -> Self {
        let mut styles = Self::default();
        let common = shared.and_then(|shared| xml::child(shared.root_element(), "styles"));
        let own = xml::all(content.root(), "style");
        for node in common.into_iter().flat_map(|common| xml::children(common, "style")).chain(own) {
            styles.add(node);
        }
        styles
    }

    fn add(&mut self, node: Node<'_, '_>) {
        let Some(name) = xml::attribute(node, "name") else { return };
        let properties = xml::child(node, "text-properties");
        let style = || Style {
            parent: xml::attribute(node, "parent-style-name").map(str::to_owned),
            hides: properties.and_then(|properties| Some(xml::attribute(properties, "display")? == "none")),
        };
        let family = xml::attribute(node, "family");
        if family != Some("paragraph") {
            self.of_pieces.insert(name.to_owned(), style());
        }
        if family != Some("text") {
            self.of_paragraphs.insert(name.to_owned(), style());
        }
    }

    /// Whether a text or paragraph style hides its text, itself or by inheritance.
    pub(super) fn hides(&self, is_piece: bool, name: &str) -> bool {
        let styles = if is_piece { &self.of_pieces } else { &self.of_paragraphs };
        let mut next = styles.get(name);
        let lineage = std::iter::from_fn(|| {
            let style = next?;
            next = style.parent.as_deref().and_then(|parent| styles.get(parent));
            Some(style)
        });
        lineage.take(MAX_ANCESTORS).find_map(|style| style.hides).unwrap_or_default()
    }
}
