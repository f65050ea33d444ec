//! Chunks in which words of the question stand near each other are better than chunks that hold them far apart.
//!
//! Only the best chunks by words alone are looked at: what stands far down without the bonus does not reach the top with
//! it, and reading positions of all chunks would cost more than the search.

use std::collections::HashMap;

use tantivy::postings::Postings as _;
use tantivy::query::Bm25StatisticsProvider as _;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet as _, Score};

use super::schema::Fields;
use super::statistics::Living;
use super::view::{Address, Part, View};
use crate::nearness::{gain, near};

/// Adds to the scores of hits what they get for pairs of words that stand near each other.
pub(super) fn add(
    view: &View,
    statistics: &Living<'_>,
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
    pairs: &'a [[String; 2]],
    /// How rare each word is.
    rarity: HashMap<&'a str, f32>,
    usual_length: f32,
}

impl<'a> Scoring<'a> {
    fn new(statistics: &Living<'_>, fields: &'a Fields, pairs: &'a [[String; 2]]) -> tantivy::Result<Self> {
        let rows = statistics.total_num_docs()? as f32;
        let usual_length = statistics.total_num_tokens(fields.words)? as f32 / rows.max(1.0);
        let mut rarity = HashMap::new();
        for word in pairs.iter().flatten() {
            let held = statistics.doc_freq(&fields.word_term(word))? as f32;
            rarity.insert(word.as_str(), (1.0 + (rows - held + 0.5) / (held + 0.5)).ln());
        }
        Ok(Self { fields, pairs, rarity, usual_length: usual_length.max(1.0) })
    }

    /// `hits` are of one part, in the order of their rows.
    fn add_in(&self, part: &Part, hits: &mut [(Score, Address)]) -> tantivy::Result<()> {
        let mut places: HashMap<&str, Vec<Vec<u32>>> = HashMap::new();
        for word in self.rarity.keys() {
            places.insert(word, self.places(part, word, hits)?);
        }
        let lengths = part.segment.get_fieldnorms_reader(self.fields.words)?;
        for (number, (score, address)) in hits.iter_mut().enumerate() {
            let of = |word: &str| places.get(word).and_then(|rows| rows.get(number));
            let length = lengths.fieldnorm(address.row) as f32 / self.usual_length;
            for [first, second] in self.pairs {
                if let (Some(first_places), Some(second_places)) = (of(first), of(second)) {
                    let near = near(first_places, second_places);
                    *score += gain(self.rarities(first, second), near, length);
                }
            }
        }
        Ok(())
    }

    fn rarities(&self, first: &str, second: &str) -> [f32; 2] {
        [first, second].map(|word| self.rarity.get(word).copied().unwrap_or_default())
    }

    /// Where a word stands in each hit.
    fn places(&self, part: &Part, word: &str, hits: &[(Score, Address)]) -> tantivy::Result<Vec<Vec<u32>>> {
        let lists = part.segment.inverted_index(self.fields.words)?;
        let term = self.fields.word_term(word);
        let Some(mut rows) = lists.read_postings(&term, IndexRecordOption::WithFreqsAndPositions)? else {
            return Ok(Vec::new());
        };
        let mut places = vec![Vec::new(); hits.len()];
        for ((_, address), places) in hits.iter().zip(&mut places) {
            let reached = if rows.doc() < address.row { rows.seek(address.row) } else { rows.doc() };
            if reached == address.row {
                rows.positions(places);
            }
        }
        Ok(places)
    }
}
