//! Chunks in which words of the question stand near each other are better than chunks that hold them far apart.
//!
//! Only the best chunks by words alone are looked at: what stands far down without the bonus does not reach the top with
//! it, and reading positions of all chunks would cost more than the search.

use tantivy::postings::Postings as _;
use tantivy::query::Bm25StatisticsProvider as _;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet as _, Score};

use super::schema::Fields;
use super::statistics::LiveStatistics;
use super::view::{Address, Part, View};
use crate::nearness::{gain, near};

/// Adds to the scores of hits what they get for pairs of words that stand near each other.
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
    /// The words of the pairs, each once.
    words: Vec<&'a str>,
    /// How rare each word is.
    rarities: Vec<f32>,
    /// The places of the words of each pair.
    pairs: Vec<[usize; 2]>,
    usual_length: f32,
}

impl<'a> Scoring<'a> {
    fn new(
        statistics: &LiveStatistics<'_>,
        fields: &'a Fields,
        pairs: &'a [[String; 2]],
    ) -> tantivy::Result<Self> {
        let rows = statistics.total_num_docs()? as f32;
        let usual_length = statistics.total_num_tokens(fields.words)? as f32 / rows.max(1.0);
        let mut words: Vec<&str> = Vec::new();
        let mut place_of = |word: &'a String| {
            words.iter().position(|known| known == word).unwrap_or_else(|| {
                words.push(word);
                words.len() - 1
            })
        };
        let pairs = pairs.iter().map(|[first, second]| [place_of(first), place_of(second)]).collect();
        let mut rarities = Vec::with_capacity(words.len());
        for word in &words {
            let held = statistics.doc_freq(&fields.word_term(word))? as f32;
            rarities.push((1.0 + (rows - held + 0.5) / (held + 0.5)).ln());
        }
        Ok(Self { fields, words, rarities, pairs, usual_length: usual_length.max(1.0) })
    }

    /// `hits` are of one part, in the order of their rows.
    fn add_in(&self, part: &Part, hits: &mut [(Score, Address)]) -> tantivy::Result<()> {
        let mut words = Vec::with_capacity(self.words.len());
        for word in &self.words {
            words.push(self.places(part, word, hits)?);
        }
        let lengths = part.segment.get_fieldnorms_reader(self.fields.words)?;
        for (number, (score, address)) in hits.iter_mut().enumerate() {
            let length = lengths.fieldnorm(address.row) as f32 / self.usual_length;
            for [first, second] in &self.pairs {
                let places = |word: &usize| words.get(*word).map(|places| places.of(number));
                if let (Some(first_places), Some(second_places)) = (places(first), places(second)) {
                    let near = near(first_places, second_places);
                    *score += gain(self.rarities(*first, *second), near, length);
                }
            }
        }
        Ok(())
    }

    fn rarities(&self, first: usize, second: usize) -> [f32; 2] {
        [first, second].map(|word| self.rarities.get(word).copied().unwrap_or_default())
    }

    /// Where a word stands in each hit.
    fn places(&self, part: &Part, word: &str, hits: &[(Score, Address)]) -> tantivy::Result<Places> {
        let lists = part.segment.inverted_index(self.fields.words)?;
        let term = self.fields.word_term(word);
        let mut places = Places { all: Vec::new(), ends: Vec::with_capacity(hits.len()) };
        let Some(mut rows) = lists.read_postings(&term, IndexRecordOption::WithFreqsAndPositions)? else {
            return Ok(places);
        };
        for (_, address) in hits {
            let reached = if rows.doc() < address.row { rows.seek(address.row) } else { rows.doc() };
            if reached == address.row {
                rows.append_positions_with_offset(0, &mut places.all);
            }
            places.ends.push(places.all.len());
        }
        Ok(places)
    }
}

/// Where a word stands in several hits, those of each behind those of the one before.
struct Places {
    all: Vec<u32>,
    /// Where those of each hit end; nothing of a word that is in none.
    ends: Vec<usize>,
}

impl Places {
    fn of(&self, hit: usize) -> &[u32] {
        let end = |hit: usize| self.ends.get(hit).copied().unwrap_or_default();
        let start = hit.checked_sub(1).map_or(0, end);
        self.all.get(start..end(hit)).unwrap_or_default()
    }
}
