//! The statistics of BM25 over the living rows of a view, so that a score does not depend on which rows a commit or a
//! merge has dropped already.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use tantivy::Term;
use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::{Field, FieldType};

use super::tuning::{COUNTED_ROWS, FREQUENCIES_KEPT};
use super::view::{Part, View};

/// What does not depend on the query.
pub(super) struct Totals {
    rows: u64,
    tokens: HashMap<Field, u64>,
}

impl Totals {
    pub(super) fn count(view: &View) -> tantivy::Result<Self> {
        let rows = view.parts().iter().map(|part| u64::from(part.living())).sum();
        let mut tokens = HashMap::new();
        for (field, entry) in view.searcher().schema().fields() {
            let is_words = matches!(entry.field_type(), FieldType::Str(_)) && entry.is_indexed();
            if is_words {
                let mut total = 0;
                for part in view.parts() {
                    total += tokens_of(part, field)?;
                }
                tokens.insert(field, total);
            }
        }
        Ok(Self { rows, tokens })
    }
}

fn tokens_of(part: &Part, field: Field) -> tantivy::Result<u64> {
    let all = part.segment.inverted_index(field)?.total_num_tokens();
    if part.living() == part.rows() || all == 0 {
        return Ok(all);
    }
    if part.rows() <= COUNTED_ROWS {
        return Ok(all.saturating_sub(part.dead_tokens(field)?));
    }
    Ok(living_share(all, part))
}

/// In how many living rows of one view the words were that have been asked for. To find out is to look a word up in
/// every segment, and most questions use the same words.
#[derive(Default)]
pub(super) struct Frequencies(RwLock<HashMap<Term, u64>>);

impl Frequencies {
    fn known(&self, term: &Term) -> Option<u64> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(term).copied()
    }

    fn keep(&self, term: &Term, rows: u64) {
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < FREQUENCIES_KEPT {
            kept.insert(term.clone(), rows);
        }
    }
}

/// What BM25 asks, answered for the living rows.
pub(super) struct Living<'a> {
    view: &'a View,
    totals: &'a Totals,
}

impl<'a> Living<'a> {
    pub(super) fn new(view: &'a View) -> tantivy::Result<Self> {
        Ok(Self { view, totals: view.totals()? })
    }
}

impl Bm25StatisticsProvider for Living<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        Ok(self.totals.tokens.get(&field).copied().unwrap_or(0))
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.totals.rows)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        if let Some(rows) = self.view.frequencies().known(term) {
            return Ok(rows);
        }
        let mut rows = 0;
        for part in self.view.parts() {
            rows += rows_of(part, term)?;
        }
        self.view.frequencies().keep(term, rows);
        Ok(rows)
    }
}

/// Never more than the part's living rows: tantivy relies on it.
fn rows_of(part: &Part, term: &Term) -> tantivy::Result<u64> {
    let all = u64::from(part.rows_with(term)?);
    if part.living() == part.rows() || all == 0 {
        return Ok(all);
    }
    if part.rows() <= COUNTED_ROWS {
        let mut living = 0;
        part.for_each_living(term, |_| {
            living += 1;
            Ok(())
        })?;
        return Ok(living);
    }
    Ok(living_share(all, part))
}

/// In a large segment the dead are taken to be like the living, which is cheaper than to look at them.
fn living_share(all: u64, part: &Part) -> u64 {
    all * u64::from(part.living()) / u64::from(part.rows()).max(1)
}
