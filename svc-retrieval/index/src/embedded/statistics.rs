//! BM25 statistics over the corpus that a search may find: no document of another workspace, or of a folder that the caller cannot
//! see, changes a score (docs/adr/0033). Only live rows count, so that a score does not depend on which deleted rows a commit or
//! a merge has already purged.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{BitSet, DocId, DocSet as _, SegmentReader, TERMINATED, Term};
use uuid::Uuid;

use super::query::LexicalQuery;
use super::schema::Fields;
use super::view::{Part, View};
use crate::tuning::{
    CORPUS_CACHE_CAPACITY, COUNTED_ROWS, FREQUENCY_CACHE_CAPACITY, SEGMENT_FREQUENCY_CACHE_CAPACITY,
};

/// What a search may find: the chunks of a workspace, or of some of its containers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Corpus {
    workspace: Uuid,
    /// In ascending order.
    containers: Option<Arc<[Uuid]>>,
}

impl Corpus {
    pub(super) fn of(query: &LexicalQuery<'_>) -> Self {
        Self::new(query.workspace, query.containers)
    }

    pub(super) fn new(workspace: Uuid, containers: Option<&HashSet<Uuid>>) -> Self {
        let sorted = |containers: &HashSet<Uuid>| {
            let mut containers: Vec<Uuid> = containers.iter().copied().collect();
            containers.sort_unstable();
            Arc::from(containers)
        };
        Self { workspace, containers: containers.map(sorted) }
    }
}

/// A cache of values by corpus. It is cleared when it is full.
pub(super) struct CorpusCache<T>(Mutex<HashMap<Corpus, Arc<T>>>);

impl<T> Default for CorpusCache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> CorpusCache<T> {
    /// The cached value, computed if missing. Concurrent searches may compute it twice, with the same result.
    fn get_or_compute(
        &self,
        corpus: &Corpus,
        compute: impl FnOnce() -> tantivy::Result<T>,
    ) -> tantivy::Result<Arc<T>> {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(corpus).cloned();
        if let Some(cached) = cached {
            return Ok(cached);
        }
        let computed = Arc::new(compute()?);
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= CORPUS_CACHE_CAPACITY {
            cache.clear();
        }
        cache.insert(corpus.clone(), Arc::clone(&computed));
        Ok(computed)
    }
}

/// A cache of document frequencies by term: counting them reads posting lists, and most queries use the same words. Nothing is
/// added when it is full.
struct FrequencyCache {
    capacity: usize,
    entries: RwLock<HashMap<Term, u64>>,
}

impl FrequencyCache {
    fn with_capacity(capacity: usize) -> Self {
        Self { capacity, entries: RwLock::default() }
    }

    fn get_or_count(
        &self,
        term: &Term,
        count: impl FnOnce() -> tantivy::Result<u64>,
    ) -> tantivy::Result<u64> {
        let cached = self.entries.read().unwrap_or_else(PoisonError::into_inner).get(term).copied();
        if let Some(cached) = cached {
            return Ok(cached);
        }
        let rows = count()?;
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() < self.capacity {
            entries.insert(term.clone(), rows);
        }
        Ok(rows)
    }
}

/// The rows of one segment that belong to a corpus. Segments are immutable, so this is valid for every view that shares the segment;
/// rows that were deleted since the last commit are still included.
pub(super) struct Members {
    /// `None` for all rows of the segment.
    rows: Option<BitSet>,
    count: u32,
    tokens: u64,
    frequencies: FrequencyCache,
}

impl Members {
    fn read(segment: &SegmentReader, fields: &Fields, corpus: &Corpus) -> tantivy::Result<Self> {
        let rows = members(segment, fields, corpus)?;
        let lengths = segment.get_fieldnorms_reader(fields.words)?;
        let (mut count, mut tokens) = (0, 0);
        // Always the sum of the rounded lengths, even where the segment knows the exact total: scores would otherwise reveal whether
        // other workspaces share the segment.
        let is_member = |row: &DocId| rows.as_ref().is_none_or(|rows| rows.contains(*row));
        for row in (0..segment.max_doc()).filter(is_member) {
            count += 1;
            tokens += u64::from(lengths.fieldnorm(row));
        }
        Ok(Self {
            rows,
            count,
            tokens,
            frequencies: FrequencyCache::with_capacity(SEGMENT_FREQUENCY_CACHE_CAPACITY),
        })
    }

    fn contains(&self, row: DocId) -> bool {
        self.rows.as_ref().is_none_or(|rows| rows.contains(row))
    }

    fn doc_freq_of(&self, segment: &SegmentReader, term: &Term) -> tantivy::Result<u64> {
        let Some(rows) = &self.rows else {
            return Ok(u64::from(segment.inverted_index(term.field())?.doc_freq(term)?));
        };
        self.frequencies.get_or_count(term, || {
            let mut found = 0;
            each_row(segment, term, |row| found += u64::from(rows.contains(row)))?;
            Ok(found)
        })
    }
}

/// The rows of a corpus that no commit has deleted; `None` if these are all rows.
fn members(segment: &SegmentReader, fields: &Fields, corpus: &Corpus) -> tantivy::Result<Option<BitSet>> {
    let workspace = fields.workspace_term(corpus.workspace);
    let of_workspace = segment.inverted_index(workspace.field())?.doc_freq(&workspace)?;
    if of_workspace == segment.max_doc() && !segment.has_deletes() && corpus.containers.is_none() {
        return Ok(None);
    }
    let mut rows = BitSet::with_max_value(segment.max_doc());
    if of_workspace == 0 {
        return Ok(Some(rows));
    }
    let contained = match &corpus.containers {
        Some(containers) => Some(contained(segment, fields, containers)?),
        None => None,
    };
    each_row(segment, &workspace, |row| {
        if !segment.is_deleted(row) && contained.as_ref().is_none_or(|contained| contained.contains(row)) {
            rows.insert(row);
        }
    })?;
    Ok(Some(rows))
}

fn contained(segment: &SegmentReader, fields: &Fields, containers: &[Uuid]) -> tantivy::Result<BitSet> {
    let mut rows = BitSet::with_max_value(segment.max_doc());
    for container in containers {
        each_row(segment, &fields.container_term(*container), |row| {
            rows.insert(row);
        })?;
    }
    Ok(rows)
}

fn each_row(segment: &SegmentReader, term: &Term, mut each: impl FnMut(DocId)) -> tantivy::Result<()> {
    let lists = segment.inverted_index(term.field())?;
    let Some(mut list) = lists.read_postings(term, IndexRecordOption::Basic)? else {
        return Ok(());
    };
    let mut row = list.doc();
    while row != TERMINATED {
        each(row);
        row = list.advance();
    }
    Ok(())
}

/// The statistics of a corpus in one part of a view.
struct PartStatistics {
    members: Arc<Members>,
    /// The members that were deleted since the last commit, in ascending order.
    deleted: Vec<DocId>,
}

impl PartStatistics {
    fn of(part: &Part, fields: &Fields, corpus: &Corpus) -> tantivy::Result<Self> {
        let members =
            part.members().get_or_compute(corpus, || Members::read(&part.segment, fields, corpus))?;
        let mut deleted: Vec<DocId> = part.deleted().filter(|row| members.contains(*row)).collect();
        deleted.sort_unstable();
        Ok(Self { members, deleted })
    }

    fn live_rows(&self) -> u64 {
        u64::from(self.members.count).saturating_sub(self.deleted.len() as u64)
    }

    fn tokens(&self, part: &Part, field: Field) -> tantivy::Result<u64> {
        if self.deleted.is_empty() {
            return Ok(self.members.tokens);
        }
        let lengths = part.segment.get_fieldnorms_reader(field)?;
        let deleted: u64 = self.deleted.iter().map(|row| u64::from(lengths.fieldnorm(*row))).sum();
        Ok(self.members.tokens.saturating_sub(deleted))
    }

    /// How many live members contain a term. Never more than there are live members: tantivy relies on it.
    fn doc_freq_of(&self, part: &Part, term: &Term) -> tantivy::Result<u64> {
        if self.members.count == 0 {
            return Ok(0);
        }
        let all = self.members.doc_freq_of(&part.segment, term)?;
        if self.deleted.is_empty() || all == 0 {
            return Ok(all);
        }
        if self.deleted.len() <= COUNTED_ROWS {
            return Ok(all.saturating_sub(self.deleted_containing(part, term)?));
        }
        // With many deleted rows, assume that they contain the term as often as live ones, which is cheaper than counting.
        Ok(all * self.live_rows() / u64::from(self.members.count).max(1))
    }

    fn deleted_containing(&self, part: &Part, term: &Term) -> tantivy::Result<u64> {
        let lists = part.segment.inverted_index(term.field())?;
        let Some(mut list) = lists.read_postings(term, IndexRecordOption::Basic)? else {
            return Ok(0);
        };
        let mut held = 0;
        for row in &self.deleted {
            let reached = if list.doc() < *row { list.seek(*row) } else { list.doc() };
            held += u64::from(reached == *row);
        }
        Ok(held)
    }
}

/// The BM25 statistics of a corpus in one view.
pub(super) struct CorpusStatistics {
    /// One for each part of the view, in their order.
    parts: Vec<PartStatistics>,
    rows: u64,
    tokens: u64,
    frequencies: FrequencyCache,
}

impl CorpusStatistics {
    fn count(view: &View, fields: &Fields, corpus: &Corpus) -> tantivy::Result<Self> {
        let mut parts = Vec::with_capacity(view.parts().len());
        let (mut rows, mut tokens) = (0, 0);
        for part in view.parts() {
            let statistics = PartStatistics::of(part, fields, corpus)?;
            rows += statistics.live_rows();
            tokens += statistics.tokens(part, fields.words)?;
            parts.push(statistics);
        }
        Ok(Self { parts, rows, tokens, frequencies: FrequencyCache::with_capacity(FREQUENCY_CACHE_CAPACITY) })
    }
}

/// Provides BM25 with statistics over the live rows of a corpus.
pub(super) struct LiveStatistics<'a> {
    view: &'a View,
    words: Field,
    statistics: Arc<CorpusStatistics>,
}

impl<'a> LiveStatistics<'a> {
    pub(super) fn new(view: &'a View, fields: &Fields, corpus: &Corpus) -> tantivy::Result<Self> {
        let statistics =
            view.statistics().get_or_compute(corpus, || CorpusStatistics::count(view, fields, corpus))?;
        Ok(Self { view, words: fields.words, statistics })
    }

    /// Whether nothing can be found.
    pub(super) fn is_empty(&self) -> bool {
        self.statistics.rows == 0
    }

    /// How many live rows of one part contain a term, uncached.
    pub(super) fn doc_freq_in(&self, place: usize, term: &Term) -> tantivy::Result<u64> {
        match (self.statistics.parts.get(place), self.view.parts().get(place)) {
            (Some(statistics), Some(part)) => statistics.doc_freq_of(part, term),
            _ => Ok(0),
        }
    }
}

impl Bm25StatisticsProvider for LiveStatistics<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        Ok(if field == self.words { self.statistics.tokens } else { 0 })
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.statistics.rows)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.statistics.frequencies.get_or_count(term, || {
            (0..self.view.parts().len()).map(|place| self.doc_freq_in(place, term)).sum()
        })
    }
}
