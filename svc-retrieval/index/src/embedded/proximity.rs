//! A proximity bonus: chunks in which words of the query are near each other rank above chunks in which they are far apart.
//!
//! Only the best chunks by BM25 get it: a chunk with a low rank would not reach the top with it, and reading the positions of all
//! chunks would cost more than the search.

use tantivy::postings::Postings as _;
use tantivy::query::Bm25StatisticsProvider as _;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet as _, Score};

use super::schema::Fields;
use super::statistics::LiveStatistics;
use super::view::{Address, Part, View};
use crate::nearness::{gain, near};

/// Adds the proximity bonus to the scores of hits.
pub(super) fn add(
    view: &View,
    statistics: &LiveStatistics<'_>,
    fields: &Fields,
    pairs: &[[String; 2]],
    hits: &mut [(Score, Address)],
) -> tantivy::Result<()> {
    if pairs.is_empty() || hits.len() < 2 {
        return Ok(());
    }
    let scoring = Scoring::new(statistics, fields, pairs)?;
    hits.sort_unstable_by_key(|(_, address)| (address.part, address.row));
    for of_part in hits.chunk_by_mut(|(_, a), (_, b)| a.part == b.part) {
        let part = of_part.first().and_then(|(_, address)| view.parts().get(address.part));
        if let Some(part) = part {
            scoring.add_in(part, of_part)?;
        }
    }
    Ok(())
}

struct Scoring<'a> {
    fields: &'a Fields,
    /// The distinct words of the pairs.
    words: Vec<&'a str>,
    /// The inverse document frequency of each word.
    idfs: Vec<f32>,
    /// Each pair as indices into `words`.
    pairs: Vec<[usize; 2]>,
    average_length: f32,
}

impl<'a> Scoring<'a> {
    fn new(
        statistics: &LiveStatistics<'_>,
        fields: &'a Fields,
        pairs: &'a [[String; 2]],
    ) -> tantivy::Result<Self> {
        let rows = statistics.total_num_docs()? as f32;
        let average_length = statistics.total_num_tokens(fields.words)? as f32 / rows.max(1.0);
        let mut words: Vec<&str> = Vec::new();
        let mut place_of = |word: &'a String| {
            words.iter().position(|known| known == word).unwrap_or_else(|| {
                words.push(word);
                words.len() - 1
            })
        };
        let pairs = pairs.iter().map(|[first, second]| [place_of(first), place_of(second)]).collect();
        let mut idfs = Vec::with_capacity(words.len());
        for word in &words {
            let held = statistics.doc_freq(&fields.word_term(word))? as f32;
            idfs.push((1.0 + (rows - held + 0.5) / (held + 0.5)).ln());
        }
        Ok(Self { fields, words, idfs, pairs, average_length: average_length.max(1.0) })
    }

    /// `hits` are in one part, sorted by row.
    fn add_in(&self, part: &Part, hits: &mut [(Score, Address)]) -> tantivy::Result<()> {
        let mut words = Vec::with_capacity(self.words.len());
        for word in &self.words {
            words.push(self.positions(part, word, hits)?);
        }
        let lengths = part.segment.get_fieldnorms_reader(self.fields.words)?;
        for (number, (score, address)) in hits.iter_mut().enumerate() {
            let length = lengths.fieldnorm(address.row) as f32 / self.average_length;
            for [first, second] in &self.pairs {
                let positions = |word: &usize| words.get(*word).map(|positions| positions.of(number));
                if let (Some(first_positions), Some(second_positions)) = (positions(first), positions(second))
                {
                    let near = near(first_positions, second_positions);
                    *score += gain(self.idfs(*first, *second), near, length);
                }
            }
        }
        Ok(())
    }

    fn idfs(&self, first: usize, second: usize) -> [f32; 2] {
        [first, second].map(|word| self.idfs.get(word).copied().unwrap_or_default())
    }

    /// The positions of a word in each hit.
    fn positions(&self, part: &Part, word: &str, hits: &[(Score, Address)]) -> tantivy::Result<Positions> {
        let lists = part.segment.inverted_index(self.fields.words)?;
        let term = self.fields.word_term(word);
        let mut positions = Positions { all: Vec::new(), ends: Vec::with_capacity(hits.len()) };
        let Some(mut rows) = lists.read_postings(&term, IndexRecordOption::WithFreqsAndPositions)? else {
            return Ok(positions);
        };
        for (_, address) in hits {
            let reached = if rows.doc() < address.row { rows.seek(address.row) } else { rows.doc() };
            if reached == address.row {
                rows.append_positions_with_offset(0, &mut positions.all);
            }
            positions.ends.push(positions.all.len());
        }
        Ok(positions)
    }
}

/// The positions of a word in several hits, concatenated.
struct Positions {
    all: Vec<u32>,
    /// The end of each hit's positions in `all`; empty for a word that is in no hit.
    ends: Vec<usize>,
}

impl Positions {
    fn of(&self, hit: usize) -> &[u32] {
        let end = |hit: usize| self.ends.get(hit).copied().unwrap_or_default();
        let start = hit.checked_sub(1).map_or(0, end);
        self.all.get(start..end(hit)).unwrap_or_default()
    }
}
