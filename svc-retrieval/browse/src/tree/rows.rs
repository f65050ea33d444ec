//! The items of a tree, decoded from the messages of their owners.

use std::collections::HashMap;

use cairn_chassis::clock::Timestamp;
use cairn_proto::content::v1::{self as proto, MemberKind, TreeItems, TreeText};
use cairn_proto::document::v1::DocumentRef;
use cairn_proto::domain::DocumentKind;
use cairn_proto::ingest::v1::TreeDocument;
use uuid::Uuid;

use super::names;
use crate::error::Error;

const BROKEN: Error = Error::Answer("an item of a tree cannot be read");

/// A reference to a text by its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) hash: [u8; 32],
    pub(super) size: u64,
}

/// The parent of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// In a folder; none for the root of the files.
    Folder(Option<Uuid>),
    /// In a database.
    Database(Uuid),
    /// Among the databases.
    Databases,
    /// Among the memories.
    Memories,
    /// Below the sources: in a folder of them, none for the top.
    Sources(Option<Uuid>),
}

/// The kind of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    Folder,
    File(Text),
    Database {
        folder: Option<Uuid>,
        description: Option<Box<str>>,
        schema: Text,
    },
    Record {
        /// Where it is not what is spelled.
        title: Option<Box<str>>,
        body: Option<Uuid>,
        front: Text,
        bare: Option<Box<Text>>,
    },
    Memory(Box<Memory>),
    /// A folder below the sources, for as long as something is in it; its provider, for that of a connected source.
    SourceFolder(Option<Box<str>>),
    Document(Box<Outside>),
}

/// A document from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outside {
    pub(super) kind: DocumentKind,
    pub(super) title: Box<str>,
    /// As its owner spells it.
    pub(super) path: Box<str>,
    /// None for an entry of a catalog.
    pub(super) text: Option<Text>,
    /// Its own address.
    pub(super) url: Option<Box<str>>,
    pub(super) source: Option<Uuid>,
    pub(super) provider: Option<Box<str>>,
}

impl Outside {
    /// What its source is called.
    pub(super) fn source_name(&self) -> Option<&str> {
        self.source.and_then(|_| segments(&self.path)?.next())
    }
}

/// The target of a member of a memory, which may no longer exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) kind: MemberKind,
    pub(super) target: Uuid,
    /// Whether it stands for some of the records only.
    pub(super) is_query: bool,
}

/// A memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) name: Box<str>,
    pub(super) description: Option<Box<str>>,
    pub(super) use_when: Option<Box<str>>,
    pub(super) members: Vec<Member>,
}

/// An item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: Uuid,
    pub(super) place: Place,
    /// Its name as a path segment, before disambiguation.
    pub(super) segment: Box<str>,
    pub(super) updated: i64,
    pub(super) what: What,
}

/// The current items by id; `None` for removed ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows(pub(super) HashMap<Uuid, Option<Row>>);

impl Rows {
    /// Applies later changes on top of earlier ones.
    pub(super) fn take(&mut self, items: TreeItems, gone: Vec<DocumentRef>) -> Result<(), Error> {
        self.0.reserve(items.folders.len() + items.files.len() + items.records.len());
        items.folders.into_iter().try_for_each(|folder| self.put(of_folder(folder)))?;
        items.files.into_iter().try_for_each(|file| self.put(of_file(file)))?;
        items.databases.into_iter().try_for_each(|database| self.put(of_database(database)))?;
        items.records.into_iter().try_for_each(|record| self.put(of_record(record)))?;
        items.memories.into_iter().try_for_each(|memory| self.put(of_memory(memory)))?;
        for reference in gone {
            self.0.insert(id(&reference.id).ok_or(BROKEN)?, None);
        }
        Ok(())
    }

    /// The same for documents from outside, with the folders that they stand in.
    pub(super) fn take_outside(
        &mut self,
        documents: Vec<TreeDocument>,
        gone: Vec<DocumentRef>,
    ) -> Result<(), Error> {
        for document in documents {
            let row = of_document(document, &mut self.0).ok_or(BROKEN)?;
            self.0.insert(row.id, Some(row));
        }
        for reference in gone {
            self.0.insert(id(&reference.id).ok_or(BROKEN)?, None);
        }
        Ok(())
    }

    fn put(&mut self, row: Option<Row>) -> Result<(), Error> {
        let row = row.ok_or(BROKEN)?;
        self.0.insert(row.id, Some(row));
        Ok(())
    }
}

fn id(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok()
}

fn optional(text: Option<String>) -> Option<Option<Uuid>> {
    match text {
        None => Some(None),
        Some(text) => id(&text).map(Some),
    }
}

fn micros(time: Option<prost_types::Timestamp>) -> i64 {
    time.map_or(0, |time| Timestamp::from_proto(&time).as_micros())
}

fn hash(text: &str) -> Option<[u8; 32]> {
    Some(*blake3::Hash::from_hex(text.strip_prefix("blake3:")?).ok()?.as_bytes())
}

fn text(text: Option<TreeText>) -> Option<Text> {
    let text = text?;
    Some(Text { hash: hash(&text.hash)?, size: text.size_bytes })
}

fn boxed(text: Option<String>) -> Option<Box<str>> {
    text.filter(|text| !text.trim().is_empty()).map(String::into_boxed_str)
}

fn of_folder(folder: proto::TreeFolder) -> Option<Row> {
    Some(Row {
        id: id(&folder.id)?,
        place: Place::Folder(optional(folder.parent_id)?),
        segment: names::of_name(&folder.name).into(),
        updated: micros(folder.updated_at),
        what: What::Folder,
    })
}

fn of_file(file: proto::TreeFile) -> Option<Row> {
    Some(Row {
        id: id(&file.id)?,
        place: Place::Folder(optional(file.folder_id)?),
        segment: names::of_name(&file.name).into(),
        updated: micros(file.updated_at),
        what: What::File(Text { hash: hash(&file.content_hash)?, size: file.size_bytes }),
    })
}

fn of_database(database: proto::TreeDatabase) -> Option<Row> {
    Some(Row {
        id: id(&database.id)?,
        place: Place::Databases,
        segment: names::of_name(&database.name).into(),
        updated: micros(database.updated_at),
        what: What::Database {
            folder: optional(database.folder_id)?,
            description: boxed(database.description),
            schema: text(database.schema)?,
        },
    })
}

fn of_record(record: proto::TreeRecord) -> Option<Row> {
    let segment = names::of_title(&record.title);
    let is_spelled = segment.strip_suffix(".md") == Some(record.title.as_str());
    let bare = match record.front_matter_without_references {
        None => None,
        some => Some(Box::new(text(some)?)),
    };
    Some(Row {
        id: id(&record.id)?,
        place: Place::Database(id(&record.database_id)?),
        segment: segment.into(),
        updated: micros(record.updated_at),
        what: What::Record {
            title: boxed(Some(record.title)).filter(|_| !is_spelled),
            body: optional(record.content_file_id)?,
            front: text(record.front_matter)?,
            bare,
        },
    })
}

fn of_memory(memory: proto::TreeMemory) -> Option<Row> {
    let member = |member: &proto::TreeMember| {
        Some(Member { kind: member.kind(), target: id(&member.target_id)?, is_query: member.query.is_some() })
    };
    Some(Row {
        id: id(&memory.id)?,
        place: Place::Memories,
        segment: names::of_name(&memory.slug).into(),
        updated: micros(memory.updated_at),
        what: What::Memory(Box::new(Memory {
            name: memory.name.into(),
            description: boxed(memory.description),
            use_when: boxed(memory.use_when),
            members: memory.members.iter().map(member).collect::<Option<_>>()?,
        })),
    })
}

/// What stands before the paths of documents from outside.
const SOURCES: &str = "/sources/";

/// The names of a path below the sources.
fn segments(path: &str) -> Option<std::str::Split<'_, char>> {
    Some(path.strip_prefix(SOURCES)?.split('/'))
}

/// A document, when its path leads through at least one folder; those folders are put beside it.
fn of_document(document: TreeDocument, rows: &mut HashMap<Uuid, Option<Row>>) -> Option<Row> {
    let reference = document.r#ref.as_ref()?;
    let kind = DocumentKind::from_number(reference.kind)?;
    let (above, name) = document.path.strip_prefix(SOURCES)?.rsplit_once('/')?;
    let updated = micros(document.updated_at);
    let mut parent = None;
    let mut end = 0;
    for segment in above.split('/') {
        end += segment.len();
        let folder = folder_id(above.get(..end)?);
        let provider = boxed(document.provider.clone()).filter(|_| parent.is_none());
        let row = Row {
            id: folder,
            place: Place::Sources(parent),
            segment: names::of_name(segment).into(),
            updated: 0,
            what: What::SourceFolder(provider),
        };
        rows.insert(folder, Some(row));
        parent = Some(folder);
        end += 1;
    }
    let text = match document.catalog_only {
        true => None,
        false => Some(Text { hash: hash(&document.content_hash)?, size: document.size_bytes }),
    };
    Some(Row {
        id: id(&reference.id)?,
        place: Place::Sources(parent),
        segment: names::of_name(name).into(),
        updated,
        what: What::Document(Box::new(Outside {
            kind,
            title: document.title.into(),
            text,
            url: boxed(document.url),
            source: optional(document.source_id)?,
            provider: boxed(document.provider),
            path: document.path.into(),
        })),
    })
}

/// The id of a folder that has none: derived from its path.
fn folder_id(path: &str) -> Uuid {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"folder below the sources ").update(path.as_bytes());
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
