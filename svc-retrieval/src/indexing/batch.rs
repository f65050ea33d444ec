//! Changes that are applied to the index together.

use std::collections::{HashMap, HashSet};

use cairn_index::{Batch, Cursor};
use cairn_proto::document::v1::DocumentRef;
use cairn_proto::domain::Feed;
use cairn_proto::feed::v1::{Change, Kind, Op};
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1::IndexedDocument as IndexedOutcome;
use uuid::Uuid;

use crate::partition;

/// Changes that are read, cut and embedded at once: as many as the documents that ReadDocuments takes.
pub(super) const CHANGES_PER_READ: usize = 100;
/// A batch with this many chunks is committed: a larger one amortizes the cost of a commit no further and takes memory.
const FULL_BATCH_CHUNKS: usize = 2_000;

/// Changes of one feed, ready for the index.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) batch: Batch,
    /// Documents that could not be cut.
    pub(super) failed: Vec<IndexedOutcome>,
    /// Of the last change.
    pub(super) position: u64,
}

impl Prepared {
    /// Merges these changes with those that follow them.
    pub(super) fn then(mut self, later: Self) -> Self {
        // Every document of a change is among the deletions; the state that was read later wins.
        let read_again: HashSet<Uuid> = later.batch.deletions.iter().map(|(_, document)| *document).collect();
        self.batch.documents.retain(|document| !read_again.contains(&document.document));
        self.failed.retain(|outcome| document_of(outcome).is_none_or(|id| !read_again.contains(&id)));
        self.batch.documents.extend(later.batch.documents);
        self.batch.deletions.extend(later.batch.deletions);
        let mut cursors = later.batch.cursors;
        let is_left = |cursor: &Cursor| {
            cursors.iter().all(|later| (&later.feed, later.workspace) != (&cursor.feed, cursor.workspace))
        };
        let kept: Vec<Cursor> = self.batch.cursors.into_iter().filter(is_left).collect();
        cursors.extend(kept);
        self.failed.extend(later.failed);
        Self { batch: Batch { cursors, ..self.batch }, failed: self.failed, position: later.position }
    }

    /// Whether it is large enough to be committed.
    pub(super) fn is_full(&self) -> bool {
        self.batch.documents.iter().map(|document| document.chunks.len()).sum::<usize>() >= FULL_BATCH_CHUNKS
    }
}

fn document_of(outcome: &IndexedOutcome) -> Option<Uuid> {
    Uuid::try_parse(&outcome.r#ref.as_ref()?.id).ok()
}

/// The deletions that a batch begins with, and the cursors that it advances.
///
/// Every touched document is deleted first: documents are replaced as a whole, never merged. A document of a source may have
/// been an entry of a catalog before, and the other way round, so it is deleted from both partitions.
pub(super) fn removals(
    feed: Feed,
    workspace: WorkspaceId,
    touched: &[(Uuid, DocumentRef)],
    position: u64,
) -> (Vec<(Uuid, Uuid)>, Vec<Cursor>) {
    let mut deletions: Vec<_> = touched.iter().map(|(document, _)| (workspace.0, *document)).collect();
    let mut cursors = vec![Cursor { feed: feed.as_str().to_owned(), workspace: workspace.0, position }];
    let of_sources = touched.iter().filter(|(_, reference)| reference.kind() == Kind::SourceDocument);
    let catalog = partition::of(workspace, true);
    let before = deletions.len();
    deletions.extend(of_sources.map(|(document, _)| (catalog, *document)));
    if deletions.len() > before {
        // An engine without transactions orders concurrent writes by this cursor.
        cursors.push(Cursor { feed: format!("{feed}/catalog"), workspace: catalog, position });
    }
    (deletions, cursors)
}

/// The documents that changes name, each once. Folders and databases are not indexed as documents.
pub(super) fn touched_documents(changes: &[Change]) -> Vec<(Uuid, DocumentRef)> {
    let mut touched: HashMap<Uuid, DocumentRef> = HashMap::new();
    for change in changes {
        let indexed = match change.kind() {
            Kind::File | Kind::Memory | Kind::Record | Kind::SourceDocument | Kind::Ingested => true,
            Kind::Folder | Kind::Database | Kind::Unspecified => false,
        };
        let known = matches!(change.op(), Op::Upsert | Op::Delete);
        if let (true, true, Ok(id)) = (indexed, known, Uuid::try_parse(&change.item_id)) {
            touched.insert(id, DocumentRef { kind: change.kind, id: change.item_id.clone() });
        }
    }
    touched.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use cairn_index::words::Language;
    use cairn_index::{IndexedChunk, IndexedDocument};

    use super::*;

    const WORKSPACE: WorkspaceId = WorkspaceId(Uuid::from_u128(1));

    fn document(id: u128, content_hash: &str, chunks: usize) -> IndexedDocument {
        let chunk = IndexedChunk {
            text: String::new(),
            heading_path: Vec::new(),
            table_header: String::new(),
            start_line: 1,
            end_line: 1,
            embedding: Vec::new(),
            pieces: Vec::new(),
        };
        IndexedDocument {
            workspace: WORKSPACE.0,
            document: Uuid::from_u128(id),
            container: None,
            holder: None,
            kind: "file".to_owned(),
            title: String::new(),
            path: String::new(),
            tags: Vec::new(),
            language: Language::English,
            content_hash: content_hash.to_owned(),
            updated_at: 0,
            chunks: vec![chunk; chunks],
        }
    }

    fn reference(id: u128, kind: Kind) -> DocumentRef {
        DocumentRef { kind: kind.into(), id: Uuid::from_u128(id).to_string() }
    }

    /// Changes of some documents up to a position, of which these were found.
    fn prepared(position: u64, kind: Kind, touched: &[u128], documents: Vec<IndexedDocument>) -> Prepared {
        let touched: Vec<_> = touched.iter().map(|id| (Uuid::from_u128(*id), reference(*id, kind))).collect();
        let (deletions, cursors) = removals(Feed::Ingest, WORKSPACE, &touched, position);
        Prepared { batch: Batch { documents, deletions, cursors }, failed: Vec::new(), position }
    }

    fn hashes(prepared: &Prepared) -> Vec<&str> {
        prepared.batch.documents.iter().map(|document| document.content_hash.as_str()).collect()
    }

    #[test]
    fn what_was_read_later_is_true() {
        let first = vec![document(1, "1 old", 1), document(2, "2 old", 1), document(3, "3 old", 1)];
        let first = prepared(10, Kind::Ingested, &[1, 2, 3], first);
        // The second was replaced meanwhile, and the third is gone.
        let second =
            prepared(20, Kind::Ingested, &[2, 3, 4], vec![document(2, "2 new", 1), document(4, "4", 1)]);
        let both = first.then(second);
        assert_eq!(hashes(&both), ["1 old", "2 new", "4"]);
        assert_eq!(both.position, 20);
        assert!(both.batch.deletions.contains(&(WORKSPACE.0, Uuid::from_u128(3))));
    }

    #[test]
    fn a_failure_holds_until_the_document_is_read_again() {
        let failure =
            |id| IndexedOutcome { r#ref: Some(reference(id, Kind::Ingested)), ..IndexedOutcome::default() };
        let first = prepared(10, Kind::Ingested, &[1, 2], Vec::new());
        let first = Prepared { failed: vec![failure(1), failure(2)], ..first };
        let both = first.then(prepared(20, Kind::Ingested, &[2], vec![document(2, "2", 1)]));
        assert_eq!(both.failed, [failure(1)]);
    }

    #[test]
    fn each_feed_is_left_where_its_last_change_is() {
        let sources = prepared(10, Kind::SourceDocument, &[1], Vec::new());
        let both = sources.then(prepared(20, Kind::Ingested, &[2], Vec::new()));
        let mut positions: Vec<_> =
            both.batch.cursors.iter().map(|cursor| (cursor.feed.as_str(), cursor.position)).collect();
        positions.sort_unstable();
        assert_eq!(positions, [("ingest", 20), ("ingest/catalog", 10)]);
    }

    #[test]
    fn many_chunks_are_worth_a_commit() {
        let few = prepared(10, Kind::Ingested, &[1], vec![document(1, "1", FULL_BATCH_CHUNKS - 1)]);
        assert!(!few.is_full());
        let more = prepared(20, Kind::Ingested, &[2], vec![document(2, "2", 1)]);
        assert!(few.then(more).is_full());
    }
}
