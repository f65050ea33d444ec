//! The tree of a workspace, for other services of the mesh that replicate it.
//!
//! A replica begins with a snapshot in pages, which are read while the workspace changes, and becomes consistent by applying the
//! changes since the first page. It then follows the feed: a change only identifies items, whose current state is sent with it.

mod front_matter;
mod past;
mod schema;
mod texts;

use std::collections::HashSet;

use cairn_chassis::feed::{self, Kind};
use cairn_chassis::sql::{self, Tx};
use cairn_chassis::wording;
use cairn_proto::ids::{DatabaseId, DocumentId, WorkspaceId};
use uuid::Uuid;

pub(crate) use self::texts::TextRef;
use crate::context::Context;
use crate::model::{
    Database, NamedDatabase, Record, TreeDatabase, TreeFile, TreeFolder, TreeMemory, TreeRecord, TreeText,
};
use crate::store::tree::TreeSelection;
use crate::{Error, store};

/// Folders and files on a page; other kinds have a higher weight, as they are more expensive to read.
const PAGE_WEIGHT: i64 = 5_000;
/// Names on a page of names.
const NAMES_A_PAGE: i64 = 10_000;
/// The kinds that pages of names contain.
const NAMED: [Kind; 2] = [Kind::Folder, Kind::Database];
/// Feed entries per response.
const MAX_CHANGES: i64 = 2_000;
/// Rendering more records than this runs on a blocking thread, as it would delay other requests.
const MAX_INLINE: usize = 32;
const MAX_TITLE_CHARS: usize = 300;

/// Items of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TreeItems {
    pub(crate) folders: Vec<TreeFolder>,
    pub(crate) files: Vec<TreeFile>,
    pub(crate) databases: Vec<TreeDatabase>,
    pub(crate) records: Vec<TreeRecord>,
    pub(crate) memories: Vec<TreeMemory>,
}

/// A page of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreePage {
    pub(crate) items: TreeItems,
    /// Empty after the last page.
    pub(crate) next: String,
    /// The page reflects at least this position of the feed.
    pub(crate) position: u64,
}

/// Changes of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TreeChanges {
    /// The position up to which changes are included.
    pub(crate) position: u64,
    pub(crate) head: u64,
    pub(crate) items: TreeItems,
    pub(crate) gone: Vec<(Kind, DocumentId)>,
}

/// Names of folders and databases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) folders: Vec<TreeFolder>,
    pub(crate) databases: Vec<NamedDatabase>,
}

/// A page of names: of folders, then of databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamePage {
    /// Absent if none has changed.
    pub(crate) names: Option<Names>,
    /// Empty after the last page.
    pub(crate) next: String,
    /// The page reflects at least this position of the feed.
    pub(crate) position: u64,
}

/// Trees on a store.
#[derive(Debug, Clone)]
pub(crate) struct Trees {
    context: Context,
}

/// The kinds in page order, with their names in page tokens and their weights. Containers come before their contents.
const STAGES: [(&str, Kind, i64); 5] = [
    ("folders", Kind::Folder, 1),
    ("databases", Kind::Database, 25),
    ("memories", Kind::Memory, 50),
    ("files", Kind::File, 1),
    ("records", Kind::Record, 5),
];

impl Trees {
    pub(crate) fn new(context: Context) -> Self {
        Self { context }
    }

    /// A page of the snapshot; each page is consistent by itself.
    pub(crate) async fn list(&self, workspace: &str, token: &str) -> Result<TreePage, Error> {
        let workspace = parse(workspace)?;
        let (mut stage, mut after) = read_token(token)?;
        let mut tx = self.context.db.begin_read().await?;
        let position = feed::head(&mut tx, workspace).await?;
        let mut reader = TreeReader { tx: &mut tx, workspace, items: TreeItems::default() };
        let mut left = PAGE_WEIGHT;
        let mut next = String::new();
        while let Some((_, kind, weight)) = STAGES.get(stage) {
            let limit = (left / weight).max(1);
            let (found, last) = reader.page(*kind, after, limit).await?;
            left -= found.saturating_mul(*weight);
            if let Some(last) = last.filter(|_| found == limit) {
                after = last;
            } else {
                stage += 1;
                after = DocumentId(Uuid::nil());
            }
            if left <= 0 {
                let name = STAGES.get(stage).map(|(name, ..)| *name);
                next = name.map_or_else(String::new, |name| format!("{name}:{after}"));
                break;
            }
        }
        let items = reader.items;
        tx.rollback().await?;
        Ok(TreePage { items, next, position })
    }

    /// A page of the names of all folders and databases, consistent by itself; no names if none has changed since `after`.
    pub(crate) async fn names(&self, workspace: &str, after: u64, token: &str) -> Result<NamePage, Error> {
        let workspace = parse(workspace)?;
        let (stage, last) = read_token(token)?;
        let kind = STAGES.get(stage).map(|(_, kind, _)| *kind).filter(|kind| NAMED.contains(kind));
        let kind = kind.ok_or_else(invalid_token)?;
        let mut tx = self.context.db.begin_read().await?;
        let position = feed::head(&mut tx, workspace).await?;
        let is_unchanged = token.is_empty()
            && (1..=position).contains(&after)
            && !store::tree::names_changed(&mut tx, workspace, after).await?;
        if is_unchanged {
            tx.rollback().await?;
            return Ok(NamePage { names: None, next: String::new(), position });
        }
        let mut names = Names::default();
        if kind == Kind::Folder {
            let which = TreeSelection::After(last, NAMES_A_PAGE);
            names.folders = store::tree::folders(&mut tx, workspace, which).await?;
        }
        let room = NAMES_A_PAGE - i64::try_from(names.folders.len()).unwrap_or(NAMES_A_PAGE);
        if room > 0 {
            let begin = if kind == Kind::Database { last } else { DocumentId(Uuid::nil()) };
            names.databases = store::tree::named_databases(&mut tx, workspace, begin, room).await?;
        }
        tx.rollback().await?;
        let next = names.next_token().unwrap_or_default();
        Ok(NamePage { names: Some(names), next, position })
    }

    /// The changes after a position, consistent as of one feed position.
    pub(crate) async fn changes(&self, workspace: &str, after: u64) -> Result<TreeChanges, Error> {
        let workspace = parse(workspace)?;
        let head = self.context.feed.head(workspace).await?;
        if head <= after {
            return Ok(TreeChanges { position: head, head, ..TreeChanges::default() });
        }
        let mut tx = self.context.db.begin_read().await?;
        let head = feed::head(&mut tx, workspace).await?;
        let changes = store::tree::changed(&mut tx, workspace, after, MAX_CHANGES).await?;
        let (position, changed) = fitting(changes, head);
        let mut reader = TreeReader { tx: &mut tx, workspace, items: TreeItems::default() };
        for (_, kind, _) in STAGES {
            let ids: Vec<DocumentId> =
                changed.iter().filter(|(found, _)| *found == kind).map(|(_, id)| *id).collect();
            if !ids.is_empty() {
                reader.some(kind, &ids).await?;
            }
        }
        let items = reader.items;
        tx.rollback().await?;
        let live = items.keys();
        let gone = changed.into_iter().filter(|item| !live.contains(item)).collect();
        Ok(TreeChanges { position, head, items, gone })
    }
}

impl Names {
    /// The token of the next page, if this one is full.
    fn next_token(&self) -> Option<String> {
        if i64::try_from(self.folders.len() + self.databases.len()) != Ok(NAMES_A_PAGE) {
            return None;
        }
        match self.databases.last() {
            Some(last) => Some(format!("databases:{}", last.id)),
            None => self.folders.last().map(|last| format!("folders:{}", last.id)),
        }
    }
}

impl TreeItems {
    fn keys(&self) -> HashSet<(Kind, DocumentId)> {
        let folders = self.folders.iter().map(|one| (Kind::Folder, one.id.0));
        let files = self.files.iter().map(|one| (Kind::File, one.id.0));
        let databases = self.databases.iter().map(|one| (Kind::Database, one.id.0));
        let records = self.records.iter().map(|one| (Kind::Record, one.id.0));
        let memories = self.memories.iter().map(|one| (Kind::Memory, one.id.0));
        let all = folders.chain(files).chain(databases).chain(records).chain(memories);
        all.map(|(kind, id)| (kind, DocumentId(id))).collect()
    }
}

/// Reads items in one transaction.
struct TreeReader<'a> {
    tx: &'a mut Tx,
    workspace: WorkspaceId,
    items: TreeItems,
}

impl TreeReader<'_> {
    /// Reads a page of a kind. Returns the number of rows, and the id of the last.
    async fn page(
        &mut self,
        kind: Kind,
        after: DocumentId,
        limit: i64,
    ) -> Result<(i64, Option<DocumentId>), Error> {
        let (tx, workspace) = (&mut *self.tx, self.workspace);
        let which = TreeSelection::After(after, limit);
        let (found, last) = match kind {
            Kind::Folder => {
                let folders = store::tree::folders(tx, workspace, which).await?;
                let read = (folders.len(), folders.last().map(|folder| folder.id.0));
                self.items.folders.extend(folders);
                read
            }
            Kind::File => {
                let files = store::tree::files(tx, workspace, which).await?;
                let read = (files.len(), files.last().map(|file| file.id.0));
                self.items.files.extend(files);
                read
            }
            Kind::Database => {
                let ids = store::tree::databases_after(tx, workspace, after, limit).await?;
                self.databases(&ids).await?;
                (ids.len(), ids.last().map(|id| id.0))
            }
            Kind::Memory => {
                let ids = store::tree::memories_after(tx, workspace, after, limit).await?;
                let memories = store::tree::memories(tx, workspace, &ids).await?;
                self.items.memories.extend(memories);
                (ids.len(), ids.last().map(|id| id.0))
            }
            Kind::Record => {
                let records = store::tree::records(tx, workspace, which).await?;
                let read = (records.len(), records.last().map(|record| record.id.0));
                self.records(records).await?;
                read
            }
            Kind::Unspecified | Kind::SourceDocument | Kind::Ingested => (0, None),
        };
        Ok((i64::try_from(found).unwrap_or(i64::MAX), last.map(DocumentId)))
    }

    /// Reads the live items of a kind among these ids.
    async fn some(&mut self, kind: Kind, ids: &[DocumentId]) -> Result<(), Error> {
        let (tx, workspace) = (&mut *self.tx, self.workspace);
        let which = TreeSelection::Some(ids);
        match kind {
            Kind::Folder => self.items.folders.extend(store::tree::folders(tx, workspace, which).await?),
            Kind::File => self.items.files.extend(store::tree::files(tx, workspace, which).await?),
            Kind::Database => {
                let ids: Vec<DatabaseId> = ids.iter().map(|id| DatabaseId(id.0)).collect();
                self.databases(&ids).await?;
            }
            Kind::Memory => self.items.memories.extend(store::tree::memories(tx, workspace, ids).await?),
            Kind::Record => {
                let records = store::tree::records(tx, workspace, which).await?;
                self.records(records).await?;
            }
            Kind::Unspecified | Kind::SourceDocument | Kind::Ingested => {}
        }
        Ok(())
    }

    async fn databases(&mut self, ids: &[DatabaseId]) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let found = store::databases::get_many(self.tx.engine(), self.workspace, ids).await?;
        self.items.databases.extend(found.into_iter().map(tree_database));
        Ok(())
    }

    async fn records(&mut self, records: Vec<Record>) -> Result<(), Error> {
        if records.is_empty() {
            return Ok(());
        }
        let held: HashSet<DatabaseId> = records.iter().map(|record| record.database_id).collect();
        let held: Vec<DatabaseId> = held.into_iter().collect();
        let databases = store::databases::get_many(self.tx.engine(), self.workspace, &held).await?;
        let rendered = match records.len() {
            ..=MAX_INLINE => render(&databases, records),
            _ => {
                let rendered = tokio::task::spawn_blocking(move || render(&databases, records)).await;
                rendered.map_err(|_| sql::Error::corrupt("records could not be rendered"))?
            }
        };
        self.items.records.extend(rendered);
        Ok(())
    }
}

/// Renders the records whose databases are live.
fn render(databases: &[Database], records: Vec<Record>) -> Vec<TreeRecord> {
    let render = |record: Record| {
        let database = databases.iter().find(|database| database.id == record.database_id)?;
        let (whole, bare) = front_matter::both(database, &record.values);
        Some(TreeRecord {
            id: record.id,
            database_id: record.database_id,
            title: database.title_of(&record.values).chars().take(MAX_TITLE_CHARS).collect(),
            content_file_id: record.content_file_id,
            front_matter: TreeText::of(&whole),
            without_references: bare.map(|bare| TreeText::of(&bare)),
            updated_at: record.updated_at,
        })
    };
    records.into_iter().filter_map(render).collect()
}

fn tree_database(database: Database) -> TreeDatabase {
    TreeDatabase {
        id: database.id,
        folder_id: database.folder_id,
        schema: TreeText::of(&schema::text(&database)),
        name: database.name,
        description: database.description,
        updated_at: database.updated_at,
    }
}

/// The first changes that fit into one response: the last position, and the distinct items.
fn fitting(changes: Vec<(u64, Kind, DocumentId)>, head: u64) -> (u64, Vec<(Kind, DocumentId)>) {
    let mut seen = HashSet::new();
    let mut changed = Vec::new();
    let mut left = PAGE_WEIGHT;
    let mut position = head;
    for (at, kind, id) in changes {
        position = at;
        if seen.insert((kind, id)) {
            changed.push((kind, id));
            left -= STAGES.iter().find(|(_, found, _)| *found == kind).map_or(1, |(.., weight)| *weight);
        }
        if left <= 0 {
            break;
        }
    }
    (position, changed)
}

fn parse(workspace: &str) -> Result<WorkspaceId, Error> {
    workspace.parse().map_err(|_| Error::invalid("workspaceId", "invalid", wording::ID))
}

/// Decodes a page token: the stage, and the id before the page.
fn read_token(token: &str) -> Result<(usize, DocumentId), Error> {
    if token.is_empty() {
        return Ok((0, DocumentId(Uuid::nil())));
    }
    let read = || {
        let (name, id) = token.split_once(':')?;
        let stage = STAGES.iter().position(|(stage, ..)| *stage == name)?;
        Some((stage, id.parse().ok()?))
    };
    read().ok_or_else(invalid_token)
}

fn invalid_token() -> Error {
    Error::invalid("pageToken", "invalid", "send the token of the previous page as it came")
}
