//! What a parsed search looks up.

use std::collections::HashMap;

use super::{Kind, Language, Languages, Naming, Word, fold, split};
use crate::ParsedQuery;

/// Pairs of words that are looked at, so that a pasted page costs no more than a question.
const MOST_PAIRS: usize = 16;

/// Words that tell the language of a question.
const TELLING_WORDS: usize = 64;

/// Most words of a query that are looked up. A pasted page would otherwise visit thousands of lists.
const MOST_WORDS: usize = 128;

/// What a name counts as a whole beside its parts, which are looked up too. Less than a word, because the parts have
/// counted already: +.003 nDCG@10 over counting it in full, and an exact name still comes first.
const NAME_WEIGHT: f32 = 0.5;

/// What each of the two spellings of a word with accents counts: together as much as a word.
const SPELLING_WEIGHT: f32 = 0.5;

/// What a form counts that a word has only in languages other than the question's. Such a form is rare where most is
/// written in one language, and what is rare counts much: in full it cost .017 nDCG@10 on code (CoSQA), of which a
/// hundredth is taken for French or Catalan.
const FOREIGN_WEIGHT: f32 = 0.25;

/// The fewest characters that are taken for the beginning of a word.
pub(crate) const MIN_PREFIX_CHARS: usize = 3;

/// Letters that may be missing at the end of what is indexed, since stems are: `universi` begins `university`, which is
/// indexed as `univers`.
const STEMMED_OFF: usize = 3;

/// The fewest letters that are left of the word then.
const FEWEST_LEFT: usize = 5;

/// A search as words, in every language that what is searched may be in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sought {
    /// The words, one of which is enough, each once, with what it counts; behind them those that stand for containers.
    pub words: Vec<(String, f32)>,
    /// Words that follow each other in the question, in its language; near each other they are worth more.
    pub pairs: Vec<[String; 2]>,
    /// All of which a chunk must hold.
    pub phrases: Vec<Phrase>,
    /// None of which a chunk may hold.
    pub excluded: Vec<Phrase>,
    /// The last plain word, if it can be the beginning of one.
    pub prefix: Option<Prefix>,
}

/// Words in a row: a chunk holds the phrase if it holds any of these rows, at these distances. Accents do not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// The row in each language, never empty, each from place 0.
    pub rows: Vec<Vec<(u32, String)>>,
}

/// A word that may have been begun only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// As it was typed, in lower case and without accents.
    pub text: String,
    /// What it is indexed as where it is a whole word.
    pub whole: Vec<String>,
}

impl Sought {
    /// What to look up in text of these languages. English is always among them.
    pub fn new(query: &ParsedQuery, languages: Languages) -> Self {
        let languages = languages.with(Language::English);
        let asked = looked_up(split(&query.words().join(" ")));
        let language = languages.of_question(asked.iter().take(TELLING_WORDS).map(|word| word.text.as_str()));
        let telling = without_stop_words(&asked, language);
        let phrases = |texts: &[String]| {
            texts.iter().filter_map(|text| Phrase::new(text, languages)).collect::<Vec<_>>()
        };
        let mut demanded = phrases(query.phrases());
        demanded.truncate(MOST_WORDS);
        let sought = Self {
            words: weighted(&telling, language, languages),
            pairs: pairs(&telling, language),
            phrases: demanded,
            excluded: phrases(query.excluded()),
            prefix: asked.last().and_then(|last| Prefix::new(last, languages)),
        };
        match query.naming() {
            Some(naming) => sought.with_names(naming, &telling, languages),
            None => sought,
        }
    }

    /// With what the names of containers hold of it: a chunk holds what the names above it hold.
    fn with_names(mut self, naming: &Naming, telling: &[&Word], languages: Languages) -> Self {
        self.words.extend(naming.words(telling, languages));
        for phrase in self.phrases.iter_mut().chain(&mut self.excluded) {
            let containers = naming.rows(&phrase.rows, languages);
            phrase.rows.extend(containers.into_iter().map(|word| vec![(0, word)]));
        }
        if let Some(prefix) = &mut self.prefix {
            let containers = naming.whole(&prefix.whole, languages);
            prefix.whole.extend(containers);
        }
        self
    }
}

/// Without the single characters that pairs cover.
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

/// Without words that tell nothing, unless there are no others.
pub(super) fn without_stop_words(words: &[Word], language: Language) -> Vec<&Word> {
    let telling: Vec<&Word> = words.iter().filter(|word| !language.is_stop_word(&word.text)).collect();
    if telling.is_empty() { words.iter().collect() } else { telling }
}

/// Each form once; what is asked twice counts twice.
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
            let has_room = weighted.len() < MOST_WORDS;
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

/// The different stems of a word, and of the word without its accents, with what each counts.
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
        if first != second && pairs.len() < MOST_PAIRS && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs
}

impl Phrase {
    /// None for a text without words.
    fn new(text: &str, languages: Languages) -> Option<Self> {
        let words = split(text);
        let mut rows: Vec<Vec<(u32, String)>> = Vec::new();
        let parts: Vec<Word> = words.iter().filter(|word| word.kind != Kind::Name).cloned().collect();
        let parts = one_at_a_place(looked_up(parts));
        // `getusername` as one word is what `getUserName` is indexed as, and the other way round.
        let name = words.iter().find(|word| is_whole(word, &words));
        for language in languages.iter() {
            let stem = |word: &Word| language.stem(&fold::fold(&word.text)).into_owned();
            let row: Vec<(u32, String)> =
                parts.iter().map(|word| (word.position, stem(word))).take(MOST_WORDS).collect();
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

/// Whether the word is a name of all the letters and digits of all words.
fn is_whole(word: &Word, words: &[Word]) -> bool {
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    let parts = words.iter().filter(|word| word.kind == Kind::Part);
    word.kind == Kind::Name && letters(&word.text) == parts.map(|part| letters(&part.text)).sum::<usize>()
}

/// C++ has two forms at one place; the one with its mark, which comes first, says more.
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

    /// The beginnings that words are looked for with, the longest first: the word itself, then what a stem may be left of it.
    pub fn beginnings(&self) -> impl Iterator<Item = &str> {
        let ends = self.text.char_indices().map(|(offset, _)| offset).chain([self.text.len()]);
        let letters = ends.clone().count().saturating_sub(1);
        let fewest = FEWEST_LEFT.max(letters.saturating_sub(STEMMED_OFF)).min(letters);
        let ends: Vec<usize> = ends.skip(fewest).collect();
        ends.into_iter().rev().filter_map(move |end| self.text.get(..end))
    }
}
