//! Reads one state of the index: searches, exclusions, stored chunks, counts, stored vectors.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tantivy::collector::{DocSetCollector, TopDocs};
use tantivy::columnar::Column;
use tantivy::query::{BooleanQuery, ConstScoreQuery, Occur, PhraseQuery, Query, TermQuery, TermSetQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::tokenizer::{TextAnalyzer, TokenStream};
use tantivy::{
    DocAddress, DocId, DocSet, IndexReader, Searcher, SegmentReader, TERMINATED, TantivyDocument,
    TantivyError, Term,
};
use uuid::Uuid;

use super::exclusion::Exclusion;
use super::model::{ChunkId, Counts, Hit, LexicalQuery, StoredChunk, sort_hits};
use super::query::ParsedQuery;
use super::schema::{DOCUMENT_HIGH, DOCUMENT_LOW, Fields, ORDINAL};
use super::tuning::MOST_QUERY_WORDS;
use crate::vectors::{self, UnitVector, VectorSource};

type Clause = (Occur, Box<dyn Query>);

/// One state of the index: what is committed meanwhile does not show.
pub(super) struct Snapshot<'a> {
    pub(super) fields: &'a Fields,
    pub(super) analyzer: &'a TextAnalyzer,
    pub(super) searcher: Searcher,
}

impl Snapshot<'_> {
    pub(super) fn search(&self, query: &LexicalQuery<'_>) -> tantivy::Result<Vec<Hit>> {
        let mut clauses = self.wanted(query.words);
        if clauses.is_empty() || query.limit == 0 {
            return Ok(Vec::new());
        }
        clauses.push(filter(TermQuery::new(
            self.fields.workspace_term(query.workspace),
            IndexRecordOption::Basic,
        )));
        if let Some(containers) = query.containers {
            let terms = containers.iter().map(|container| self.fields.container_term(*container));
            clauses.push(filter(TermSetQuery::new(terms)));
        }
        for exclusion in self.unwanted(query.words) {
            clauses.push((Occur::MustNot, Box::new(Exclusion(exclusion))));
        }

        let best = TopDocs::with_limit(query.limit).order_by_score();
        let found = self.searcher.search(&BooleanQuery::new(clauses), &best)?;
        let ids = self.chunk_ids(found.iter().map(|(_, address)| *address))?;
        let mut hits: Vec<Hit> =
            found.into_iter().zip(ids).map(|((score, _), chunk)| Hit { chunk, score }).collect();
        sort_hits(&mut hits);
        Ok(hits)
    }

    pub(super) fn excluded(
        &self,
        workspace: Uuid,
        words: &ParsedQuery,
        chunks: &[ChunkId],
    ) -> tantivy::Result<HashSet<ChunkId>> {
        let exclusions = self.unwanted(words);
        if exclusions.is_empty() || chunks.is_empty() {
            return Ok(HashSet::new());
        }
        let candidates =
            TermSetQuery::new(chunks.iter().map(|chunk| self.fields.chunk_term(workspace, *chunk)));
        let query =
            BooleanQuery::intersection(vec![Box::new(candidates), Box::new(BooleanQuery::union(exclusions))]);
        let found = self.searcher.search(&query, &DocSetCollector)?;
        Ok(self.chunk_ids(found.into_iter())?.into_iter().collect())
    }

    pub(super) fn chunks(&self, workspace: Uuid, ids: &[ChunkId]) -> tantivy::Result<Vec<StoredChunk>> {
        let mut chunks = Vec::with_capacity(ids.len());
        for id in ids {
            if let Some(address) = self.address(&self.fields.chunk_term(workspace, *id))? {
                let stored: TantivyDocument = self.searcher.doc(address)?;
                chunks.push(self.fields.decode(*id, &stored));
            }
        }
        Ok(chunks)
    }

    pub(super) fn counts(&self, workspace: Uuid) -> tantivy::Result<Counts> {
        let term = self.fields.workspace_term(workspace);
        let mut counts = Counts::default();
        for segment in self.searcher.segment_readers() {
            let ordinals = segment.fast_fields().u64(ORDINAL)?;
            for_each_living(segment, &term, |row| {
                counts.chunks += 1;
                // Each document has exactly one first chunk.
                counts.documents += u64::from(ordinals.first(row) == Some(0));
                Ok(())
            })?;
        }
        Ok(counts)
    }

    /// What a chunk must hold; empty if the query names nothing.
    fn wanted(&self, words: &ParsedQuery) -> Vec<Clause> {
        let phrases = words.phrases().iter().filter_map(|phrase| self.phrase(phrase));
        let mut clauses: Vec<Clause> = phrases.map(|phrase| (Occur::Must, phrase)).collect();
        let mut terms: Vec<Box<dyn Query>> = Vec::new();
        let looked_up = words.words().iter().flat_map(|word| self.analysed(word)).take(MOST_QUERY_WORDS);
        for (_, word) in looked_up {
            for field in self.fields.words() {
                let term = Term::from_field_text(field, &word);
                terms.push(Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)));
            }
        }
        if !terms.is_empty() {
            // With a phrase, plain words only add to the score.
            let occur = if clauses.is_empty() { Occur::Must } else { Occur::Should };
            clauses.push((occur, Box::new(BooleanQuery::union(terms))));
        }
        clauses
    }

    /// What a chunk may not hold. An excluded `a-b` is the phrase, not either word.
    fn unwanted(&self, words: &ParsedQuery) -> Vec<Box<dyn Query>> {
        words.excluded().iter().filter_map(|excluded| self.phrase(excluded)).collect()
    }

    /// The words in a row in any one field; none if only stop words remain.
    fn phrase(&self, phrase: &str) -> Option<Box<dyn Query>> {
        let words: Vec<(usize, String)> = self.analysed(phrase).into_iter().take(MOST_QUERY_WORDS).collect();
        let [first, rest @ ..] = words.as_slice() else {
            return None;
        };
        let mut queries: Vec<Box<dyn Query>> = Vec::new();
        for field in self.fields.words() {
            let term = |word: &String| Term::from_field_text(field, word);
            if rest.is_empty() {
                queries.push(Box::new(TermQuery::new(term(&first.1), IndexRecordOption::WithFreqs)));
            } else {
                let terms = words.iter().map(|(position, word)| (*position, term(word))).collect();
                queries.push(Box::new(PhraseQuery::new_with_offset(terms)));
            }
        }
        Some(Box::new(BooleanQuery::union(queries)))
    }

    /// The words of a text with their positions, as they are indexed.
    fn analysed(&self, text: &str) -> Vec<(usize, String)> {
        // Reading needs the analyzer's buffers; its tables are shared by clones.
        let mut analyzer = self.analyzer.clone();
        let mut tokens = analyzer.token_stream(text);
        let mut words = Vec::new();
        while let Some(token) = tokens.next() {
            words.push((token.position, token.text.clone()));
        }
        words
    }

    /// The living row of a key.
    fn address(&self, key: &Term) -> tantivy::Result<Option<DocAddress>> {
        for (ordinal, segment) in (0..).zip(self.searcher.segment_readers()) {
            let mut found = None;
            for_each_living(segment, key, |row| {
                found = Some(DocAddress::new(ordinal, row));
                Ok(())
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn chunk_ids(&self, addresses: impl Iterator<Item = DocAddress>) -> tantivy::Result<Vec<ChunkId>> {
        let mut columns: HashMap<u32, IdColumns> = HashMap::new();
        let mut ids = Vec::new();
        for address in addresses {
            let columns = match columns.entry(address.segment_ord) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    entry.insert(IdColumns::open(self.searcher.segment_reader(address.segment_ord))?)
                }
            };
            ids.push(columns.chunk_id(address.doc_id)?);
        }
        Ok(ids)
    }
}

/// The columns of one segment that make up a [`ChunkId`].
struct IdColumns {
    document_high: Column<u64>,
    document_low: Column<u64>,
    ordinal: Column<u64>,
}

impl IdColumns {
    fn open(segment: &SegmentReader) -> tantivy::Result<Self> {
        let columns = segment.fast_fields();
        Ok(Self {
            document_high: columns.u64(DOCUMENT_HIGH)?,
            document_low: columns.u64(DOCUMENT_LOW)?,
            ordinal: columns.u64(ORDINAL)?,
        })
    }

    fn chunk_id(&self, row: DocId) -> tantivy::Result<ChunkId> {
        let read = |column: &Column<u64>| {
            column.first(row).ok_or_else(|| TantivyError::InternalError("a chunk without its id".to_owned()))
        };
        let document = Uuid::from_u64_pair(read(&self.document_high)?, read(&self.document_low)?);
        let ordinal = u32::try_from(read(&self.ordinal)?).unwrap_or(u32::MAX);
        Ok(ChunkId { document, ordinal })
    }
}

/// A condition that adds nothing to the score.
fn filter(query: impl Query) -> Clause {
    (Occur::Must, Box::new(ConstScoreQuery::new(Box::new(query), 0.0)))
}

/// Calls `each` for the rows of a segment that hold `term` and are not deleted.
fn for_each_living(
    segment: &SegmentReader,
    term: &Term,
    mut each: impl FnMut(DocId) -> tantivy::Result<()>,
) -> tantivy::Result<()> {
    let lists = segment.inverted_index(term.field())?;
    let Some(mut rows) = lists.read_postings(term, IndexRecordOption::Basic)? else {
        return Ok(());
    };
    let mut row = rows.doc();
    while row != TERMINATED {
        if !segment.is_deleted(row) {
            each(row)?;
        }
        row = rows.advance();
    }
    Ok(())
}

/// The vectors stored beside the chunks.
#[derive(Clone)]
pub(super) struct StoredVectors {
    pub(super) fields: Arc<Fields>,
    pub(super) reader: IndexReader,
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
        each: &mut dyn FnMut(ChunkId, Option<Uuid>, UnitVector),
    ) -> tantivy::Result<()> {
        let term = self.fields.workspace_term(workspace);
        for segment in self.reader.searcher().segment_readers() {
            // Rows come in the order of the store, so one block in memory is enough.
            let store = segment.get_store_reader(1)?;
            for_each_living(segment, &term, |row| {
                let stored: TantivyDocument = store.get(row)?;
                if let Some((chunk, container, vector)) = self.fields.decode_vector(&stored) {
                    each(chunk, container, vector);
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
        each: &mut dyn FnMut(ChunkId, Option<Uuid>, UnitVector),
    ) -> Result<(), vectors::Error> {
        self.read(workspace, each).map_err(|error| vectors::Error::Load(Box::new(error)))
    }
}
