//! Checks that the document is indexed, and which words of the question are in it.

use std::collections::HashSet;
use std::sync::Arc;

use cairn_index::words::{Language, Languages, SearchableText, SignificantWords, Stems, detect};
use cairn_index::{ListQuery, ParsedQuery, Query, StoredChunk};
use cairn_proto::retrieval::v1::SoughtWord;
use uuid::Uuid;

use super::existence::Missed;
use super::report::{Code, Finding, Report};
use super::{Case, counted};
use crate::error::Error;
use crate::partition;
use crate::search::state::State;
use crate::search::stored_document::{self, StoredDocument};
use crate::search::{Searcher, Strategy};

/// Passages of a document that are read for the words of a question: four megabytes at the most.
const MAX_PASSAGES: u32 = 2_000;
/// Bytes of a document for language detection, as at indexing.
const LANGUAGE_BYTES: usize = 1_024;
/// Excluded and demanded texts that are looked up; each is a list of its own.
const MAX_LOOKED_UP: usize = 64;
/// Words that a message lists at most.
const MAX_NAMED: usize = 12;

impl Searcher {
    /// The stored document, if the index has its current text.
    pub(super) async fn indexed(
        &self,
        case: Case<'_>,
        missed: &Missed,
        report: &mut Report,
    ) -> Result<Option<StoredDocument>, Error> {
        let workspace = case.identity.workspace_id()?;
        let (message, advice) = match State::of(case.generation, workspace, missed).await? {
            State::Current(held) => {
                report.tell(Finding::passed(Code::Indexed, message_of(&held)));
                return Ok(Some(held));
            }
            State::Outdated(_) => (
                "The index holds an older text of it, which is not shown any more, and is taking in the new one.",
                "Ask again in a moment.",
            ),
            State::Waiting => ("The index has not taken it in yet.", "Ask again in a moment."),
            State::Empty => {
                ("There is no text in it, so there is nothing to find.", "Write something into it.")
            }
            State::Failed(_) => (
                "Its text could not be cut into passages, so the search does not find it.",
                "Change its text, or report this to whoever runs the server.",
            ),
        };
        report.tell(Finding::failed(Code::Indexed, message, advice));
        Ok(None)
    }
}

fn message_of(held: &StoredDocument) -> String {
    let chunks = counted(held.chunks as usize, "passage", "passages");
    match held.chunks - held.embedded {
        0 => format!("The index holds it as it is now: {chunks}."),
        without => format!(
            "The index holds it as it is now: {chunks}, {without} of them without a vector, so by words only."
        ),
    }
}

/// The passages of a document, up to the limit.
#[derive(Debug)]
pub(super) struct Passages {
    chunks: Vec<StoredChunk>,
    language: Language,
    is_cut: bool,
}

impl Passages {
    pub(super) async fn read(case: Case<'_>, missed: &Missed, held: &StoredDocument) -> Result<Self, Error> {
        let partition = partition::of(case.identity.workspace_id()?, missed.document.catalog_only);
        let engine = case.generation.engine.as_ref();
        let chunks = stored_document::chunks(engine, partition, missed.id, MAX_PASSAGES).await?;
        let mut sample = String::new();
        for chunk in &chunks {
            if sample.len() >= LANGUAGE_BYTES {
                break;
            }
            sample.push_str(&chunk.text);
        }
        Ok(Self { is_cut: held.chunks > MAX_PASSAGES, language: detect(&sample), chunks })
    }
}

/// Which words of the question stand in the document, its title, its tags or the names of its folders.
pub(super) fn check_words(case: Case<'_>, missed: &Missed, passages: &Passages, report: &mut Report) {
    let significant =
        SignificantWords::of(case.search.query.parsed.text(), Languages::from(passages.language));
    if significant.count() == 0 {
        report.tell(Finding::skipped(Code::Words, "The question has no words to look for."));
        return;
    }
    let (mut held, mut most) = (vec![false; significant.count()], 0);
    let mut stems = Stems::default();
    for chunk in &passages.chunks {
        let text = SearchableText {
            title: &chunk.title,
            path: &missed.document.path,
            tags: &missed.document.tags,
            headings: &chunk.heading_path,
            table_header: &chunk.table_header,
            ..SearchableText::text(&chunk.text, passages.language)
        };
        let found = significant.contains_each(&text, &mut stems);
        most = most.max(found.iter().filter(|is_held| **is_held).count());
        held.iter_mut().zip(found).for_each(|(held, found)| *held |= found);
    }
    report.tell(told_words(&significant, &held, most, passages.is_cut));
}

fn told_words(significant: &SignificantWords, held: &[bool], most: usize, is_cut: bool) -> Finding {
    let words: Vec<SoughtWord> = significant
        .words()
        .iter()
        .zip(held)
        .map(|(word, held)| SoughtWord { word: word.word.clone(), stems: word.forms.clone(), held: *held })
        .collect();
    let (all, found) = (words.len(), words.iter().filter(|word| word.held).count());
    let within = if is_cut { " Only its first 2 000 passages were read." } else { "" };
    let advice = "Ask with words that stand in it, or put the missing words into it.";
    let finding = if found == all && most == all {
        let message = format!("All words of the question stand in it ({all} of {all}).{within}");
        Finding::passed(Code::Words, message)
    } else if found == all {
        let message = format!(
            "All words of the question stand in it ({all} of {all}), but at most {most} of them in one passage.{within}"
        );
        Finding::weak(Code::Words, message, "Put what belongs together into one passage.")
    } else {
        let missing = words.iter().filter(|word| !word.held).map(|word| format!("“{}”", word.word));
        let missing = missing.take(MAX_NAMED).collect::<Vec<_>>().join(", ");
        let message =
            format!("{found} of {all} words of the question stand in it; these do not: {missing}.{within}");
        Finding::weak(Code::Words, message, advice)
    };
    finding.with_words(words)
}

/// Whether the document's passages are left out by excluded words, or for want of a quoted phrase; false where excluded
/// words leave out all of them.
pub(super) async fn check_exclusions(
    case: Case<'_>,
    missed: &Missed,
    held: &StoredDocument,
    report: &mut Report,
) -> Result<bool, Error> {
    let query = &case.search.query.parsed;
    let excluded: Vec<&String> = query.excluded().iter().take(MAX_LOOKED_UP).collect();
    let phrases: Vec<&String> = query.phrases().iter().take(MAX_LOOKED_UP).collect();
    let texts: Vec<&String> = excluded.iter().chain(&phrases).copied().collect();
    let mut holding = holding(case, missed.id, held, &texts).await?;
    let demanded = holding.split_off(excluded.len().min(holding.len()));
    let out: HashSet<u32> = holding.iter().flatten().copied().collect();
    report.tell(told_excluded(&excluded, &holding, held));
    if out.len() >= held.chunks as usize {
        return Ok(false);
    }
    let is_by_words = !case.search.searches.is_empty() || case.search.strategy != Strategy::Semantic;
    report.tell(told_phrases(&phrases, &demanded, is_by_words));
    Ok(true)
}

/// The passages that hold each of some texts, found as a search finds quoted phrases, which is how it leaves out, too.
async fn holding(
    case: Case<'_>,
    document: Uuid,
    held: &StoredDocument,
    texts: &[&String],
) -> Result<Vec<HashSet<u32>>, Error> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let list_query = |text: &&String| {
        let words = Some(Arc::new(ParsedQuery::parse(&format!("\"{text}\""))));
        ListQuery { words, ..ListQuery::default() }
    };
    let query = Query {
        workspace: case.identity.workspace_id()?.0,
        containers: None,
        documents: Some(HashSet::from([document])),
        limit: held.chunks.min(MAX_PASSAGES) as usize,
        lists: texts.iter().map(list_query).collect(),
    };
    let found = case.generation.engine.candidates(query).await?;
    Ok(found.into_iter().map(|list| list.words.iter().map(|hit| hit.chunk.ordinal).collect()).collect())
}

fn told_excluded(excluded: &[&String], holding: &[HashSet<u32>], held: &StoredDocument) -> Finding {
    if excluded.is_empty() {
        return Finding::passed(Code::Excluded, "The question excludes no words.");
    }
    let named = |text: &str| {
        if text.contains(char::is_whitespace) { format!("-\"{text}\"") } else { format!("-{text}") }
    };
    let hit = excluded.iter().zip(holding).filter(|(_, chunks)| !chunks.is_empty());
    let hit: Vec<String> = hit.map(|(text, _)| named(text)).take(MAX_NAMED).collect();
    let out: HashSet<u32> = holding.iter().flatten().copied().collect();
    let all = held.chunks as usize;
    if out.is_empty() {
        let names: Vec<String> = excluded.iter().take(MAX_NAMED).map(|text| named(text)).collect();
        let message = format!("Nothing of it is left out by excluded words ({}).", names.join(", "));
        return Finding::passed(Code::Excluded, message);
    }
    let names = hit.join(", ");
    if out.len() >= all {
        let message = match all {
            1 => format!("Its passage is left out by {names}: it holds what the question excludes."),
            _ => format!("Every passage of it is left out by {names}: it holds what the question excludes."),
        };
        return Finding::failed(Code::Excluded, message, "Ask without excluding that.");
    }
    let message = format!("{} of its {all} passages are left out by {names}.", out.len());
    Finding::weak(
        Code::Excluded,
        message,
        "Ask without excluding that, if one of these is what you look for.",
    )
}

fn told_phrases(phrases: &[&String], holding: &[HashSet<u32>], is_by_words: bool) -> Finding {
    if phrases.is_empty() {
        return Finding::passed(Code::Phrases, "The question demands no quoted words.");
    }
    if !is_by_words {
        return Finding::passed(Code::Phrases, "A search by meaning alone does not demand quoted words.");
    }
    let mut sets = holding.iter();
    let mut all = sets.next().cloned().unwrap_or_default();
    for set in sets {
        all.retain(|ordinal| set.contains(ordinal));
    }
    if !all.is_empty() {
        let passages = counted(all.len(), "passage holds", "passages hold");
        return Finding::passed(Code::Phrases, format!("{passages} the quoted words."));
    }
    let missing = phrases.iter().zip(holding).filter(|(_, chunks)| chunks.is_empty());
    let missing: Vec<String> = missing.map(|(text, _)| format!("“{text}”")).take(MAX_NAMED).collect();
    let message = match missing.is_empty() {
        true => "No passage of it holds all quoted words together.".to_owned(),
        false => format!("No passage of it holds the quoted words {}.", missing.join(", ")),
    };
    Finding::weak(Code::Phrases, message, "Ask without the quotes: words alone are enough then.")
}

#[cfg(test)]
mod tests {
    use cairn_proto::retrieval::v1::{AbsenceCheck, Verdict};

    use super::*;

    fn told(finding: Finding) -> AbsenceCheck {
        let mut report = Report::new(Vec::new());
        report.tell(finding);
        report.finished().checks.into_iter().find(|check| check.verdict() != Verdict::Skipped).unwrap()
    }

    fn held(chunks: u32) -> StoredDocument {
        StoredDocument { chunks, embedded: chunks, content_hash: String::new() }
    }

    #[test]
    fn words_are_named_with_their_stems() {
        let significant = SignificantWords::of("rotating the signing keys", Languages::default());
        let some = told(told_words(&significant, &[true, false, true], 2, false));
        assert_eq!(some.verdict(), Verdict::Weak);
        assert_eq!(some.message, "2 of 3 words of the question stand in it; these do not: “signing”.");
        assert_eq!(some.words[0].stems, ["rotat"]);
        assert!(!some.words[1].held && some.words[2].held);
        assert_eq!(told(told_words(&significant, &[true; 3], 3, false)).verdict(), Verdict::Passed);
        let apart = told(told_words(&significant, &[true; 3], 1, true));
        assert!(apart.message.contains("at most 1 of them in one passage"), "{}", apart.message);
    }

    #[test]
    fn exclusions_are_named_as_they_were_typed() {
        let (monday, phrase) = ("monday".to_owned(), "no entry".to_owned());
        let excluded = [&monday, &phrase];
        let all = told(told_excluded(&excluded, &[HashSet::from([0, 1]), HashSet::new()], &held(2)));
        assert_eq!(all.verdict(), Verdict::Failed);
        assert!(all.message.contains("left out by -monday:"), "{}", all.message);
        let some = told(told_excluded(&excluded, &[HashSet::from([0]), HashSet::from([0])], &held(2)));
        assert_eq!(some.message, "1 of its 2 passages are left out by -monday, -\"no entry\".");
        let none = told(told_excluded(&excluded, &[HashSet::new(), HashSet::new()], &held(2)));
        assert_eq!((none.verdict(), none.message.contains("-monday")), (Verdict::Passed, true));
    }

    #[test]
    fn quoted_words_must_stand_together() {
        let (one, other) = ("a b".to_owned(), "c d".to_owned());
        let phrases = [&one, &other];
        let apart = told(told_phrases(&phrases, &[HashSet::from([0]), HashSet::from([1])], true));
        assert_eq!(apart.message, "No passage of it holds all quoted words together.");
        let missing = told(told_phrases(&phrases, &[HashSet::from([0]), HashSet::new()], true));
        assert_eq!(missing.message, "No passage of it holds the quoted words “c d”.");
        let both = told(told_phrases(&phrases, &[HashSet::from([0, 1]), HashSet::from([1])], true));
        assert_eq!(
            (both.verdict(), both.message.as_str()),
            (Verdict::Passed, "1 passage holds the quoted words.")
        );
        assert_eq!(
            told(told_phrases(&phrases, &[HashSet::new(), HashSet::new()], false)).verdict(),
            Verdict::Passed
        );
    }
}
