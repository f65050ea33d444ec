//! Bulk actions: the same action on many items in one transaction, with an outcome per item (ADR 74).

use std::collections::HashSet;

use cairn_chassis::feed::Kind;
use cairn_chassis::identity::Permission;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::limits::{ITEMS_AT_ONCE, PAGE};
use cairn_proto::ids::FolderId;
use uuid::Uuid;

use super::Batches;
use crate::Error;
use crate::change::Change;
use crate::checks::Checks;
use crate::files::{self, FilePatch, FileSelection, InFolder, TagChange};
use crate::folders;
use crate::model::{PageRequest, WriteId};
use crate::scope::Caller;
use crate::{store, trash};

/// The items to act on.
#[derive(Debug, Clone)]
pub(crate) enum ItemSelection {
    Named(Vec<(Kind, String)>),
    Matching(FileMatch),
}

/// The files that match a filter.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileMatch {
    /// Absent: everywhere.
    pub(crate) folder: Option<InFolder>,
    /// A file must have all of these.
    pub(crate) tags: Vec<String>,
    /// A part of the name; empty: any.
    pub(crate) query: String,
    /// How many matches the caller expects; another number fails the call.
    pub(crate) expected: Option<u64>,
}

/// The action on each item.
#[derive(Debug, Clone)]
pub(crate) enum ItemAction {
    /// To a folder; absent: to the root.
    Move(Option<String>),
    Tag(TagChange),
    Trash,
    Restore,
}

impl ItemAction {
    /// The permission that the action requires on an item of this kind.
    pub(crate) const fn needs(&self, kind: Kind) -> Permission {
        match self {
            Self::Move(_) | Self::Tag(_) => Permission::Write,
            Self::Trash => Permission::Delete,
            Self::Restore => trash::to_restore(kind),
        }
    }
}

/// A validated action.
enum Checked {
    Move(Option<FolderId>),
    Tag(TagChange),
    Trash,
    Restore,
}

/// An item with its id in canonical spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ItemRef {
    kind: Kind,
    id: String,
}

/// An item that was not changed, and why.
#[derive(Debug)]
pub(crate) struct Skipped {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    pub(crate) why: Error,
}

/// The outcome of a bulk action.
#[derive(Debug, Default)]
pub(crate) struct ItemsChanged {
    pub(crate) selected: usize,
    /// Includes items whose folder was changed by the same call.
    pub(crate) changed: usize,
    pub(crate) unchanged: usize,
    /// Counts the contents of folders, too.
    pub(crate) items: u64,
    /// In request order.
    pub(crate) skipped: Vec<Skipped>,
    /// Absent when nothing was written.
    pub(crate) write: Option<WriteId>,
    /// 0 when nothing was written.
    pub(crate) position: u64,
}

impl Batches {
    /// Applies an action to every item that allows it, in one transaction and by the rules of its kind, and reports the others. A
    /// dry run is rolled back.
    pub(crate) async fn change_items(
        &self,
        caller: &Caller,
        wanted: ItemSelection,
        action: ItemAction,
        dry_run: bool,
    ) -> Result<ItemsChanged, Error> {
        let action = check(action)?;
        let items = match (wanted, &action) {
            (ItemSelection::Named(items), _) => named(items)?,
            (ItemSelection::Matching(_), Checked::Restore) => {
                let message = "what is in trash matches no filter of files: name the items";
                return Err(Error::invalid("files", "invalid", message));
            }
            (ItemSelection::Matching(wanted), _) => self.matching(caller, wanted).await?,
        };
        // No action needs space: items in trash count toward the usage, too.
        let mut change = Change::without_limits(&self.context, caller).await?;
        // The same lock that batches take, so that they cannot deadlock.
        store::folders::lock_tree(change.tx(), caller.workspace).await?;
        if let Checked::Move(target) = &action {
            // A bad target fails the call instead of each item.
            folders::destination(&mut change, caller, *target).await?;
        }
        let mut done = self.apply_to_all(&mut change, caller, &action, &items).await?;
        if dry_run || done.items == 0 {
            change.rollback().await?;
            return Ok(done);
        }
        let at = change.now();
        done.position = change.commit().await?.last;
        done.write = Some(WriteId { at, position: done.position });
        Ok(done)
    }

    async fn apply_to_all(
        &self,
        change: &mut Change,
        caller: &Caller,
        action: &Checked,
        items: &[ItemRef],
    ) -> Result<ItemsChanged, Error> {
        let mut done = ItemsChanged { selected: items.len(), ..ItemsChanged::default() };
        let mut gone = HashSet::new();
        let mut skipped = Vec::new();
        for (place, item) in in_order(change, caller, action, items).await? {
            let before = change.noted();
            let outcome = self.apply_to(change, caller, action, item).await;
            let went_with_folder = matches!(&outcome, Err(Error::NotFound { .. }))
                && went_along(change, caller, action, item, &gone).await?;
            match outcome {
                Ok(()) if change.noted() == before => done.unchanged += 1,
                Ok(()) => {
                    done.changed += 1;
                    gone.insert(item.id.as_str());
                }
                Err(_) if went_with_folder => done.changed += 1,
                Err(error) => {
                    let why = of_the_item(error)?;
                    skipped.push((place, Skipped { kind: item.kind, id: item.id.clone(), why }));
                }
            }
        }
        skipped.sort_by_key(|(place, _)| *place);
        done.skipped = skipped.into_iter().map(|(_, one)| one).collect();
        (_, done.items) = change.noted();
        Ok(done)
    }

    async fn apply_to(
        &self,
        change: &mut Change,
        caller: &Caller,
        action: &Checked,
        item: &ItemRef,
    ) -> Result<(), Error> {
        match (action, item.kind) {
            (Checked::Restore, kind) => trash::restore_in(change, caller, kind, &item.id).await.map(drop),
            (Checked::Trash, Kind::File) => {
                self.files.delete_in(change, caller, files::parse(&item.id)?).await
            }
            (Checked::Trash, Kind::Folder) => {
                self.folders.delete_in(change, caller, folders::parse(&item.id)?).await
            }
            (Checked::Move(target), Kind::File) => {
                let folder_id = Some(target.map(|id| id.to_string()));
                let patch = files::check(FilePatch { folder_id, ..FilePatch::default() })?;
                self.files.update_in(change, caller, files::parse(&item.id)?, patch, None).await.map(drop)
            }
            (Checked::Move(target), Kind::Folder) => {
                let patch = (None, Some(*target));
                self.folders.update_in(change, caller, folders::parse(&item.id)?, patch).await.map(drop)
            }
            (Checked::Tag(tags), Kind::File) => {
                self.files.retag_in(change, caller, files::parse(&item.id)?, tags).await.map(drop)
            }
            (Checked::Tag(_), _) => Err(Error::invalid("kind", "invalid", "only files have tags")),
            (Checked::Move(_) | Checked::Trash, _) => {
                Err(Error::invalid("kind", "invalid", "many at once may be files and folders"))
            }
        }
    }

    async fn matching(&self, caller: &Caller, wanted: FileMatch) -> Result<Vec<ItemRef>, Error> {
        let FileMatch { folder, tags, query, expected } = wanted;
        let (found, total) = if query.is_empty() {
            let first = PageRequest { size: PAGE, after: None };
            let page = self.files.list(caller, FileSelection { folder, tags }, first).await?;
            (page.items, page.total)
        } else {
            let folder = folder.and_then(|folder| folder.folder_id);
            self.files.search(caller, &query, folder.as_deref(), PAGE, tags).await?
        };
        if total > ITEMS_AT_ONCE as u64 {
            let message = format!(
                "are {total} that match, and one call changes at most {ITEMS_AT_ONCE}: narrow what is to match"
            );
            return Err(Error::invalid("files", "too_many", message));
        }
        if let Some(expected) = expected.filter(|expected| *expected != total) {
            let message = format!("is {expected}, and {total} files match by now: look at them again");
            return Err(Error::invalid("files.expectedCount", "changed", message));
        }
        Ok(found.into_iter().map(|file| ItemRef { kind: Kind::File, id: file.id.to_string() }).collect())
    }
}

fn check(action: ItemAction) -> Result<Checked, Error> {
    Ok(match action {
        ItemAction::Move(folder) => {
            let mut checks = Checks::default();
            let target = checks.optional_id("folderId", folder.as_deref());
            checks.finish()?;
            Checked::Move(target)
        }
        ItemAction::Tag(tags) => Checked::Tag(tags.checked()?),
        ItemAction::Trash => Checked::Trash,
        ItemAction::Restore => Checked::Restore,
    })
}

/// Deduplicates the items. An invalid id is kept, and reported as not found for that item.
fn named(items: Vec<(Kind, String)>) -> Result<Vec<ItemRef>, Error> {
    if items.is_empty() {
        return Err(Error::invalid("items", "required", wording::EMPTY));
    }
    if items.len() > ITEMS_AT_ONCE {
        let most = wording::at_most(ITEMS_AT_ONCE, Unit::Entries);
        let message = format!("{most}; this call has {}", items.len());
        return Err(Error::invalid("items", "too_long", message));
    }
    let mut seen = HashSet::with_capacity(items.len());
    let canonical = |(kind, id): (Kind, String)| {
        let id = Uuid::try_parse(&id).map_or(id, |id| id.to_string());
        ItemRef { kind, id }
    };
    Ok(items.into_iter().map(canonical).filter(|item| seen.insert(item.clone())).collect())
}

/// The items in processing order, each with its index. To trash, a folder comes before its contents; on restore, the latest
/// deletion comes first, as a folder that was deleted after its contents.
async fn in_order<'a>(
    change: &mut Change,
    caller: &Caller,
    action: &Checked,
    items: &'a [ItemRef],
) -> Result<Vec<(usize, &'a ItemRef)>, Error> {
    let mut keyed = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let engine = change.tx().engine();
        let key = match (action, item.kind) {
            (Checked::Move(_) | Checked::Tag(_), _) => None,
            (Checked::Trash, Kind::Folder) => match item.id.parse() {
                Ok(id) => store::folders::get(engine, caller.workspace, id)
                    .await?
                    .and_then(|folder| i64::try_from(folder.folders_above.len()).ok()),
                Err(_) => None,
            },
            (Checked::Trash, _) => None,
            (Checked::Restore, _) if item.id.contains('\0') => None,
            (Checked::Restore, kind) => store::trash::get(engine, caller.workspace, kind, &item.id)
                .await?
                .map(|deletion| deletion.at.as_micros().saturating_neg()),
        };
        keyed.push((key.unwrap_or(i64::MAX), place, item));
    }
    keyed.sort_by_key(|(key, place, _)| (*key, *place));
    Ok(keyed.into_iter().map(|(_, place, item)| (place, item)).collect())
}

/// Whether an item is in trash because this call trashed its folder.
async fn went_along(
    change: &mut Change,
    caller: &Caller,
    action: &Checked,
    item: &ItemRef,
    gone: &HashSet<&str>,
) -> Result<bool, Error> {
    if !matches!(action, Checked::Trash) || Uuid::try_parse(&item.id).is_err() {
        return Ok(false);
    }
    let with = store::trash::along(change.tx().engine(), caller.workspace, item.kind, &item.id).await?;
    Ok(with.is_some_and(|deletion| gone.contains(deletion.item_id.as_str())))
}

/// Returns an error that concerns one item, to be reported for it; any other one fails the call. All of the former occur before
/// the item is changed.
fn of_the_item(error: Error) -> Result<Error, Error> {
    match error {
        Error::Invalid(_)
        | Error::NotFound { .. }
        | Error::WentAlong { .. }
        | Error::OutOfScope(_)
        | Error::MayNotPublish(_) => Ok(error),
        Error::LeftOut(_)
        | Error::NotThen(_)
        | Error::Gone(_)
        | Error::NoTargets(_)
        | Error::MayNotRemove
        | Error::SlugTaken(_)
        | Error::VersionConflict { .. }
        | Error::RecordConflict { .. }
        | Error::TooLarge(_)
        | Error::LimitExceeded(_)
        | Error::Unanswered
        | Error::OutOfDate(_)
        | Error::Storage(_)
        | Error::Objects(_)
        | Error::LostAsset(_)
        | Error::StoreAway { .. }
        | Error::DamagedBody(_) => Err(error),
    }
}
