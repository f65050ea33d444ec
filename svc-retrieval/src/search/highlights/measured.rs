//! Measures the quality of highlights on passages with annotated answers.
//!
//! `passages.jsonl` has questions about this project's own documentation. Other sets, such as published ones, are measured with
//! `CAIRN_PASSAGES=FILE cargo test -p cairn-retrieval --lib highlights::measured -- --ignored --nocapture`: JSON lines with `question`,
//! `passage`, and `answers`, which are verbatim parts of the passage.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use cairn_index::idf;
use cairn_index::words::{Language, Languages, SignificantWords};
use serde::Deserialize;

use super::*;

static ROWS: LazyLock<StaticRows> = LazyLock::new(|| StaticRows::open().unwrap());

#[derive(Debug, Deserialize)]
struct Case {
    question: String,
    passage: String,
    answers: Vec<String>,
}

/// The metrics of some passages.
#[derive(Debug, Default)]
struct Figures {
    /// Mean over the cases, in characters of whole lines.
    precision: f64,
    recall: f64,
    f1: f64,
    /// The share of cases whose first highlight overlaps with an answer.
    first: f64,
    /// The share of the passage's lines that are highlighted.
    lines: f64,
}

impl Figures {
    /// With idf over the passages, or with equal weights, as from an engine that does not count.
    fn of(cases: &[Case], counts: bool) -> Self {
        let english = Languages::from(Language::English);
        let mut figures = Self::default();
        let frequencies = DocumentFrequencies::of(cases);
        for case in cases {
            let asked = match counts {
                false => QuestionWords::uncounted(&case.question, english),
                true => QuestionWords::of(&case.question, english, |forms| frequencies.idf(forms)).unwrap(),
            };
            figures.add(case, &asked);
        }
        let mean = |sum: &mut f64| *sum /= cases.len() as f64;
        [
            &mut figures.precision,
            &mut figures.recall,
            &mut figures.f1,
            &mut figures.first,
            &mut figures.lines,
        ]
        .into_iter()
        .for_each(mean);
        figures
    }

    fn add(&mut self, case: &Case, asked: &QuestionWords) {
        let marking = Marking::new(&ROWS, asked, &case.question);
        let places = marking.places(&case.passage);
        // The byte offsets of highlighted sentences and of answers.
        let marked: HashSet<usize> = places.iter().flat_map(|one| span(&case.passage, one.text)).collect();
        let answers: HashSet<usize> =
            case.answers.iter().flat_map(|text| span(&case.passage, text)).collect();
        let both = marked.intersection(&answers).count() as f64;
        let (precision, recall) = (both / marked.len().max(1) as f64, both / answers.len().max(1) as f64);
        self.precision += precision;
        self.recall += recall;
        self.f1 += if both > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 };
        let first = places.first().map(|one| span(&case.passage, one.text)).unwrap_or_default();
        self.first += f64::from(u8::from(first.iter().any(|place| answers.contains(place))));
        let lines: HashSet<u32> = places.iter().flat_map(|one| one.first..=one.last).collect();
        self.lines += lines.len() as f64 / case.passage.lines().count().max(1) as f64;
    }
}

/// The byte offsets of a part of a passage.
fn span(passage: &str, part: &str) -> Vec<usize> {
    passage.find(part).map(|from| (from..from + part.len()).collect()).unwrap_or_default()
}

/// How many passages contain each word.
struct DocumentFrequencies {
    all: u64,
    of: HashMap<String, u64>,
}

impl DocumentFrequencies {
    fn of(cases: &[Case]) -> Self {
        let mut of: HashMap<String, u64> = HashMap::new();
        let passages: HashSet<&str> = cases.iter().map(|case| case.passage.as_str()).collect();
        for passage in &passages {
            let significant = SignificantWords::of(passage, Languages::from(Language::English));
            let forms: HashSet<&String> = significant.words().iter().flat_map(|word| &word.forms).collect();
            forms.into_iter().for_each(|form| *of.entry(form.clone()).or_default() += 1);
        }
        Self { all: passages.len() as u64, of }
    }

    fn idf(&self, forms: &[String]) -> Result<f32, std::convert::Infallible> {
        let containing = forms.iter().filter_map(|form| self.of.get(form)).max().copied().unwrap_or_default();
        Ok(idf(self.all, containing))
    }
}

fn read(text: &str) -> Vec<Case> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_lines_that_answer_are_told_in_our_own_documentation() {
    let cases = read(include_str!("passages.jsonl"));
    let figures = Figures::of(&cases, true);
    assert!(figures.f1 >= 0.6 && figures.first >= 0.65 && figures.lines <= 0.25, "{figures:?}");
}

#[test]
#[ignore = "needs data: CAIRN_PASSAGES names a file"]
fn passages_at_hand() {
    let file = std::env::var("CAIRN_PASSAGES").expect("CAIRN_PASSAGES names a file");
    let cases = read(&fs_err::read_to_string(file).unwrap());
    for counts in [true, false] {
        println!("{:?}", Figures::of(&cases, counts));
    }
}
