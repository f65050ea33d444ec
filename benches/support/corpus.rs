//! Realistic documents, and queries for them.

use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::Context as _;

use super::markdown;

/// The vocabulary of generated documents, roughly in the order of English word frequency.
const WORDS: &str = include_str!("../../svc-retrieval/embed/model/vocab.txt");
const SECTIONS: usize = 7;
const WORDS_PER_SECTION: usize = 110;
const MIN_QUERY_WORDS: u64 = 3;
const MAX_QUERY_WORDS: u64 = 8;

/// A Markdown document.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    /// With its extension.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The Markdown files below a folder, or generated ones of about 5 kB by their numbers.
pub(crate) fn documents(folder: Option<&Path>, generated: Range<usize>) -> anyhow::Result<Vec<Document>> {
    let Some(folder) = folder else {
        let words = Words::new();
        return Ok(generated.map(|number| words.document(number)).collect());
    };
    markdown::files(folder)?
        .into_iter()
        .map(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok(Document { name, text: String::from_utf8_lossy(&text).into_owned() })
        })
        .collect()
}

/// Sequences of words from documents across the corpus.
pub(crate) fn queries(documents: &[Document], count: usize) -> Vec<String> {
    let mut numbers = Numbers(5);
    let mut queries = Vec::with_capacity(count);
    while queries.len() < count && !documents.is_empty() {
        let Some(document) = documents.get(numbers.below(documents.len() as u64) as usize) else { continue };
        let words: Vec<&str> = document
            .text
            .split_whitespace()
            .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
            .collect();
        let length = MIN_QUERY_WORDS + numbers.below(MAX_QUERY_WORDS - MIN_QUERY_WORDS + 1);
        let start = numbers.below(words.len().max(1) as u64) as usize;
        let query: Vec<&str> =
            words.into_iter().skip(start).filter(|word| !word.is_empty()).take(length as usize).collect();
        if query.len() as u64 >= MIN_QUERY_WORDS {
            queries.push(query.join(" "));
        }
    }
    queries
}

struct Words(Vec<&'static str>);

impl Words {
    fn new() -> Self {
        let is_word = |word: &&str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic());
        Self(WORDS.lines().filter(is_word).collect())
    }

    /// A deterministic document for a number. It has a topic: half of its words are from a small part of the vocabulary.
    fn document(&self, number: usize) -> Document {
        let mut numbers = Numbers(number as u64 * 7 + 1);
        let topic = numbers.below(300);
        let mut text = format!("# {}\n", self.phrase(&mut numbers, topic, 3));
        for _ in 0..SECTIONS {
            let heading = self.phrase(&mut numbers, topic, 2);
            let body = self.phrase(&mut numbers, topic, WORDS_PER_SECTION);
            text.push_str(&format!("\n## {heading}\n\n{body}.\n"));
        }
        Document { name: format!("{}-{number}.md", self.word(&mut numbers, topic)), text }
    }

    fn phrase(&self, numbers: &mut Numbers, topic: u64, length: usize) -> String {
        let words: Vec<&str> = (0..length).map(|_| self.word(numbers, topic)).collect();
        words.join(" ")
    }

    /// The word of rank `r` is about 1/r as frequent as the first (Zipf's law).
    fn word(&self, numbers: &mut Numbers, topic: u64) -> &'static str {
        let all = self.0.len() as f64;
        let place = if numbers.below(2) == 0 {
            all.powf(numbers.unit()) as u64
        } else {
            1_000 + (topic * 977 + 200_f64.powf(numbers.unit()) as u64 * 31) % (self.0.len() as u64 - 1_000)
        };
        self.0.get(place as usize).copied().unwrap_or("end")
    }
}

/// A deterministic generator of numbers (splitmix64).
#[derive(Debug)]
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Uniform in 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
