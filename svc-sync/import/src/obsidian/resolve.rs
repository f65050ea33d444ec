//! Resolves links to files.
//!
//! Paths are stored reversed, with their last name first, and sorted: all paths with the same suffix are adjacent, so resolving a link is a
//! binary search, however many files have the same name.

use std::collections::HashMap;

use crate::address::joined;
use crate::archive::TreeFile;
use crate::text::fold;

/// The extension that links to notes may omit.
const EXTENSIONS: [&str; 3] = ["", ".md", ".markdown"];
/// Below this number of candidates, the result is not cached.
const CACHE_THRESHOLD: usize = 32;

/// The result of a resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolution {
    /// A file, by its index in the tree.
    One(usize),
    /// Several files; this one has precedence.
    FirstOf(usize),
    /// Several files with the same alias, none of which has precedence.
    Several,
    Nothing,
}

/// The index for resolving links.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    /// Reversed paths, case-sensitive and case-folded, each with the file.
    exact: Vec<(Box<str>, usize)>,
    folded: Vec<(Box<str>, usize)>,
    /// Folded aliases with their note; `None` if several notes have it.
    aliases: HashMap<String, Option<usize>>,
    /// The first file by folder (case-sensitive) and folded name.
    in_folders: HashMap<(Box<str>, Box<str>), usize>,
    /// Cache: the best of many candidates, by their range.
    firsts: HashMap<(bool, usize, usize), usize>,
}

/// Candidates: an index range for each possible extension.
struct Candidates {
    is_folded: bool,
    ranges: [(usize, usize); 3],
}

impl Candidates {
    fn count(&self) -> usize {
        self.ranges.iter().map(|(begin, end)| end - begin).sum()
    }
}

impl Resolver {
    /// Builds the index of files, which are sorted by path.
    pub(super) fn of(files: &[TreeFile]) -> Self {
        let mut exact: Vec<_> = files.iter().enumerate().map(|(at, file)| (key(&file.path), at)).collect();
        let mut folded: Vec<_> =
            files.iter().enumerate().map(|(at, file)| (key(&fold(&file.path)), at)).collect();
        exact.sort_unstable();
        folded.sort_unstable();
        let mut in_folders = HashMap::with_capacity(files.len());
        for (at, file) in files.iter().enumerate() {
            let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
            in_folders.entry((folder.into(), fold(name).into())).or_insert(at);
        }
        Self { exact, folded, in_folders, ..Self::default() }
    }

    /// Adds an alias of a note.
    pub(super) fn add_alias(&mut self, alias: &str, note: usize) {
        const MAX_ALIASES: usize = 500_000;
        if alias.is_empty() || self.aliases.len() >= MAX_ALIASES {
            return;
        }
        let known = self.aliases.entry(fold(alias)).or_insert(Some(note));
        if *known != Some(note) {
            *known = None;
        }
    }

    /// Resolves a wikilink in a note of `folder`.
    pub(super) fn wikilink(&mut self, files: &[TreeFile], folder: &str, target: &str) -> Resolution {
        if is_dotted(target) {
            return self.below(folder, target);
        }
        self.by_path(files, folder, target)
    }

    /// Resolves a Markdown link in a note of `folder`, relative to that folder first.
    pub(super) fn markdown(&mut self, files: &[TreeFile], folder: &str, target: &str) -> Resolution {
        if !target.starts_with('/') {
            let found = self.below(folder, target);
            if found != Resolution::Nothing || is_dotted(target) {
                return found;
            }
        }
        self.by_path(files, folder, target)
    }

    /// By path from the root, then by path suffix, then by alias.
    fn by_path(&mut self, files: &[TreeFile], folder: &str, target: &str) -> Resolution {
        let path = joined("", target);
        if path.is_empty() {
            return Resolution::Nothing;
        }
        if let Some(file) = at(&self.exact, &path) {
            return Resolution::One(file);
        }
        let folded = candidates(&self.folded, &fold(&path), true);
        if folded.count() == 0 {
            return match self.aliases.get(&fold(target)) {
                Some(Some(note)) => Resolution::One(*note),
                Some(None) => Resolution::Several,
                None => Resolution::Nothing,
            };
        }
        let exact = candidates(&self.exact, &path, false);
        let chosen = if exact.count() > 0 { &exact } else { &folded };
        let in_folder = self.in_folder(chosen, folder, &path);
        let Some(first) = in_folder.or_else(|| self.first(files, chosen)) else { return Resolution::Nothing };
        if folded.count() == 1 { Resolution::One(first) } else { Resolution::FirstOf(first) }
    }

    /// By path relative to a folder.
    fn below(&self, folder: &str, target: &str) -> Resolution {
        let path = joined(folder, target);
        let found = at(&self.exact, &path).or_else(|| at(&self.folded, &fold(&path)));
        found.map_or(Resolution::Nothing, Resolution::One)
    }

    /// The candidate that is in the note's folder.
    fn in_folder(&self, candidates: &Candidates, folder: &str, path: &str) -> Option<usize> {
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        let here = joined(folder, name);
        let (here, path) = match candidates.is_folded {
            true => (fold(&here), fold(path)),
            false => (here, path.to_owned()),
        };
        EXTENSIONS.iter().find_map(|variant| {
            let here = key(&format!("{here}{variant}"));
            if !here.starts_with(&*key(&format!("{path}{variant}"))) {
                return None;
            }
            if !candidates.is_folded {
                return whole(&self.exact, &here);
            }
            // Folders are case-sensitive.
            let name = fold(&format!("{name}{variant}"));
            self.in_folders.get(&(folder.into(), name.into())).copied()
        })
    }

    /// The candidate with the shortest path; ties go to the first by name.
    fn first(&mut self, files: &[TreeFile], candidates: &Candidates) -> Option<usize> {
        let keys = if candidates.is_folded { &self.folded } else { &self.exact };
        let order = |file: &usize| {
            let path = files.get(*file).map_or("", |file| file.path.as_str());
            (path.chars().count(), path)
        };
        let firsts = candidates.ranges.iter().filter_map(|(begin, end)| {
            let files = || keys.get(*begin..*end).unwrap_or_default().iter().map(|(_, file)| *file);
            if end - begin <= CACHE_THRESHOLD {
                return files().min_by_key(order);
            }
            let known = (candidates.is_folded, *begin, *end);
            if let Some(first) = self.firsts.get(&known) {
                return Some(*first);
            }
            let first = files().min_by_key(order)?;
            self.firsts.insert(known, first);
            Some(first)
        });
        firsts.min_by_key(order)
    }
}

/// Reverses a path: `b.md/a/` for `a/b.md`.
fn key(path: &str) -> Box<str> {
    let mut key = String::with_capacity(path.len() + 1);
    for name in path.rsplit('/') {
        key.push_str(name);
        key.push('/');
    }
    key.into_boxed_str()
}

/// The range of paths with this suffix.
fn candidates(keys: &[(Box<str>, usize)], path: &str, is_folded: bool) -> Candidates {
    let ranges = EXTENSIONS.map(|variant| {
        let prefix = key(&format!("{path}{variant}"));
        let begin = keys.partition_point(|(key, _)| **key < *prefix);
        let rest = keys.get(begin..).unwrap_or_default();
        (begin, begin + rest.partition_point(|(key, _)| key.starts_with(&*prefix)))
    });
    Candidates { is_folded, ranges }
}

/// The file at this path, or at this path with the extension of a note.
fn at(keys: &[(Box<str>, usize)], path: &str) -> Option<usize> {
    EXTENSIONS.iter().find_map(|variant| whole(keys, &key(&format!("{path}{variant}"))))
}

fn whole(keys: &[(Box<str>, usize)], key: &str) -> Option<usize> {
    let place = keys.partition_point(|(known, _)| **known < *key);
    keys.get(place).filter(|(known, _)| **known == *key).map(|(_, file)| *file)
}

fn is_dotted(target: &str) -> bool {
    target.starts_with("./") || target.starts_with("../")
}

#[cfg(test)]
mod tests;
