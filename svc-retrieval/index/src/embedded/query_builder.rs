//! From what a search looks up to tantivy's queries, the same for every set of segments that is searched.

use std::collections::HashSet;

use tantivy::Term;
use tantivy::query::{BooleanQuery, BoostQuery, Occur, PhraseQuery, Query, TermQuery, TermSetQuery};
use tantivy::schema::IndexRecordOption;
use uuid::Uuid;

use super::query::LexicalQuery;
use super::schema::Fields;
use crate::ChunkId;
use crate::words::{Phrase, Sought};

type Clause = (Occur, Box<dyn Query>);

/// A search in tantivy's terms.
pub(super) struct CompiledQuery {
    /// What a chunk must hold, with its score.
    pub(super) scored: Box<dyn Query>,
    /// The workspace searched.
    pub(super) workspace: Term,
    /// The containers searched, none for all.
    pub(super) containers: Option<TermSetQuery>,
    /// The documents searched, none for all.
    pub(super) documents: Option<TermSetQuery>,
    /// What a chunk may not hold.
    pub(super) exclusions: Vec<Box<dyn Query>>,
}

/// Builds queries over the fields of a chunk.
#[derive(Clone, Copy)]
pub(super) struct QueryBuilder<'a> {
    pub(super) fields: &'a Fields,
    pub(super) sought: &'a Sought,
}

impl QueryBuilder<'_> {
    /// What finds and scores the chunks of a search; none if it names nothing. Of `begun`, the words that the last word of
    /// the search begins, one is enough, as of its own.
    pub(super) fn compile(&self, query: &LexicalQuery<'_>, completions: &[Term]) -> Option<CompiledQuery> {
        let mut clauses = self.scored_clauses(completions);
        let scored: Box<dyn Query> = match clauses.len() {
            0 => return None,
            // A plain union stays one: its best rows are found without looking at all of them.
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

    /// What finds those of `chunks` that hold an exclusion; none if nothing is excluded.
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

    /// What finds the chunks that hold the last word of the search as a whole; none if it cannot be a beginning.
    pub(super) fn whole_word(&self, query: &LexicalQuery<'_>) -> Option<BooleanQuery> {
        let whole = &self.sought.prefix.as_ref()?.whole;
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

    /// What a chunk must hold; empty if the query names nothing.
    fn scored_clauses(&self, completions: &[Term]) -> Vec<Clause> {
        let phrases = self.sought.phrases.iter().map(|phrase| self.phrase(phrase));
        let mut clauses: Vec<Clause> = phrases.map(|phrase| (Occur::Must, phrase)).collect();
        let words = self.sought.words.iter().map(|(word, weight)| match *weight {
            1.0 => self.word(word),
            weight => Box::new(BoostQuery::new(self.word(word), weight)),
        });
        let completions = completions.iter().map(|term| term_query(term.clone()));
        let words: Vec<Box<dyn Query>> = words.chain(completions).collect();
        if !words.is_empty() {
            // With a phrase, plain words only add to the score.
            let occur = if clauses.is_empty() { Occur::Must } else { Occur::Should };
            clauses.push((occur, Box::new(BooleanQuery::union(words))));
        }
        clauses
    }

    /// What a chunk may not hold.
    fn exclusions(&self) -> Vec<Box<dyn Query>> {
        self.sought.excluded.iter().map(|excluded| self.phrase(excluded)).collect()
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
