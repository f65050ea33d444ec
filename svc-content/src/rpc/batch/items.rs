//! The messages of `ChangeItems`.

use std::collections::HashSet;

use cairn_chassis::feed::Kind;
use cairn_chassis::identity::Permission;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::common::v1::ErrorReason;
use cairn_proto::content::v1::change_items_request::{Change, Selection};
use cairn_proto::content::v1::{ChangeItemsRequest, ChangeItemsResponse, SkippedItem};

use crate::Error;
use crate::batch::{FileMatch, ItemAction, ItemSelection, ItemsChanged, Skipped};
use crate::files::{InFolder, TagChange};

pub(super) fn decode(request: ChangeItemsRequest) -> Result<(ItemSelection, ItemAction), Error> {
    let wanted = match request.selection {
        Some(Selection::Items(list)) => {
            ItemSelection::Named(list.items.into_iter().map(|item| (item.kind(), item.item_id)).collect())
        }
        Some(Selection::Files(files)) => ItemSelection::Matching(FileMatch {
            folder: files
                .folder
                .map(|folder| InFolder { folder_id: folder.folder_id, is_recursive: folder.recursive }),
            tags: files.tags,
            query: files.query,
            expected: files.expected_count,
        }),
        None => return Err(Error::invalid("items", "required", "name items, or the files that match")),
    };
    let action = match request.change {
        Some(Change::Move(to)) => ItemAction::Move(to.folder_id),
        Some(Change::Tag(tags)) => ItemAction::Tag(TagChange { add: tags.add, remove: tags.remove }),
        Some(Change::Trash(_)) => ItemAction::Trash,
        Some(Change::Restore(_)) => ItemAction::Restore,
        None => return Err(Error::invalid("change", "required", "say what becomes of the items")),
    };
    Ok((wanted, action))
}

/// The permissions for all of it.
pub(super) fn needs(wanted: &ItemSelection, action: &ItemAction) -> Vec<Permission> {
    match wanted {
        ItemSelection::Named(items) => {
            let kinds: HashSet<Kind> = items.iter().map(|(kind, _)| *kind).collect();
            kinds.into_iter().map(|kind| action.needs(kind)).collect()
        }
        // The number of matches is disclosed.
        ItemSelection::Matching(_) => vec![Permission::Read, action.needs(Kind::File)],
    }
}

pub(super) fn encode(done: ItemsChanged) -> ChangeItemsResponse {
    ChangeItemsResponse {
        selected_count: done.selected as u64,
        changed_count: done.changed as u64,
        unchanged_count: done.unchanged as u64,
        item_count: done.items,
        skipped: done.skipped.into_iter().map(encode_skipped).collect(),
        write_id: done.write.map(|write| write.to_string()),
        change_position: done.position,
    }
}

fn encode_skipped(skipped: Skipped) -> SkippedItem {
    let problem = Problem::from(skipped.why);
    let reason = if problem.reason == Reason::NotFound {
        ErrorReason::NotFound
    } else if problem.reason == Reason::OutOfScope {
        ErrorReason::OutOfScope
    } else if problem.reason == Reason::Forbidden {
        ErrorReason::Forbidden
    } else {
        ErrorReason::ValidationError
    };
    // A single violation is reported without its field, which no person has filled in here.
    let message = match problem.violations.as_slice() {
        [only] => only.message.clone(),
        _ => problem.message,
    };
    SkippedItem { kind: skipped.kind.into(), item_id: skipped.id, reason: reason.into(), message }
}
