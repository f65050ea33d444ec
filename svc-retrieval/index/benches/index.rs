//! What the embedded index costs: `cargo bench -p cairn-index --bench index -- --help`.

#[path = "../../../benches/support/corpus.rs"]
mod corpus;
#[path = "support/filling.rs"]
mod filling;
#[path = "../../../benches/support/markdown.rs"]
mod markdown;
#[path = "support/peer.rs"]
mod peer;
#[path = "../../../benches/support/report.rs"]
mod report;
#[path = "../../../benches/support/samples.rs"]
mod samples;

use std::collections::HashSet;
use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use cairn_index::embedded::LexicalQuery;
use cairn_index::vectors::VectorQuery;
use cairn_index::{Batch, ChunkId, Hit, ParsedQuery};
use clap::Parser;
use cpu_time::ThreadTime;

use self::corpus::Document;
use self::filling::{Filling, WORKSPACE, prepare};
use self::peer::Peer;
use self::report::{Run, Table, Verdicts};
use self::samples::percentile;

const PAGE: usize = 10;
/// What a hybrid search asks of each of its lists.
const CANDIDATES: usize = 100;
const WORDS_LIMIT: f64 = 1.4;
const MEANING_LIMIT_MILLIS: f64 = 0.7;
const MISSED_LIMIT_PERCENT: f64 = 2.0;
const MEMORY_LIMIT_MIB: f64 = 200.0;
/// For 24 MB.
const FILL_LIMIT_SECONDS: f64 = 10.0;
const FILL_BYTES: f64 = 24e6;

/// Measures the embedded index alone, in this process, with documents cut and embedded as the service does it:
///
///   fill      CPU seconds to index 24 MB, words and vectors of the built-in embedder
///   words     a page of ten with stored text, CPU time, to tantivy's own for the same words in one field of an index of
///             the same texts, merged by its default policy
///   meaning   the ten nearest (embedding not counted), CPU time, and how many of them an exact search finds
///   write     a fresh document applied, while it stays in memory, and a commit
///   memory    resident, with all vectors loaded, beyond what the empty process holds
///
/// Limits: fill 10 s; words 1.4 times tantivy's; meaning 0.7 ms at a recall of 0.98; memory 200 MiB for 50 000 chunks.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Markdown files below this folder are indexed, again and again up to `--chunks`, instead of generated ones.
    #[arg(long, value_name = "DIR")]
    documents: Option<PathBuf>,
    /// Chunks in the index.
    #[arg(long, default_value_t = 50_000)]
    chunks: usize,
    /// Searches of each kind.
    #[arg(long, default_value_t = 1_000)]
    searches: usize,
    #[command(flatten)]
    run: Run,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if !options.run.is_bench() {
        return Ok(());
    }
    tokio::runtime::Builder::new_current_thread().build()?.block_on(run(&options))
}

async fn run(options: &Options) -> anyhow::Result<()> {
    let mut verdicts = Verdicts::default();
    let folder = tempfile::tempdir()?;
    let documents = corpus::documents(options.documents.as_deref(), 0..5_000)?;
    let queries = corpus::queries(&documents, options.searches);
    let empty = resident()?;
    let mut filling = Filling::new(folder.path())?;
    fill(&mut filling, &documents, options, &mut verdicts).await?;

    filling.index.preload(WORKSPACE)?;
    words(&filling, &queries, &mut verdicts)?;
    meaning(&filling, &queries, &mut verdicts).await?;
    let used = resident()? - empty;
    let limit = MEMORY_LIMIT_MIB * (options.chunks as f64 / 50_000.0).max(1.0);
    verdicts.at_most("memory beyond the empty process", used, limit, "MiB");
    compare(&filling, &documents, &queries, &mut verdicts).await?;
    write(&filling, &documents).await?;
    filling.index.release_memory()?;
    println!("memory after a time of rest: {:.0} MiB beyond the empty process", resident()? - empty);
    verdicts.finish(&options.run)
}

async fn fill(
    filling: &mut Filling,
    documents: &[Document],
    options: &Options,
    verdicts: &mut Verdicts,
) -> anyhow::Result<()> {
    let bytes: usize = documents.iter().map(|document| document.text.len()).sum();
    filling.add(documents, options.chunks).await?;
    let seconds = filling.cpu.as_secs_f64();
    println!(
        "{} documents of {:.1} MB are {} chunks: {seconds:.1} CPU seconds",
        documents.len(),
        bytes as f64 / 1e6,
        filling.chunks
    );
    if filling.chunks < options.chunks {
        verdicts.at_most("fill, for 24 MB", seconds * FILL_BYTES / bytes as f64, FILL_LIMIT_SECONDS, "CPU s");
    }
    while filling.chunks < options.chunks {
        let again: Vec<Document> = documents
            .iter()
            .map(|document| Document {
                name: format!("again-{}", document.name),
                text: document.text.clone(),
            })
            .collect();
        filling.add(&again, options.chunks).await?;
    }
    filling.index.flush()?;
    println!("{} chunks: {:.1} CPU seconds\n", filling.chunks, filling.cpu.as_secs_f64());
    Ok(())
}

fn find(filling: &Filling, text: &str, limit: usize) -> anyhow::Result<Vec<Hit>> {
    let words = ParsedQuery::parse(text);
    Ok(filling.index.search(&LexicalQuery {
        workspace: WORKSPACE,
        words: &words,
        containers: None,
        documents: None,
        limit,
    })?)
}

fn nearest(filling: &Filling, vector: &[f32], limit: usize) -> anyhow::Result<Vec<Hit>> {
    let query = VectorQuery { workspace: WORKSPACE, vector, containers: None, documents: None, limit };
    Ok(filling.index.vectors().search(&query)?)
}

fn ids(hits: &[Hit]) -> Vec<ChunkId> {
    hits.iter().map(|hit| hit.chunk).collect()
}

/// The CPU time of this thread for each call.
fn measured<T>(items: &[T], mut call: impl FnMut(&T) -> anyhow::Result<()>) -> anyhow::Result<Vec<Duration>> {
    let mut samples = Vec::with_capacity(items.len());
    for item in items {
        let started = ThreadTime::now();
        call(item)?;
        samples.push(started.elapsed());
    }
    Ok(samples)
}

fn words(filling: &Filling, queries: &[String], _verdicts: &mut Verdicts) -> anyhow::Result<()> {
    let mut table = table();
    for (name, limit) in [("words, top 10", PAGE), ("words, top 100", CANDIDATES)] {
        let samples = measured(queries, |query| {
            black_box(find(filling, query, limit)?);
            Ok(())
        })?;
        row(&mut table, name, &samples);
    }
    let found = queries.iter().map(|query| Ok(ids(&find(filling, query, PAGE)?)));
    let found: Vec<Vec<ChunkId>> = found.collect::<anyhow::Result<_>>()?;
    let samples = measured(&found, |ids| {
        black_box(filling.index.chunks(WORKSPACE, ids)?);
        Ok(())
    })?;
    row(&mut table, "10 stored chunks", &samples);
    table.print();
    Ok(())
}

async fn meaning(filling: &Filling, queries: &[String], verdicts: &mut Verdicts) -> anyhow::Result<()> {
    let mut vectors = Vec::with_capacity(queries.len());
    let mut embedding = Vec::with_capacity(queries.len());
    for query in queries {
        let started = ThreadTime::now();
        vectors.push(filling.vector(query).await?);
        embedding.push(started.elapsed());
    }
    let mut table = table();
    row(&mut table, "embed a query", &embedding);
    let mut samples = Vec::new();
    for (name, limit) in [("meaning, top 10", PAGE), ("meaning, top 100", CANDIDATES)] {
        samples = measured(&vectors, |vector| {
            black_box(nearest(filling, vector, limit)?);
            Ok(())
        })?;
        row(&mut table, name, &samples);
    }
    let found = vectors.iter().map(|vector| Ok((vector, ids(&nearest(filling, vector, CANDIDATES)?))));
    let found: Vec<_> = found.collect::<anyhow::Result<_>>()?;
    let scored = measured(&found, |(vector, ids)| {
        black_box(filling.index.vectors().scores(WORKSPACE, vector, ids)?);
        Ok(())
    })?;
    row(&mut table, "exact scores of 100", &scored);
    table.print();
    verdicts.at_most("meaning, top 100, mean", mean_millis(&samples), MEANING_LIMIT_MILLIS, "CPU ms");
    Ok(())
}

/// What needs all chunks a second time: tantivy's own index of them, and the vectors for an exact search.
async fn compare(
    filling: &Filling,
    documents: &[Document],
    queries: &[String],
    verdicts: &mut Verdicts,
) -> anyhow::Result<()> {
    let mut peer = Peer::new()?;
    let mut rows: Vec<(ChunkId, Vec<f32>)> = Vec::with_capacity(filling.chunks);
    let mut number = 0;
    while rows.len() < filling.chunks {
        let again = number > 0;
        for document in documents {
            if rows.len() >= filling.chunks {
                break;
            }
            number += 1;
            let name = if again && number > documents.len() as u128 {
                format!("again-{}", document.name)
            } else {
                document.name.clone()
            };
            let document = Document { name, text: document.text.clone() };
            let prepared = prepare(&filling.embedder, &document, number);
            for (ordinal, chunk) in (0..).zip(prepared.chunks) {
                peer.add(&prepared.title, &chunk.heading_path, &chunk.text)?;
                rows.push((ChunkId { document: prepared.document, ordinal }, chunk.embedding));
            }
        }
    }
    peer.commit()?;

    let own = measured(queries, |query| {
        let hits = ids(&find(filling, query, PAGE)?);
        black_box(filling.index.chunks(WORKSPACE, &hits)?);
        Ok(())
    })?;
    let theirs = measured(queries, |query| {
        black_box(peer.page(query, PAGE)?);
        Ok(())
    })?;
    let mut table = table();
    row(&mut table, "words, a page of 10 with text", &own);
    row(&mut table, "tantivy's own", &theirs);
    table.print();
    let ratio = mean_millis(&own) / mean_millis(&theirs);
    verdicts.at_most("words, to tantivy's own", ratio, WORDS_LIMIT, "times");

    let mut shared = 0;
    let asked: Vec<&String> = queries.iter().step_by((queries.len() / 200).max(1)).collect();
    for query in &asked {
        let vector = filling.vector(query).await?;
        let found: HashSet<ChunkId> = ids(&nearest(filling, &vector, PAGE)?).into_iter().collect();
        let product = |row: &[f32]| row.iter().zip(&vector).map(|(a, b)| a * b).sum::<f32>();
        let mut scores: Vec<(f32, &ChunkId)> = rows.iter().map(|(id, row)| (product(row), id)).collect();
        scores.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        // The same text is there several times: what is as near as the tenth counts as found.
        let least = scores.get(PAGE - 1).map_or(0.0, |(score, _)| score - 1e-3);
        let near: HashSet<&ChunkId> =
            scores.iter().take_while(|(score, _)| *score >= least).map(|(_, id)| *id).collect();
        shared += found.iter().filter(|id| near.contains(id)).count();
    }
    let recall = shared as f64 / (asked.len() * PAGE) as f64;
    println!("meaning, recall@10: {recall:.4}");
    verdicts.at_most("meaning, missed of the ten nearest", 100.0 * (1.0 - recall), MISSED_LIMIT_PERCENT, "%");
    Ok(())
}

async fn write(filling: &Filling, documents: &[Document]) -> anyhow::Result<()> {
    let (mut wall, mut cpu, mut commits) = (Vec::new(), Vec::new(), Vec::new());
    for (number, document) in (1_000_000_u128..).zip(documents.iter().take(300)) {
        let prepared = prepare(&filling.embedder, document, number);
        let (started, thread) = (Instant::now(), ThreadTime::now());
        filling.index.apply(Batch { documents: vec![prepared], ..Batch::default() })?;
        wall.push(started.elapsed());
        cpu.push(thread.elapsed());
        if number % 10 == 9 {
            let started = Instant::now();
            filling.index.flush()?;
            commits.push(started.elapsed());
        }
    }
    let mut table = table();
    row(&mut table, "a fresh document applied, CPU", &cpu);
    row(&mut table, "a fresh document applied, wall", &wall);
    row(&mut table, "commit of ten, wall", &commits);
    table.print();
    Ok(())
}

fn table() -> Table {
    Table::new(&["", "mean ms", "p50 ms", "p99 ms"])
}

fn row(table: &mut Table, name: &str, samples: &[Duration]) {
    let millis = |share| format!("{:.3}", percentile(samples, share).as_secs_f64() * 1e3);
    table.row(vec![name.to_owned(), format!("{:.3}", mean_millis(samples)), millis(0.5), millis(0.99)]);
}

fn mean_millis(samples: &[Duration]) -> f64 {
    samples.iter().sum::<Duration>().as_secs_f64() * 1e3 / samples.len().max(1) as f64
}

/// Resident memory of this process in MiB.
fn resident() -> anyhow::Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}
