//! The documents of this service for retrieval: their contents for the index, and the check of search results against
//! the current state and the scope of the caller.

use std::collections::HashMap;

use cairn_chassis::bodies::CorruptBody;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::doctor::index::Owned;
use cairn_chassis::feed::Kind;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::ids::{DocumentId, FolderId, WorkspaceId};

use crate::Error;
use crate::context::Context;
use crate::files::checked_tags;
use crate::model::{Body, Document};
use crate::records;
use crate::scope::Caller;
use crate::{folders, memories, store};

const MAX_READ: usize = 100;
const MAX_CONFIRMED: usize = 1_000;
/// The size limit of the contents of one response. At least one document is always returned, so that the reader makes
/// progress.
const MAX_READ_BYTES: u64 = 16 * 1024 * 1024;

/// A reference to a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentRef {
    /// Absent when the caller gave no valid kind.
    pub(crate) kind: Option<Kind>,
    pub(crate) id: String,
}

/// A parsed reference.
type Key = (Kind, DocumentId);

impl DocumentRef {
    fn key(&self) -> Option<Key> {
        Some((self.kind?, self.id.parse().ok()?))
    }
}

/// A live document, with its content if that was read with it.
#[derive(Debug)]
struct Live {
    document: Document,
    size_bytes: u64,
    /// Absent when the content is the body with the hash of the document.
    content: Option<String>,
    /// The folders of a quoted item: the document is visible only to callers that may see it.
    quoted: Option<Vec<FolderId>>,
}

/// Documents to be indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadDocuments {
    /// Live ones, in the order of the request.
    pub(crate) documents: Vec<(Document, String)>,
    /// The number of references processed, from the first on.
    pub(crate) read: usize,
}

/// The restriction of a search.
#[derive(Debug, Clone, Default)]
pub(crate) struct DocumentFilter {
    /// In this folder or below it.
    pub(crate) folder_id: Option<String>,
    /// Only files that have all of these tags.
    pub(crate) tags: Vec<String>,
    /// Empty: of any kind.
    pub(crate) kinds: Vec<Kind>,
    pub(crate) updated_after: Option<Timestamp>,
    pub(crate) updated_before: Option<Timestamp>,
}

/// The rules of documents on a store.
#[derive(Debug, Clone)]
pub(crate) struct Documents {
    context: Context,
}

impl Documents {
    pub(crate) fn new(context: Context) -> Self {
        Self { context }
    }

    /// Those of these documents that are live, for another service.
    pub(crate) async fn read(&self, workspace: &str, refs: &[DocumentRef]) -> Result<ReadDocuments, Error> {
        let workspace: WorkspaceId =
            workspace.parse().map_err(|_| Error::invalid("workspaceId", "invalid", wording::ID))?;
        check_count(refs, MAX_READ)?;
        let mut live = self.live(workspace, refs).await?;

        let mut found = Vec::new();
        let mut bytes = 0_u64;
        let mut read = 0;
        for reference in refs {
            if bytes > MAX_READ_BYTES {
                break;
            }
            read += 1;
            // Removed from the map, so that a duplicate reference is answered once.
            if let Some(document) = reference.key().and_then(|key| live.remove(&key)) {
                bytes += document.size_bytes;
                found.push(document);
            }
        }
        Ok(ReadDocuments { documents: self.with_content(workspace, found).await?, read })
    }

    /// Those of these documents that are live and in the scope of the caller, in their current state.
    pub(crate) async fn confirm(
        &self,
        caller: &Caller,
        refs: &[DocumentRef],
    ) -> Result<Vec<Document>, Error> {
        check_count(refs, MAX_CONFIRMED)?;
        let mut live = self.live(caller.workspace, refs).await?;
        live.retain(|_, found| {
            let may_quote = found.quoted.as_ref().is_none_or(|folders| caller.covers(folders));
            may_quote && caller.covers(&found.document.folders)
        });
        let confirmed = refs.iter().filter_map(|reference| live.remove(&reference.key()?));
        Ok(confirmed.map(|found| found.document).collect())
    }

    /// The live documents in the scope of the caller that match a restriction.
    pub(crate) async fn select(
        &self,
        caller: &Caller,
        narrowing: DocumentFilter,
    ) -> Result<Vec<DocumentId>, Error> {
        let tags = checked_tags(narrowing.tags)?;
        let below = match &narrowing.folder_id {
            Some(text) => Some(vec![folders::readable(&self.context.db, caller, "folderId", text).await?]),
            None => caller.listed().map(<[FolderId]>::to_vec),
        };
        let wants = |kind: Kind| narrowing.kinds.is_empty() || narrowing.kinds.contains(&kind);
        let within = store::documents::Restriction {
            workspace: caller.workspace,
            below: below.as_deref(),
            after: narrowing.updated_after.unwrap_or(Timestamp::from_micros(i64::MIN)),
            before: narrowing.updated_before.unwrap_or(Timestamp::from_micros(i64::MAX)),
        };
        let db = &self.context.db;
        let mut found = Vec::new();
        if wants(Kind::File) {
            found.extend(store::documents::files(db, &within, &tags).await?);
        }
        // Only files have tags.
        if wants(Kind::Record) && tags.is_empty() {
            found.extend(store::documents::records(db, &within).await?);
        }
        // A memory is in no folder; every scope sees that it exists.
        if wants(Kind::Memory) && tags.is_empty() && narrowing.folder_id.is_none() {
            found.extend(store::documents::memories(db, &within).await?);
        }
        Ok(found)
    }

    /// Those of these documents that are live, to compare an index with.
    pub(crate) async fn owned(
        &self,
        workspace: WorkspaceId,
        refs: &[DocumentRef],
        with_text: bool,
    ) -> Result<Vec<Owned>, Error> {
        let mut owned = Vec::new();
        for (_, live) in self.live(workspace, refs).await? {
            let (id, content_hash) = (live.document.id.0, live.document.content_hash.clone());
            let is_blank = match live.content {
                _ if !with_text => false,
                Some(content) => is_blank(&content),
                None => self.is_blank_body(workspace, &content_hash).await?,
            };
            owned.push(Owned { id, content_hash, is_blank });
        }
        Ok(owned)
    }

    /// A damaged or missing body is not blank: other checks report it.
    async fn is_blank_body(&self, workspace: WorkspaceId, hash: &str) -> Result<bool, Error> {
        let bodies = store::bodies::get_many(&self.context.db, workspace, &[hash]).await?;
        Ok(bodies.into_iter().all(|body| Body::into_text(body).is_ok_and(|text| is_blank(&text))))
    }

    async fn live(&self, workspace: WorkspaceId, refs: &[DocumentRef]) -> Result<HashMap<Key, Live>, Error> {
        let mut live = Vec::new();
        let files = ids_of(refs, Kind::File);
        if !files.is_empty() {
            let found = store::files::get_many(&self.context.db, workspace, &files).await?;
            live.extend(found.into_iter().map(|file| Live {
                size_bytes: file.size_bytes,
                document: file.into(),
                content: None,
                quoted: None,
            }));
        }
        let guidance = ids_of(refs, Kind::Memory);
        if !guidance.is_empty() {
            let found = store::memories::guidance(&self.context.db, workspace, &guidance).await?;
            live.extend(found.into_iter().map(memories::document).map(|(document, content)| Live {
                document,
                size_bytes: content.len() as u64,
                content: Some(content),
                quoted: None,
            }));
        }
        let records = ids_of(refs, Kind::Record);
        if !records.is_empty() {
            let found = records::documents(&self.context, workspace, &records).await?;
            live.extend(found.into_iter().map(|found| Live {
                size_bytes: found.content.len() as u64,
                document: found.document,
                content: Some(found.content),
                quoted: found.quoted,
            }));
        }
        Ok(live.into_iter().map(|found| ((found.document.kind, found.document.id), found)).collect())
    }

    /// A body is immutable under its hash, so this second read is consistent with the first.
    async fn with_content(
        &self,
        workspace: WorkspaceId,
        found: Vec<Live>,
    ) -> Result<Vec<(Document, String)>, Error> {
        let stored = found.iter().filter(|live| live.content.is_none());
        let hashes: Vec<&str> = stored.map(|live| live.document.content_hash.as_str()).collect();
        let mut texts = HashMap::with_capacity(hashes.len());
        if !hashes.is_empty() {
            for body in store::bodies::get_many(&self.context.db, workspace, &hashes).await? {
                texts.insert(body.hash.clone(), Body::into_text(body)?);
            }
        }
        let content_of = |document: &Document| {
            texts
                .get(&document.content_hash)
                .cloned()
                .ok_or_else(|| Error::from(CorruptBody::missing(&document.content_hash)))
        };
        let whole = |live: Live| match live.content {
            Some(content) => Ok((live.document, content)),
            None => content_of(&live.document).map(|content| (live.document, content)),
        };
        found.into_iter().map(whole).collect()
    }
}

fn is_blank(text: &str) -> bool {
    text.chars().all(|character| character.is_whitespace() || character == '\u{feff}')
}

/// The ids of one kind among references.
fn ids_of<T: From<uuid::Uuid>>(refs: &[DocumentRef], kind: Kind) -> Vec<T> {
    let keys = refs.iter().filter_map(DocumentRef::key);
    keys.filter(|(found, _)| *found == kind).map(|(_, id)| T::from(id.0)).collect()
}

fn check_count(refs: &[DocumentRef], max: usize) -> Result<(), Error> {
    if refs.len() <= max {
        return Ok(());
    }
    Err(Error::invalid("refs", "out_of_range", wording::at_most(max, Unit::Documents)))
}
