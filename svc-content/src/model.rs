//! The data model of the workspace: the types that the store persists and the rules work on. No SQL, no rules, no
//! callers.

mod activity;
mod asset;
mod author;
mod cell;
mod database;
mod deletion;
mod document;
mod file;
mod filter;
mod folder;
mod group;
mod memory;
mod page_record;
mod property;
mod record;
mod selection;
mod state;
mod tally;
mod text;
mod tree;
mod usage;
mod view;
mod written;

use cairn_chassis::paging::Sizes;
use cairn_proto::domain::limits::PAGE;

pub(crate) use cairn_chassis::bodies::{Body, MAX_CONTENT_BYTES, content_hash};
pub(crate) use cairn_chassis::paging::{Cursor, Page, PageRequest};
pub(crate) use cairn_proto::domain::{FileType, MemberKind, PropertyType};

pub(crate) use self::activity::{
    ACTIVITY_RETENTION, Activity, ActivityEntry, ActivityId, Actor, Former, Operation, WriteId,
};
pub(crate) use self::asset::{Asset, StoredObject};
pub(crate) use self::author::Author;
pub(crate) use self::cell::{
    Cell, Day, MAX_KEY_CHARS, MICROS_PER_DAY, cells, micros_key, place_key, searched, text_key,
};
pub(crate) use self::database::Database;
pub(crate) use self::deletion::Deletion;
pub(crate) use self::document::Document;
pub(crate) use self::file::{File, FileVersion};
pub(crate) use self::filter::{Condition, Filter, Test};
pub(crate) use self::folder::Folder;
pub(crate) use self::group::{
    Counted, Group, GroupBy, GroupKey, Grouped, Grouping, Others, Ranked, day_of, keep_first, text_of_units,
    units_of,
};
pub(crate) use self::memory::{
    DatabaseQuery, FormerMember, Member, MemberTarget, Memory, MemoryState, MemoryVersion,
};
pub(crate) use self::page_record::{Fields, Listed, PageRecord};
pub(crate) use self::property::{Property, PropertyOption, PropertySettings};
pub(crate) use self::record::{Record, RecordVersion, Values};
pub(crate) use self::selection::{Order, Selection, Word};
pub(crate) use self::state::{DatabaseState, FileState, FolderState, RecordState, States, StatesRequest};
pub(crate) use self::tally::Tally;
pub(crate) use self::text::fold;
pub(crate) use self::tree::{
    NamedDatabase, TreeDatabase, TreeFile, TreeFolder, TreeMember, TreeMemory, TreeRecord, TreeText,
};
pub(crate) use self::usage::{Growth, Usage};
pub(crate) use self::view::{Sort, View, ViewFilter};
pub(crate) use self::written::Written;

/// The page sizes of lists.
pub(crate) const PAGES: Sizes = Sizes { default: PAGE, most: PAGE };
