//! The moment of a past tree, and what it leaves out.

use std::collections::{HashMap, HashSet};

use cairn_chassis::clock::Timestamp;
use cairn_proto::content::v1::FileType;
use cairn_proto::retrieval::v1::CoverageNote;
use cairn_shell::tree::Node;
use uuid::Uuid;

use super::base::{Fixed, Slot};
use super::rows::What;
use super::view::View;

/// The moment of a past tree, and what it leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) at: Timestamp,
    /// All items that have changed since, visible or not.
    pub(crate) changed: HashSet<Uuid>,
    /// The past types of changed files.
    pub(crate) types: HashMap<Uuid, FileType>,
    /// The past tags of changed files that had any.
    pub(crate) tags: HashMap<Uuid, Vec<String>>,
    /// How many files and memories are left out, since what they were is not kept; 0 for a caller of some folders, whom a number
    /// would tell of others.
    pub(super) unknown: u32,
}

impl Past {
    /// Notes on what the tree leaves out.
    pub(crate) fn notes(&self) -> Vec<CoverageNote> {
        let note = |message: String, count: Option<u32>| CoverageNote {
            code: "not_kept".to_owned(),
            message,
            source_id: None,
            count,
        };
        let shown = format!(
            "files, folders and memories that are there now are shown as they stood at {}; what was deleted since is left out, and so \
             are what is kept no more, and databases, records and documents from outside, which are known as they are now only",
            self.at.to_rfc3339()
        );
        let mut notes = vec![note(shown, None)];
        if self.unknown > 0 {
            let left_out =
                format!("{} more are left out, since what they were then is not kept", self.unknown);
            notes.push(note(left_out, Some(self.unknown)));
        }
        notes
    }
}

/// A past folder or database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastContainer {
    /// Which one.
    pub id: Uuid,
    /// The folder that it stood in; none for the root.
    pub parent: Option<Uuid>,
    /// Its name.
    pub name: String,
    /// Whether it is a database.
    pub is_database: bool,
}

impl View {
    /// A folder and all below it; `None` where the caller sees no such folder.
    pub(crate) fn folders_below(&self, id: Uuid) -> Option<HashSet<Uuid>> {
        let (node, slot) = self.base.entity(id)?;
        if !is_folder(slot) || !self.lens.covers(&self.base, Some(id)) {
            return None;
        }
        let mut below = HashSet::from([id]);
        self.each_folder_below(node, &mut |_, folder| {
            below.insert(folder.id);
        });
        Some(below)
    }

    /// The folders that the caller sees or that are ancestors of visible ones, and the visible databases that have not changed since;
    /// at most `most`, folders first.
    pub(crate) fn containers(&self, most: usize) -> Vec<PastContainer> {
        let mut found = Vec::new();
        self.each_folder_below(Fixed::Files.node(), &mut |holder, folder| {
            let node = self.base.node(folder.id);
            if node.is_some_and(|node| self.lens.shows_folder(&self.base, node)) {
                let holder = self.base.slot(holder).filter(|holder| is_folder(holder));
                found.push(named(folder, holder.map(|holder| holder.id), false));
            }
        });
        let has_changed = |id: &Uuid| self.past().is_some_and(|past| past.changed.contains(id));
        for node in self.base.children(Fixed::Databases.node()) {
            let known = self.base.slot(*node).zip(self.base.database(*node));
            if let Some((slot, (_, folder, _))) = known
                && !has_changed(&slot.id)
                && self.lens.covers(&self.base, folder)
            {
                found.push(named(slot, folder, true));
            }
        }
        found.truncate(most);
        found
    }

    /// Gives `each` the folders below a node, with what each stands in.
    fn each_folder_below(&self, node: Node, each: &mut dyn FnMut(Node, &Slot)) {
        let mut open = vec![node];
        while let Some(holder) = open.pop() {
            for child in self.base.children(holder) {
                let Some(slot) = self.base.slot(*child).filter(|slot| is_folder(slot)) else { continue };
                each(holder, slot);
                open.push(*child);
            }
        }
    }
}

fn is_folder(slot: &Slot) -> bool {
    matches!(slot.what(), Some(What::Folder))
}

fn named(slot: &Slot, parent: Option<Uuid>, is_database: bool) -> PastContainer {
    PastContainer { id: slot.id, parent, name: slot.segment().to_owned(), is_database }
}
