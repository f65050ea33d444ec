//! The statistics of BM25 over what a search may find, and nothing else: no document of another workspace or of a folder
//! that the caller cannot see moves a score (docs/adr/0033). Only living rows count, so that a score does not depend on
//! which rows a commit or a merge has dropped already.

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

/// What one search may find: the chunks of a workspace, or of some of its containers.
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

/// What was counted for corpora, so that the next search need not count again. When it is full it begins anew.
pub(super) struct CorpusCache<T>(Mutex<HashMap<Corpus, Arc<T>>>);

impl<T> Default for CorpusCache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> CorpusCache<T> {
    /// Two searches at the same time may both count; the end is the same.
    fn get(&self, corpus: &Corpus, count: impl FnOnce() -> tantivy::Result<T>) -> tantivy::Result<Arc<T>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(corpus).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let counted = Arc::new(count()?);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= CORPUS_CACHE_CAPACITY {
            kept.clear();
        }
        kept.insert(corpus.clone(), Arc::clone(&counted));
        Ok(counted)
    }
}

/// How many rows hold each of the words that have been asked for. To find out is to read lists, and most questions use
/// the same words.
struct FrequencyCache {
    capacity: usize,
    entries: RwLock<HashMap<Term, u64>>,
}

impl FrequencyCache {
    fn with_capacity(capacity: usize) -> Self {
        Self { capacity, entries: RwLock::default() }
    }

    fn get(&self, term: &Term, count: impl FnOnce() -> tantivy::Result<u64>) -> tantivy::Result<u64> {
        let known = self.entries.read().unwrap_or_else(PoisonError::into_inner).get(term).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let rows = count()?;
        let mut kept = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < self.capacity {
            kept.insert(term.clone(), rows);
        }
        Ok(rows)
    }
}

/// The rows of one segment that belong to a corpus. A segment never changes, so that this holds for every view that
/// shares it; what is gone since the last commit is in it still.
pub(super) struct Members {
    /// None for every row of the segment.
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
        // Lengths as the index rounds them, also where the segment knows its sum: whether others share the segment
        // would show otherwise.
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

    fn holding(&self, segment: &SegmentReader, term: &Term) -> tantivy::Result<u64> {
        let Some(rows) = &self.rows else {
            return Ok(u64::from(segment.inverted_index(term.field())?.doc_freq(term)?));
        };
        self.frequencies.get(term, || {
            let mut found = 0;
            each_row(segment, term, |row| found += u64::from(rows.contains(row)))?;
            Ok(found)
        })
    }
}

/// The rows of a corpus that a commit has not dropped; none where these are all rows.
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

/// What a corpus has in one part of a view.
struct PartStatistics {
    members: Arc<Members>,
    /// The members that are gone since the last commit, in ascending order.
    gone: Vec<DocId>,
}

impl PartStatistics {
    fn of(part: &Part, fields: &Fields, corpus: &Corpus) -> tantivy::Result<Self> {
        let members = part.members().get(corpus, || Members::read(&part.segment, fields, corpus))?;
        let mut gone: Vec<DocId> = part.gone().filter(|row| members.contains(*row)).collect();
        gone.sort_unstable();
        Ok(Self { members, gone })
    }

    fn living(&self) -> u64 {
        u64::from(self.members.count).saturating_sub(self.gone.len() as u64)
    }

    fn tokens(&self, part: &Part, field: Field) -> tantivy::Result<u64> {
        if self.gone.is_empty() {
            return Ok(self.members.tokens);
        }
        let lengths = part.segment.get_fieldnorms_reader(field)?;
        let gone: u64 = self.gone.iter().map(|row| u64::from(lengths.fieldnorm(*row))).sum();
        Ok(self.members.tokens.saturating_sub(gone))
    }

    /// How many living members hold a term. Never more than there are: tantivy relies on it.
    fn holding(&self, part: &Part, term: &Term) -> tantivy::Result<u64> {
        if self.members.count == 0 {
            return Ok(0);
        }
        let all = self.members.holding(&part.segment, term)?;
        if self.gone.is_empty() || all == 0 {
            return Ok(all);
        }
        if self.gone.len() <= COUNTED_ROWS {
            return Ok(all.saturating_sub(self.gone_holding(part, term)?));
        }
        // Of many, the dead are taken to be like the living, which is cheaper than to look at them.
        Ok(all * self.living() / u64::from(self.members.count).max(1))
    }

    fn gone_holding(&self, part: &Part, term: &Term) -> tantivy::Result<u64> {
        let lists = part.segment.inverted_index(term.field())?;
        let Some(mut list) = lists.read_postings(term, IndexRecordOption::Basic)? else {
            return Ok(0);
        };
        let mut held = 0;
        for row in &self.gone {
            let reached = if list.doc() < *row { list.seek(*row) } else { list.doc() };
            held += u64::from(reached == *row);
        }
        Ok(held)
    }
}

/// What BM25 asks of a corpus in one view.
pub(super) struct CorpusStatistics {
    /// One for each part of the view, in their order.
    shares: Vec<PartStatistics>,
    rows: u64,
    tokens: u64,
    frequencies: FrequencyCache,
}

impl CorpusStatistics {
    fn count(view: &View, fields: &Fields, corpus: &Corpus) -> tantivy::Result<Self> {
        let mut shares = Vec::with_capacity(view.parts().len());
        let (mut rows, mut tokens) = (0, 0);
        for part in view.parts() {
            let share = PartStatistics::of(part, fields, corpus)?;
            rows += share.living();
            tokens += share.tokens(part, fields.words)?;
            shares.push(share);
        }
        Ok(Self {
            shares,
            rows,
            tokens,
            frequencies: FrequencyCache::with_capacity(FREQUENCY_CACHE_CAPACITY),
        })
    }
}

/// What BM25 asks, answered for the living rows of what is searched.
pub(super) struct LiveStatistics<'a> {
    view: &'a View,
    words: Field,
    counted: Arc<CorpusStatistics>,
}

impl<'a> LiveStatistics<'a> {
    pub(super) fn new(view: &'a View, fields: &Fields, corpus: &Corpus) -> tantivy::Result<Self> {
        let counted = view.statistics().get(corpus, || CorpusStatistics::count(view, fields, corpus))?;
        Ok(Self { view, words: fields.words, counted })
    }

    /// Whether nothing can be found.
    pub(super) fn is_empty(&self) -> bool {
        self.counted.rows == 0
    }

    /// How many living rows of the part at a place hold a term, counted anew.
    pub(super) fn holding_in(&self, place: usize, term: &Term) -> tantivy::Result<u64> {
        match (self.counted.shares.get(place), self.view.parts().get(place)) {
            (Some(share), Some(part)) => share.holding(part, term),
            _ => Ok(0),
        }
    }
}

impl Bm25StatisticsProvider for LiveStatistics<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        Ok(if field == self.words { self.counted.tokens } else { 0 })
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.counted.rows)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.counted
            .frequencies
            .get(term, || (0..self.view.parts().len()).map(|place| self.holding_in(place, term)).sum())
    }
}
