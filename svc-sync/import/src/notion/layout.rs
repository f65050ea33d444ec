//! Workspace paths of pages: without ids, and with full titles where file names are truncated.

use std::collections::{HashMap, HashSet};

use super::{Part, PartContent};
use crate::archive::shortened;

/// The workspace path of each part.
#[derive(Debug, Default)]
pub(super) struct Layout {
    paths: Vec<String>,
}

/// The folders of the archive that may contain the children of a page or database.
pub(super) fn folders_of(part: &Part) -> Vec<String> {
    let prefix = if part.folder.is_empty() { String::new() } else { format!("{}/", part.folder) };
    let with_id = part.named.id.as_ref().map(|id| format!("{prefix}{} {id}", part.named.title));
    let alone =
        part.named.id.as_ref().filter(|_| part.named.title == "Untitled").map(|id| format!("{prefix}{id}"));
    with_id.into_iter().chain(alone).chain([format!("{prefix}{}", part.named.title)]).collect()
}

impl Layout {
    /// Computes the layout of these parts; `databases` lists the databases among them.
    pub(super) fn of(parts: &[Part], databases: &[usize]) -> Self {
        let databases: HashSet<usize> = databases.iter().copied().collect();
        let mut order: Vec<usize> = (0..parts.len()).collect();
        // Parents name the folders of their children, so they come first.
        order.sort_by_key(|place| parts.get(*place).map(|part| (depth(&part.folder), part.file)));
        let mut layout = Self { paths: vec![String::new(); parts.len()] };
        let (mut folders, mut taken) = (HashMap::new(), HashSet::new());
        for place in order {
            let Some(part) = parts.get(place) else { continue };
            let folder = folder(&mut folders, &part.folder);
            let is_database = databases.contains(&place);
            let (name, end) = match &part.content {
                PartContent::Page(title) => (title.as_str(), ".md"),
                PartContent::Table { .. } => (part.named.title.as_str(), ""),
                PartContent::Text => (part.named.title.as_str(), ".csv"),
                PartContent::Asset(_) => (part.name.as_str(), ""),
            };
            let owns = matches!(part.content, PartContent::Page(_)) || is_database;
            let stem = free(
                &folder,
                name,
                end,
                &mut taken,
                matches!(part.content, PartContent::Page(_) | PartContent::Text),
            );
            if owns {
                for inner in folders_of(part) {
                    folders.entry(inner).or_insert_with(|| stem.clone());
                }
            }
            if let Some(path) = layout.paths.get_mut(place) {
                *path = format!("{stem}{end}");
            }
        }
        layout
    }

    /// The workspace path of a part.
    pub(super) fn path(&self, place: usize) -> &str {
        self.paths.get(place).map_or("", String::as_str)
    }
}

fn depth(folder: &str) -> usize {
    if folder.is_empty() { 0 } else { folder.matches('/').count() + 1 }
}

/// The workspace path of a folder of the archive.
fn folder(known: &mut HashMap<String, String>, path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    if let Some(folder) = known.get(path) {
        return folder.clone();
    }
    let (mut begin, mut folder) = (0, String::new());
    // The nearest ancestor that is known.
    for (end, _) in path.match_indices('/') {
        if let Some(above) = path.get(..end).and_then(|above| known.get(above)) {
            folder.clone_from(above);
            begin = end + 1;
        }
    }
    for name in path.get(begin..).unwrap_or_default().split('/') {
        let title = super::names::ExportName::of(name).title;
        folder = if folder.is_empty() { title } else { format!("{folder}/{title}") };
    }
    known.insert(path.to_owned(), folder.clone());
    folder
}

/// A unique path, without its extension.
fn free(folder: &str, name: &str, end: &str, taken: &mut HashSet<String>, is_unique: bool) -> String {
    let name = shortened(&format!("{name}{end}")).unwrap_or_else(|| format!("{name}{end}"));
    let name = name.strip_suffix(end).unwrap_or(&name);
    let stem = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    if !is_unique {
        return stem;
    }
    let mut free = stem.clone();
    let mut number = 2;
    while !taken.insert(format!("{free}{end}")) {
        free = format!("{stem} ({number})");
        number += 1;
    }
    free
}
