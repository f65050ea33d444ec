//! Shared by the Office Open XML formats: relationships between parts, properties, hidden runs.

use std::collections::HashMap;

use roxmltree::Node;

use crate::formats::archive::Archive;
use crate::formats::xml;
use crate::model::Failure;

/// The relationships of a part, by id.
pub(crate) type Relations = HashMap<String, Relation>;

/// A relationship.
#[derive(Debug)]
pub(crate) struct Relation {
    /// The last segment of its type URI, such as `slide` or `hyperlink`.
    pub(crate) kind: String,
    /// An external URL, or the name of a part.
    pub(crate) target: String,
}

/// Reads the relationships of a part.
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

/// Resolves a target relative to the folder of the referring part.
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

/// The title in a file's properties.
pub(crate) fn title(archive: &mut Archive<'_>) -> Result<Option<String>, Failure> {
    let Some(text) = archive.text("docProps/core.xml")? else { return Ok(None) };
    // Unreadable properties do not fail the extraction.
    let Ok(document) = xml::parse(&text, "an Office file") else { return Ok(None) };
    Ok(xml::all(document.root(), "title").next().map(xml::text))
}

/// Whether a toggle property such as `w:vanish` is present and not off.
pub(crate) fn is_on(properties: Node<'_, '_>, name: &str) -> bool {
    xml::child(properties, name).is_some_and(|property| {
        !matches!(xml::attribute(property, "val"), Some("0" | "false" | "off" | "none"))
    })
}
