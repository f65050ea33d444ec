//! Texts outside of the index that are ranked like indexed ones: live answers of providers, and past versions of files. They exist
//! for one answer only.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cairn_browse::PastFile;
use cairn_chassis::call::Call;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::Problem;
use cairn_index::words::ContainerNames;
use cairn_index::{ChunkId, IndexedDocument, StoredChunk};
use cairn_proto::content::v1::FileType;
use cairn_proto::document::v1::{ConfirmedDocument, Document, DocumentRef, Format};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1::LiveDocument;
use uuid::Uuid;

use super::past::PastSearch;
use super::rank::{self, QueryVectors, Ranking};
use super::request::SearchRequest;
use super::tuning::{MAX_LIVE_BYTES, MAX_PASSAGES_PER_LIVE_TEXT, MAX_PAST_FILES};
use crate::error::Error;
use crate::generations::Generation;

/// Documents of one answer, cut as for the index.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    documents: Arc<Vec<IndexedDocument>>,
    known: HashMap<Uuid, Arc<ConfirmedDocument>>,
    has_vectors: bool,
    /// The names of their folders, by which they are found, too; `None` where they have none.
    names: Option<Arc<ContainerNames>>,
    /// Whether they are live answers of providers.
    pub(super) are_live: bool,
}

impl Fetched {
    /// Cuts the documents that match the request, within the byte limit, in the providers' order.
    pub(super) async fn cut(
        generation: &Generation,
        workspace: WorkspaceId,
        request: &SearchRequest,
        documents: Vec<LiveDocument>,
    ) -> Result<Self, Error> {
        let wanted = wanted(documents, request);
        if wanted.is_empty() {
            return Ok(Self::default());
        }
        let known = wanted.iter().map(|(id, document)| (*id, Arc::new(confirmed(document)))).collect();
        let texts = wanted.into_iter().map(|(_, document)| to_index(document)).collect();
        let documents = Arc::new(generation.indexer.index_now(workspace, texts).await?);
        let has_vectors = generation.indexer.embeds_at_once();
        Ok(Self { documents, known, has_vectors, names: None, are_live: true })
    }

    /// Cuts the past versions of changed files, within the limits, the smallest first; also returns how many were left out.
    pub(super) async fn of_past(
        generation: &Generation,
        workspace: WorkspaceId,
        call: &Call,
        then: &PastSearch,
    ) -> Result<(Self, usize), Error> {
        let past = then.workspace.clone();
        // Builds the paths of thousands of files: off the async threads.
        let mut files = tokio::task::spawn_blocking(move || past.changed_files()).await?;
        files.retain(|file| then.includes(file));
        files.sort_by_key(|file| (file.size, file.id));
        let mut room = u64::try_from(MAX_LIVE_BYTES).unwrap_or(u64::MAX);
        let fits = |file: &&PastFile| {
            let left = room.checked_sub(file.size);
            room = left.unwrap_or_default();
            left.is_some()
        };
        let fitting = files.iter().take(MAX_PAST_FILES).take_while(fits).count();
        let mut left_out = files.split_off(fitting).len();
        if files.is_empty() {
            return Ok((Self::default(), left_out));
        }
        let mut texts = then.workspace.texts(call, &files).await.map_err(Problem::from)?;
        let (mut known, mut documents) = (HashMap::new(), Vec::new());
        for file in files {
            let Some(text) = texts.remove(&file.id) else {
                left_out += 1;
                continue;
            };
            documents.push(of_file(&file, String::from_utf8_lossy(&text).into_owned()));
            known.insert(file.id, Arc::new(file.document));
        }
        let documents = Arc::new(generation.indexer.index_now(workspace, documents).await?);
        let has_vectors = generation.indexer.embeds_at_once();
        let names = Some(Arc::clone(&then.names));
        Ok((Self { documents, known, has_vectors, names, are_live: false }, left_out))
    }

    /// One hypothetical document, cut and confirmed.
    pub(super) fn of_one(
        documents: Arc<Vec<IndexedDocument>>,
        (id, known): (Uuid, Arc<ConfirmedDocument>),
    ) -> Self {
        let known = HashMap::from([(id, known)]);
        Self { documents, known, has_vectors: true, names: None, are_live: true }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Their passages, ranked by the same rules as those of the index.
    pub(super) async fn ranked(
        &self,
        workspace: WorkspaceId,
        request: &SearchRequest,
        vectors: QueryVectors,
        word_weight: f32,
    ) -> Result<Ranking, Error> {
        // Without vectors they are ranked by words.
        let vectors = if self.has_vectors { vectors } else { QueryVectors::default() };
        let among = (Arc::clone(&self.documents), self.names.clone());
        let ranking = rank::rank_among(among, workspace, request, vectors, word_weight).await?;
        Ok(ranking.with_at_most(MAX_PASSAGES_PER_LIVE_TEXT))
    }

    /// A passage of them with its document.
    pub(super) fn passage(&self, id: ChunkId) -> Option<(StoredChunk, Arc<ConfirmedDocument>)> {
        let known = self.known.get(&id.document)?;
        let document = self.documents.iter().find(|document| document.document == id.document)?;
        let chunk = document.chunks.get(usize::try_from(id.ordinal).ok()?)?;
        let stored = StoredChunk {
            id,
            container: document.container,
            kind: document.kind.clone(),
            title: document.title.clone(),
            heading_path: chunk.heading_path.clone(),
            table_header: chunk.table_header.clone(),
            text: chunk.text.clone(),
            start_line: chunk.start_line,
            end_line: chunk.end_line,
            content_hash: document.content_hash.clone(),
            updated_at: document.updated_at,
        };
        Some((stored, Arc::clone(known)))
    }
}

/// The distinct documents that match the request, within the byte limit.
fn wanted(documents: Vec<LiveDocument>, request: &SearchRequest) -> Vec<(Uuid, LiveDocument)> {
    let mut seen = HashSet::new();
    let mut room = MAX_LIVE_BYTES;
    let mut wanted = Vec::with_capacity(documents.len());
    for document in documents {
        let Ok(id) = Uuid::try_parse(&document.id) else { continue };
        let updated_at = document.updated_at.as_ref().map(Timestamp::from_proto);
        // A document without a time matches no time filter.
        let is_in_time = match updated_at {
            Some(updated_at) => request.narrowing.includes_time(updated_at),
            None => request.narrowing.updated_after.is_none() && request.narrowing.updated_before.is_none(),
        };
        let Some(left) = room.checked_sub(document.content.len()).filter(|_| is_in_time) else { continue };
        if seen.insert(id) {
            room = left;
            wanted.push((id, document));
        }
    }
    wanted
}

fn reference(document: &LiveDocument) -> DocumentRef {
    DocumentRef { kind: Kind::SourceDocument.into(), id: document.id.clone() }
}

fn confirmed(document: &LiveDocument) -> ConfirmedDocument {
    ConfirmedDocument {
        r#ref: Some(reference(document)),
        title: document.title.clone(),
        path: document.path.clone(),
        content_hash: document.content_hash.clone(),
        updated_at: document.updated_at,
        source_id: Some(document.source_id.clone()),
        source_name: Some(document.source_name.clone()),
        provider: Some(document.provider.clone()),
        url: document.url.clone(),
        external_id: Some(document.external_id.clone()),
        ..ConfirmedDocument::default()
    }
}

fn to_index(document: LiveDocument) -> Document {
    Document {
        r#ref: Some(reference(&document)),
        title: document.title,
        format: document.format,
        content: document.content,
        content_hash: document.content_hash,
        updated_at: document.updated_at,
        path: document.path,
        source_id: Some(document.source_id),
        ..Document::default()
    }
}

fn of_file(file: &PastFile, content: String) -> Document {
    let format = match file.file_type {
        FileType::Markdown => Format::Markdown,
        FileType::Json => Format::Json,
        FileType::Yaml => Format::Yaml,
        FileType::Text | FileType::Unspecified => Format::Text,
    };
    let document = file.document.clone();
    Document {
        r#ref: document.r#ref,
        title: document.title,
        format: format.into(),
        content,
        content_hash: document.content_hash,
        folder_id: document.folder_id,
        updated_at: document.updated_at,
        path: document.path,
        tags: file.tags.clone(),
        ..Document::default()
    }
}

#[cfg(test)]
mod tests {
    use cairn_proto::retrieval::v1::SearchContextRequest;

    use super::*;

    fn document(number: u128, bytes: usize, updated_at: Option<i64>) -> LiveDocument {
        LiveDocument {
            id: Uuid::from_u128(number).to_string(),
            content: "x".repeat(bytes),
            updated_at: updated_at.map(|seconds| Timestamp::from_seconds(seconds).to_proto()),
            ..LiveDocument::default()
        }
    }

    fn kept(documents: Vec<LiveDocument>, request: SearchContextRequest) -> Vec<u128> {
        let request = SearchRequest::try_from(SearchContextRequest { query: "q".to_owned(), ..request });
        wanted(documents, &request.unwrap()).into_iter().map(|(id, _)| id.as_u128()).collect()
    }

    #[test]
    fn texts_are_taken_once_and_as_far_as_there_is_room() {
        let half = MAX_LIVE_BYTES / 2;
        let documents = vec![
            document(1, half, None),
            document(1, 1, None),
            document(2, half + 1, None),
            document(3, half, None),
            document(4, 1, None),
            LiveDocument { id: "none".to_owned(), ..LiveDocument::default() },
        ];
        assert_eq!(kept(documents, SearchContextRequest::default()), [1, 3]);
    }

    #[test]
    fn texts_of_another_time_are_left_out() {
        let documents = || vec![document(1, 1, Some(10)), document(2, 1, Some(20)), document(3, 1, None)];
        let after = SearchContextRequest {
            updated_after: Some(Timestamp::from_seconds(15).to_proto()),
            ..SearchContextRequest::default()
        };
        assert_eq!(kept(documents(), after), [2]);
        assert_eq!(kept(documents(), SearchContextRequest::default()), [1, 2, 3]);
    }
}
