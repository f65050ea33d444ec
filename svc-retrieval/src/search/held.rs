//! What an index holds of one document.

use cairn_index::{ChunkId, Engine, StoredChunk};
use uuid::Uuid;

use crate::error::Error;

/// Places that one look asks for: each look narrows a range to a sixteenth.
const LOOKED_AT: u32 = 16;
/// More chunks than any document has: a megabyte of text has about a thousand.
const MOST_CHUNKS: u32 = 1 << 20;
/// Chunks that are read at once.
const READ_AT_ONCE: u32 = 256;

/// What an index holds of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// How many chunks, at least one.
    pub(crate) chunks: u32,
    /// How many of them have a vector.
    pub(crate) embedded: u32,
    /// Of the text that the chunks were cut from.
    pub(crate) content_hash: String,
}

/// What stands in a workspace's index, or in its catalogs', of a document; none when nothing does.
pub(crate) async fn held(
    engine: &dyn Engine,
    partition: Uuid,
    document: Uuid,
) -> Result<Option<Held>, Error> {
    let first = ChunkId { document, ordinal: 0 };
    let Some(content_hash) =
        engine.chunks(partition, vec![first]).await?.pop().map(|chunk| chunk.content_hash)
    else {
        return Ok(None);
    };
    let chunks = count(engine, partition, document).await?;
    let vectors = engine.vectors(partition, vec![document]).await?.remove(&document).unwrap_or_default();
    let embedded = u32::try_from(vectors.len()).unwrap_or(u32::MAX).min(chunks);
    Ok(Some(Held { chunks, embedded, content_hash }))
}

/// How many chunks there are of a document that has one. Their places follow each other from 0.
async fn count(engine: &dyn Engine, partition: Uuid, document: Uuid) -> Result<u32, Error> {
    // There is one at the first place, and none at the second.
    let (mut there, mut not_there) = (0, MOST_CHUNKS);
    let mut asked: Vec<u32> = (0..20).map(|power| 1 << power).collect();
    while there + 1 < not_there {
        let ids = asked.iter().map(|ordinal| ChunkId { document, ordinal: *ordinal }).collect();
        let found = engine.chunks(partition, ids).await?;
        let last = found.iter().map(|chunk| chunk.id.ordinal).max().unwrap_or(there);
        there = there.max(last);
        not_there = asked
            .iter()
            .copied()
            .filter(|ordinal| *ordinal > there)
            .min()
            .unwrap_or(not_there)
            .min(not_there);
        let step = ((not_there - there) / LOOKED_AT).max(1);
        asked =
            (1..LOOKED_AT).map(|part| there + part * step).filter(|ordinal| *ordinal < not_there).collect();
    }
    Ok(there + 1)
}

/// The chunks of a document in their order, the first so many of them.
pub(crate) async fn chunks(
    engine: &dyn Engine,
    partition: Uuid,
    document: Uuid,
    most: u32,
) -> Result<Vec<StoredChunk>, Error> {
    let mut chunks = Vec::new();
    let mut next = 0;
    while next < most {
        let end = (next + READ_AT_ONCE).min(most);
        let ids: Vec<ChunkId> = (next..end).map(|ordinal| ChunkId { document, ordinal }).collect();
        let asked = ids.len();
        let found = engine.chunks(partition, ids).await?;
        let is_last = found.len() < asked;
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
            let found = held(engine.as_ref(), WORKSPACE, Uuid::from_u128(size)).await.unwrap().unwrap();
            let chunks = u32::try_from(size).unwrap();
            assert_eq!(found, Held { chunks, embedded: 1, content_hash: format!("hash {size}") });
            let read = chunks_of(engine.as_ref(), size, 1_000).await;
            assert_eq!(read.len(), usize::try_from(size).unwrap());
            assert!(read.iter().zip(0..).all(|(chunk, place)| chunk.id.ordinal == place));
        }
        assert_eq!(chunks_of(engine.as_ref(), 513, 300).await.len(), 300);
        assert_eq!(held(engine.as_ref(), WORKSPACE, Uuid::from_u128(9)).await.unwrap(), None);
        assert_eq!(held(engine.as_ref(), Uuid::from_u128(2), Uuid::from_u128(3)).await.unwrap(), None);
    }

    async fn chunks_of(engine: &dyn Engine, id: u128, most: u32) -> Vec<StoredChunk> {
        chunks(engine, WORKSPACE, Uuid::from_u128(id), most).await.unwrap()
    }
}
