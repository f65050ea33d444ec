//! An immutable snapshot of the index: the committed segments, the recent in-memory ones, and which of their rows were deleted.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use tantivy::columnar::Column;
use tantivy::schema::document::DocumentDeserialize;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::store::StoreReader;
use tantivy::{DocId, DocSet as _, Searcher, SegmentReader, TERMINATED, TantivyError, Term};
use uuid::Uuid;

use super::schema::{DOCUMENT_HIGH, DOCUMENT_LOW, ORDINAL, parse_language_key};
use super::statistics::{CorpusCache, CorpusStatistics, Members};
use crate::ChunkId;
use crate::words::Languages;

/// The view that new searches use.
#[derive(Clone)]
pub(super) struct CurrentView(Arc<RwLock<Arc<View>>>);

impl CurrentView {
    pub(super) fn new(view: View) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(view))))
    }

    pub(super) fn load(&self) -> Arc<View> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn store(&self, view: View) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
    }
}

/// An immutable snapshot of the index. A change creates another view that shares the segments.
pub(super) struct View {
    committed: Searcher,
    /// The committed segments in the order of the searcher, then the recent ones.
    parts: Vec<Part>,
    /// Indices of the parts, by descending number of rows.
    largest_first: Vec<usize>,
    statistics: CorpusCache<CorpusStatistics>,
}

/// A row of a view: the index of its part, and the row in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    pub(super) part: usize,
    pub(super) row: DocId,
}

impl View {
    /// The committed segments only.
    pub(super) fn committed(searcher: Searcher) -> Self {
        let parts =
            searcher.segment_readers().iter().map(|segment| Part::new(segment.clone(), None)).collect();
        Self::of(searcher, parts)
    }

    /// This view without the rows that have one of the `deleted` keys, and with a recent segment.
    pub(super) fn with(&self, deleted: &[Term], recent: Option<Part>) -> tantivy::Result<Self> {
        let mut parts = self.parts.clone();
        for part in &mut parts {
            part.delete(deleted)?;
        }
        parts.extend(recent);
        Ok(Self::of(self.committed.clone(), parts))
    }

    fn of(committed: Searcher, parts: Vec<Part>) -> Self {
        let mut largest_first: Vec<usize> = (0..parts.len()).collect();
        largest_first.sort_by_key(|place| Reverse(parts.get(*place).map_or(0, Part::rows)));
        Self { committed, parts, largest_first, statistics: CorpusCache::default() }
    }

    pub(super) fn searcher(&self) -> &Searcher {
        &self.committed
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The parts with their indices, largest first: a lookup most likely succeeds there, and a search that starts there gets a
    /// high score threshold early, so that it can skip most of the rest.
    pub(super) fn largest_first(&self) -> impl Iterator<Item = (usize, &Part)> {
        self.largest_first.iter().filter_map(|place| Some((*place, self.parts.get(*place)?)))
    }

    /// The cached statistics of corpora.
    pub(super) fn statistics(&self) -> &CorpusCache<CorpusStatistics> {
        &self.statistics
    }

    /// The languages of a workspace's chunks; deleted chunks may still count.
    pub(super) fn languages(&self, field: Field, workspace: Uuid) -> tantivy::Result<Languages> {
        let mut languages = Languages::default();
        for part in &self.parts {
            if let Some(found) = part.languages(field)?.get(&workspace) {
                languages = languages.union(*found);
            }
        }
        Ok(languages)
    }

    /// The live row of a key.
    pub(super) fn address(&self, key: &Term) -> tantivy::Result<Option<Address>> {
        for (place, part) in self.largest_first() {
            let mut found = None;
            part.for_each_live(key, |row| {
                found = Some(Address { part: place, row });
                Ok(())
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The keys that live rows have.
    pub(super) fn existing_keys(&self, keys: Vec<Term>) -> tantivy::Result<Vec<Term>> {
        let mut existing = Vec::new();
        for key in keys {
            if self.address(&key)?.is_some() {
                existing.push(key);
            }
        }
        Ok(existing)
    }

    /// The stored fields of a row, as far as `D` reads them.
    pub(super) fn document<D: DocumentDeserialize>(&self, address: Address) -> tantivy::Result<D> {
        let part = self.parts.get(address.part).ok_or_else(no_part)?;
        if let Some(store) = &part.store {
            return store.get(address.row);
        }
        let segment = u32::try_from(address.part).map_err(|_| no_part())?;
        self.committed.doc(tantivy::DocAddress::new(segment, address.row))
    }

    pub(super) fn chunk_id(&self, address: Address) -> tantivy::Result<ChunkId> {
        self.parts.get(address.part).ok_or_else(no_part)?.columns()?.chunk_id(address.row)
    }
}

fn no_part() -> TantivyError {
    TantivyError::InternalError("no such segment in the view".to_owned())
}

/// One segment of a view.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) segment: SegmentReader,
    columns: Arc<OnceLock<IdColumns>>,
    languages: Arc<OnceLock<HashMap<Uuid, Languages>>>,
    members: Arc<CorpusCache<Members>>,
    /// The document store of a recent segment; committed ones are read through the searcher.
    store: Option<Arc<StoreReader>>,
    /// Rows that were replaced or deleted since the last commit.
    deleted: Option<Arc<HashSet<DocId>>>,
}

impl Part {
    pub(super) fn new(segment: SegmentReader, store: Option<StoreReader>) -> Self {
        Self {
            segment,
            columns: Arc::default(),
            languages: Arc::default(),
            members: Arc::default(),
            store: store.map(Arc::new),
            deleted: None,
        }
    }

    pub(super) fn is_live(&self, row: DocId) -> bool {
        !self.segment.is_deleted(row) && self.deleted.as_ref().is_none_or(|deleted| !deleted.contains(&row))
    }

    /// Rows that were replaced or deleted since the last commit.
    pub(super) fn deleted(&self) -> impl Iterator<Item = DocId> {
        self.deleted.iter().flat_map(|deleted| deleted.iter().copied())
    }

    /// Which of the segment's rows belong to corpora.
    pub(super) fn members(&self) -> &CorpusCache<Members> {
        &self.members
    }

    /// The number of rows, including deleted ones.
    pub(super) fn rows(&self) -> u32 {
        self.segment.max_doc()
    }

    /// How many rows, including deleted ones, contain a term.
    pub(super) fn rows_with(&self, term: &Term) -> tantivy::Result<u32> {
        Ok(self.segment.inverted_index(term.field())?.doc_freq(term)?)
    }

    /// Calls `each` for the live rows that contain `term`.
    pub(super) fn for_each_live(
        &self,
        term: &Term,
        mut each: impl FnMut(DocId) -> tantivy::Result<()>,
    ) -> tantivy::Result<()> {
        let lists = self.segment.inverted_index(term.field())?;
        let Some(mut rows) = lists.read_postings(term, IndexRecordOption::Basic)? else {
            return Ok(());
        };
        let mut row = rows.doc();
        while row != TERMINATED {
            if self.is_live(row) {
                each(row)?;
            }
            row = rows.advance();
        }
        Ok(())
    }

    /// The languages of each workspace that has chunks here.
    fn languages(&self, field: Field) -> tantivy::Result<&HashMap<Uuid, Languages>> {
        if let Some(languages) = self.languages.get() {
            return Ok(languages);
        }
        let mut found: HashMap<Uuid, Languages> = HashMap::new();
        let lists = self.segment.inverted_index(field)?;
        let mut keys = lists.terms().stream()?;
        while keys.advance() {
            if let Some((workspace, language)) = parse_language_key(keys.key()) {
                let languages = found.entry(workspace).or_default();
                *languages = languages.with(language);
            }
        }
        Ok(self.languages.get_or_init(|| found))
    }

    pub(super) fn columns(&self) -> tantivy::Result<&IdColumns> {
        if let Some(columns) = self.columns.get() {
            return Ok(columns);
        }
        let opened = IdColumns::open(&self.segment)?;
        Ok(self.columns.get_or_init(|| opened))
    }

    fn delete(&mut self, keys: &[Term]) -> tantivy::Result<()> {
        let mut deleted = Vec::new();
        for key in keys {
            self.for_each_live(key, |row| {
                deleted.push(row);
                Ok(())
            })?;
        }
        if !deleted.is_empty() {
            Arc::make_mut(self.deleted.get_or_insert_default()).extend(deleted);
        }
        Ok(())
    }
}

/// The columns of one segment that make up a [`ChunkId`].
pub(super) struct IdColumns {
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

    pub(super) fn chunk_id(&self, row: DocId) -> tantivy::Result<ChunkId> {
        let document = Uuid::from_u64_pair(read(&self.document_high, row)?, read(&self.document_low, row)?);
        Ok(ChunkId { document, ordinal: self.ordinal(row)? })
    }

    pub(super) fn ordinal(&self, row: DocId) -> tantivy::Result<u32> {
        Ok(u32::try_from(read(&self.ordinal, row)?).unwrap_or(u32::MAX))
    }
}

fn read(column: &Column<u64>, row: DocId) -> tantivy::Result<u64> {
    column.first(row).ok_or_else(|| TantivyError::InternalError("a chunk without its id".to_owned()))
}
