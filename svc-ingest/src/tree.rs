//! The tree below `/sources`, for services of the mesh that replicate a workspace's tree.
//!
//! A replica first reads a snapshot in pages, while the workspace changes, and catches up with the changes since the first page. Changes
//! name documents, and are returned with their current state.

use std::collections::{BTreeSet, HashMap};

use cairn_chassis::feed::{self, Kind};
use cairn_chassis::wording::{self, Unit};
use cairn_proto::ids::{DocumentId, WorkspaceId};
use uuid::Uuid;

use crate::context::Context;
use crate::model::{Document, Key};
use crate::{Error, store};

const PAGE: i64 = 2_000;
/// The prefix of page tokens for documents of sources.
const OF_SOURCES: char = 's';
const MAX_TEXTS: usize = 1_000;
/// Bytes of texts in one answer. At least one text is always returned, so that the reader makes progress.
const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;
/// Texts per query, of at most 5 MiB each.
const TEXTS_AT_ONCE: usize = 4;

/// A page of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreePage {
    pub(crate) documents: Vec<Document>,
    /// Empty after the last page.
    pub(crate) next: String,
    /// A feed position whose changes the page includes.
    pub(crate) position: u64,
}

/// A page of changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TreeChanges {
    /// Up to here.
    pub(crate) position: u64,
    pub(crate) head: u64,
    pub(crate) documents: Vec<Document>,
    pub(crate) gone: Vec<Key>,
}

/// Texts, by the index of their hash in the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    pub(crate) found: Vec<(usize, String)>,
    /// How many hashes were processed, from the first on.
    pub(crate) read: usize,
}

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Trees {
    context: Context,
}

impl Trees {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// A page of the snapshot. Each page is consistent by itself.
    pub(crate) async fn list(&self, workspace: &str, token: &str) -> Result<TreePage, Error> {
        let workspace = parse(workspace)?;
        let (is_of_sources, after) = read_token(token)?;
        let mut tx = self.context.db.begin_read().await?;
        let position = feed::head(&mut tx, workspace).await?;
        let mut documents = Vec::new();
        let mut next = String::new();
        let mut after_source = after;
        if !is_of_sources {
            let found = store::ingest::after(&mut tx, workspace, after, PAGE).await?;
            if is_full(found.len()) {
                next = found.last().map(|last| last.id.to_string()).unwrap_or_default();
            }
            documents.extend(found.into_iter().filter_map(Document::of));
            after_source = DocumentId(Uuid::nil());
        }
        // Behind those that were ingested come those of sources.
        if next.is_empty() {
            let found = store::source_views::after(&mut tx, workspace, after_source, PAGE).await?;
            if is_full(found.len()) {
                next = found.last().map(|last| format!("{OF_SOURCES}{}", last.id)).unwrap_or_default();
            }
            documents.extend(found.into_iter().map(Document::from));
        }
        tx.rollback().await?;
        Ok(TreePage { documents, next, position })
    }

    /// The documents that changed after a position, in their current state.
    pub(crate) async fn changes(&self, workspace: &str, after: u64) -> Result<TreeChanges, Error> {
        let workspace = parse(workspace)?;
        let page = self.context.feed.read(workspace, after, feed::MAX_READ).await?;
        let Some(last) = page.changes.last() else {
            return Ok(TreeChanges { position: page.head, head: page.head, ..TreeChanges::default() });
        };
        let position = last.position;
        let named = page
            .changes
            .iter()
            .filter_map(|change| Some((change.entry.kind, change.entry.item_id.parse::<DocumentId>().ok()?)));
        // In one order, and each once.
        let changed: BTreeSet<(i32, DocumentId)> = named.map(|(kind, id)| (i32::from(kind), id)).collect();
        let ids = |of: Kind| -> Vec<DocumentId> {
            changed.iter().filter(|(kind, _)| *kind == i32::from(of)).map(|(_, id)| *id).collect()
        };
        let mut tx = self.context.db.begin_read().await?;
        let ingested = store::ingest::some(&mut tx, workspace, &ids(Kind::Ingested)).await?;
        let of_sources = store::source_views::some(&mut tx, workspace, &ids(Kind::SourceDocument)).await?;
        tx.rollback().await?;
        let ingested = ingested.into_iter().filter_map(Document::of);
        let documents: Vec<Document> = ingested.chain(of_sources.into_iter().map(Document::from)).collect();
        let live: BTreeSet<(i32, DocumentId)> =
            documents.iter().map(|document| (i32::from(document.kind), document.id)).collect();
        let gone = changed.difference(&live);
        let gone = gone.filter_map(|(kind, id)| Some((Kind::try_from(*kind).ok()?, *id))).collect();
        Ok(TreeChanges { position, head: page.head, documents, gone })
    }

    /// Texts by their hashes.
    pub(crate) async fn texts(&self, workspace: &str, hashes: &[String]) -> Result<Texts, Error> {
        let workspace = parse(workspace)?;
        if hashes.len() > MAX_TEXTS {
            let message = wording::at_most(MAX_TEXTS, Unit::Entries);
            return Err(Error::invalid("contentHashes", "out_of_range", message));
        }
        let mut texts = Texts::default();
        let mut bytes = 0;
        for some in hashes.chunks(TEXTS_AT_ONCE) {
            if bytes > MAX_TEXT_BYTES {
                break;
            }
            let asked: Vec<&str> = some.iter().map(String::as_str).collect();
            let mut found = HashMap::with_capacity(asked.len());
            for body in store::bodies::get_many(&self.context.db, workspace, &asked).await? {
                found.insert(body.hash.clone(), body.into_text()?);
            }
            for hash in some {
                if let Some(text) = found.get(hash) {
                    bytes += text.len();
                    texts.found.push((texts.read, text.clone()));
                }
                texts.read += 1;
            }
        }
        Ok(texts)
    }
}

fn is_full(found: usize) -> bool {
    i64::try_from(found).is_ok_and(|found| found >= PAGE)
}

/// Whether a page begins among the documents of sources, and after which document.
fn read_token(token: &str) -> Result<(bool, DocumentId), Error> {
    if token.is_empty() {
        return Ok((false, DocumentId(Uuid::nil())));
    }
    let (is_of_sources, id) = match token.strip_prefix(OF_SOURCES) {
        Some(id) => (true, id),
        None => (false, token),
    };
    let message = "send the token of the previous page as it came";
    let id = id.parse().map_err(|_| Error::invalid("pageToken", "invalid", message))?;
    Ok((is_of_sources, id))
}

fn parse(workspace: &str) -> Result<WorkspaceId, Error> {
    workspace.parse().map_err(|_| Error::invalid("workspaceId", "invalid", wording::ID))
}
