//! Runs golden questions: against the current index, and as if a file or record had been edited.

use std::collections::HashSet;
use std::sync::Arc;

use cairn_chassis::call::Call;
use cairn_chassis::identity::Identity;
use cairn_chassis::status::{Problem, Violation};
use cairn_index::IndexedDocument;
use cairn_proto::content::v1::{PreviewRecordRequest, PreviewRecordResponse};
use cairn_proto::document::v1::{ConfirmedDocument, DocumentRef};
use cairn_proto::domain::GoldenOutcome;
use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1::CoverageNote;
use uuid::Uuid;

use super::fetched::Fetched;
use super::page::{Page, Passage};
use super::pool::Site;
use super::rank::{self, Ranker, Ranking, Within};
use super::request::SearchRequest;
use super::{Missed, Searcher};
use crate::error::Error;
use crate::generations::Generation;
use crate::golden::{Expected, GoldenQuestion};
use crate::kinds;

/// The largest text of a file.
const MAX_BYTES: usize = 5 * 1024 * 1024;
/// Words of a shingle, by which a passage is recognized.
const RUN: usize = 3;
/// The share of a pinned passage's runs that a passage must have to be the same: it may be mended, cut or put together
/// with its neighbour.
const SAME: f64 = 0.8;

/// The outcome of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) outcome: GoldenOutcome,
    /// The rank of its document or passage among the results, from 1.
    pub(crate) place: Option<u32>,
}

impl Outcome {
    const LOST: Self = Self { outcome: GoldenOutcome::Lost, place: None };

    pub(crate) fn has_passed(self) -> bool {
        self.outcome == GoldenOutcome::Passed
    }
}

/// An edit that is not saved yet.
#[derive(Debug, Clone)]
pub(crate) enum Edit {
    /// A file with that text.
    File { id: String, content: String },
    /// A record with these values, a JSON object, beside those that it has.
    Record { database: String, id: String, values: String },
}

/// The edited document.
#[derive(Debug, Clone)]
struct Instead {
    documents: Arc<Vec<IndexedDocument>>,
    id: Uuid,
    known: Arc<ConfirmedDocument>,
}

/// The generation that golden questions are run against, and the caller.
#[derive(Debug, Clone, Copy)]
struct GoldenRun<'a> {
    generation: &'a Generation,
    identity: &'a Identity,
    call: &'a Call,
}

impl Searcher {
    /// The outcome of each question now, and notes on what was not searched.
    pub(crate) async fn run_golden(
        &self,
        identity: &Identity,
        call: &Call,
        questions: &[GoldenQuestion],
    ) -> Result<(Vec<Outcome>, Vec<CoverageNote>), Error> {
        let generation = self.generations.current();
        let run = GoldenRun { generation: &generation, identity, call };
        let (mut outcomes, mut notes) = (Vec::with_capacity(questions.len()), Vec::new());
        for question in questions {
            outcomes.push(self.ask_golden(run, question, None, &mut notes).await?);
        }
        Ok((outcomes, notes))
    }

    /// The outcome of each question now, and after the edit.
    ///
    /// # Errors
    /// NOT_FOUND for what is not there or what the caller may not see; what the owner would say of values that cannot be
    /// saved.
    pub(crate) async fn check_edit(
        &self,
        identity: &Identity,
        call: &Call,
        edit: Edit,
        questions: &[GoldenQuestion],
    ) -> Result<(Vec<(Outcome, Outcome)>, Vec<CoverageNote>), Error> {
        if let Edit::File { content, .. } = &edit
            && content.len() > MAX_BYTES
        {
            let message = format!("must be at most {MAX_BYTES} bytes");
            return Err(Error::Invalid(vec![Violation::new("content", "too_long", message)]));
        }
        let generation = self.generations.current();
        let run = GoldenRun { generation: &generation, identity, call };
        let instead = instead(run, edit).await?;
        let (mut effects, mut notes) = (Vec::with_capacity(questions.len()), Vec::new());
        for question in questions {
            let before = self.ask_golden(run, question, None, &mut notes).await?;
            let after = self.ask_golden(run, question, Some(&instead), &mut notes).await?;
            effects.push((before, after));
        }
        Ok((effects, notes))
    }

    /// A question whose search is refused, as that of a removed folder, counts as lost.
    async fn ask_golden(
        &self,
        run: GoldenRun<'_>,
        question: &GoldenQuestion,
        instead: Option<&Instead>,
        notes: &mut Vec<CoverageNote>,
    ) -> Result<Outcome, Error> {
        let request = SearchRequest::try_from(question.search.clone())?;
        match self.outcome(run, &request, &question.expected, instead, notes).await {
            Err(error) if error.is_refusal() => Ok(Outcome::LOST),
            outcome => outcome,
        }
    }

    async fn outcome(
        &self,
        run: GoldenRun<'_>,
        request: &SearchRequest,
        expected: &Expected,
        instead: Option<&Instead>,
        notes: &mut Vec<CoverageNote>,
    ) -> Result<Outcome, Error> {
        let GoldenRun { generation, identity, call } = run;
        let workspace = identity.workspace_id()?;
        let plan = self.plan(generation, identity, call, request).await;
        if !plan.searches_the_index() {
            return Ok(Outcome::LOST);
        }
        let (within, more) = self.within(generation, identity, call, &plan, request).await?;
        let (mut ranking, fetched) = match instead {
            None => {
                let ranked = self.ranked(generation, workspace, within, request).await?;
                add_notes(notes, ranked.notes);
                (ranked.ranking, Fetched::default())
            }
            Some(instead) => (
                self.ranked_instead(run, within, request, instead).await?,
                Fetched::of_one(Arc::clone(&instead.documents), (instead.id, Arc::clone(&instead.known))),
            ),
        };
        add_notes(notes, more);
        let site = Site { generation, workspace, call, fetched: &fetched, now: self.clock.now(), past: None };
        let read = std::mem::take(&mut ranking.inspection.chunks);
        let (pool, more) = self.gathered(site, request, (&ranking, read)).await?;
        add_notes(notes, more);
        Ok(judged(&Page::of(pool.evidence(), request), expected))
    }

    async fn ranked_instead(
        &self,
        run: GoldenRun<'_>,
        within: Within,
        request: &SearchRequest,
        instead: &Instead,
    ) -> Result<Ranking, Error> {
        let GoldenRun { generation, identity, .. } = run;
        // By words alone where the embedder fails, as the search itself.
        let vectors = rank::embed_queries(request, &generation.queries).await.unwrap_or_default();
        rank::rank_instead(
            Ranker::of(generation, self.preferences.word_weight),
            identity.workspace_id()?,
            (within, Arc::clone(&instead.documents)),
            request,
            vectors,
        )
        .await
    }
}

/// Deduplicates notes of several questions.
fn add_notes(notes: &mut Vec<CoverageNote>, more: impl IntoIterator<Item = CoverageNote>) {
    for note in more {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// The edited document.
async fn instead(run: GoldenRun<'_>, edit: Edit) -> Result<Instead, Error> {
    let GoldenRun { generation, identity, call } = run;
    let workspace = identity.workspace_id()?;
    let (kind, id, what) = match &edit {
        Edit::File { id, .. } => (Kind::File, id, "file"),
        Edit::Record { id, .. } => (Kind::Record, id, "record"),
    };
    let missing =
        || Problem::not_found(format!("there is no such {what}, or it is nothing that you may see"));
    let id = Uuid::try_parse(id).map_err(|_| missing())?;
    let (found, _) = Missed::find(generation, call, &[kind], id).await?;
    let mut known = found.ok_or_else(missing)?.document.as_ref().clone();
    let owner = generation.indexer.owner(kinds::feed_of(kind));
    let owner = owner.ok_or(Error::Answer("no owner is known for what is edited"))?;
    let reference = DocumentRef { kind: kind.into(), id: id.hyphenated().to_string() };
    let mut document = owner.read_documents(workspace, vec![reference]).await?.pop().ok_or_else(missing)?;
    match edit {
        Edit::File { content, .. } => {
            document.content_hash = format!("blake3:{}", blake3::hash(content.as_bytes()).to_hex());
            document.content = content;
        }
        Edit::Record { database, id, values } => {
            let request = PreviewRecordRequest { database_id: database, record_id: id, values_json: values };
            let PreviewRecordResponse { title, path, content, content_hash } =
                owner.preview_record(call, request).await?;
            (known.title, known.path) = (title.clone(), path.clone());
            (document.title, document.path) = (title, path);
            (document.content, document.content_hash) = (content, content_hash);
        }
    }
    known.content_hash.clone_from(&document.content_hash);
    let documents = generation.indexer.index_instead(workspace, document).await?;
    Ok(Instead { documents: Arc::new(documents), id, known: Arc::new(known) })
}

/// The outcome of a page. A collapsed copy counts as found: the result names it.
fn judged(page: &Page<'_>, expected: &Expected) -> Outcome {
    let wanted = Runs::of(&expected.quote);
    let mut other = None;
    for (place, passage) in page.passages.iter().enumerate() {
        let place = u32::try_from(place + 1).ok();
        match held(passage, expected.document, &wanted) {
            Some(true) => return Outcome { outcome: GoldenOutcome::Passed, place },
            Some(false) => other = other.or(place),
            None => {}
        }
    }
    match other {
        Some(_) => Outcome { outcome: GoldenOutcome::OtherPassage, place: other },
        None => Outcome::LOST,
    }
}

/// Whether a result of the document, or with a copy from it, has the passage; none for a result of others.
fn held(passage: &Passage<'_>, document: Uuid, wanted: &Runs) -> Option<bool> {
    if passage.best.chunk.id.document == document {
        return Some(wanted.is_in(&passage.content()));
    }
    let copy = passage.copies.iter().find(|copy| copy.chunk.id.document == document)?;
    Some(wanted.is_in(copy.lines()))
}

/// The shingles of a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Runs(HashSet<Vec<String>>);

impl Runs {
    fn of(text: &str) -> Self {
        let words: Vec<String> = text
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        if words.is_empty() {
            return Self(HashSet::new());
        }
        Self(words.windows(RUN.min(words.len())).map(<[String]>::to_vec).collect())
    }

    /// Whether nearly all of them stand in a text.
    fn is_in(&self, text: &str) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let length = self.0.iter().next().map_or(RUN, Vec::len);
        let words: Vec<String> = text
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let there: HashSet<&[String]> = words.windows(length).collect();
        let held = self.0.iter().filter(|run| there.contains(run.as_slice())).count();
        held as f64 >= self.0.len() as f64 * SAME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_is_known_again_when_it_was_mended() {
        let quote = "The rollback window is seven days, and every release can be rolled back within it by whoever is on call.";
        let runs = Runs::of(quote);
        assert!(runs.is_in(quote));
        assert!(runs.is_in(&format!("# Rolling back\n\n{}\n\nMore.", quote.to_uppercase())));
        assert!(runs.is_in(&quote.replace("seven", "7")));
        assert!(!runs.is_in("The rollback window is seven days."));
        assert!(!runs.is_in(""));
    }

    #[test]
    fn a_short_passage_is_known_by_all_its_words() {
        assert!(Runs::of("Seven days").is_in("It is seven days."));
        assert!(!Runs::of("Seven days").is_in("seven long days"));
        assert!(Runs::of(" … ").is_in("anything") && Runs::of("").is_in(""));
    }
}
