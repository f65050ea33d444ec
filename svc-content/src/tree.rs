//! What a workspace's tree is made of, for the services of the mesh that draw it up elsewhere.
//!
//! A copy begins with pages of everything, which are read one after the other while the workspace changes, and is made
//! exact by the changes since the first page. It is kept current by the changes since then: each names items, and what is
//! told of an item is how it stands now.

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
use crate::store::tree::Which;
use crate::{Error, store};

/// Folders and files on a page; the others count for more, as they take more to read.
const PAGE_WEIGHT: i64 = 5_000;
/// Names on a page of them alone.
const NAMES_A_PAGE: i64 = 10_000;
/// What has a name that others are found by.
const NAMED: [Kind; 2] = [Kind::Folder, Kind::Database];
/// Entries of the feed that one answer looks at.
const MAX_CHANGES: i64 = 2_000;
/// Rendering more records than that takes long enough to hold up other requests on the same thread.
const MAX_INLINE: usize = 32;
const MAX_TITLE_CHARS: usize = 300;

/// A part of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TreeItems {
    pub(crate) folders: Vec<TreeFolder>,
    pub(crate) files: Vec<TreeFile>,
    pub(crate) databases: Vec<TreeDatabase>,
    pub(crate) records: Vec<TreeRecord>,
    pub(crate) memories: Vec<TreeMemory>,
}

/// A page of everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreePage {
    pub(crate) items: TreeItems,
    /// Empty after the last page.
    pub(crate) next: String,
    /// The position of the feed that the page shows at least.
    pub(crate) position: u64,
}

/// What changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TreeChanges {
    /// Up to here.
    pub(crate) position: u64,
    pub(crate) head: u64,
    pub(crate) items: TreeItems,
    pub(crate) gone: Vec<(Kind, DocumentId)>,
}

/// What others are found by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) folders: Vec<TreeFolder>,
    pub(crate) databases: Vec<NamedDatabase>,
}

/// A page of names: of folders, then of databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamePage {
    /// Absent where none has changed.
    pub(crate) names: Option<Names>,
    /// Empty after the last page.
    pub(crate) next: String,
    /// The position of the feed that the page shows at least.
    pub(crate) position: u64,
}

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Trees {
    context: Context,
}

/// The kinds in the order of the pages, what precedes others first.
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

    /// A page of everything, each page of one moment.
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

    /// A page of the names of all folders and databases, each page of one moment; none where none has changed since a
    /// position.
    pub(crate) async fn names(&self, workspace: &str, after: u64, token: &str) -> Result<NamePage, Error> {
        let workspace = parse(workspace)?;
        let (stage, last) = read_token(token)?;
        let kind = STAGES.get(stage).map(|(_, kind, _)| *kind).filter(|kind| NAMED.contains(kind));
        let kind = kind.ok_or_else(invalid_token)?;
        let mut tx = self.context.db.begin_read().await?;
        let position = feed::head(&mut tx, workspace).await?;
        let is_known = token.is_empty()
            && (1..=position).contains(&after)
            && !store::tree::names_changed(&mut tx, workspace, after).await?;
        if is_known {
            tx.rollback().await?;
            return Ok(NamePage { names: None, next: String::new(), position });
        }
        let mut names = Names::default();
        if kind == Kind::Folder {
            let which = Which::After(last, NAMES_A_PAGE);
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

    /// What changed after a position, of one moment.
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
    /// Of the page after a full one of these.
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

/// Gathers items in one transaction.
struct TreeReader<'a> {
    tx: &'a mut Tx,
    workspace: WorkspaceId,
    items: TreeItems,
}

impl TreeReader<'_> {
    /// Gathers a page of a kind: how many rows there were, and the id of the last.
    async fn page(
        &mut self,
        kind: Kind,
        after: DocumentId,
        limit: i64,
    ) -> Result<(i64, Option<DocumentId>), Error> {
        let (tx, workspace) = (&mut *self.tx, self.workspace);
        let which = Which::After(after, limit);
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

    /// Gathers those of some items of a kind that live.
    async fn some(&mut self, kind: Kind, ids: &[DocumentId]) -> Result<(), Error> {
        let (tx, workspace) = (&mut *self.tx, self.workspace);
        let which = Which::Some(ids);
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

/// Those whose databases are there.
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

/// As many of the changes, from the first on, as one answer carries: the last position, and the items, each once.
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

/// The stage, and the id that precedes the page.
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
