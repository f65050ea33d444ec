//! Rolls a tree back to a past moment (ADR 106): the current tree, overlaid with the past versions of changed items.
//!
//! The past shows no more than the present (ADR 96): it lacks items that were deleted since, and of items outside of a scope's current
//! view it has only the names of folders that are ancestors in past paths.

use std::sync::Arc;

use cairn_chassis::clock::Timestamp;
use cairn_proto::content::v1::ReadPastTreeResponse;
use cairn_proto::ids::FolderId;
use cairn_shell::tree::Node;
use uuid::Uuid;

use super::base::{Base, Fixed};
use super::lens::Lens;
use super::past::Past;
use super::rows::{Place, Rows, What};
use super::view::View;
use crate::error::Error;

/// Above the nesting limit of folders; a longer chain has no root.
const MAX_DEPTH: usize = 256;

impl View {
    /// The past view, for a caller of these folders or of all.
    pub(super) fn as_it_was(
        &self,
        told: ReadPastTreeResponse,
        scope: Option<&[FolderId]>,
    ) -> Result<Self, Error> {
        let at = told.at.as_ref().map(Timestamp::from_proto);
        let at = at.ok_or(Error::Answer("a tree of then without its time"))?;
        let items = told.items.unwrap_or_default();
        let types =
            items.files.iter().filter_map(|file| Some((Uuid::try_parse(&file.id).ok()?, file.file_type())));
        let types = types.collect();
        let tags = told.tags.into_iter();
        let tags = tags.filter_map(|file| Some((Uuid::try_parse(&file.file_id).ok()?, file.tags))).collect();
        let untold = told.untold.iter().filter_map(|reference| Uuid::try_parse(&reference.id).ok());
        let mut rows = Rows::default();
        rows.take(items, told.gone)?;
        let changed = rows.0.keys().copied().chain(untold).collect();
        leave_out_lost(&self.base, &mut rows);
        let mut base = Base::clone(&self.base);
        put_over(&mut base, &rows)?;
        if let Some(listed) = scope {
            let hidden = self.hidden(&base, listed);
            put_over(&mut base, &hidden)?;
        }
        // The past of documents from outside is unknown.
        base.positions.outside = None;
        base.newest = base.newest.min(at.as_micros());
        let lens = Arc::new(Lens::of_past(&base, scope));
        let unknown = if scope.is_none() { told.unknown } else { 0 };
        let past = Some(Past { at, changed, types, tags, unknown });
        Ok(Self { workspace: self.workspace, base: Arc::new(base), lens, past })
    }

    /// The rows that hide items of a past tree from a scope with this current view: files that it does not see now, and folders
    /// that it does not see now and that contain nothing visible.
    fn hidden(&self, then: &Base, listed: &[FolderId]) -> Rows {
        let mut open: Vec<Node> = listed.iter().filter_map(|folder| then.node(folder.0)).collect();
        let mut below = Vec::new();
        while let Some(node) = open.pop() {
            below.push(node);
            open.extend_from_slice(then.children(node));
        }
        let mut hidden = Rows::default();
        // Children before their folder.
        for node in below.into_iter().rev() {
            let Some(slot) = then.slot(node) else { continue };
            let is_seen = match slot.what() {
                Some(What::File(_)) => self.lens.file(&self.base, slot.id).is_some(),
                Some(What::Folder) => {
                    let is_left = |child: &Node| {
                        then.slot(*child).is_some_and(|child| !hidden.0.contains_key(&child.id))
                    };
                    self.lens.covers(&self.base, Some(slot.id)) || slot.children.iter().any(is_left)
                }
                Some(
                    What::Database { .. }
                    | What::Record { .. }
                    | What::Memory(_)
                    | What::SourceFolder(_)
                    | What::Document(_),
                )
                | None => true,
            };
            if !is_seen {
                hidden.0.insert(slot.id, None);
            }
        }
        hidden
    }
}

fn put_over(base: &mut Base, rows: &Rows) -> Result<(), Error> {
    let position = base.positions.content;
    base.apply(rows, position).map_err(|_| Error::Answer("what stood then does not fit together"))
}

/// Removes items whose past folder did not exist, and the current descendants of such folders that did not change.
fn leave_out_lost(base: &Base, rows: &mut Rows) {
    let known: &Rows = rows;
    let told = known.0.iter().filter_map(|(id, row)| Some((*id, row.as_ref()?.place)));
    let lost: Vec<Uuid> =
        told.filter(|(_, place)| !is_placed(base, known, *place)).map(|(id, _)| id).collect();
    rows.0.extend(lost.into_iter().map(|id| (id, None)));
    let gone = rows.0.iter().filter(|(_, row)| row.is_none());
    let mut open: Vec<Node> = gone.filter_map(|(id, _)| base.node(*id)).collect();
    while let Some(folder) = open.pop() {
        for child in base.children(folder) {
            let Some(slot) = base.slot(*child) else { continue };
            let is_below = matches!(slot.what(), Some(What::Folder | What::File(_)));
            if is_below && !rows.0.contains_key(&slot.id) {
                rows.0.insert(slot.id, None);
                open.push(*child);
            }
        }
    }
}

/// Whether all ancestors up to the root existed.
fn is_placed(base: &Base, rows: &Rows, place: Place) -> bool {
    let mut place = place;
    for _ in 0..MAX_DEPTH {
        let Place::Folder(Some(id)) = place else { return true };
        place = match rows.0.get(&id) {
            Some(Some(row)) => row.place,
            Some(None) => return false,
            None => match base.entity(id) {
                Some((_, slot)) if slot.parent == Fixed::Files.node() => return true,
                Some((_, slot)) => Place::Folder(base.slot(slot.parent).map(|parent| parent.id)),
                None => return false,
            },
        };
    }
    false
}
