//! The chunks of one document in an index.

use cairn_index::{ChunkId, Engine, StoredChunk};
use uuid::Uuid;

use crate::error::Error;

/// Probes in one call of the count: each call narrows the range to a sixteenth.
const PROBES: u32 = 16;
/// More chunks than any document has: a megabyte of text has about a thousand.
const MAX_CHUNKS: u32 = 1 << 20;
/// Chunks that are read at once.
const CHUNKS_PER_READ: u32 = 256;

/// A document as it is stored in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredDocument {
    /// How many chunks, at least one.
    pub(crate) chunks: u32,
    /// How many of them have a vector.
    pub(crate) embedded: u32,
    /// The hash of the text that the chunks were cut from.
    pub(crate) content_hash: String,
}

/// Finds a document in a partition: that of a workspace, or that of its catalogs.
pub(crate) async fn find(
    engine: &dyn Engine,
    partition: Uuid,
    document: Uuid,
) -> Result<Option<StoredDocument>, Error> {
    let first = ChunkId { document, ordinal: 0 };
    let Some(content_hash) =
        engine.chunks(partition, vec![first]).await?.pop().map(|chunk| chunk.content_hash)
    else {
        return Ok(None);
    };
    let chunks = count(engine, partition, document).await?;
    let vectors = engine.vectors(partition, vec![document]).await?.remove(&document).unwrap_or_default();
    let embedded = u32::try_from(vectors.len()).unwrap_or(u32::MAX).min(chunks);
    Ok(Some(StoredDocument { chunks, embedded, content_hash }))
}

/// Counts the chunks of a document that has at least one. Ordinals are consecutive from 0, so this is a 16-ary search.
async fn count(engine: &dyn Engine, partition: Uuid, document: Uuid) -> Result<u32, Error> {
    // The invariant: ordinal `present` exists, and `absent` does not.
    let (mut present, mut absent) = (0, MAX_CHUNKS);
    let mut probes: Vec<u32> = (0..20).map(|power| 1 << power).collect();
    while present + 1 < absent {
        let ids = probes.iter().map(|ordinal| ChunkId { document, ordinal: *ordinal }).collect();
        let found = engine.chunks(partition, ids).await?;
        let last = found.iter().map(|chunk| chunk.id.ordinal).max().unwrap_or(present);
        present = present.max(last);
        absent =
            probes.iter().copied().filter(|ordinal| *ordinal > present).min().unwrap_or(absent).min(absent);
        let step = ((absent - present) / PROBES).max(1);
        probes = (1..PROBES).map(|part| present + part * step).filter(|ordinal| *ordinal < absent).collect();
    }
    Ok(present + 1)
}

/// The first `limit` chunks of a document, in order.
pub(crate) async fn chunks(
    engine: &dyn Engine,
    partition: Uuid,
    document: Uuid,
    limit: u32,
) -> Result<Vec<StoredChunk>, Error> {
    let mut chunks = Vec::new();
    let mut next = 0;
    while next < limit {
        let end = (next + CHUNKS_PER_READ).min(limit);
        let ids: Vec<ChunkId> = (next..end).map(|ordinal| ChunkId { document, ordinal }).collect();
        let requested = ids.len();
        let found = engine.chunks(partition, ids).await?;
        let is_last = found.len() < requested;
        chunks.extend(found);
        if is_last {
            break;
        }
        next = end;
    }
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use cairn_embed::EmbedderIdentity;
    use cairn_index::words::Language;
    use cairn_index::{Batch, EngineFactory as _, FolderFactory, IndexedChunk, IndexedDocument};

    use super::*;

    const WORKSPACE: Uuid = Uuid::from_u128(1);

    fn document(id: u128, chunks: usize, embedded: usize) -> IndexedDocument {
        let chunk = |place: usize| IndexedChunk {
            text: format!("passage {place}\n"),
            heading_path: Vec::new(),
            table_header: String::new(),
            start_line: 1,
            end_line: 1,
            embedding: if place < embedded { vec![0.6, 0.8] } else { vec![0.0, 0.0] },
            pieces: Vec::new(),
        };
        IndexedDocument {
            workspace: WORKSPACE,
            document: Uuid::from_u128(id),
            container: None,
            holder: None,
            kind: "KIND_FILE".to_owned(),
            title: "t".to_owned(),
            path: "/t.md".to_owned(),
            tags: Vec::new(),
            language: Language::English,
            content_hash: format!("hash {id}"),
            updated_at: 0,
            chunks: (0..chunks).map(chunk).collect(),
        }
    }

    #[tokio::test]
    async fn every_number_of_chunks_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let identity =
            EmbedderIdentity { embedder: "test".to_owned(), dimensions: 2, origin: "test".to_owned() };
        let engine = FolderFactory::open(folder.path()).unwrap().open(&identity).await.unwrap();
        let sizes = [1, 2, 3, 16, 17, 31, 32, 33, 300, 513];
        let documents = sizes.iter().map(|size| document(*size, usize::try_from(*size).unwrap(), 1));
        let batch = Batch { documents: documents.collect(), ..Batch::default() };
        engine.apply(batch).await.unwrap();
        for size in sizes {
            let found = find(engine.as_ref(), WORKSPACE, Uuid::from_u128(size)).await.unwrap().unwrap();
            let chunks = u32::try_from(size).unwrap();
            assert_eq!(found, StoredDocument { chunks, embedded: 1, content_hash: format!("hash {size}") });
            let read = chunks_of(engine.as_ref(), size, 1_000).await;
            assert_eq!(read.len(), usize::try_from(size).unwrap());
            assert!(read.iter().zip(0..).all(|(chunk, place)| chunk.id.ordinal == place));
        }
        assert_eq!(chunks_of(engine.as_ref(), 513, 300).await.len(), 300);
        assert_eq!(find(engine.as_ref(), WORKSPACE, Uuid::from_u128(9)).await.unwrap(), None);
        assert_eq!(find(engine.as_ref(), Uuid::from_u128(2), Uuid::from_u128(3)).await.unwrap(), None);
    }

    async fn chunks_of(engine: &dyn Engine, id: u128, limit: u32) -> Vec<StoredChunk> {
        chunks(engine, WORKSPACE, Uuid::from_u128(id), limit).await.unwrap()
    }
}
