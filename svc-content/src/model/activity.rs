//! The activity log: who did what.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_proto::domain::ActivityAction;
use cairn_proto::ids::{DatabaseId, FolderId};
use serde::{Deserialize, Serialize};

use super::{Author, FormerMember};

/// The retention of entries.
pub(crate) const ACTIVITY_RETENTION: Duration = Duration::from_secs(180 * 24 * 60 * 60);

/// The id of an entry. Ids sort by time; for entries of one item in the order of the writes, even when clocks jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ActivityId {
    pub(crate) at: Timestamp,
    /// The last feed position of the write.
    pub(crate) position: u64,
    /// The index among the entries of the write.
    pub(crate) place: u64,
}

impl ActivityId {
    /// An upper bound of the entries before that time.
    pub(crate) const fn before(at: Timestamp) -> Self {
        Self { at, position: 0, place: 0 }
    }

    /// The write of the entry.
    pub(crate) const fn write(self) -> WriteId {
        WriteId { at: self.at, position: self.position }
    }
}

impl fmt::Display for ActivityId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.at.as_micros(), self.position, self.place)
    }
}

/// The text is no id of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidActivityId;

impl FromStr for ActivityId {
    type Err = InvalidActivityId;

    fn from_str(text: &str) -> Result<Self, InvalidActivityId> {
        let mut parts = text.split('.');
        let (at, position, place) = (parts.next(), parts.next(), parts.next());
        if parts.next().is_some() {
            return Err(InvalidActivityId);
        }
        let number = |part: Option<&str>| part.and_then(|part| part.parse().ok()).ok_or(InvalidActivityId);
        let at = at.and_then(|at| at.parse().ok()).ok_or(InvalidActivityId)?;
        Ok(Self { at: Timestamp::from_micros(at), position: number(position)?, place: number(place)? })
    }
}

/// The id of a write, shared by its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteId {
    pub(crate) at: Timestamp,
    /// The last feed position of the write.
    pub(crate) position: u64,
}

impl fmt::Display for WriteId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.at.as_micros(), self.position)
    }
}

impl FromStr for WriteId {
    type Err = InvalidActivityId;

    fn from_str(text: &str) -> Result<Self, InvalidActivityId> {
        let (at, position) = text.split_once('.').ok_or(InvalidActivityId)?;
        let at = at.parse().map_err(|_| InvalidActivityId)?;
        let position = position.parse().map_err(|_| InvalidActivityId)?;
        Ok(Self { at: Timestamp::from_micros(at), position })
    }
}

/// An operation on an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    /// Moves to trash.
    Trash,
    /// Restores from trash.
    Restore,
    /// Deletes permanently.
    Remove,
}

impl Operation {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Create, "create"),
        (Self::Update, "update"),
        (Self::Trash, "trash"),
        (Self::Restore, "restore"),
        (Self::Remove, "remove"),
    ];

    /// As stored in the table.
    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL.into_iter().find(|(one, _)| *one == self).map(|(_, text)| text).unwrap_or_default()
    }

    /// Parses the stored spelling.
    pub(crate) fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, spelled)| *spelled == text).map(|(one, _)| one)
    }
}

/// A change by an update, with the previous value where it is stored nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Former {
    /// Of a file; the versions have it.
    Content,
    /// Of a record; the versions have them.
    Values,
    Name(String),
    /// Absent: the root.
    Folder(Option<FolderId>),
    Tags(Vec<String>),
    Description(Option<String>),
    Icon(Option<String>),
    Slug(String),
    UseWhen(Option<String>),
    Public(bool),
    /// Whether search engines may index it.
    Listed(bool),
    /// Members that were added.
    MembersAdded(Vec<FormerMember>),
    /// Members that were removed.
    MembersRemoved(Vec<FormerMember>),
    /// Members that changed their order.
    MembersMoved,
    /// Of a database: its properties and their options.
    Fields,
    Views,
}

impl Former {
    /// The name of the change in the contract.
    pub(crate) const fn as_str(&self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Values => "values",
            Self::Name(_) => "name",
            Self::Folder(_) => "folder",
            Self::Tags(_) => "tags",
            Self::Description(_) => "description",
            Self::Icon(_) => "icon",
            Self::Slug(_) => "slug",
            Self::UseWhen(_) => "useWhen",
            Self::Public(_) => "public",
            Self::Listed(_) => "listed",
            Self::MembersAdded(_) | Self::MembersRemoved(_) | Self::MembersMoved => "members",
            Self::Fields => "fields",
            Self::Views => "views",
        }
    }
}

/// An operation of a write on one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Activity {
    pub(crate) operation: Operation,
    pub(crate) kind: Kind,
    pub(crate) item_id: String,
    /// The folder or the database that the item is in; absent for the root.
    pub(crate) folder_id: Option<FolderId>,
    /// For a record.
    pub(crate) database_id: Option<DatabaseId>,
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) version_before: Option<u64>,
    pub(crate) version_after: Option<u64>,
    /// The number of items that were deleted or restored, including this one.
    pub(crate) items: u64,
    /// The changes by an update.
    pub(crate) former: Vec<Former>,
}

impl Activity {
    /// An operation on an item with that name; the other fields are set by the methods below.
    pub(crate) fn of(operation: Operation, kind: Kind, item_id: impl ToString, name: &str) -> Self {
        Self {
            operation,
            kind,
            item_id: item_id.to_string(),
            folder_id: None,
            database_id: None,
            name: name.to_owned(),
            path: String::new(),
            version_before: None,
            version_after: None,
            items: 1,
            former: Vec::new(),
        }
    }

    /// Sets the location.
    pub(crate) fn at(self, path: &str, folder_id: Option<FolderId>) -> Self {
        Self { path: path.to_owned(), folder_id, ..self }
    }

    /// Sets the versions before and after; absent where there is none.
    pub(crate) fn versions(self, before: Option<u64>, after: Option<u64>) -> Self {
        Self { version_before: before, version_after: after, ..self }
    }

    /// The operation in the contract.
    pub(crate) fn action(&self) -> ActivityAction {
        match self.operation {
            Operation::Create => ActivityAction::Created,
            Operation::Trash => ActivityAction::Deleted,
            Operation::Restore => ActivityAction::Restored,
            Operation::Remove => ActivityAction::DeletedPermanently,
            Operation::Update => match self.former.as_slice() {
                [Former::Name(_)] => ActivityAction::Renamed,
                [Former::Folder(_)] => ActivityAction::Moved,
                [Former::Tags(_)] => ActivityAction::Tagged,
                _ => ActivityAction::Updated,
            },
        }
    }

    /// The names of the changes, each once.
    pub(crate) fn changed(&self) -> Vec<&'static str> {
        let mut changed: Vec<&str> = self.former.iter().map(Former::as_str).collect();
        changed.dedup();
        changed
    }

    /// The name before, if it was changed.
    pub(crate) fn former_name(&self) -> Option<&str> {
        self.former.iter().find_map(
            |former| {
                if let Former::Name(name) = former { Some(name.as_str()) } else { None }
            },
        )
    }

    /// Merges a later update of the same item by the same write; `Err` returns one that cannot be merged.
    pub(crate) fn absorb(&mut self, later: Self) -> Result<(), Self> {
        let is_same = (self.kind, &self.item_id) == (later.kind, &later.item_id);
        let grows = matches!(self.operation, Operation::Create | Operation::Update | Operation::Restore);
        if !is_same || !grows || later.operation != Operation::Update {
            return Err(later);
        }
        let mut former = later.former;
        if self.operation == Operation::Create {
            // A new item has no previous values.
            former.clear();
        }
        // Of two changes of the same field, the previous value of the first counts.
        former.retain(|one| {
            !self.former.iter().any(|known| known.as_str() == one.as_str()) || one.as_str() == "members"
        });
        self.former.extend(former);
        self.version_before = self.version_before.or(later.version_before);
        self.version_after = later.version_after;
        (self.folder_id, self.name, self.path) = (later.folder_id, later.name, later.path);
        Ok(())
    }
}

/// The author of a write, and its channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Actor {
    pub(crate) author: Author,
    /// Empty for writes by the service itself.
    pub(crate) channel: &'static str,
    /// The entry that the write undoes.
    pub(crate) undoes: Option<ActivityId>,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActivityEntry {
    pub(crate) id: ActivityId,
    pub(crate) author: Author,
    pub(crate) channel: String,
    /// For an undo: the entry whose previous state the item has after this one.
    pub(crate) undoes: Option<ActivityId>,
    pub(crate) what: Activity,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_text() {
        let id = ActivityId { at: Timestamp::from_micros(5), position: 7, place: 2 };
        assert_eq!((id.to_string().as_str(), "5.7.2".parse()), ("5.7.2", Ok(id)));
        for odd in ["", "5", "5.7", "5.7.2.1", "5.-7.2", "x.7.2", "5.7.", "99999999999999999999.1.1"] {
            assert_eq!(odd.parse::<ActivityId>(), Err(InvalidActivityId), "{odd}");
        }
        assert_eq!((id.write().to_string().as_str(), "5.7".parse()), ("5.7", Ok(id.write())));
        for odd in ["", "5", "5.7.2", "5.-7", "x.7", "5."] {
            assert_eq!(odd.parse::<WriteId>(), Err(InvalidActivityId), "{odd}");
        }
    }

    #[test]
    fn what_was_changed_says_what_it_is_called() {
        let of = |former: Vec<Former>| Activity {
            former,
            ..Activity::of(Operation::Update, Kind::File, "1", "a")
        };
        assert_eq!(of(vec![Former::Name("b".into())]).action(), ActivityAction::Renamed);
        assert_eq!(of(vec![Former::Folder(None)]).action(), ActivityAction::Moved);
        let both = of(vec![Former::Name("b".into()), Former::Folder(None)]);
        assert_eq!((both.action(), both.former_name()), (ActivityAction::Updated, Some("b")));
        let members = of(vec![Former::MembersAdded(vec![]), Former::MembersRemoved(vec![])]);
        assert_eq!(members.changed(), ["members"]);
    }

    #[test]
    fn two_changes_of_one_write_are_one() {
        let update = |name: &str, version: u64| Activity {
            former: vec![Former::Name(name.into())],
            ..Activity::of(Operation::Update, Kind::File, "1", "now")
                .versions(Some(version), Some(version + 1))
        };
        let mut first = update("first", 1);
        assert_eq!(first.absorb(update("second", 2)), Ok(()));
        assert_eq!(
            (first.former_name(), first.version_before, first.version_after),
            (Some("first"), Some(1), Some(3))
        );
        let gone = Activity::of(Operation::Trash, Kind::File, "1", "now");
        assert!(first.absorb(gone).is_err());
        let other = Activity { item_id: "2".into(), ..update("x", 1) };
        assert!(first.absorb(other).is_err());
        let mut made = Activity::of(Operation::Create, Kind::File, "1", "a");
        assert_eq!((made.absorb(update("a", 1)), made.former.len()), (Ok(()), 0));
    }

    #[test]
    fn what_was_before_is_kept_as_json() {
        let former = vec![Former::Content, Former::Folder(None), Former::Tags(vec!["a".into()])];
        let text = serde_json::to_string(&former).unwrap();
        assert_eq!(text, r#"["content",{"folder":null},{"tags":["a"]}]"#);
        assert_eq!(serde_json::from_str::<Vec<Former>>(&text).unwrap(), former);
    }
}
