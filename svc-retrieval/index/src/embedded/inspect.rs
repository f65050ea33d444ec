//! Reads the features of a few chunks for reranking. CPU-bound: runs on blocking threads.

use std::collections::{HashMap, HashSet};

use tantivy::query::Bm25StatisticsProvider as _;
use uuid::Uuid;

use super::Index;
use super::overlay::Overlay;
use super::read::Snapshot;
use super::statistics::{Corpus, LiveStatistics};
use crate::inspect::{InspectRequest, Inspection, PieceCounts, QuestionWords, idf};
use crate::vectors::Composed;
use crate::{ChunkId, Error, IndexedDocument};

impl Snapshot<'_> {
    /// The words of a question with their idf in the corpus that is searched.
    fn question_words(&self, request: &InspectRequest) -> tantivy::Result<QuestionWords> {
        let languages = self.view.languages(self.fields.language, request.workspace)?;
        let corpus = Corpus::new(request.workspace, request.containers.as_ref());
        let living = LiveStatistics::new(&self.view, self.fields, &corpus)?;
        let all = living.total_num_docs()?;
        QuestionWords::of(&request.question, languages, |forms| {
            let mut containing = 0;
            for form in forms {
                containing = containing.max(living.doc_freq(&self.fields.word_term(form))?);
            }
            Ok(idf(all, containing))
        })
    }
}

impl Index {
    /// The texts and vectors of the chunks, and the frequencies of the question's words and pieces.
    ///
    /// # Errors
    /// The stored chunks cannot be read.
    pub fn inspect(&self, request: &InspectRequest) -> Result<Inspection, Error> {
        let snapshot = self.snapshot();
        let (composed, piece_counts) = match &request.pieces {
            None => (HashMap::new(), None),
            Some(pieces) => {
                let composed = self.vectors().composed(request.workspace, &request.chunks)?;
                let is_whole = request.containers.is_none();
                let piece_counts =
                    is_whole.then(|| self.vectors().piece_counts(request.workspace, pieces)).transpose()?;
                (composed, piece_counts)
            }
        };
        let chunks = snapshot.chunks(request.workspace, &request.chunks)?;
        Ok(Inspection { chunks, composed, piece_counts, words: snapshot.question_words(request)? })
    }

    /// As [`Index::inspect`], with these documents in place of their indexed versions.
    ///
    /// # Errors
    /// As [`Index::inspect`].
    pub fn inspect_with_drafts(
        &self,
        request: &InspectRequest,
        documents: &[IndexedDocument],
    ) -> Result<Inspection, Error> {
        let overlay = Overlay::new(self, documents)?;
        let (composed, piece_counts) = match &request.pieces {
            None => (HashMap::new(), None),
            Some(pieces) => {
                let composed = overlay.composed(request.workspace, &request.chunks)?;
                let is_whole = request.containers.is_none();
                let piece_counts = is_whole
                    .then(|| overlay.piece_counts(request.workspace, documents, pieces))
                    .transpose()?;
                (composed, piece_counts)
            }
        };
        let snapshot = overlay.snapshot();
        let chunks = snapshot.chunks(request.workspace, &request.chunks)?;
        Ok(Inspection { chunks, composed, piece_counts, words: snapshot.question_words(request)? })
    }
}

impl Overlay<'_> {
    fn composed(&self, workspace: Uuid, chunks: &[ChunkId]) -> Result<HashMap<ChunkId, Composed>, Error> {
        let is_new = |chunk: &&ChunkId| self.vectors().has(chunk.document);
        let indexed: Vec<ChunkId> = chunks.iter().filter(|chunk| !is_new(chunk)).copied().collect();
        let mut composed = self.index().vectors().composed(workspace, &indexed)?;
        let new = chunks.iter().filter(is_new);
        composed.extend(new.filter_map(|chunk| Some((*chunk, self.vectors().composed(*chunk)?))));
        Ok(composed)
    }

    /// The counts of the index without the indexed versions of the drafts, plus those of the drafts.
    fn piece_counts(
        &self,
        workspace: Uuid,
        documents: &[IndexedDocument],
        pieces: &[u16],
    ) -> Result<PieceCounts, Error> {
        let vectors = self.index().vectors();
        let mut counted = vectors.piece_counts(workspace, pieces)?;
        let own: HashSet<Uuid> = documents
            .iter()
            .filter(|document| document.workspace == workspace)
            .map(|document| document.document)
            .collect();
        for document in own {
            let replaced = vectors.piece_counts_of(workspace, document, pieces)?;
            counted.chunks = counted.chunks.saturating_sub(replaced.chunks);
            subtract(&mut counted.counts, &replaced.counts);
        }
        let new = self.vectors().piece_counts(pieces);
        counted.chunks += new.chunks;
        counted.counts.iter_mut().zip(new.counts).for_each(|(count, new)| *count += new);
        Ok(counted)
    }
}

fn subtract(counts: &mut [u32], others: &[u32]) {
    counts.iter_mut().zip(others).for_each(|(count, other)| *count = count.saturating_sub(*other));
}
