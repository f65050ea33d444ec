//! Completes the last word of a search where no chunk contains it as a whole word.

use std::collections::BTreeMap;

use tantivy::query::{EnableScoring, Query as _};
use tantivy::schema::Field;
use tantivy::{DocSet as _, TERMINATED, Term};

use super::query::LexicalQuery;
use super::query_builder::QueryBuilder;
use super::statistics::LiveStatistics;
use super::view::{Part, View};
use crate::tuning::{MAX_COMPLETION_CANDIDATES, MAX_COMPLETIONS, MAX_PREFIX_TERMS_VISITED};

/// The indexed terms that complete the last word of the search. Empty where that is no prefix, or where a chunk of what is searched
/// contains it as a whole word.
pub(super) fn completions(
    view: &View,
    statistics: &LiveStatistics<'_>,
    builder: QueryBuilder<'_>,
    query: &LexicalQuery<'_>,
) -> tantivy::Result<Vec<Term>> {
    let (Some(prefix), Some(whole_word)) = (&builder.analysed.prefix, builder.whole_word(query)) else {
        return Ok(Vec::new());
    };
    let weight = whole_word.weight(EnableScoring::disabled_from_schema(&builder.fields.schema))?;
    let whole: Vec<Term> = prefix.whole.iter().map(|word| builder.fields.word_term(word)).collect();
    for part in view.parts() {
        if !contains_any(part, &whole)? {
            continue;
        }
        let mut rows = weight.scorer(&part.segment, 1.0)?;
        while rows.doc() != TERMINATED {
            if part.is_live(rows.doc()) {
                return Ok(Vec::new());
            }
            rows.advance();
        }
    }
    for beginning in prefix.beginnings() {
        let words = terms_with_prefix(view, statistics, builder.fields.words, beginning)?;
        if !words.is_empty() {
            return Ok(words);
        }
    }
    Ok(Vec::new())
}

/// Whether any row of the part contains one of the words, in whichever workspace: a cheap check before the exact one.
fn contains_any(part: &Part, words: &[Term]) -> tantivy::Result<bool> {
    for word in words {
        if part.rows_with(word)? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The most frequent terms with a prefix in what is searched.
fn terms_with_prefix(
    view: &View,
    statistics: &LiveStatistics<'_>,
    field: Field,
    beginning: &str,
) -> tantivy::Result<Vec<Term>> {
    let mut found: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for (place, part) in view.parts().iter().enumerate() {
        let lists = part.segment.inverted_index(field)?;
        let mut words = lists.terms().range().ge(beginning.as_bytes()).into_stream()?;
        let (mut visited, mut seen) = (0, 0);
        while seen < MAX_COMPLETION_CANDIDATES
            && visited < MAX_PREFIX_TERMS_VISITED
            && words.advance()
            && words.key().starts_with(beginning.as_bytes())
        {
            visited += 1;
            let Ok(word) = std::str::from_utf8(words.key()) else { continue };
            let count = statistics.doc_freq_in(place, &Term::from_field_text(field, word))?;
            if count > 0 {
                *found.entry(words.key().to_vec()).or_default() += count;
                seen += 1;
            }
        }
    }
    let mut found: Vec<(Vec<u8>, u64)> = found.into_iter().collect();
    found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found.truncate(MAX_COMPLETIONS);
    let words = found.iter().filter_map(|(word, _)| std::str::from_utf8(word).ok());
    Ok(words.map(|word| Term::from_field_text(field, word)).collect())
}
