//! Who did what.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_proto::domain::ActivityAction;
use cairn_proto::ids::{DatabaseId, FolderId};
use serde::{Deserialize, Serialize};

use super::{Author, FormerMember};

/// How long entries are kept.
pub(crate) const ACTIVITY_KEPT: Duration = Duration::from_secs(180 * 24 * 60 * 60);

/// Which entry. They sort as they happened; entries of one item as they were written, whatever the clocks say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ActivityId {
    pub(crate) at: Timestamp,
    /// Where the write ended in the feed.
    pub(crate) position: u64,
    /// Among the entries of the write.
    pub(crate) place: u64,
}

impl ActivityId {
    /// Behind every entry of that time and later ones.
    pub(crate) const fn before(at: Timestamp) -> Self {
        Self { at, position: 0, place: 0 }
    }

    /// The write that it is of.
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
pub(crate) struct NoActivityId;

impl FromStr for ActivityId {
    type Err = NoActivityId;

    fn from_str(text: &str) -> Result<Self, NoActivityId> {
        let mut parts = text.split('.');
        let (at, position, place) = (parts.next(), parts.next(), parts.next());
        if parts.next().is_some() {
            return Err(NoActivityId);
        }
        let number = |part: Option<&str>| part.and_then(|part| part.parse().ok()).ok_or(NoActivityId);
        let at = at.and_then(|at| at.parse().ok()).ok_or(NoActivityId)?;
        Ok(Self { at: Timestamp::from_micros(at), position: number(position)?, place: number(place)? })
    }
}

/// Which write: what its entries have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteId {
    pub(crate) at: Timestamp,
    /// Where it ended in the feed.
    pub(crate) position: u64,
}

impl fmt::Display for WriteId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.at.as_micros(), self.position)
    }
}

impl FromStr for WriteId {
    type Err = NoActivityId;

    fn from_str(text: &str) -> Result<Self, NoActivityId> {
        let (at, position) = text.split_once('.').ok_or(NoActivityId)?;
        let at = at.parse().map_err(|_| NoActivityId)?;
        let position = position.parse().map_err(|_| NoActivityId)?;
        Ok(Self { at: Timestamp::from_micros(at), position })
    }
}

/// What a write did to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    /// To trash.
    Trash,
    /// Out of trash.
    Restore,
    /// For good.
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

    /// The spelling in the table.
    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL.into_iter().find(|(one, _)| *one == self).map(|(_, text)| text).unwrap_or_default()
    }

    /// What is spelled so.
    pub(crate) fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, spelled)| *spelled == text).map(|(one, _)| one)
    }
}

/// One thing that an update changed, with what it was before where that is kept nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Former {
    /// Of a file; versions keep it.
    Content,
    /// Of a record; versions keep them.
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
    /// Whether search engines list it.
    Listed(bool),
    /// Members that the memory had not.
    MembersAdded(Vec<FormerMember>),
    /// Members that it had.
    MembersRemoved(Vec<FormerMember>),
    /// Members stood in another order.
    MembersMoved,
    /// Of a database: its properties and their options.
    Fields,
    Views,
}

impl Former {
    /// What was changed, as callers are told.
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

/// What a write did to one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Activity {
    pub(crate) operation: Operation,
    pub(crate) kind: Kind,
    pub(crate) item_id: String,
    /// The folder that holds it, or its database; absent for the root.
    pub(crate) folder_id: Option<FolderId>,
    /// Of a record.
    pub(crate) database_id: Option<DatabaseId>,
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) version_before: Option<u64>,
    pub(crate) version_after: Option<u64>,
    /// How many items went or came back, this one included.
    pub(crate) items: u64,
    /// What an update changed.
    pub(crate) former: Vec<Former>,
}

impl Activity {
    /// What was done to an item of that name, of which the rest is to be said.
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

    /// The same of what stands there.
    pub(crate) fn at(self, path: &str, folder_id: Option<FolderId>) -> Self {
        Self { path: path.to_owned(), folder_id, ..self }
    }

    /// The same that made one version of another; absent where there was or is none.
    pub(crate) fn versions(self, before: Option<u64>, after: Option<u64>) -> Self {
        Self { version_before: before, version_after: after, ..self }
    }

    /// What it is called.
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

    /// What it changed, each once.
    pub(crate) fn changed(&self) -> Vec<&'static str> {
        let mut changed: Vec<&str> = self.former.iter().map(Former::as_str).collect();
        changed.dedup();
        changed
    }

    /// The name before, where that was changed.
    pub(crate) fn former_name(&self) -> Option<&str> {
        self.former.iter().find_map(
            |former| {
                if let Former::Name(name) = former { Some(name.as_str()) } else { None }
            },
        )
    }

    /// Takes a later update of the same item, by the same write, as a part of this; `Err` gives back what is none.
    pub(crate) fn absorb(&mut self, later: Self) -> Result<(), Self> {
        let is_same = (self.kind, &self.item_id) == (later.kind, &later.item_id);
        let grows = matches!(self.operation, Operation::Create | Operation::Update | Operation::Restore);
        if !is_same || !grows || later.operation != Operation::Update {
            return Err(later);
        }
        let mut former = later.former;
        if self.operation == Operation::Create {
            // What is new had nothing before.
            former.clear();
        }
        // What the first of two changes says of before holds.
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

/// Who writes, by which door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Actor {
    pub(crate) author: Author,
    /// Empty for what the service does by itself.
    pub(crate) channel: &'static str,
    /// The entry that the write undoes.
    pub(crate) undoes: Option<ActivityId>,
}

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActivityEntry {
    pub(crate) id: ActivityId,
    pub(crate) author: Author,
    pub(crate) channel: String,
    /// Of an undo: the entry before which the item stood as it stands after this one.
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
            assert_eq!(odd.parse::<ActivityId>(), Err(NoActivityId), "{odd}");
        }
        assert_eq!((id.write().to_string().as_str(), "5.7".parse()), ("5.7", Ok(id.write())));
        for odd in ["", "5", "5.7.2", "5.-7", "x.7", "5."] {
            assert_eq!(odd.parse::<WriteId>(), Err(NoActivityId), "{odd}");
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
