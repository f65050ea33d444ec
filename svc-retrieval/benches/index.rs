//! What the embedded index costs: one document applied, a search for words, a search by meaning, memory.
//!
//! `cargo bench -p cairn-retrieval --bench index`. Figures are wall times on generated text: words follow
//! Zipf's law over 60 000, chunks have 120 of them, vectors lie in 200 clusters of 256 dimensions.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use cairn_retrieval::index::{
    Batch, Engine as _, Hit, Index, IndexedChunk, IndexedDocument, LexicalIndex, LexicalQuery, ParsedQuery,
};
use cairn_retrieval::vectors::VectorQuery;
use uuid::Uuid;

const DIMENSIONS: usize = 256;
const VOCABULARY: f64 = 60_000.0;
const WORDS_PER_CHUNK: usize = 120;
const CHUNKS_PER_DOCUMENT: usize = 3;
const CLUSTERS: u64 = 200;
const WORKSPACE: Uuid = Uuid::from_u128(1);

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    report_memory("before");
    let index = Index::open(folder.path(), "bench", DIMENSIONS)?;
    report_memory("empty index open");
    let mut numbers = Numbers(7);

    fill(&index, 0..20_000 / CHUNKS_PER_DOCUMENT, &mut numbers)?;
    apply_one(&index, &mut numbers)?;
    search_words(&index, &mut numbers)?;
    drop(index);

    let started = Instant::now();
    let index = Index::open(folder.path(), "bench", DIMENSIONS)?;
    println!("reopen: {:.1?}", started.elapsed());
    report_memory("20 000 chunks open");
    fill(&index, 20_000 / CHUNKS_PER_DOCUMENT..50_000 / CHUNKS_PER_DOCUMENT, &mut numbers)?;
    report_memory("50 000 chunks written");
    let started = Instant::now();
    index.preload(WORKSPACE)?;
    println!("load 50 000 vectors: {:.1?}", started.elapsed());
    report_memory("vectors loaded");
    search_meaning(&index, &mut numbers)?;
    apply_one(&index, &mut numbers)?;
    index.release_memory()?;
    report_memory("memory released");
    println!("on disk: {} MB", size(&folder.path().join("segments"))? / 1_000_000);
    Ok(())
}

fn fill(index: &Index, documents: std::ops::Range<usize>, numbers: &mut Numbers) -> Outcome<()> {
    let started = Instant::now();
    let documents: Vec<usize> = documents.collect();
    for batch in documents.chunks(500) {
        let documents = batch.iter().map(|number| document(*number, numbers)).collect();
        index.apply(Batch { documents, ..Batch::default() })?;
    }
    println!("fill {} documents: {:.1?}", documents.len(), started.elapsed());
    Ok(())
}

fn apply_one(index: &Index, numbers: &mut Numbers) -> Outcome<()> {
    let mut times = Vec::new();
    for _ in 0..400 {
        let number = usize::try_from(numbers.below(6_000))?;
        let documents = vec![document(number, numbers)];
        let started = Instant::now();
        index.apply(Batch { documents, ..Batch::default() })?;
        times.push(started.elapsed());
    }
    report("apply one document of 3 chunks", times);
    Ok(())
}

fn search_words(index: &Index, numbers: &mut Numbers) -> Outcome<()> {
    for limit in [10, 100] {
        let (mut searches, mut fetches) = (Vec::new(), Vec::new());
        for _ in 0..1_000 {
            let text: Vec<String> = (0..5).map(|_| numbers.word()).collect();
            let words = ParsedQuery::parse(&text.join(" "));
            let started = Instant::now();
            let query = LexicalQuery { workspace: WORKSPACE, words: &words, containers: None, limit };
            let hits = index.search(&query)?;
            searches.push(started.elapsed());
            let ids: Vec<_> = hits.iter().take(10).map(|hit| hit.chunk).collect();
            let started = Instant::now();
            std::hint::black_box(index.chunks(WORKSPACE, &ids)?);
            fetches.push(started.elapsed());
        }
        report(&format!("search 5 words, top {limit}"), searches);
        report("fetch 10 stored chunks", fetches);
    }
    Ok(())
}

fn search_meaning(index: &Index, numbers: &mut Numbers) -> Outcome<()> {
    for limit in [10, 100] {
        let (mut searches, mut scores) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            let vector = numbers.vector();
            let query = VectorQuery { workspace: WORKSPACE, vector: &vector, containers: None, limit };
            let started = Instant::now();
            let hits: Vec<Hit> = index.vectors().search(&query)?;
            searches.push(started.elapsed());
            let ids: Vec<_> = hits.iter().map(|hit| hit.chunk).collect();
            let started = Instant::now();
            std::hint::black_box(index.vectors().scores(WORKSPACE, &vector, &ids)?);
            scores.push(started.elapsed());
        }
        report(&format!("search 50 000 vectors, top {limit}"), searches);
        report(&format!("exact scores of {limit}"), scores);
    }
    Ok(())
}

fn document(number: usize, numbers: &mut Numbers) -> IndexedDocument {
    let mut chunk = |place: u32| {
        let words: Vec<String> = (0..WORDS_PER_CHUNK).map(|_| numbers.word()).collect();
        IndexedChunk {
            text: words.join(" "),
            heading_path: vec!["Guide".to_owned(), numbers.word()],
            start_line: place * 10 + 1,
            end_line: place * 10 + 9,
            embedding: numbers.vector(),
        }
    };
    let chunks = (0..3).map(&mut chunk).collect();
    IndexedDocument {
        workspace: WORKSPACE,
        document: Uuid::from_u128(u128::try_from(number).unwrap_or_default() + 1),
        container: None,
        kind: "file".to_owned(),
        title: numbers.word(),
        content_hash: "0".repeat(64),
        version: 1,
        updated_at: 0,
        chunks,
    }
}

/// A repeatable source of numbers (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Uniform in 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Word number `r` comes about 1/r as often as the first.
    fn word(&mut self) -> String {
        let rank = VOCABULARY.powf(self.unit());
        format!("w{}x", rank as u64)
    }

    fn vector(&mut self) -> Vec<f32> {
        let mut center = Numbers(self.below(CLUSTERS));
        (0..DIMENSIONS).map(|_| (center.unit() - 0.5 + (self.unit() - 0.5) * 0.8) as f32).collect()
    }
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| {
        let place = (times.len() as f64 * share) as usize;
        times.get(place).copied().unwrap_or_default()
    };
    println!("{what}: p50 {:.3?}, p90 {:.3?}, p99 {:.3?}", at(0.5), at(0.9), at(0.99));
}

/// Resident memory, where the system tells.
fn report_memory(what: &str) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("Rss") || line.starts_with("VmRSS")) {
        println!("memory, {what}: {line}");
    }
}

fn size(folder: &Path) -> Outcome<u64> {
    let mut total = 0;
    for file in fs::read_dir(folder)? {
        total += file?.metadata()?.len();
    }
    Ok(total)
}
