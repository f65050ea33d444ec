//! Completes the last word of a search where no chunk of what is searched contains it as a whole word.
//!
//! A prefix index finds chunks with a matching word; the words themselves are read from a sample of these chunks. The embedded index
//! takes the most frequent words of all chunks, this engine those of the sample.

use std::collections::BTreeMap;

use qdrant_client::qdrant::ScrollPoints;

use super::candidates::Part;
use super::points::{self, FORMS};
use super::read::{fields, no_vectors};
use super::tuning::COMPLETION_CHUNKS;
use super::words::Words;
use super::{Error, Inner, filters};
use crate::Query;
use crate::tuning::MAX_COMPLETIONS;
use crate::words::Prefix;

impl Inner {
    /// The words that complete a prefix, in a part of the points and in drafts. If there are none, shorter prefixes are tried.
    pub(super) async fn completions(
        &self,
        part: &Part,
        query: &Query,
        prefix: &Prefix,
        drafts: &[&Words],
    ) -> Result<Vec<String>, Error> {
        for beginning in prefix.beginnings() {
            let mut frequencies: BTreeMap<String, u32> = BTreeMap::new();
            let forms = self.sample_forms(part, query, beginning).await?;
            let of_drafts = drafts.iter().map(|words| words.forms.as_str());
            for forms in forms.iter().map(String::as_str).chain(of_drafts) {
                for word in forms.split(' ').filter(|word| word.starts_with(beginning)) {
                    *frequencies.entry(word.to_owned()).or_default() += 1;
                }
            }
            if !frequencies.is_empty() {
                return Ok(most_frequent(frequencies));
            }
        }
        Ok(Vec::new())
    }

    /// The forms of a sample of the chunks with a word that starts with the prefix.
    async fn sample_forms(&self, part: &Part, query: &Query, beginning: &str) -> Result<Vec<String>, Error> {
        let mut filter = part.corpus(query);
        filter.must.push(filters::has_beginning(beginning));
        let request = ScrollPoints {
            collection_name: self.collection.clone(),
            filter: Some(filter),
            limit: Some(COMPLETION_CHUNKS),
            with_payload: Some(fields(&[FORMS])),
            with_vectors: Some(no_vectors()),
            ..ScrollPoints::default()
        };
        let found = self.detect_loss(self.client.api.scroll(request).await)?.result;
        Ok(found.iter().map(|point| points::text(&point.payload, FORMS)).collect())
    }
}

/// The words that occur in most chunks, most frequent first.
fn most_frequent(frequencies: BTreeMap<String, u32>) -> Vec<String> {
    let mut words: Vec<(String, u32)> = frequencies.into_iter().collect();
    words.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    words.truncate(MAX_COMPLETIONS);
    words.into_iter().map(|(word, _)| word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_words_are_taken() {
        let mut frequencies: BTreeMap<String, u32> =
            (0..100).map(|number| (format!("word{number:03}"), 1)).collect();
        frequencies.insert("zebra".to_owned(), 2);
        let words = most_frequent(frequencies);
        assert_eq!(words.len(), MAX_COMPLETIONS);
        assert_eq!(&words[..2], ["zebra", "word000"]);
    }
}
