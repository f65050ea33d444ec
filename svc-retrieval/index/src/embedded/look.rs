//! Reads the features of a few chunks for reranking. CPU-bound: runs on blocking threads.

use std::collections::{HashMap, HashSet};

use tantivy::query::Bm25StatisticsProvider as _;
use uuid::Uuid;

use super::Index;
use super::overlay::Overlay;
use super::read::Snapshot;
use super::statistics::{Corpus, LiveStatistics};
use crate::look::{AskedWords, Look, PiecesHeld, Seen, rarity};
use crate::vectors::Composed;
use crate::{ChunkId, Error, IndexedDocument};

impl Snapshot<'_> {
    /// The words of a question with their idf in the corpus that is searched.
    fn asked(&self, look: &Look) -> tantivy::Result<AskedWords> {
        let languages = self.view.languages(self.fields.language, look.workspace)?;
        let corpus = Corpus::new(look.workspace, look.containers.as_ref());
        let living = LiveStatistics::new(&self.view, self.fields, &corpus)?;
        let all = living.total_num_docs()?;
        AskedWords::of(&look.question, languages, |forms| {
            let mut holding = 0;
            for form in forms {
                holding = holding.max(living.doc_freq(&self.fields.word_term(form))?);
            }
            Ok(rarity(all, holding))
        })
    }
}

impl Index {
    /// The texts and vectors of the chunks, and the frequencies of the question's words and pieces.
    ///
    /// # Errors
    /// The stored chunks cannot be read.
    pub fn look(&self, look: &Look) -> Result<Seen, Error> {
        let snapshot = self.snapshot();
        let (composed, held) = match &look.pieces {
            None => (HashMap::new(), None),
            Some(pieces) => {
                let composed = self.vectors().composed(look.workspace, &look.chunks)?;
                let is_whole = look.containers.is_none();
                let held = is_whole.then(|| self.vectors().holding(look.workspace, pieces)).transpose()?;
                (composed, held)
            }
        };
        let chunks = snapshot.chunks(look.workspace, &look.chunks)?;
        Ok(Seen { chunks, composed, held, words: snapshot.asked(look)? })
    }

    /// As [`Index::look`], with these documents in place of their indexed versions.
    ///
    /// # Errors
    /// As [`Index::look`].
    pub fn look_instead(&self, look: &Look, documents: &[IndexedDocument]) -> Result<Seen, Error> {
        let overlay = Overlay::new(self, documents)?;
        let (composed, held) = match &look.pieces {
            None => (HashMap::new(), None),
            Some(pieces) => {
                let composed = overlay.composed(look.workspace, &look.chunks)?;
                let is_whole = look.containers.is_none();
                let held =
                    is_whole.then(|| overlay.holding(look.workspace, documents, pieces)).transpose()?;
                (composed, held)
            }
        };
        let snapshot = overlay.snapshot();
        let chunks = snapshot.chunks(look.workspace, &look.chunks)?;
        Ok(Seen { chunks, composed, held, words: snapshot.asked(look)? })
    }
}

impl Overlay<'_> {
    fn composed(&self, workspace: Uuid, chunks: &[ChunkId]) -> Result<HashMap<ChunkId, Composed>, Error> {
        let is_new = |chunk: &&ChunkId| self.vectors().has(chunk.document);
        let held: Vec<ChunkId> = chunks.iter().filter(|chunk| !is_new(chunk)).copied().collect();
        let mut composed = self.index().vectors().composed(workspace, &held)?;
        let new = chunks.iter().filter(is_new);
        composed.extend(new.filter_map(|chunk| Some((*chunk, self.vectors().composed(*chunk)?))));
        Ok(composed)
    }

    /// The counts of the index without the indexed versions of the drafts, plus those of the drafts.
    fn holding(
        &self,
        workspace: Uuid,
        documents: &[IndexedDocument],
        pieces: &[u16],
    ) -> Result<PiecesHeld, Error> {
        let vectors = self.index().vectors();
        let mut held = vectors.holding(workspace, pieces)?;
        let own: HashSet<Uuid> = documents
            .iter()
            .filter(|document| document.workspace == workspace)
            .map(|document| document.document)
            .collect();
        for document in own {
            let gone = vectors.holding_of(workspace, document, pieces)?;
            held.chunks = held.chunks.saturating_sub(gone.chunks);
            subtract(&mut held.holding, &gone.holding);
        }
        let new = self.vectors().holding(pieces);
        held.chunks += new.chunks;
        held.holding.iter_mut().zip(new.holding).for_each(|(held, new)| *held += new);
        Ok(held)
    }
}

fn subtract(counts: &mut [u32], others: &[u32]) {
    counts.iter_mut().zip(others).for_each(|(count, other)| *count = count.saturating_sub(*other));
}
