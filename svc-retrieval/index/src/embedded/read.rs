//! Reads one view of the index: searches, exclusions, stored chunks, counts, stored vectors.

use std::collections::HashSet;
use std::sync::Arc;

use tantivy::query::{EnableScoring, Query as _};
use tantivy::{DocId, TantivyDocument};
use uuid::Uuid;

use super::collect;
use super::prefix;
use super::proximity;
use super::query::LexicalQuery;
use super::query_builder::QueryBuilder;
use super::schema::Fields;
use super::statistics::{Corpus, LiveStatistics};
use super::view::{Address, CurrentView, View};
use crate::ParsedQuery;
use crate::vectors::{Composed, VectorSource};
use crate::words::AnalysedQuery;
use crate::{ChunkId, Counts, EmbeddedChunk, Hit, StoredChunk, sort_hits};

/// A consistent view of the index: later changes are not visible in it.
pub(super) struct Snapshot<'a> {
    pub(super) fields: &'a Fields,
    pub(super) view: Arc<View>,
}

impl Snapshot<'_> {
    fn analysed(&self, workspace: Uuid, words: &ParsedQuery) -> tantivy::Result<AnalysedQuery> {
        Ok(AnalysedQuery::new(words, self.view.languages(self.fields.language, workspace)?))
    }

    pub(super) fn search(&self, query: &LexicalQuery<'_>) -> tantivy::Result<Vec<Hit>> {
        let analysed = self.analysed(query.workspace, query.words)?;
        let builder = QueryBuilder { fields: self.fields, analysed: &analysed };
        let statistics = LiveStatistics::new(&self.view, self.fields, &Corpus::of(query))?;
        let completions = prefix::completions(&self.view, &statistics, builder, query)?;
        let Some(compiled) = builder.compile(query, &completions) else {
            return Ok(Vec::new());
        };
        let mut best = collect::best(&self.view, &statistics, &compiled, query.limit)?;
        proximity::add(&self.view, &statistics, self.fields, &analysed.pairs, &mut best)?;
        let mut hits = Vec::with_capacity(best.len());
        for (score, address) in best {
            hits.push(Hit { chunk: self.view.chunk_id(address)?, score });
        }
        sort_hits(&mut hits);
        Ok(hits)
    }

    pub(super) fn excluded(
        &self,
        workspace: Uuid,
        words: &ParsedQuery,
        chunks: &[ChunkId],
    ) -> tantivy::Result<HashSet<ChunkId>> {
        let analysed = self.analysed(workspace, words)?;
        let builder = QueryBuilder { fields: self.fields, analysed: &analysed };
        let Some(query) = builder.excluded(workspace, chunks) else {
            return Ok(HashSet::new());
        };
        let weight = query.weight(EnableScoring::disabled_from_schema(&self.fields.schema))?;
        let mut excluded = HashSet::new();
        for part in self.view.parts() {
            let mut rows: Vec<DocId> = Vec::new();
            weight.for_each_no_score(&part.segment, &mut |found| rows.extend_from_slice(found))?;
            for row in rows.into_iter().filter(|row| part.is_live(*row)) {
                excluded.insert(part.columns()?.chunk_id(row)?);
            }
        }
        Ok(excluded)
    }

    /// The chunks that exist, in the given order.
    pub(super) fn chunks(&self, workspace: Uuid, ids: &[ChunkId]) -> tantivy::Result<Vec<StoredChunk>> {
        let mut found = Vec::with_capacity(ids.len());
        for (place, id) in ids.iter().enumerate() {
            if let Some(address) = self.view.address(&self.fields.chunk_term(workspace, *id))? {
                found.push((address, place, *id));
            }
        }
        // Adjacent chunks are often in one block, which is then decompressed once.
        found.sort_unstable_by_key(|(address, ..)| *address);
        let mut chunks = Vec::with_capacity(found.len());
        for (address, place, id) in found {
            chunks.push((place, self.fields.decode(id, self.view.document(address)?)));
        }
        chunks.sort_unstable_by_key(|(place, _)| *place);
        Ok(chunks.into_iter().map(|(_, chunk)| chunk).collect())
    }

    pub(super) fn counts(&self, workspace: Uuid) -> tantivy::Result<Counts> {
        let term = self.fields.workspace_term(workspace);
        let mut counts = Counts::default();
        for part in self.view.parts() {
            let columns = part.columns()?;
            part.for_each_live(&term, |row| {
                counts.chunks += 1;
                // Each document has exactly one first chunk.
                counts.documents += u64::from(columns.ordinal(row)? == 0);
                Ok(())
            })?;
        }
        Ok(counts)
    }

    pub(super) fn embedded(&self, workspace: Uuid, document: Uuid) -> tantivy::Result<Vec<EmbeddedChunk>> {
        let term = self.fields.document_term(workspace, document);
        let mut chunks = Vec::new();
        for (place, part) in self.view.parts().iter().enumerate() {
            part.for_each_live(&term, |row| {
                let address = Address { part: place, row };
                let stored: TantivyDocument = self.view.document(address)?;
                if let Some((id, _, Composed { vector, pieces })) = self.fields.decode_vector(&stored) {
                    let chunk = self.fields.decode(id, self.view.document(address)?);
                    chunks.push(EmbeddedChunk {
                        title: chunk.title,
                        heading_path: chunk.heading_path,
                        table_header: chunk.table_header,
                        text: chunk.text,
                        embedding: vector.to_f32(),
                        pieces: pieces.into_vec(),
                    });
                }
                Ok(())
            })?;
        }
        Ok(chunks)
    }
}

/// Loads the vectors that are stored with the chunks.
#[derive(Clone)]
pub(super) struct StoredVectors {
    pub(super) fields: Arc<Fields>,
    pub(super) current_view: CurrentView,
}

impl std::fmt::Debug for StoredVectors {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("StoredVectors")
    }
}

impl StoredVectors {
    fn read(
        &self,
        workspace: Uuid,
        each: &mut dyn FnMut(ChunkId, Option<Uuid>, Composed),
    ) -> tantivy::Result<()> {
        let term = self.fields.workspace_term(workspace);
        for part in self.current_view.load().parts() {
            // Rows come in the order of the store, so a cache of one block is enough.
            let store = part.segment.get_store_reader(1)?;
            part.for_each_live(&term, |row| {
                if let Some((chunk, container, composed)) = self.fields.decode_vector(&store.get(row)?) {
                    each(chunk, container, composed);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl VectorSource for StoredVectors {
    fn load(
        &self,
        workspace: Uuid,
        each: &mut dyn FnMut(ChunkId, Option<Uuid>, Composed),
    ) -> Result<(), crate::Error> {
        self.read(workspace, each).map_err(crate::Error::from)
    }
}
