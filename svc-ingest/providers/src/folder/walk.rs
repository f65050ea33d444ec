//! Walks a folder in path order, a page at a time.

use std::cmp::Ordering;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_chassis::clock::Timestamp;
use ignore::{DirEntry, WalkBuilder};

use super::read;
use crate::filter::Filter;
use crate::{Entry, ExternalId, Item, ItemFault, mime};

/// Files of a page.
const PAGE: usize = 1_000;
/// Entries examined per page: bounds a page in a folder without matching files.
const MAX_SEEN: usize = 20_000;

/// A walk in progress.
pub(super) struct Walk {
    root: PathBuf,
    filter: Arc<Filter>,
    after: Option<String>,
    entries: Option<ignore::Walk>,
}

impl fmt::Debug for Walk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Walk").field("root", &self.root).finish_non_exhaustive()
    }
}

/// The result of one step.
pub(super) struct Step {
    pub(super) items: Vec<Item>,
    pub(super) faults: Vec<ItemFault>,
    /// Folders that cannot be read, below the root.
    pub(super) unread: Vec<String>,
    /// The last examined path; `None` at the end of the walk.
    pub(super) stopped_at: Option<String>,
    pub(super) has_root: bool,
}

impl Step {
    fn new() -> Self {
        let (items, faults, unread) = (Vec::new(), Vec::new(), Vec::new());
        Self { items, faults, unread, stopped_at: None, has_root: true }
    }

    /// Records a file whose metadata cannot be read. If it was deleted since the directory was read, it is ignored; otherwise its folder
    /// counts as unreadable.
    pub(super) fn leave_out(&mut self, path: &str, why: Option<&io::Error>) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_away = why.is_some_and(|error| error.kind() == io::ErrorKind::NotFound);
        if !is_away && self.unread.last().map(String::as_str) != Some(folder) {
            self.unread.push(folder.to_owned());
        }
    }

    /// The walk of a folder that does not exist.
    pub(super) fn without_root() -> Self {
        Self { has_root: false, ..Self::new() }
    }
}

impl Walk {
    /// A walk that starts after the path `after`.
    pub(super) fn new(root: &Path, filter: Arc<Filter>, after: Option<String>) -> Self {
        let mut builder = WalkBuilder::new(root);
        // Ignore files outside of the folder do not apply.
        builder.follow_links(false).parents(false).git_global(false).git_exclude(false).require_git(false);
        builder.sort_by_file_name(|one, other| one.cmp(other));
        let (base, chosen, from) = (root.to_owned(), Arc::clone(&filter), after.clone());
        builder.filter_entry(move |entry| is_entered(&base, &chosen, from.as_deref(), entry));
        Self { root: root.to_owned(), filter, after, entries: Some(builder.build()) }
    }

    /// Walks one page.
    pub(super) fn step(&mut self, now: Timestamp) -> Step {
        let mut step = Step::new();
        let mut last = None;
        let mut seen = 0;
        while let Some(entry) = self.entries.as_mut().and_then(Iterator::next) {
            match entry {
                Ok(entry) => {
                    last = relative(&self.root, entry.path()).map(str::to_owned).or(last);
                    self.take(&entry, now, &mut step);
                }
                Err(error) => step.unread.extend(unread(&self.root, &error)),
            }
            seen += 1;
            if seen >= MAX_SEEN || step.items.len() + step.faults.len() >= PAGE {
                // This walk continues by itself; a new one needs the path.
                step.stopped_at = last.clone().or_else(|| self.after.clone());
                if step.stopped_at.is_some() {
                    return step;
                }
            }
        }
        self.entries = None;
        step
    }

    fn take(&self, entry: &DirEntry, now: Timestamp, step: &mut Step) {
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            return;
        }
        let Some(path) = relative(&self.root, entry.path()) else {
            step.faults.push(ItemFault {
                reason: "its name is not UTF-8".into(),
                ..ItemFault::unusable_id(&entry.file_name().to_string_lossy())
            });
            return;
        };
        if !self.filter.takes(path) || self.after.as_deref().is_some_and(|after| !is_behind(path, after)) {
            return;
        }
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            Err(error) => return step.leave_out(path, error.io_error()),
        };
        let Ok(id) = ExternalId::new(path) else {
            step.faults.push(ItemFault::unusable_id(path));
            return;
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        let mut file = Entry::new(id, read::version(&self.root, path, &metadata, now), name);
        file.mime = Some(mime::of_name(path).to_owned());
        file.size = Some(metadata.len());
        file.path = Some(path.to_owned());
        file.updated_at = Some(Timestamp::from_seconds(metadata.mtime()));
        step.items.push(file.into());
    }
}

/// Whether a walk from `after` enters this entry: folders that were finished, and those that the filter excludes, are not opened.
fn is_entered(root: &Path, filter: &Filter, after: Option<&str>, entry: &DirEntry) -> bool {
    if !entry.file_type().is_some_and(|kind| kind.is_dir()) {
        return true;
    }
    match relative(root, entry.path()) {
        None | Some("") => true,
        Some(path) => {
            let is_done = after.is_some_and(|after| !is_behind(path, after) && !is_above(path, after));
            !is_done && !filter.leaves_out_folder(path)
        }
    }
}

/// The order of the walk: by path components.
fn is_behind(path: &str, after: &str) -> bool {
    path.split('/').map(str::as_bytes).cmp(after.split('/').map(str::as_bytes)) == Ordering::Greater
}

fn is_above(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn relative<'a>(root: &Path, path: &'a Path) -> Option<&'a str> {
    path.strip_prefix(root).ok()?.to_str()
}

/// The folder of an error, relative to the root; empty for the root.
fn unread(root: &Path, error: &ignore::Error) -> Option<String> {
    match error {
        // Invalid lines of a .gitignore are skipped.
        ignore::Error::Glob { .. } | ignore::Error::WithLineNumber { .. } => None,
        ignore::Error::Partial(several) => several.iter().find_map(|error| unread(root, error)),
        ignore::Error::WithDepth { err, .. } => unread(root, err),
        ignore::Error::WithPath { path, err } => {
            let inner = unread(root, err)?;
            Some(relative(root, path).map_or(inner, str::to_owned))
        }
        // The path is unknown.
        ignore::Error::Loop { .. }
        | ignore::Error::Io(_)
        | ignore::Error::UnrecognizedFileType(_)
        | ignore::Error::InvalidDefinition => Some(String::new()),
    }
}
