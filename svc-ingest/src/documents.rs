//! Documents for retrieval: reading them for indexing, and confirming hits before they are returned.

use std::collections::HashMap;

use cairn_chassis::bodies::CorruptBody;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::doctor::index::Owned;
use cairn_chassis::feed::Kind;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::ids::{DocumentId, SourceId, WorkspaceId};

use crate::context::Context;
use crate::model::{Body, Document, DocumentRef, Key};
use crate::scope::Caller;
use crate::{Error, store};

const MAX_READ: usize = 100;
const MAX_CONFIRMED: usize = 1_000;
/// Bytes of contents in one answer. At least one document is always returned, so that the reader makes progress.
const MAX_READ_BYTES: u64 = 16 * 1024 * 1024;

/// Documents for indexing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadDocuments {
    /// The existing ones, in the requested order.
    pub(crate) documents: Vec<(Document, String)>,
    /// How many references were processed, from the first on.
    pub(crate) read: usize,
}

/// The filter of a search.
#[derive(Debug, Clone, Default)]
pub(crate) struct Narrowing {
    /// Whether it requires folders or tags, which no document here has.
    pub(crate) names_place: bool,
    /// Empty: any kind.
    pub(crate) kinds: Vec<Kind>,
    /// Empty: any source, or none.
    pub(crate) source_ids: Vec<String>,
    pub(crate) updated_after: Option<Timestamp>,
    pub(crate) updated_before: Option<Timestamp>,
}

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Documents {
    context: Context,
}

impl Documents {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// Some documents of a workspace, for a service of the mesh.
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
            // Removed from the map, so that duplicates are returned once.
            if let Some(document) = reference.key().and_then(|key| live.remove(&key)) {
                bytes += document.size_bytes;
                found.push(document);
            }
        }
        Ok(ReadDocuments { documents: self.with_content(workspace, found).await?, read })
    }

    /// Those of some documents that there are and that the caller may see: it sees all or none, as they stand in no folder.
    pub(crate) async fn confirm(
        &self,
        caller: &Caller,
        refs: &[DocumentRef],
    ) -> Result<Vec<Document>, Error> {
        check_count(refs, MAX_CONFIRMED)?;
        if !caller.has_whole_workspace() {
            return Ok(Vec::new());
        }
        let mut live = self.live(caller.workspace, refs).await?;
        Ok(refs.iter().filter_map(|reference| live.remove(&reference.key()?)).collect())
    }

    /// The documents that the caller may see and that match a filter.
    pub(crate) async fn select(
        &self,
        caller: &Caller,
        narrowing: &Narrowing,
    ) -> Result<Vec<DocumentId>, Error> {
        if !caller.has_whole_workspace() || narrowing.names_place {
            return Ok(Vec::new());
        }
        let wants = |kind: Kind| narrowing.kinds.is_empty() || narrowing.kinds.contains(&kind);
        let after = narrowing.updated_after.unwrap_or(Timestamp::from_micros(i64::MIN));
        let before = narrowing.updated_before.unwrap_or(Timestamp::from_micros(i64::MAX));
        let mut found = Vec::new();
        if wants(Kind::Ingested) && narrowing.source_ids.is_empty() {
            let db = &self.context.db;
            found.extend(store::ingest::select(db, caller.workspace, after, before).await?);
        }
        if wants(Kind::SourceDocument) {
            // An invalid id matches no source.
            let sources: Vec<SourceId> =
                narrowing.source_ids.iter().filter_map(|id| id.parse().ok()).collect();
            if sources.is_empty() == narrowing.source_ids.is_empty() {
                let db = &self.context.db;
                let of_sources =
                    store::source_views::select(db, caller.workspace, &sources, after, before).await?;
                found.extend(of_sources);
            }
        }
        Ok(found)
    }

    /// Those of some documents that there are, for a look at what an index holds of them.
    pub(crate) async fn owned(
        &self,
        workspace: WorkspaceId,
        refs: &[DocumentRef],
        with_text: bool,
    ) -> Result<Vec<Owned>, Error> {
        let mut owned = Vec::new();
        for (_, document) in self.live(workspace, refs).await? {
            // Of an entry of a catalog the index has its title.
            let is_text = with_text && !document.is_catalog_only();
            let is_blank = is_text && self.is_blank_text(workspace, &document.content_hash).await?;
            owned.push(Owned { id: document.id.0, content_hash: document.content_hash, is_blank });
        }
        Ok(owned)
    }

    /// Of a text that is damaged or missing, others tell.
    async fn is_blank_text(&self, workspace: WorkspaceId, hash: &str) -> Result<bool, Error> {
        let bodies = store::bodies::get_many(&self.context.db, workspace, &[hash]).await?;
        let is_blank =
            |text: String| text.chars().all(|character| character.is_whitespace() || character == '\u{feff}');
        Ok(bodies.into_iter().all(|body| Body::into_text(body).is_ok_and(is_blank)))
    }

    async fn live(
        &self,
        workspace: WorkspaceId,
        refs: &[DocumentRef],
    ) -> Result<HashMap<Key, Document>, Error> {
        let mut live = Vec::new();
        let ingested = ids_of(refs, Kind::Ingested);
        if !ingested.is_empty() {
            let found = store::ingest::get_many(&self.context.db, workspace, &ingested).await?;
            live.extend(found.into_iter().filter_map(Document::of));
        }
        let of_sources = ids_of(refs, Kind::SourceDocument);
        if !of_sources.is_empty() {
            let found = store::source_views::get_many(&self.context.db, workspace, &of_sources).await?;
            live.extend(found.into_iter().map(Document::from));
        }
        Ok(live.into_iter().map(|document| (document.key(), document)).collect())
    }

    /// Texts are immutable under their hash, so this second read is consistent with the first.
    async fn with_content(
        &self,
        workspace: WorkspaceId,
        found: Vec<Document>,
    ) -> Result<Vec<(Document, String)>, Error> {
        let with_text = found.iter().filter(|document| !document.is_catalog_only());
        let hashes: Vec<&str> = with_text.map(|document| document.content_hash.as_str()).collect();
        let mut texts = HashMap::with_capacity(hashes.len());
        if !hashes.is_empty() {
            for body in store::bodies::get_many(&self.context.db, workspace, &hashes).await? {
                texts.insert(body.hash.clone(), Body::into_text(body)?);
            }
        }
        let mut documents = Vec::with_capacity(found.len());
        for document in found {
            if document.is_catalog_only() {
                documents.push((document, String::new()));
                continue;
            }
            let text = texts.get(&document.content_hash).cloned();
            // Removed between the two reads, as the feed will report.
            let Some(text) = text else {
                if self.live(workspace, &[reference(&document)]).await?.is_empty() {
                    continue;
                }
                return Err(CorruptBody::missing(&document.content_hash).into());
            };
            documents.push((document, text));
        }
        Ok(documents)
    }
}

fn reference(document: &Document) -> DocumentRef {
    DocumentRef { kind: Some(document.kind), id: document.id.to_string() }
}

/// The ids of one kind among references.
fn ids_of(refs: &[DocumentRef], kind: Kind) -> Vec<DocumentId> {
    let keys = refs.iter().filter_map(DocumentRef::key);
    keys.filter(|(found, _)| *found == kind).map(|(_, id)| id).collect()
}

fn check_count(refs: &[DocumentRef], most: usize) -> Result<(), Error> {
    if refs.len() <= most {
        return Ok(());
    }
    Err(Error::invalid("refs", "out_of_range", wording::at_most(most, Unit::Documents)))
}
