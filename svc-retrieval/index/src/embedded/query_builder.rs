//! Builds tantivy queries, which are independent of the segments that are searched.

use std::collections::HashSet;

use tantivy::Term;
use tantivy::query::{BooleanQuery, BoostQuery, Occur, PhraseQuery, Query, TermQuery, TermSetQuery};
use tantivy::schema::IndexRecordOption;
use uuid::Uuid;

use super::query::LexicalQuery;
use super::schema::Fields;
use crate::ChunkId;
use crate::words::{AnalysedQuery, Phrase};

type Clause = (Occur, Box<dyn Query>);

/// A search compiled to tantivy queries.
pub(super) struct CompiledQuery {
    /// What a chunk must match, and what scores it.
    pub(super) scored: Box<dyn Query>,
    /// The workspace searched.
    pub(super) workspace: Term,
    /// The containers searched, `None` for all.
    pub(super) containers: Option<TermSetQuery>,
    /// The documents searched, `None` for all.
    pub(super) documents: Option<TermSetQuery>,
    /// What a chunk must not match.
    pub(super) exclusions: Vec<Box<dyn Query>>,
}

/// Builds queries over the fields of a chunk.
#[derive(Clone, Copy)]
pub(super) struct QueryBuilder<'a> {
    pub(super) fields: &'a Fields,
    pub(super) analysed: &'a AnalysedQuery,
}

impl QueryBuilder<'_> {
    /// Compiles a search; `None` if it has neither words nor phrases. `completions` of the last word are alternatives, like its
    /// own words.
    pub(super) fn compile(&self, query: &LexicalQuery<'_>, completions: &[Term]) -> Option<CompiledQuery> {
        let mut clauses = self.scored_clauses(completions);
        let scored: Box<dyn Query> = match clauses.len() {
            0 => return None,
            // A plain union is not wrapped: tantivy uses block-max WAND for it.
            1 => clauses.pop()?.1,
            _ => Box::new(BooleanQuery::new(clauses)),
        };
        Some(CompiledQuery {
            scored,
            workspace: self.fields.workspace_term(query.workspace),
            containers: query.containers.map(|containers| self.in_containers(containers)),
            documents: query.documents.map(|documents| self.in_documents(query.workspace, documents)),
            exclusions: self.exclusions(),
        })
    }

    /// Matches those of `chunks` that contain an excluded word or phrase; `None` if nothing is excluded.
    pub(super) fn excluded(&self, workspace: Uuid, chunks: &[ChunkId]) -> Option<BooleanQuery> {
        let exclusions = self.exclusions();
        if exclusions.is_empty() || chunks.is_empty() {
            return None;
        }
        let candidates = chunks.iter().map(|chunk| self.fields.chunk_term(workspace, *chunk));
        let candidates = TermSetQuery::new(candidates);
        Some(BooleanQuery::intersection(vec![
            Box::new(candidates),
            Box::new(BooleanQuery::union(exclusions)),
        ]))
    }

    /// Matches the chunks that contain the last word of the search as a whole word; `None` if it cannot be a prefix.
    pub(super) fn whole_word(&self, query: &LexicalQuery<'_>) -> Option<BooleanQuery> {
        let whole = &self.analysed.prefix.as_ref()?.whole;
        let words = whole.iter().map(|word| self.word(word)).collect();
        let workspace = self.fields.workspace_term(query.workspace);
        let mut clauses: Vec<Box<dyn Query>> = vec![
            Box::new(BooleanQuery::union(words)),
            Box::new(TermQuery::new(workspace, IndexRecordOption::Basic)),
        ];
        if let Some(containers) = query.containers {
            clauses.push(Box::new(self.in_containers(containers)));
        }
        Some(BooleanQuery::intersection(clauses))
    }

    fn in_containers(&self, containers: &HashSet<Uuid>) -> TermSetQuery {
        TermSetQuery::new(containers.iter().map(|container| self.fields.container_term(*container)))
    }

    fn in_documents(&self, workspace: Uuid, documents: &HashSet<Uuid>) -> TermSetQuery {
        TermSetQuery::new(documents.iter().map(|document| self.fields.document_term(workspace, *document)))
    }

    /// What a chunk must match; empty for a query without words and phrases.
    fn scored_clauses(&self, completions: &[Term]) -> Vec<Clause> {
        let phrases = self.analysed.phrases.iter().map(|phrase| self.phrase(phrase));
        let mut clauses: Vec<Clause> = phrases.map(|phrase| (Occur::Must, phrase)).collect();
        let words = self.analysed.words.iter().map(|(word, weight)| match *weight {
            1.0 => self.word(word),
            weight => Box::new(BoostQuery::new(self.word(word), weight)),
        });
        let completions = completions.iter().map(|term| term_query(term.clone()));
        let words: Vec<Box<dyn Query>> = words.chain(completions).collect();
        if !words.is_empty() {
            // Beside a phrase, plain words are optional.
            let occur = if clauses.is_empty() { Occur::Must } else { Occur::Should };
            clauses.push((occur, Box::new(BooleanQuery::union(words))));
        }
        clauses
    }

    /// What a chunk must not match.
    fn exclusions(&self) -> Vec<Box<dyn Query>> {
        self.analysed.excluded.iter().map(|excluded| self.phrase(excluded)).collect()
    }

    fn phrase(&self, phrase: &Phrase) -> Box<dyn Query> {
        let row = |row: &Vec<(u32, String)>| -> Box<dyn Query> {
            match row.as_slice() {
                [(_, word)] => self.word(word),
                row => {
                    let terms =
                        row.iter().map(|(place, word)| (*place as usize, self.fields.word_term(word)));
                    Box::new(PhraseQuery::new_with_offset(terms.collect()))
                }
            }
        };
        let mut rows: Vec<Box<dyn Query>> = phrase.rows.iter().map(row).collect();
        match rows.pop() {
            Some(only) if rows.is_empty() => only,
            last => Box::new(BooleanQuery::union(rows.into_iter().chain(last).collect())),
        }
    }

    fn word(&self, word: &str) -> Box<dyn Query> {
        term_query(self.fields.word_term(word))
    }
}

fn term_query(term: Term) -> Box<dyn Query> {
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}
