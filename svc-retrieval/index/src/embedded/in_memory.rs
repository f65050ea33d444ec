//! Searches documents that are not indexed, in memory.

use std::sync::Arc;

use tantivy::tokenizer::{TextAnalyzer, TokenizerManager};
use uuid::Uuid;

use super::open::{open_reader, settings};
use super::query::LexicalQuery;
use super::read::Snapshot;
use super::recent;
use super::schema::Fields;
use super::tokens::{TOKEN_LIST, TokenListTokenizer};
use super::view::View;
use crate::vectors::{DraftVectors, RowFilter};
use crate::{Candidates, ChunkId, Error, Hit, IndexedDocument, ListQuery, ParsedQuery, Query, sort_hits};

/// The candidates that an index of these documents alone would return, with statistics over them. Cosines are those of all chunks.
/// CPU-bound: runs on blocking threads.
///
/// # Errors
/// [`Error::Engine`] when the words cannot be searched.
pub fn candidates_in_memory(documents: &[IndexedDocument], query: &Query) -> Result<Vec<Candidates>, Error> {
    let fields = Fields::new();
    let rows = fields.encode_all(documents);
    if rows.is_empty() {
        return Ok(vec![Candidates::default(); query.lists.len()]);
    }
    let tokenizers = TokenizerManager::default();
    tokenizers.register(TOKEN_LIST, TextAnalyzer::from(TokenListTokenizer::default()));
    let empty = tantivy::Index::builder()
        .schema(fields.schema.clone())
        .settings(settings())
        .tokenizers(tokenizers.clone())
        .create_in_ram()?;
    let segment = recent::segment(&fields.schema, &tokenizers, &rows)?;
    let view = View::committed(open_reader(&empty)?.searcher()).with(&[], Some(segment))?;
    let vectors = DraftVectors::of(documents);
    let drafts = DraftIndex { snapshot: Snapshot { fields: &fields, view: Arc::new(view) }, vectors };
    query.lists.iter().map(|list_query| drafts.list(query, list_query)).collect()
}

struct DraftIndex<'a> {
    snapshot: Snapshot<'a>,
    vectors: DraftVectors,
}

impl DraftIndex<'_> {
    fn list(&self, query: &Query, list_query: &ListQuery) -> Result<Candidates, Error> {
        let mut words = match &list_query.words {
            Some(words) => self.by_words(query, words)?,
            None => Vec::new(),
        };
        let mut cosines = match &list_query.vector {
            Some(vector) => self.cosines(vector),
            None => Vec::new(),
        };
        if list_query.requires_phrase_match(&words) {
            cosines.retain(|near| words.iter().any(|hit| hit.chunk == near.chunk));
        }
        for exclusions in list_query.words.iter().chain(&list_query.without) {
            self.remove_excluded(query.workspace, exclusions, &mut words)?;
            self.remove_excluded(query.workspace, exclusions, &mut cosines)?;
        }
        Ok(Candidates { words, cosines })
    }

    fn by_words(&self, query: &Query, words: &ParsedQuery) -> Result<Vec<Hit>, Error> {
        Ok(self.snapshot.search(&LexicalQuery {
            workspace: query.workspace,
            words,
            containers: query.containers.as_ref(),
            documents: query.documents.as_ref(),
            limit: query.limit,
        })?)
    }

    /// The chunks with a positive cosine, nearest first.
    fn cosines(&self, vector: &[f32]) -> Vec<Hit> {
        let mut hits = self.vectors.cosines(vector, RowFilter::default());
        hits.retain(|hit| hit.score > 0.0);
        sort_hits(&mut hits);
        hits
    }

    fn remove_excluded(
        &self,
        workspace: Uuid,
        exclusions: &ParsedQuery,
        hits: &mut Vec<Hit>,
    ) -> Result<(), Error> {
        if exclusions.excluded().is_empty() {
            return Ok(());
        }
        let chunks: Vec<ChunkId> = hits.iter().map(|hit| hit.chunk).collect();
        let excluded = self.snapshot.excluded(workspace, exclusions, &chunks)?;
        hits.retain(|hit| !excluded.contains(&hit.chunk));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::Index;
    use super::super::testing::add;
    use super::*;
    use crate::contract::{WORKSPACE, document};

    /// Lists by words, by vector and by both.
    fn query(text: &str) -> Query {
        let (words, vector) = (Arc::new(ParsedQuery::parse(text)), Arc::from([0.6, 0.8]));
        let by_words = ListQuery { words: Some(Arc::clone(&words)), ..ListQuery::default() };
        let by_meaning =
            ListQuery { words: None, vector: Some(Arc::clone(&vector)), without: vec![Arc::clone(&words)] };
        let by_both = ListQuery { words: Some(words), vector: Some(vector), without: Vec::new() };
        let lists = vec![by_words, by_meaning, by_both];
        Query { workspace: WORKSPACE, containers: None, documents: None, limit: 50, lists }
    }

    #[test]
    fn finds_what_an_index_of_these_documents_finds() {
        let mut documents = vec![
            document(1, &["The signing key is rotated every month", "Who rotates it is on call"]),
            document(2, &["Keys of the pianos are tuned", "getUserName reads a signing key"]),
            document(3, &["Nothing of the kind"]),
        ];
        documents[0].chunks[1].embedding = vec![0.0, 1.0];
        documents[1].chunks[0].embedding = vec![0.0, 0.0];
        documents[2].chunks[0].embedding = vec![-1.0, 0.0];
        let folder = tempfile::tempdir().unwrap();
        let index = Index::open(folder.path(), "test", 2).unwrap();
        add(&index, documents.clone());
        let texts = [
            "signing key",
            "rotate -piano",
            "\"signing key\" user",
            "user name",
            "getUserN",
            "-kind",
            "",
            "zebra",
        ];
        for text in texts {
            let expected = index.candidates(&query(text)).unwrap();
            let found = candidates_in_memory(&documents, &query(text)).unwrap();
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found.words, expected.words, "{text}");
                let positive = |hits: &[Hit]| -> HashSet<ChunkId> {
                    hits.iter().filter(|hit| hit.score > 0.0).map(|hit| hit.chunk).collect()
                };
                assert_eq!(positive(&found.cosines), positive(&expected.cosines), "{text}");
            }
        }
    }

    #[test]
    fn nothing_is_found_in_nothing() {
        let found = candidates_in_memory(&[document(1, &[])], &query("anything")).unwrap();
        assert_eq!(found, vec![Candidates::default(); 3]);
    }
}
