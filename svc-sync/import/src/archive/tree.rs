//! The importable files of an archive, with normalized paths below the import's folder.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{Read, Seek};

use cairn_proto::domain::limits::NAME_CHARS;

use super::{Archive, ArchiveError, EntryKind, MAX_ENTRIES};
use crate::report::{Ignored, IgnoredReason, Warning, WarningCode};
use crate::text::fold;

/// A file of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    /// Its path: valid names, separated by `/`.
    pub path: String,
    /// Decompressed bytes.
    pub size: u64,
    /// Which entry of the archive it is.
    pub entry: usize,
}

/// The files of an archive, sorted by path, without duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// The files.
    pub files: Vec<TreeFile>,
    /// Entries that are not user content.
    pub ignored: Vec<Ignored>,
    /// Warnings about what was left out or changed.
    pub warnings: Vec<Warning>,
}

impl Tree {
    /// The tree of an archive, without the entries in `parts`.
    ///
    /// # Errors
    /// [`ArchiveError::Bomb`] when its paths name more folders than an archive may have entries.
    pub fn of<R: Read + Seek>(archive: &Archive<R>, parts: &[usize]) -> Result<Self, ArchiveError> {
        let parts: HashSet<usize> = parts.iter().copied().collect();
        let mut tree = Self { warnings: archive.warnings().to_vec(), ..Self::default() };
        let mut places: HashMap<String, usize> = HashMap::new();
        for (index, entry) in archive.entries().iter().enumerate() {
            if entry.kind == EntryKind::Folder || parts.contains(&index) {
                continue;
            }
            let Some(path) = tree.clean(&entry.name, entry.kind) else { continue };
            let file = TreeFile { path: path.clone(), size: entry.size, entry: index };
            if let Some(place) = places.get(&path) {
                tree.warnings.push(Warning::new(&path, WarningCode::DuplicatePath));
                if let Some(earlier) = tree.files.get_mut(*place) {
                    *earlier = file;
                }
                continue;
            }
            places.insert(path, tree.files.len());
            tree.files.push(file);
        }
        tree.files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        tree.find_clashes()?;
        Ok(tree)
    }

    /// The importable path of an entry; `None` if it was reported instead.
    fn clean(&mut self, name: &str, kind: EntryKind) -> Option<String> {
        if is_unsafe(name) {
            self.warnings.push(Warning::new(name, WarningCode::UnsafePath));
            return None;
        }
        if let Some(reason) = ignored(name) {
            self.ignored.push(Ignored { path: name.to_owned(), reason });
            return None;
        }
        if kind == EntryKind::Symlink {
            self.warnings.push(Warning::new(name, WarningCode::Symlink));
            return None;
        }
        let mut changes = Changes::default();
        let mut path = String::with_capacity(name.len());
        for segment in segments(name) {
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(&changes.name(segment));
        }
        if changes.decoded {
            self.warnings.push(Warning::new(name, WarningCode::NameEncoding));
        }
        if changes.shortened {
            self.warnings.push(Warning::new(name, WarningCode::NameShortened));
        }
        Some(path).filter(|path| !path.is_empty())
    }

    /// Warns of paths that differ only in case, and refuses more folders than an archive may have entries.
    fn find_clashes(&mut self) -> Result<(), ArchiveError> {
        // Names below each other, folded: the folder's number and the name, with the first file that has them.
        let mut nodes: HashMap<(usize, String), (usize, &str)> = HashMap::new();
        let mut clashes = Vec::new();
        for file in &self.files {
            let mut parent = 0;
            let mut reported = false;
            for (begin, segment) in steps(&file.path) {
                let end = begin + segment.len();
                let path = file.path.get(..end).unwrap_or_default();
                let next = nodes.len() + 1;
                let (number, first) = *nodes.entry((parent, fold(segment))).or_insert((next, path));
                parent = number;
                // The outermost colliding folder stands for its contents; the file itself is reported, too.
                if first != path && (!reported || end == file.path.len()) {
                    reported = true;
                    clashes.push(path.to_owned());
                }
            }
            if nodes.len() > 2 * MAX_ENTRIES {
                return Err(ArchiveError::Bomb);
            }
        }
        let mut named = HashSet::new();
        clashes.retain(|path| named.insert(path.clone()));
        self.warnings.extend(clashes.into_iter().map(|path| Warning::new(path, WarningCode::CaseClash)));
        Ok(())
    }

    /// The top folder that contains all files, if there is one.
    #[must_use]
    pub fn top(&self) -> Option<String> {
        let top = self.files.first()?.path.split_once('/')?.0;
        let holds = |file: &TreeFile| file.path.split_once('/').is_some_and(|(first, _)| first == top);
        self.files.iter().all(holds).then(|| top.to_owned())
    }

    /// Strips a top folder from all paths, including those of warnings and ignored entries.
    pub fn enter(&mut self, folder: &str) {
        let strip = |path: &mut String| {
            let inner = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
            if let Some(inner) = inner.filter(|inner| !inner.is_empty()) {
                *path = inner.to_owned();
            }
        };
        self.files.iter_mut().for_each(|file| strip(&mut file.path));
        self.ignored.iter_mut().for_each(|ignored| strip(&mut ignored.path));
        self.warnings.iter_mut().for_each(|warning| strip(&mut warning.path));
    }

    /// Leaves out files that are nested deeper than `folders`.
    pub fn limit_depth(&mut self, folders: usize) {
        let (kept, deep) = std::mem::take(&mut self.files)
            .into_iter()
            .partition(|file: &TreeFile| file.path.matches('/').count() <= folders);
        self.files = kept;
        self.warnings.extend(deep.into_iter().map(|file| Warning::new(file.path, WarningCode::TooDeep)));
    }
}

/// How the names of a path were changed.
#[derive(Default)]
struct Changes {
    decoded: bool,
    shortened: bool,
}

impl Changes {
    /// The name, made valid.
    fn name<'a>(&mut self, name: &'a str) -> Cow<'a, str> {
        let mut name = Cow::Borrowed(name);
        if name.contains(char::is_control) {
            self.decoded = true;
            name = name.replace(char::is_control, "_").into();
        }
        if name.trim().is_empty() {
            self.decoded = true;
            name = "_".into();
        }
        if let Some(short) = shortened(&name) {
            self.shortened = true;
            name = short.into();
        }
        name
    }
}

/// The names of a normalized path, each with its offset.
fn steps(path: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut begin = 0;
    path.split('/').map(move |segment| {
        let place = begin;
        begin += segment.len() + 1;
        (place, segment)
    })
}

/// The names of a path, without empty ones and `.`.
fn segments(name: &str) -> impl Iterator<Item = &str> {
    name.split('/').filter(|segment| !segment.is_empty() && *segment != ".")
}

/// Whether a path is absolute, has a drive letter, or contains `..`.
fn is_unsafe(name: &str) -> bool {
    let mut start = name.chars();
    let has_drive = start.next().is_some_and(|char| char.is_ascii_alphabetic()) && start.next() == Some(':');
    name.starts_with('/') || has_drive || name.split('/').any(|segment| segment == "..")
}

/// Why an entry is not user content, if so.
pub(super) fn is_ignored(name: &str) -> bool {
    ignored(name).is_some()
}

fn ignored(name: &str) -> Option<IgnoredReason> {
    // Checked first: resource forks of macOS begin with a dot as well.
    let is_system = |segment: &str| {
        segment == "__MACOSX"
            || [".DS_Store", "Thumbs.db", "desktop.ini"]
                .iter()
                .any(|known| segment.eq_ignore_ascii_case(known))
    };
    if segments(name).any(is_system) {
        return Some(IgnoredReason::System);
    }
    segments(name).any(|segment| segment.starts_with('.')).then_some(IgnoredReason::Hidden)
}

/// Truncates a name that is too long, but keeps its extension.
pub(crate) fn shortened(name: &str) -> Option<String> {
    const MAX_EXTENSION: usize = 16;
    if name.chars().count() <= NAME_CHARS {
        return None;
    }
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let extension = extension.filter(|extension| extension.chars().count() <= MAX_EXTENSION);
    let kept = NAME_CHARS - extension.map_or(0, |extension| extension.chars().count() + 1);
    let mut short: String = name.chars().take(kept).collect();
    if let Some(extension) = extension {
        short.push('.');
        short.push_str(extension);
    }
    Some(short)
}

#[cfg(test)]
mod tests;
