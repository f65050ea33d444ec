//! The plan of an import.

use std::collections::HashMap;
use std::io::{Read, Seek};

use cairn_proto::domain::limits::NAME_CHARS;
use serde::{Deserialize, Serialize};

use crate::archive::{Archive, ArchiveError, EntryError, TreeFile};
use crate::content::Content;
use crate::kind::Kind;
use crate::report::{Counts, Ignored, Unresolved, Warning, WarningCode};
use crate::{notion, obsidian};

/// Links that a plan lists; `counts` has the total.
const MAX_UNRESOLVED: usize = 100_000;

/// The limits of the workspace.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Nesting depth of folders in the import's folder.
    pub folders: usize,
    /// Bytes of an attachment.
    pub asset_bytes: u64,
}

/// The plan of an import: items in dependency order, and the contents of the report.
#[derive(Debug)]
pub struct Plan {
    /// The name of the import's folder.
    pub root: String,
    /// Items after their folders; records after their databases and bodies.
    pub items: Vec<Item>,
    /// Entries that are not user content.
    pub ignored: Vec<Ignored>,
    /// Warnings about what was left out or changed.
    pub warnings: Vec<Warning>,
    /// Unresolved and ambiguous links, at most 100 000.
    pub unresolved: Vec<Unresolved>,
    /// Totals.
    pub counts: Counts,
    pub(crate) files: Vec<TreeFile>,
    pub(crate) index: Index,
}

/// An object to create in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The folder that it is in, by its place in the plan; `None` for the import's own.
    pub parent: Option<usize>,
    /// Its name in the workspace.
    pub name: String,
    /// Its kind.
    pub kind: ItemKind,
    /// The identity across imports, if it is not the path.
    pub(crate) id: Option<String>,
}

/// The kind of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemKind {
    /// A folder.
    Folder,
    /// A text file; its text comes from [`Plan::content`].
    File {
        /// Its type.
        kind: Kind,
        /// The file of the archive.
        file: usize,
    },
    /// An attachment; its bytes come from [`Archive::copy`].
    Asset {
        /// By its extension.
        media_type: &'static str,
        /// The file of the archive.
        file: usize,
    },
    /// A database; its values come from [`Plan::records`].
    Database {
        /// The primary property first.
        properties: Vec<Property>,
        /// The file of the archive.
        file: usize,
    },
    /// A record. The records of a database are consecutive, in the order of its rows.
    Record {
        /// The item of its database.
        database: usize,
        /// The item of the file that is its body.
        body: Option<usize>,
    },
}

/// A property of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property {
    /// Its name, unique in its database.
    pub name: String,
    /// Its type.
    pub kind: PropertyKind,
}

/// The type of a property.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PropertyKind {
    /// Text.
    Text,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A date, with or without a time.
    Date,
    /// One of these options.
    Select(Vec<String>),
    /// Some of these options.
    MultiSelect(Vec<String>),
    /// A URL.
    Url,
    /// Records of the database that is this item, which may come later in the plan.
    Relation(usize),
    /// Attachments, several in one value.
    Assets,
}

/// A value of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// Text, or a URL.
    Text(String),
    /// A number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// `YYYY-MM-DD`, or RFC 3339.
    Date(String),
    /// Names of options.
    Options(Vec<String>),
    /// Items: records or attachments.
    Items(Vec<usize>),
}

impl ItemKind {
    fn file(&self) -> Option<usize> {
        match self {
            Self::Folder | Self::Record { .. } => None,
            Self::File { file, .. } | Self::Asset { file, .. } | Self::Database { file, .. } => Some(*file),
        }
    }
}

/// The state that the second pass needs.
#[derive(Debug)]
pub(crate) enum Index {
    Obsidian(obsidian::Index),
    Notion(notion::Index),
}

impl Plan {
    /// The path of an item below the import's folder; of an attachment, which is in no folder, that in the archive.
    #[must_use]
    pub fn path(&self, item: usize) -> String {
        if let Some(Item { kind: ItemKind::Asset { file, .. }, .. }) = self.items.get(item) {
            return self.files.get(*file).map(|file| file.path.clone()).unwrap_or_default();
        }
        let mut names = Vec::new();
        let mut next = self.items.get(item);
        while let Some(item) = next {
            names.push(item.name.as_str());
            next = item.parent.and_then(|parent| self.items.get(parent));
        }
        names.reverse();
        names.join("/")
    }

    /// The path of an item in the archive, for the report; the path in the workspace if it is not a file of the archive.
    #[must_use]
    pub fn source(&self, item: usize) -> String {
        let Some(found) = self.items.get(item) else { return String::new() };
        let body = if let ItemKind::Record { body: Some(body), .. } = found.kind { body } else { item };
        let file = self.items.get(body).and_then(|item| self.files.get(item.kind.file()?));
        file.map_or_else(|| self.path(item), |file| file.path.clone())
    }

    /// The identity of an item across imports, unique among those of its kind in the same folder of the same workspace: its id if the
    /// tool has ids, else its path.
    #[must_use]
    pub fn identity(&self, item: usize) -> String {
        self.items.get(item).and_then(|item| item.id.clone()).unwrap_or_else(|| self.path(item))
    }

    /// The archive entry with an item's bytes, and their number.
    #[must_use]
    pub fn entry(&self, item: usize) -> Option<(usize, u64)> {
        let file = self.files.get(self.items.get(item)?.kind.file()?)?;
        Some((file.entry, file.size))
    }

    /// The address of an item with this id, for links.
    #[must_use]
    pub fn address(&self, item: usize, id: &str) -> Option<String> {
        match self.items.get(item)?.kind {
            // A record has no address of its own: links lead to its body.
            ItemKind::Folder | ItemKind::Record { .. } => None,
            ItemKind::Database { .. } => Some(format!("/databases/{id}")),
            ItemKind::File { .. } => Some(format!("/file/{id}")),
            ItemKind::Asset { .. } => Some(format!("/api/assets/{id}/content")),
        }
    }

    /// The text of a file with its tags and the ranges of its links, read again from the archive; `None` for an item that is not a file.
    ///
    /// # Errors
    /// [`EntryError`] when the entry can no longer be read.
    pub fn content<R: Read + Seek>(
        &mut self,
        archive: &mut Archive<R>,
        item: usize,
    ) -> Result<Option<Content>, EntryError> {
        let Some(Item { kind: ItemKind::File { kind, file }, .. }) = self.items.get(item) else {
            return Ok(None);
        };
        let (kind, file) = (*kind, *file);
        let entry = self.files.get(file).map_or(usize::MAX, |file| file.entry);
        let (text, _) = archive.text(entry)?;
        if kind != Kind::Markdown {
            return Ok(Some(Content { text, ..Content::default() }));
        }
        match &mut self.index {
            Index::Obsidian(index) => Ok(Some(index.content(&self.files, file, text))),
            Index::Notion(index) => Ok(Some(index.content(&self.files, file, text))),
        }
    }

    /// Visits each record of a database with its non-empty values, by the index of the property.
    ///
    /// # Errors
    /// [`EntryError`] when the table can no longer be read.
    pub fn records<R: Read + Seek>(
        &self,
        archive: &mut Archive<R>,
        database: usize,
        each: &mut dyn FnMut(usize, Vec<(usize, Value)>),
    ) -> Result<(), EntryError> {
        match &self.index {
            Index::Obsidian(_) => Ok(()),
            Index::Notion(index) => index.records(&self.files, &self.items, archive, database, each),
        }
    }

    /// Resolves all links once, for the report.
    pub(crate) fn follow<R: Read + Seek>(&mut self, archive: &mut Archive<R>) {
        for item in 0..self.items.len() {
            // It was readable before, so this is a disk error, which will fail the run.
            let Ok(Some(content)) = self.content(archive, item) else { continue };
            self.counts.links += content.found;
            self.counts.links_resolved += content.links.len();
            self.counts.links_unresolved += content.found - content.links.len().min(content.found);
            let room = MAX_UNRESOLVED.saturating_sub(self.unresolved.len());
            self.unresolved.extend(content.unresolved.into_iter().take(room).map(|listed| Unresolved {
                item,
                line: listed.line,
                target: listed.target,
                reason: listed.reason,
            }));
        }
    }
}

/// Builds the items of a plan.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub(crate) items: Vec<Item>,
    pub(crate) counts: Counts,
    folders: HashMap<(Option<usize>, String), usize>,
}

impl Builder {
    /// Gets or creates the folder at a path.
    pub(crate) fn folder(&mut self, path: &str) -> Option<usize> {
        let mut parent = None;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let known = (parent, name.to_owned());
            let next = self.items.len();
            let folder = *self.folders.entry(known).or_insert(next);
            if folder == next {
                self.counts.folders += 1;
                self.items.push(Item { parent, name: name.to_owned(), kind: ItemKind::Folder, id: None });
            }
            parent = Some(folder);
        }
        parent
    }

    /// Adds an item at a path.
    pub(crate) fn add(&mut self, path: &str, kind: ItemKind) -> usize {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        match &kind {
            ItemKind::Folder => self.counts.folders += 1,
            ItemKind::File { .. } => self.counts.files += 1,
            ItemKind::Asset { .. } => self.counts.assets += 1,
            ItemKind::Database { .. } => self.counts.databases += 1,
            ItemKind::Record { .. } => self.counts.records += 1,
        }
        // Attachments and records are in no folder, so they create none.
        let is_placed = !matches!(kind, ItemKind::Asset { .. } | ItemKind::Record { .. });
        let parent = if is_placed { self.folder(folder) } else { None };
        self.items.push(Item { parent, name: name.to_owned(), kind, id: None });
        self.items.len() - 1
    }
}

/// The warning for an entry that was not read.
pub(crate) fn unread(error: &EntryError) -> WarningCode {
    match error {
        EntryError::TooLarge => WarningCode::TooLarge,
        EntryError::Corrupt | EntryError::Sink(_) => WarningCode::EntryCorrupt,
    }
}

/// Whether an attachment can be imported: small enough, and intact.
pub(crate) fn check_asset<R: Read + Seek>(
    archive: &mut Archive<R>,
    file: &TreeFile,
    limits: &Limits,
) -> Result<(), WarningCode> {
    if file.size > limits.asset_bytes {
        return Err(WarningCode::TooLarge);
    }
    archive.copy(file.entry, &mut |_| Ok(())).map(drop).map_err(|error| unread(&error))
}

/// The name of the import's folder if the archive has no top folder: that of the file.
pub(crate) fn root_of_file(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let is_zip =
        name.len() > 4 && name.get(name.len() - 4..).is_some_and(|end| end.eq_ignore_ascii_case(".zip"));
    let stem = if is_zip { name.get(..name.len() - 4).unwrap_or(name) } else { name };
    let cleaned: String = stem.chars().filter(|char| !char.is_control()).take(NAME_CHARS).collect();
    let cleaned = cleaned.trim();
    if cleaned.is_empty() || cleaned == "." || cleaned == ".." {
        "Import".to_owned()
    } else {
        cleaned.to_owned()
    }
}

/// Refuses an empty plan.
pub(crate) fn not_empty(builder: &Builder) -> Result<(), ArchiveError> {
    let has_content = builder.items.iter().any(|item| item.kind != ItemKind::Folder);
    if has_content { Ok(()) } else { Err(ArchiveError::Empty) }
}
