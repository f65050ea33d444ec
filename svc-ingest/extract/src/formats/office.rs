//! What the formats of Office have in common: parts that refer to each other, properties, runs that are hidden.

use std::collections::HashMap;

use roxmltree::Node;

use crate::formats::archive::Archive;
use crate::formats::xml;
use crate::model::Failure;

/// What a part refers to, by the id that it uses for it.
pub(crate) type Relations = HashMap<String, Relation>;

/// One of these.
#[derive(Debug)]
pub(crate) struct Relation {
    /// The last part of its type, such as `slide` or `hyperlink`.
    pub(crate) kind: String,
    /// An address outside, or the name of a part.
    pub(crate) target: String,
}

/// What a part refers to.
pub(crate) fn relations(archive: &mut Archive<'_>, part: &str) -> Result<Relations, Failure> {
    let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
    let Some(text) = archive.text(&format!("{folder}/_rels/{file}.rels"))? else {
        return Ok(Relations::new());
    };
    let document = xml::parse(&text, "an Office file")?;
    let relations = xml::all(document.root(), "Relationship").filter_map(|relation| {
        let target = xml::attribute(relation, "Target")?;
        let outside = xml::attribute(relation, "TargetMode") == Some("External");
        let kind = xml::attribute(relation, "Type")?.rsplit('/').next().unwrap_or_default().to_owned();
        let target = if outside { target.to_owned() } else { resolve(folder, target) };
        Some((xml::attribute(relation, "Id")?.to_owned(), Relation { kind, target }))
    });
    Ok(relations.collect())
}

/// The name of a part that another one in that folder refers to.
fn resolve(folder: &str, target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut segments: Vec<&str> = folder.split('/').filter(|segment| !segment.is_empty()).collect();
    for segment in target.split('/') {
        match segment {
            ".." => drop(segments.pop()),
            "." | "" => {}
            segment => segments.push(segment),
        }
    }
    segments.join("/")
}

/// The title that a file's properties hold.
pub(crate) fn title(archive: &mut Archive<'_>) -> Result<Option<String>, Failure> {
    let Some(text) = archive.text("docProps/core.xml")? else { return Ok(None) };
    // Properties that cannot be read are no reason to refuse the text.
    let Ok(document) = xml::parse(&text, "an Office file") else { return Ok(None) };
    Ok(xml::all(document.root(), "title").next().map(xml::text))
}

/// Whether a property such as `w:vanish` is there and not switched off.
pub(crate) fn is_on(properties: Node<'_, '_>, name: &str) -> bool {
    xml::child(properties, name).is_some_and(|property| {
        !matches!(xml::attribute(property, "val"), Some("0" | "false" | "off" | "none"))
    })
}
