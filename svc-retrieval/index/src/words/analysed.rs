//! Query analysis: the terms that a parsed query looks up.

use std::collections::HashMap;

use super::{ContainerExpansion, Kind, Language, Languages, Word, fold, split};
use crate::ParsedQuery;

/// The maximum number of word pairs, so that a pasted page costs no more than a question.
const MAX_PAIRS: usize = 16;

/// The number of words from which the language of a question is detected.
const LANGUAGE_SAMPLE_WORDS: usize = 64;

/// The maximum number of words of a query: a pasted page would otherwise read thousands of posting lists.
const MAX_WORDS: usize = 128;

/// The weight of a whole name beside its parts, which are looked up, too. Less than that of a word, since the parts already count:
/// +.003 nDCG@10 over full weight, and an exact name still ranks first.
const NAME_WEIGHT: f32 = 0.5;

/// The weight of each of the two spellings of a word with accents: together as much as a word.
const SPELLING_WEIGHT: f32 = 0.5;

/// The weight of a form that a word has only in languages other than the question's. Such a form is rare where most text is in one
/// language, and so has a high idf: full weight cost .017 nDCG@10 on code (CoSQA), a hundredth of which is detected as French or
/// Catalan.
const FOREIGN_WEIGHT: f32 = 0.25;

/// The minimum length of a prefix in characters.
pub(crate) const MIN_PREFIX_CHARS: usize = 3;

/// Letters that stemming may have removed from the end of an indexed word: `universi` is a prefix of `university`, which is indexed as
/// `univers`.
const STEMMED_OFF: usize = 3;

/// The minimum number of letters of a prefix that was shortened.
const MIN_SHORTENED: usize = 5;

/// An analysed query, in every language of the texts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnalysedQuery {
    /// Distinct words with their weights, of which one suffices, followed by those of containers.
    pub words: Vec<(String, f32)>,
    /// Pairs of consecutive words in the question's language, for the proximity bonus.
    pub pairs: Vec<[String; 2]>,
    /// A chunk must contain all of these.
    pub phrases: Vec<Phrase>,
    /// A chunk must contain none of these.
    pub excluded: Vec<Phrase>,
    /// The last plain word, if it can be a prefix.
    pub prefix: Option<Prefix>,
}

/// A phrase: a chunk contains it if it contains any of these sequences at these distances. Accents are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// The sequence in each language; never empty, positions start at 0.
    pub rows: Vec<Vec<(u32, String)>>,
}

/// A word that may be incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// The word in lower case and without accents.
    pub text: String,
    /// Its indexed forms if it is a whole word.
    pub whole: Vec<String>,
}

impl AnalysedQuery {
    /// Analyses a query for texts in these languages and English.
    pub fn new(query: &ParsedQuery, languages: Languages) -> Self {
        let languages = languages.with(Language::English);
        let asked = looked_up(split(&query.words().join(" ")));
        let language =
            languages.of_question(asked.iter().take(LANGUAGE_SAMPLE_WORDS).map(|word| word.text.as_str()));
        let significant = without_stop_words(&asked, language);
        let phrases = |texts: &[String]| {
            texts.iter().filter_map(|text| Phrase::new(text, languages)).collect::<Vec<_>>()
        };
        let mut demanded = phrases(query.phrases());
        demanded.truncate(MAX_WORDS);
        let analysed = Self {
            words: weighted(&significant, language, languages),
            pairs: pairs(&significant, language),
            phrases: demanded,
            excluded: phrases(query.excluded()),
            prefix: asked.last().and_then(|last| Prefix::new(last, languages)),
        };
        match query.expansion() {
            Some(expansion) => analysed.with_names(expansion, &significant, languages),
            None => analysed,
        }
    }

    /// Adds the containers whose names match: a chunk matches whatever the names of its containers match.
    fn with_names(
        mut self,
        expansion: &ContainerExpansion,
        significant: &[&Word],
        languages: Languages,
    ) -> Self {
        self.words.extend(expansion.words(significant, languages));
        for phrase in self.phrases.iter_mut().chain(&mut self.excluded) {
            let containers = expansion.rows(&phrase.rows, languages);
            phrase.rows.extend(containers.into_iter().map(|word| vec![(0, word)]));
        }
        if let Some(prefix) = &mut self.prefix {
            let containers = expansion.whole(&prefix.whole, languages);
            prefix.whole.extend(containers);
        }
        self
    }
}

/// Drops single characters that are covered by pairs.
pub(super) fn looked_up(words: Vec<Word>) -> Vec<Word> {
    let mut paired = None;
    let mut kept: Vec<Word> = Vec::with_capacity(words.len());
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let begins_pair =
            words.peek().is_some_and(|next| next.kind == Kind::Pair && next.position == word.position);
        if word.kind == Kind::Pair {
            paired = Some(word.position + 1);
        }
        let covered = word.kind == Kind::Character && (begins_pair || paired == Some(word.position));
        if !covered {
            kept.push(word);
        }
    }
    kept
}

/// Drops stop words, unless there are no other words.
pub(super) fn without_stop_words(words: &[Word], language: Language) -> Vec<&Word> {
    let significant: Vec<&Word> = words.iter().filter(|word| !language.is_stop_word(&word.text)).collect();
    if significant.is_empty() { words.iter().collect() } else { significant }
}

/// Distinct forms with their weights; a repeated word counts twice.
fn weighted(words: &[&Word], language: Language, languages: Languages) -> Vec<(String, f32)> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut weighted: Vec<(String, f32)> = Vec::new();
    for word in words {
        let weight = if word.kind == Kind::Name { NAME_WEIGHT } else { 1.0 };
        let of_question = spellings(&word.text, language.into());
        for (form, mut share) in spellings(&word.text, languages) {
            if !of_question.iter().any(|(own, _)| *own == form) {
                share *= FOREIGN_WEIGHT;
            }
            let has_room = weighted.len() < MAX_WORDS;
            if let Some((_, sum)) = places.get(&form).and_then(|place| weighted.get_mut(*place)) {
                *sum += weight * share;
            } else if has_room {
                places.insert(form.clone(), weighted.len());
                weighted.push((form, weight * share));
            }
        }
    }
    weighted
}

/// The distinct stems of a word, and of the word without accents, with their weights.
pub(super) fn spellings(word: &str, languages: Languages) -> Vec<(String, f32)> {
    let folded = fold::fold(word);
    let plain = stems(&folded, languages);
    if *folded == *word {
        return plain.into_iter().map(|stem| (stem, 1.0)).collect();
    }
    let mut spellings: Vec<(String, f32)> = plain.into_iter().map(|stem| (stem, SPELLING_WEIGHT)).collect();
    for stem in stems(word, languages) {
        match spellings.iter_mut().find(|(plain, _)| *plain == stem) {
            Some((_, share)) => *share = 1.0,
            None => spellings.push((stem, SPELLING_WEIGHT)),
        }
    }
    spellings
}

fn stems(word: &str, languages: Languages) -> Vec<String> {
    let mut stems: Vec<String> = Vec::new();
    for language in languages.iter() {
        let stem = language.stem(word);
        if !stems.iter().any(|known| *known == stem) {
            stems.push(stem.into_owned());
        }
    }
    stems
}

fn pairs(words: &[&Word], language: Language) -> Vec<[String; 2]> {
    let stem = |word: &&Word| language.stem(&fold::fold(&word.text)).into_owned();
    let parts: Vec<String> = words.iter().filter(|word| word.kind == Kind::Part).map(stem).collect();
    let mut pairs: Vec<[String; 2]> = Vec::new();
    for (first, second) in parts.iter().zip(parts.iter().skip(1)) {
        let pair = [first.clone(), second.clone()];
        if first != second && pairs.len() < MAX_PAIRS && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs
}

impl Phrase {
    /// `None` for a text without words.
    fn new(text: &str, languages: Languages) -> Option<Self> {
        let words = split(text);
        let mut rows: Vec<Vec<(u32, String)>> = Vec::new();
        let parts: Vec<Word> = words.iter().filter(|word| word.kind != Kind::Name).cloned().collect();
        let parts = one_at_a_place(looked_up(parts));
        // `getUserName` is also indexed as `getusername`, so that each spelling matches the other.
        let name = words.iter().find(|word| is_whole(word, &words));
        for language in languages.iter() {
            let stem = |word: &Word| language.stem(&fold::fold(&word.text)).into_owned();
            let row: Vec<(u32, String)> =
                parts.iter().map(|word| (word.position, stem(word))).take(MAX_WORDS).collect();
            let alone = name.map(|name| vec![(0, stem(name))]);
            for row in std::iter::once(row).chain(alone).filter(|row| !row.is_empty()) {
                if !rows.contains(&row) {
                    rows.push(row);
                }
            }
        }
        (!rows.is_empty()).then_some(Self { rows })
    }
}

/// Whether the word is a name that consists of all words.
fn is_whole(word: &Word, words: &[Word]) -> bool {
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    let parts = words.iter().filter(|word| word.kind == Kind::Part);
    word.kind == Kind::Name && letters(&word.text) == parts.map(|part| letters(&part.text)).sum::<usize>()
}

/// Keeps the first word of each position: C++ has two forms, of which the first one, with its suffix, is more specific.
pub(super) fn one_at_a_place(mut words: Vec<Word>) -> Vec<Word> {
    words.dedup_by_key(|word| word.position);
    words
}

impl Prefix {
    fn new(word: &Word, languages: Languages) -> Option<Self> {
        let is_word = matches!(word.kind, Kind::Part | Kind::Name);
        let text = fold::fold(&word.text).into_owned();
        if !is_word || text.chars().count() < MIN_PREFIX_CHARS || !text.chars().all(char::is_alphanumeric) {
            return None;
        }
        let whole = spellings(&word.text, languages).into_iter().map(|(stem, _)| stem).collect();
        Some(Self { text, whole })
    }

    /// The prefixes to look up, longest first: the word itself, then shortened ones that stems may still match.
    pub fn beginnings(&self) -> impl Iterator<Item = &str> {
        let ends = self.text.char_indices().map(|(offset, _)| offset).chain([self.text.len()]);
        let letters = ends.clone().count().saturating_sub(1);
        let fewest = MIN_SHORTENED.max(letters.saturating_sub(STEMMED_OFF)).min(letters);
        let ends: Vec<usize> = ends.skip(fewest).collect();
        ends.into_iter().rev().filter_map(move |end| self.text.get(..end))
    }
}
