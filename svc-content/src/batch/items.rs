//! The same done to many items in one transaction, each with its own outcome (ADR 74).

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

/// Which items.
#[derive(Debug, Clone)]
pub(crate) enum ItemsWanted {
    Named(Vec<(Kind, String)>),
    Matching(FileMatch),
}

/// All files of a list.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileMatch {
    /// Absent: everywhere.
    pub(crate) folder: Option<InFolder>,
    /// All of which a file must bear.
    pub(crate) tags: Vec<String>,
    /// A part of the name; empty: any.
    pub(crate) query: String,
    /// How many the caller saw.
    pub(crate) expected: Option<u64>,
}

/// What is done to each of them.
#[derive(Debug, Clone)]
pub(crate) enum Deed {
    /// Absent: to the root.
    Move(Option<String>),
    Tag(TagChange),
    Trash,
    Restore,
}

impl Deed {
    /// What it takes to do it to an item of that kind.
    pub(crate) const fn needs(&self, kind: Kind) -> Permission {
        match self {
            Self::Move(_) | Self::Tag(_) => Permission::Write,
            Self::Trash => Permission::Delete,
            Self::Restore => trash::to_restore(kind),
        }
    }
}

/// The same, of which the fields obey their rules.
enum Checked {
    Move(Option<FolderId>),
    Tag(TagChange),
    Trash,
    Restore,
}

/// An item, by an id of the one spelling that the store has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Named {
    kind: Kind,
    id: String,
}

/// An item that stays as it is.
#[derive(Debug)]
pub(crate) struct Skipped {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    pub(crate) why: Error,
}

/// What became of the items.
#[derive(Debug, Default)]
pub(crate) struct ItemsChanged {
    pub(crate) selected: usize,
    /// Or went along with one that was changed.
    pub(crate) changed: usize,
    pub(crate) unchanged: usize,
    /// Those that went or came along included.
    pub(crate) items: u64,
    /// In the order in which they were named.
    pub(crate) skipped: Vec<Skipped>,
    /// Absent when nothing was written.
    pub(crate) write: Option<WriteId>,
    /// 0 when nothing was written.
    pub(crate) position: u64,
}

impl Batches {
    /// Does to each item what can be done to it, in one transaction and by the rules of its kind, and says what cannot; of a
    /// dry run the same, and nothing is done.
    pub(crate) async fn change_items(
        &self,
        caller: &Caller,
        wanted: ItemsWanted,
        deed: Deed,
        dry_run: bool,
    ) -> Result<ItemsChanged, Error> {
        let deed = check(deed)?;
        let items = match (wanted, &deed) {
            (ItemsWanted::Named(items), _) => named(items)?,
            (ItemsWanted::Matching(_), Checked::Restore) => {
                let message = "what is in trash matches no filter of files: name the items";
                return Err(Error::invalid("files", "invalid", message));
            }
            (ItemsWanted::Matching(wanted), _) => self.matching(caller, wanted).await?,
        };
        // None of it needs room: what is in trash counts as what is not.
        let mut change = Change::without_limits(&self.context, caller).await?;
        // As every batch does, so that two of them cannot deadlock.
        store::folders::lock_tree(change.tx(), caller.workspace).await?;
        if let Checked::Move(target) = &deed {
            // Told once of the call, and not of each item.
            folders::destination(&mut change, caller, *target).await?;
        }
        let mut done = self.apply_to_all(&mut change, caller, &deed, &items).await?;
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
        deed: &Checked,
        items: &[Named],
    ) -> Result<ItemsChanged, Error> {
        let mut done = ItemsChanged { selected: items.len(), ..ItemsChanged::default() };
        let mut gone = HashSet::new();
        let mut skipped = Vec::new();
        for (place, item) in in_order(change, caller, deed, items).await? {
            let before = change.noted();
            let outcome = self.apply_to(change, caller, deed, item).await;
            let is_along = matches!(&outcome, Err(Error::NotFound { .. }))
                && went_along(change, caller, deed, item, &gone).await?;
            match outcome {
                Ok(()) if change.noted() == before => done.unchanged += 1,
                Ok(()) => {
                    done.changed += 1;
                    gone.insert(item.id.as_str());
                }
                Err(_) if is_along => done.changed += 1,
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
        deed: &Checked,
        item: &Named,
    ) -> Result<(), Error> {
        match (deed, item.kind) {
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

    async fn matching(&self, caller: &Caller, wanted: FileMatch) -> Result<Vec<Named>, Error> {
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
        Ok(found.into_iter().map(|file| Named { kind: Kind::File, id: file.id.to_string() }).collect())
    }
}

fn check(deed: Deed) -> Result<Checked, Error> {
    Ok(match deed {
        Deed::Move(folder) => {
            let mut checks = Checks::default();
            let target = checks.optional_id("folderId", folder.as_deref());
            checks.finish()?;
            Checked::Move(target)
        }
        Deed::Tag(tags) => Checked::Tag(tags.checked()?),
        Deed::Trash => Checked::Trash,
        Deed::Restore => Checked::Restore,
    })
}

/// Each item once. An id that is none names no item, which is told of that one.
fn named(items: Vec<(Kind, String)>) -> Result<Vec<Named>, Error> {
    if items.is_empty() {
        return Err(Error::invalid("items", "required", wording::EMPTY));
    }
    if items.len() > ITEMS_AT_ONCE {
        let most = wording::at_most(ITEMS_AT_ONCE, Unit::Entries);
        let message = format!("{most}; this call has {}", items.len());
        return Err(Error::invalid("items", "too_long", message));
    }
    let mut known = HashSet::with_capacity(items.len());
    let one_spelling = |(kind, id): (Kind, String)| {
        let id = Uuid::try_parse(&id).map_or(id, |id| id.to_string());
        Named { kind, id }
    };
    Ok(items.into_iter().map(one_spelling).filter(|item| known.insert(item.clone())).collect())
}

/// The items in the order in which they are taken, each with its place: a folder before what it holds goes to trash, and what
/// was deleted last comes back first, as a folder that was deleted after what it held.
async fn in_order<'a>(
    change: &mut Change,
    caller: &Caller,
    deed: &Checked,
    items: &'a [Named],
) -> Result<Vec<(usize, &'a Named)>, Error> {
    let mut keyed = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let engine = change.tx().engine();
        let key = match (deed, item.kind) {
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

/// Whether an item is in trash by now with a folder that this call has put there.
async fn went_along(
    change: &mut Change,
    caller: &Caller,
    deed: &Checked,
    item: &Named,
    gone: &HashSet<&str>,
) -> Result<bool, Error> {
    if !matches!(deed, Checked::Trash) || Uuid::try_parse(&item.id).is_err() {
        return Ok(false);
    }
    let with = store::trash::along(change.tx().engine(), caller.workspace, item.kind, &item.id).await?;
    Ok(with.is_some_and(|deletion| gone.contains(deletion.item_id.as_str())))
}

/// What is about one item is told of it; what is not ends the call. All of these are found before the item is touched.
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
