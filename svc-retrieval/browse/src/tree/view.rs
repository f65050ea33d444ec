//! The tree as one caller sees it at one moment.

use std::sync::Arc;

use bytes::Bytes;
use cairn_chassis::clock::Timestamp;
use cairn_proto::document::v1::{ConfirmedDocument, DocumentRef};
use cairn_proto::domain::{page_of, plain_page_of};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use cairn_shell::tree::Node;
use uuid::Uuid;

use super::base::{Base, Fixed, Item, Slot};
use super::lens::Lens;
use super::memories::{Member, MemoryContents, MemoryFolder, member_of, place_of};
use super::past::Past;
use super::rows::{Outside, Text, What};
use crate::Indexed;
use crate::bodies::{BodyRef, Key};

/// A tree as one caller sees it. Immutable.
#[derive(Debug)]
pub(crate) struct View {
    pub(super) workspace: WorkspaceId,
    pub(super) base: Arc<Base>,
    pub(super) lens: Arc<Lens>,
    /// Set for a past tree.
    pub(super) past: Option<Past>,
}

/// The parts of a record's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) front: Text,
    /// Without the fields that refer to other items.
    pub(super) is_bare: bool,
    pub(super) body: Option<Text>,
}

/// The separator between the fields of a record and its body.
pub(super) const BEFORE_BODY: &[u8] = b"\n";

impl Page {
    /// A key that is equal for equal parts, and so for equal texts.
    pub(super) fn key(&self) -> Key {
        match &self.body {
            None => Key(self.front.hash),
            Some(body) => {
                let mut hasher = blake3::Hasher::new();
                hasher.update(&self.front.hash);
                hasher.update(&body.hash);
                Key(*hasher.finalize().as_bytes())
            }
        }
    }

    fn size(&self) -> u64 {
        let body = self.body.map_or(0, |body| body.size.saturating_add(BEFORE_BODY.len() as u64));
        self.front.size.saturating_add(body)
    }
}

/// Where the text of a file is.
enum Source {
    /// In memory.
    Here(Bytes),
    /// At its owner.
    There(BodyRef),
    /// The node is no file.
    Nowhere,
}

impl View {
    /// When that is, and what is not told of then; none for a tree of now.
    pub(crate) const fn past(&self) -> Option<&Past> {
        self.past.as_ref()
    }

    /// The target of a member of a memory; any other node itself.
    fn shown(&self, node: Node) -> Node {
        self.member(node).map_or(node, |member| member.target)
    }

    fn member(&self, node: Node) -> Option<&Member> {
        let (place, own) = member_of(node)?;
        self.held_by(place)?.members.get(own)
    }

    fn memory_folder(&self, place: usize) -> Option<&MemoryFolder> {
        self.lens.memory(&self.base, place)
    }

    fn held_by(&self, place: usize) -> Option<&MemoryContents> {
        Some(self.memory_folder(place)?.held(&self.base, &self.lens, place))
    }

    fn slot(&self, node: Node) -> Option<&Slot> {
        self.base.slot(self.shown(node))
    }

    pub(super) fn is_folder(&self, node: Node) -> bool {
        self.slot(node).is_some_and(Slot::is_folder)
    }

    pub(super) fn parent(&self, node: Node) -> Option<Node> {
        if node == Fixed::Root.node() {
            return None;
        }
        match self.member(node) {
            Some(member) => Some(member.parent),
            None => self.base.slot(node).map(|slot| slot.parent),
        }
    }

    pub(super) fn name(&self, node: Node) -> &str {
        match self.member(node) {
            Some(member) => &member.name,
            None => self.lens.name(&self.base, node),
        }
    }

    /// Its name, and whether it is a folder.
    pub(super) fn entry(&self, node: Node) -> (&str, bool) {
        let Some(member) = self.member(node) else { return self.lens.entry(&self.base, node) };
        (&member.name, self.base.slot(member.target).is_some_and(Slot::is_folder))
    }

    pub(super) fn children(&self, node: Node) -> &[Node] {
        if let Some(member) = self.member(node) {
            return &member.children;
        }
        if self.base.memory(node).is_some() {
            let held = place_of(&self.base, node).and_then(|place| self.held_by(place));
            return held.map_or(&[], |held| &held.children);
        }
        self.lens.children(&self.base, node)
    }

    pub(super) fn modified(&self, node: Node) -> i64 {
        let shown = self.shown(node);
        let own = self.lens.modified(&self.base, shown);
        let body = self.base.slot(shown).and_then(|slot| self.body(slot)).map_or(0, |(slot, _)| slot.updated);
        own.max(body)
    }

    /// The file that is the body of a record, where the caller sees it.
    fn body(&self, record: &Slot) -> Option<(&Slot, Text)> {
        let Some(What::Record { body: Some(body), .. }) = record.what() else { return None };
        let (_, slot) = self.lens.file(&self.base, *body)?;
        match slot.what() {
            Some(What::File(text)) => Some((slot, *text)),
            _ => None,
        }
    }

    pub(super) fn page(&self, record: &Slot) -> Option<Page> {
        let Some(What::Record { front, bare, .. }) = record.what() else { return None };
        let (front, is_bare) = match bare {
            Some(bare) if !self.lens.is_whole() => (**bare, true),
            Some(_) | None => (*front, false),
        };
        Some(Page { front, is_bare, body: self.body(record).map(|(_, text)| text) })
    }

    fn source(&self, node: Node) -> Source {
        let shown = self.shown(node);
        let Some(slot) = self.base.slot(shown) else { return Source::Nowhere };
        let there = |key, size, kind| Source::There(BodyRef { key, size, kind, id: slot.id });
        match &slot.item {
            Item::Fixed(Fixed::Readme) => Source::Here(self.lens.readme(&self.base)),
            Item::Fixed(Fixed::SourcesReadme) => Source::Here(self.lens.sources_readme(&self.base)),
            Item::Guide => {
                let place = place_of(&self.base, slot.parent);
                let folder = place.and_then(|place| Some((place, self.memory_folder(place)?)));
                Source::Here(
                    folder.map_or_else(Bytes::new, |(place, folder)| {
                        folder.guide(&self.base, &self.lens, place)
                    }),
                )
            }
            Item::Schema => match self.base.database(slot.parent) {
                Some((.., schema)) => there(Key(schema.hash), schema.size, Kind::Database),
                None => Source::Nowhere,
            },
            Item::Entity(What::File(text)) => there(Key(text.hash), text.size, Kind::File),
            Item::Entity(What::Record { .. }) => match self.page(slot) {
                Some(page) => there(page.key(), page.size(), Kind::Record),
                None => Source::Nowhere,
            },
            Item::Entity(What::Document(document)) => match document.text {
                Some(text) => there(Key(text.hash), text.size, document.kind.into()),
                // The text is at its provider only.
                None => Source::Here(Bytes::new()),
            },
            Item::Entity(What::Folder | What::Database { .. } | What::Memory(_) | What::SourceFolder(_))
            | Item::Fixed(_)
            | Item::Free => Source::Nowhere,
        }
    }

    /// The reference to a file's body at its owner; `None` for texts that are in memory.
    pub(super) fn held(&self, node: Node) -> Option<BodyRef> {
        match self.source(node) {
            Source::There(held) => Some(held),
            Source::Here(_) | Source::Nowhere => None,
        }
    }

    /// The text of a file that is in memory.
    pub(super) fn text(&self, node: Node) -> Option<Bytes> {
        match self.source(node) {
            Source::Here(text) => Some(text),
            Source::There(_) | Source::Nowhere => None,
        }
    }

    pub(super) fn size(&self, node: Node) -> u64 {
        match self.source(node) {
            Source::Here(text) => text.len() as u64,
            Source::There(held) => held.size,
            Source::Nowhere => 0,
        }
    }

    /// The metadata of the document that a file shows, without the content hash; `None` for a generated file, such as the README of
    /// the root.
    pub(crate) fn document(&self, node: Node) -> Option<ConfirmedDocument> {
        let slot = self.slot(node)?;
        let base = &self.base;
        if let Some(What::Document(document)) = slot.what() {
            return self.outside(node, slot, document);
        }
        let (kind, title, path, folder, database) = match &slot.item {
            Item::Entity(What::File(_)) => {
                let folder = base.slot(slot.parent).filter(|folder| folder.what().is_some());
                let folder = folder.map(|folder| folder.id);
                (Kind::File, slot.segment().to_owned(), base.given_path(folder, slot.segment()), folder, None)
            }
            Item::Entity(What::Record { title, .. }) => {
                let database = base.slot(slot.parent)?;
                let (_, folder, _) = base.database(slot.parent)?;
                let title = title_of(slot, title.as_deref());
                let path = format!("{}/{title}", base.given_path(folder, database.segment()));
                (Kind::Record, title, path, folder, Some(database.id))
            }
            Item::Guide => {
                let memory = base.memory(slot.parent)?;
                (Kind::Memory, memory.name.to_string(), base.path(slot.parent), None, None)
            }
            Item::Entity(
                What::Folder
                | What::Database { .. }
                | What::Memory(_)
                | What::SourceFolder(_)
                | What::Document(_),
            )
            | Item::Schema
            | Item::Fixed(_)
            | Item::Free => return None,
        };
        Some(ConfirmedDocument {
            r#ref: Some(DocumentRef { kind: kind.into(), id: slot.id.to_string() }),
            title,
            path,
            folder_id: folder.map(|id: Uuid| id.to_string()),
            content_hash: String::new(),
            updated_at: Some(Timestamp::from_micros(self.modified(node)).to_proto()),
            database_id: database.map(|id: Uuid| id.to_string()),
            ..ConfirmedDocument::default()
        })
    }

    /// A file that the caller sees, with the hash of its content, and how that is read.
    pub(crate) fn file_then(&self, id: Uuid) -> Option<(ConfirmedDocument, BodyRef)> {
        let (node, _) = self.lens.file(&self.base, id)?;
        let held = self.held(node)?;
        let content_hash = format!("blake3:{}", blake3::Hash::from_bytes(held.key.0).to_hex());
        Some((ConfirmedDocument { content_hash, ..self.document(node)? }, held))
    }

    /// A record of a database that the caller sees, or would if databases were shown, without the hash of its content.
    pub(crate) fn record_then(&self, id: Uuid) -> Option<ConfirmedDocument> {
        let (node, slot) = self.base.entity(id)?;
        let (_, folder, _) = self.base.database(slot.parent)?;
        if !self.lens.covers(&self.base, folder) {
            return None;
        }
        self.document(node)
    }

    /// The same of a document from outside; an entry of a catalog has nothing that could be cited.
    fn outside(&self, node: Node, slot: &Slot, document: &Outside) -> Option<ConfirmedDocument> {
        document.text?;
        Some(ConfirmedDocument {
            r#ref: Some(DocumentRef { kind: document.kind.number(), id: slot.id.to_string() }),
            title: document.title.to_string(),
            path: document.path.to_string(),
            updated_at: Some(Timestamp::from_micros(self.modified(node)).to_proto()),
            source_id: document.source.map(|id| id.to_string()),
            source_name: document.source_name().map(ToOwned::to_owned),
            provider: document.provider.as_deref().map(ToOwned::to_owned),
            url: document.url.as_deref().map(ToOwned::to_owned),
            ..ConfirmedDocument::default()
        })
    }

    /// The output of `stat` beyond kind, size and time. `indexed` is the position of the index in the feed; `link_base`
    /// stands before the path of the link.
    pub(super) fn details(
        &self,
        node: Node,
        indexed: Indexed,
        link_base: &str,
    ) -> Vec<(&'static str, String)> {
        let mut details = Vec::new();
        let Some(slot) = self.slot(node) else { return details };
        if self.lens.is_way(self.shown(node)) {
            return details;
        }
        if let Some((link, label)) = self.link(slot) {
            details.push(("id", slot.id.to_string()));
            details.push(("link", format!("{link_base}{link}")));
            details.push(("citation", label));
            details.push(("freshness", self.freshness(node, slot, indexed)));
        }
        if let Some(What::Document(document)) = slot.what() {
            details.extend(document.url.as_ref().map(|url| ("address", url.to_string())));
            let elsewhere = "an entry of a catalog: the tool fetch_source_document reads its text";
            details.extend(document.text.is_none().then(|| ("content", elsewhere.to_owned())));
        }
        if let Some(use_when) = self.use_when(node) {
            details.push(("useWhen", use_when.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
        details
    }

    /// Its page in the console, and the label of its citation.
    fn link(&self, slot: &Slot) -> Option<(String, String)> {
        let id = slot.id;
        let link = match &slot.item {
            Item::Entity(What::File(_)) => plain_page_of(Kind::File, id),
            Item::Entity(What::Folder) => plain_page_of(Kind::Folder, id),
            Item::Entity(What::Database { .. }) | Item::Schema => plain_page_of(Kind::Database, id),
            Item::Entity(What::Memory(_)) | Item::Guide => plain_page_of(Kind::Memory, id),
            Item::Entity(What::Record { .. }) => {
                page_of(Kind::Record, id, Some(self.base.slot(slot.parent)?.id))
            }
            Item::Entity(What::Document(document)) => plain_page_of(document.kind.into(), id),
            Item::Entity(What::SourceFolder(_)) | Item::Fixed(_) | Item::Free => return None,
        };
        let about = self.base.slot(slot.parent);
        let label = match &slot.item {
            Item::Entity(What::Record { title, .. }) => title_of(slot, title.as_deref()),
            Item::Entity(What::Memory(memory)) => memory.name.to_string(),
            Item::Entity(What::Document(document)) => document.title.to_string(),
            Item::Guide => self.base.memory(slot.parent)?.name.to_string(),
            Item::Schema => about?.segment().to_owned(),
            Item::Entity(_) | Item::Fixed(_) | Item::Free => slot.segment().to_owned(),
        };
        Some((link, label))
    }

    fn freshness(&self, node: Node, slot: &Slot, indexed: Indexed) -> String {
        let updated = format!("updated {}", Timestamp::from_micros(self.modified(node)).to_rfc3339());
        let indexed = match &slot.item {
            Item::Entity(What::File(_) | What::Record { .. } | What::Memory(_)) | Item::Guide => {
                indexed.content
            }
            Item::Entity(What::Document(_)) => indexed.outside,
            Item::Entity(_) | Item::Schema | Item::Fixed(_) | Item::Free => None,
        };
        match indexed {
            None => updated,
            Some(indexed) if indexed >= slot.changed => format!("{updated}, indexed"),
            Some(_) => format!("{updated}, not indexed yet"),
        }
    }

    /// When the memory applies that the node is, or is a part of.
    fn use_when(&self, node: Node) -> Option<&str> {
        let memory = match member_of(node) {
            Some((place, _)) => *self.base.children(Fixed::Memories.node()).get(place)?,
            None => match self.base.slot(node)?.item {
                Item::Guide => self.base.slot(node)?.parent,
                Item::Free | Item::Fixed(_) | Item::Entity(_) | Item::Schema => node,
            },
        };
        self.base.memory(memory)?.use_when.as_deref()
    }
}

/// The title of a record as people gave it.
fn title_of(slot: &Slot, title: Option<&str>) -> String {
    let spelled = || slot.segment().strip_suffix(".md").unwrap_or(slot.segment());
    title.unwrap_or_else(spelled).to_owned()
}
