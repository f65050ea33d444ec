//! Searches as if some documents were replaced with drafts. Nothing is stored.
//!
//! Qdrant searches everything except these documents; the drafts are searched here in the same way as points. The idf must be computed
//! over both. Qdrant multiplies by its own idf, so each word's weight is corrected by the ratio of the two, for which its chunks are
//! counted first.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures::future::try_join_all;
use qdrant_client::qdrant::Filter;
use uuid::Uuid;

use super::candidates::{Found, Part, Search, finds_nothing};
use super::tuning::COUNT_CONCURRENCY;
use super::words::{self, Words};
use super::{Error, Inner, filters, nearness};
use crate::vectors::{DraftVectors, RowFilter};
use crate::words::Languages;
use crate::{Candidates, ChunkId, Hit, IndexedDocument, ListQuery, PieceCounts, Query, sort_hits};

impl Inner {
    /// The candidates of each requested list.
    pub(super) async fn candidates_with_drafts(
        &self,
        query: &Query,
        drafts: &Drafts,
    ) -> Result<Vec<Candidates>, Error> {
        if finds_nothing(query) {
            return Ok(vec![Candidates::default(); query.lists.len()]);
        }
        self.ready().await?;
        let languages = self.languages(query.workspace).await?.union(drafts.languages);
        let mut searches: Vec<Search> =
            query.lists.iter().map(|list_query| Search::of(list_query, languages)).collect();
        let mut part = drafts.part();
        for search in &mut searches {
            self.complete_instead(&part, query, search, drafts).await?;
        }
        let idfs = self.idfs(&mut part, query, &searches, drafts).await?;
        let held = self.candidates_in(&part, query, &searches).await?;
        let lists = query.lists.iter().zip(&searches).zip(held);
        let list = |((list_query, search), held): ((&ListQuery, &Search), Found)| {
            merge(query, list_query, held.candidates, drafts.found(query, list_query, search, &idfs))
        };
        Ok(lists.map(list).collect())
    }

    /// Adds the completions of the last word of a search, if neither a chunk of the corpus nor a draft contains it as a whole word.
    async fn complete_instead(
        &self,
        part: &Part,
        query: &Query,
        search: &mut Search,
        drafts: &Drafts,
    ) -> Result<(), Error> {
        let Some(prefix) = &search.analysed.prefix else { return Ok(()) };
        let counting: Vec<&Words> = drafts.counting(query).map(|row| &row.words).collect();
        let is_whole = |words: &&Words| {
            prefix.whole.iter().any(|form| words.weights.contains_key(&words::dimension(form)))
        };
        if counting.iter().any(is_whole) {
            return Ok(());
        }
        for form in prefix.whole.clone() {
            if self.document_frequency(part.corpus(query), form).await? > 0 {
                return Ok(());
            }
        }
        self.complete(part, query, search, &counting).await.map(drop)
    }

    /// The idf of each dimension over points and drafts; stores the corrections of Qdrant's idf in the part.
    async fn idfs(
        &self,
        part: &mut Part,
        query: &Query,
        searches: &[Search],
        drafts: &Drafts,
    ) -> Result<HashMap<u32, f32>, Error> {
        let forms: BTreeMap<u32, &str> = searches
            .iter()
            .flat_map(|search| words::forms(&search.analysed))
            .map(|form| (words::dimension(form), form))
            .collect();
        if forms.is_empty() {
            return Ok(HashMap::new());
        }
        let corpus = part.corpus(query);
        let counting: Vec<&Row> = drafts.counting(query).collect();
        let all = self.count_points(corpus.clone()).await?;
        let of_both = all.saturating_add(size(counting.len()));
        let mut idfs = HashMap::new();
        let forms: Vec<(u32, &str)> = forms.into_iter().collect();
        for some in forms.chunks(COUNT_CONCURRENCY) {
            let counts =
                some.iter().map(|(_, form)| self.document_frequency(corpus.clone(), (*form).to_owned()));
            let counts: Vec<_> = counts.collect();
            for ((dimension, _), held) in some.iter().zip(try_join_all(counts).await?) {
                let has_word = |row: &&&Row| row.words.weights.contains_key(dimension);
                let own = size(counting.iter().filter(has_word).count());
                let idf = words::idf(of_both, held.saturating_add(own));
                idfs.insert(*dimension, idf);
                part.idf_corrections.insert(*dimension, idf / words::idf(all, held));
            }
        }
        Ok(idfs)
    }

    /// How many chunks of a corpus contain a word in that form.
    async fn document_frequency(&self, mut corpus: Filter, form: String) -> Result<u64, Error> {
        corpus.must.push(filters::has_form(&form));
        self.count_points(corpus).await
    }
}

/// Documents that are searched in place of their indexed versions.
#[derive(Default)]
pub(super) struct Drafts {
    documents: Vec<Uuid>,
    languages: Languages,
    rows: Vec<Row>,
    vectors: DraftVectors,
}

/// A chunk of a draft.
pub(super) struct Row {
    chunk: ChunkId,
    container: Option<Uuid>,
    pub(super) words: Words,
}

impl Row {
    /// Whether it belongs to the corpus of the query.
    fn counts(&self, query: &Query) -> bool {
        within(query).has_container(self.container)
    }
}

impl Drafts {
    /// CPU-bound: must run on a blocking thread.
    pub(super) fn of(documents: &[IndexedDocument]) -> Self {
        let mut rows = Vec::new();
        for document in documents {
            for (ordinal, chunk) in (0..).zip(&document.chunks) {
                let id = ChunkId { document: document.document, ordinal };
                let words = Words::of_chunk(document, chunk);
                rows.push(Row { chunk: id, container: document.container, words });
            }
        }
        let languages = documents.iter().map(|document| document.language);
        Self {
            documents: documents.iter().map(|document| document.document).collect(),
            languages: languages.fold(Languages::default(), Languages::with),
            rows,
            vectors: DraftVectors::of(documents),
        }
    }

    /// The languages of the documents.
    pub(super) const fn languages(&self) -> Languages {
        self.languages
    }

    /// Excludes the indexed versions from results and statistics.
    pub(super) fn part(&self) -> Part {
        Part { without: self.documents.clone(), ..Part::default() }
    }

    /// How many of their chunks contain each piece.
    pub(super) fn piece_counts(&self, pieces: &[u16]) -> PieceCounts {
        self.vectors.piece_counts(pieces)
    }

    /// The chunks in the corpus of the query.
    pub(super) fn counting(&self, query: &Query) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.counts(query))
    }

    /// The candidates of one list, without a limit, with the cosine of every chunk that has a vector.
    fn found(
        &self,
        query: &Query,
        list_query: &ListQuery,
        search: &Search,
        idfs: &HashMap<u32, f32>,
    ) -> Candidates {
        let within = within(query);
        let excluded: Vec<Vec<String>> = search.excluded.iter().map(words::rows).collect();
        let phrases: Vec<Vec<String>> = search.analysed.phrases.iter().map(words::rows).collect();
        let is_open = |row: &&Row| {
            within.has(row.chunk.document, row.container)
                && !excluded.iter().any(|phrase| row.words.hold(phrase))
        };
        let open: Vec<&Row> = self.rows.iter().filter(is_open).collect();
        let weights = words::query(&search.analysed);
        let hit = |row: &&Row| {
            let score: f32 = weights
                .iter()
                .filter_map(|(dimension, weight)| {
                    Some(weight * row.words.weights.get(dimension)? * idfs.get(dimension)?)
                })
                .sum();
            let is_found = score > 0.0 && phrases.iter().all(|phrase| row.words.hold(phrase));
            let bonus = || nearness::bonus(&search.analysed.pairs, &row.words.tokens, idfs);
            is_found.then(|| Hit { chunk: row.chunk, score: score + bonus() })
        };
        let words = open.iter().filter_map(hit).collect();
        let mut cosines = match &list_query.vector {
            Some(vector) => self.vectors.cosines(vector, within),
            None => Vec::new(),
        };
        let open: HashSet<ChunkId> = open.iter().map(|row| row.chunk).collect();
        cosines.retain(|hit| open.contains(&hit.chunk));
        Candidates { words, cosines }
    }
}

/// Merges the candidates of one list from the index and from drafts.
fn merge(query: &Query, list_query: &ListQuery, held: Candidates, drafts: Candidates) -> Candidates {
    let Candidates { mut words, mut cosines } = held;
    words.extend(drafts.words);
    sort_hits(&mut words);
    words.truncate(query.limit);
    if list_query.vector.is_none() {
        return Candidates { words, cosines: Vec::new() };
    }
    cosines.extend(drafts.cosines);
    let known: HashSet<ChunkId> = cosines.iter().map(|hit| hit.chunk).collect();
    let by_words: HashSet<ChunkId> = words.iter().map(|hit| hit.chunk).collect();
    // A chunk without a cosine has no vector.
    cosines.extend(by_words.difference(&known).map(|chunk| Hit { chunk: *chunk, score: 0.0 }));
    sort_hits(&mut cosines);
    // The nearest overall are among the nearest of each.
    let mut places = if list_query.requires_phrase_match(&words) { 0 } else { query.limit };
    cosines.retain(|hit| {
        let is_near = hit.score > 0.0 && places > 0;
        places -= usize::from(is_near);
        is_near || by_words.contains(&hit.chunk)
    });
    Candidates { words, cosines }
}

fn within(query: &Query) -> RowFilter<'_> {
    RowFilter { containers: query.containers.as_ref(), documents: query.documents.as_ref() }
}

fn size(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ParsedQuery;
    use crate::contract::{WORKSPACE, document, id};

    fn hits(scores: &[(u128, f32)]) -> Vec<Hit> {
        scores.iter().map(|(number, score)| Hit { chunk: id(*number, 0), score: *score }).collect()
    }

    fn query(limit: usize, text: &str) -> Query {
        let words = Some(Arc::new(ParsedQuery::parse(text)));
        let list_query = ListQuery { words, vector: Some([1.0, 0.0].into()), without: Vec::new() };
        Query { workspace: WORKSPACE, containers: None, documents: None, limit, lists: vec![list_query] }
    }

    #[test]
    fn the_best_of_both_are_taken() {
        let query = query(2, "key");
        let held =
            Candidates { words: hits(&[(1, 3.0), (2, 1.0)]), cosines: hits(&[(3, 0.9), (1, 0.2), (2, 0.1)]) };
        let drafts = Candidates { words: hits(&[(4, 2.0)]), cosines: hits(&[(5, 0.5), (6, 0.3), (7, -0.5)]) };
        let found = merge(&query, &query.lists[0], held, drafts);
        assert_eq!(found.words, hits(&[(1, 3.0), (4, 2.0)]));
        assert_eq!(found.cosines, hits(&[(3, 0.9), (5, 0.5), (1, 0.2), (4, 0.0)]));
    }

    #[test]
    fn a_phrase_that_a_draft_meets_counts_meaning_for_nothing() {
        let query = query(5, "\"signing key\"");
        let held = Candidates { words: Vec::new(), cosines: hits(&[(3, 0.9)]) };
        let drafts = Candidates { words: hits(&[(4, 2.0)]), cosines: hits(&[(4, 0.5), (5, 0.4)]) };
        let found = merge(&query, &query.lists[0], held, drafts);
        assert_eq!((found.words, found.cosines), (hits(&[(4, 2.0)]), hits(&[(4, 0.5)])));
    }

    #[test]
    fn drafts_are_looked_through_as_points_are() {
        let drafts =
            Drafts::of(&[document(1, &["The signing key is rotated", "A key of pianos", "Nothing"])]);
        let found = |text: &str| {
            let query = query(5, text);
            let search = Search::of(&query.lists[0], Languages::default());
            let forms = words::forms(&search.analysed);
            let idfs = forms.into_iter().map(|form| (words::dimension(form), 1.0)).collect();
            let found = drafts.found(&query, &query.lists[0], &search, &idfs);
            found.words.iter().map(|hit| hit.chunk.ordinal).collect::<Vec<_>>()
        };
        assert_eq!(found("keys"), [0, 1]);
        assert_eq!(found("\"signing key\""), [0]);
        assert_eq!(found("key -piano"), [0]);
        assert_eq!(found("zebra"), [0_u32; 0]);
    }
}
