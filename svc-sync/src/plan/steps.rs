//! The steps of a plan, in order of execution.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::{Plan, States, Tree};
use crate::model::{Document, Entry, Kind, Step, Write};

/// The steps of a plan: folders before their contents, then files by path, then prunes, with folders after their contents. `root` is the
/// target folder of the directory, `names` are the names taken in folders of files that get a second version, and `id_of` assigns ids to
/// new files.
pub(crate) fn steps(
    plan: &Plan<'_>,
    tree: &Tree<'_>,
    states: &States,
    root: Option<Uuid>,
    names: &mut HashMap<Option<Uuid>, HashSet<String>>,
    mut id_of: impl FnMut(Kind, &str) -> Uuid,
    prune: bool,
) -> Vec<Step> {
    let parent_of = |path: &str| tree.parent(path).map_or(root, |needed| Some(needed.id()));
    let mut steps: Vec<Step> = Vec::new();
    for (path, id) in tree.new_ones() {
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        let write = Write::Create { name, folder: parent_of(path), file_type: None };
        steps.push(Step::of(Kind::Folder, path.to_owned(), write, id));
    }
    let mut files: Vec<Step> = Vec::with_capacity(plan.creates.len() + plan.updates.len());
    for (document, old) in &plan.creates {
        let old = *old;
        let beside = old.and_then(|old| states.get(&old.id)).filter(|state| !state.in_trash);
        let (name, folder) = match beside {
            Some(state) => {
                let taken = names.entry(state.parent).or_default();
                taken.insert(state.name.clone());
                let name = self::beside(&state.name, taken);
                taken.insert(name.clone());
                (name, state.parent)
            }
            None => (document.parts().1.to_owned(), parent_of(&document.path)),
        };
        let write = Write::Create { name, folder, file_type: Some(document.file_type) };
        files.push(file(document, write, id_of(Kind::File, &document.path), 0, old));
    }
    for (document, entry) in &plan.updates {
        files.push(file(document, Write::Update, entry.id, entry.version, Some(entry)));
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    steps.extend(files);
    if prune {
        steps.extend(plan.prunes.iter().map(|entry| Step {
            version: entry.version,
            hash: entry.hash.clone(),
            before: Some((*entry).clone()),
            ..Step::of(entry.kind, entry.path.clone(), Write::Trash, entry.id)
        }));
    }
    steps
}

fn file(document: &Document, write: Write, id: Uuid, version: u64, before: Option<&Entry>) -> Step {
    Step {
        version,
        hash: document.hash.clone(),
        before: before.cloned(),
        ..Step::of(Kind::File, document.path.clone(), write, id)
    }
}

/// The name of a further version of a file: `note (2).md`.
pub(crate) fn beside(name: &str, taken: &HashSet<String>) -> String {
    /// Characters of a name (contract, "File").
    const MAX_NAME_CHARS: usize = 255;
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, format!(".{extension}")),
        _ => (name, String::new()),
    };
    // `note (2).md` is followed by `note (3).md`.
    let stem = match stem.strip_suffix(')').and_then(|stem| stem.rsplit_once(" (")) {
        Some((stem, number)) if !stem.is_empty() && number.parse::<u32>().is_ok() => stem,
        _ => stem,
    };
    let mut number = 2_u64;
    loop {
        let end = format!(" ({number}){extension}");
        let room = MAX_NAME_CHARS.saturating_sub(end.chars().count());
        let short: String = stem.chars().take(room).collect();
        let found: String = format!("{short}{end}").chars().take(MAX_NAME_CHARS).collect();
        if !taken.contains(&found) || number > taken.len() as u64 + 2 {
            return found;
        }
        number += 1;
    }
}
