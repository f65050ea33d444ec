//! How the cost of indexing and searching grows: `cargo bench -p cairn-index --bench scaling -- --help`.

#[path = "../../../benches/support/corpus.rs"]
mod corpus;
#[path = "support/filling.rs"]
mod filling;
#[path = "../../../benches/support/markdown.rs"]
mod markdown;
#[path = "support/plot.rs"]
mod plot;
#[path = "../../../benches/support/report.rs"]
mod report;

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use cairn_index::embedded::LexicalQuery;
use cairn_index::vectors::VectorQuery;
use cairn_index::{Batch, ParsedQuery};
use clap::Parser;
use cpu_time::{ProcessTime, ThreadTime};

use self::filling::{Filling, WORKSPACE, prepare};
use self::plot::{Line, plot};
use self::report::{Run, Table, Verdicts};

const SIZES: [usize; 8] = [1_000, 5_000, 20_000, 50_000, 100_000, 250_000, 500_000, 1_000_000];
const DOCUMENTS: usize = 2_000;
const CANDIDATES: usize = 100;
const PAGE: usize = 10;
const WRITES: u128 = 30;

/// Fills one index from 1 000 to 500 000 chunks (--chunks 1000000: to a million) and measures on the way, in CPU time:
///
///   indexing   of all chunks so far, in all
///   words      a search for a page of ten; for a hundred, as a hybrid search asks
///   meaning    a search for a hundred, embedding not counted
///   write      a fresh document of one section applied
///
/// Limit: from the smallest to the largest, none grows faster than n log n does; a search and a write, which are asked of
/// an index as it stands, no faster than n. Documents are generated.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// The largest size.
    #[arg(long, default_value_t = 500_000)]
    chunks: usize,
    /// Searches of each kind at each size.
    #[arg(long, default_value_t = 200)]
    searches: usize,
    /// Draw the costs into this SVG file.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    run: Run,
}

/// Milliseconds at one size.
struct Costs {
    chunks: usize,
    indexing: f64,
    words: f64,
    candidates: f64,
    meaning: f64,
    write: f64,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if !options.run.is_bench() {
        return Ok(());
    }
    tokio::runtime::Builder::new_current_thread().build()?.block_on(run(&options))
}

async fn run(options: &Options) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut filling = Filling::new(folder.path())?;
    let mut measured = Vec::new();
    let mut made = 0;
    for size in SIZES.into_iter().filter(|size| *size <= options.chunks) {
        while filling.chunks < size {
            let documents = corpus::documents(None, made..made + DOCUMENTS)?;
            made += DOCUMENTS;
            filling.add(&documents, size).await?;
        }
        measured.push(measure(&mut filling, options).await?);
    }
    let mut table =
        Table::new(&["chunks", "indexing s", "words ms", "words 100 ms", "meaning ms", "write ms"]);
    for costs in &measured {
        let millis = [costs.words, costs.candidates, costs.meaning, costs.write].map(|ms| format!("{ms:.3}"));
        let cells = [costs.chunks.to_string(), format!("{:.1}", costs.indexing / 1e3)];
        table.row(cells.into_iter().chain(millis).collect());
    }
    table.print();
    if let Some(path) = &options.plot {
        let line = |name, cost: fn(&Costs) -> f64| Line {
            name,
            points: measured.iter().map(|costs| (costs.chunks as f64, cost(costs))).collect(),
        };
        let lines = [
            line("indexing, all", |costs| costs.indexing),
            line("words, ten", |costs| costs.words),
            line("words, a hundred", |costs| costs.candidates),
            line("meaning, a hundred", |costs| costs.meaning),
            line("write of one document", |costs| costs.write),
        ];
        fs::write(path, plot(&lines))?;
    }
    judge(&measured, &options.run)
}

fn judge(measured: &[Costs], run: &Run) -> anyhow::Result<()> {
    let mut verdicts = Verdicts::default();
    if let [first, .., last] = measured {
        let (n, m) = (first.chunks as f64, last.chunks as f64);
        let grown = m / n;
        verdicts.at_most(
            "indexing has grown",
            last.indexing / first.indexing,
            grown * m.ln() / n.ln(),
            "times",
        );
        for (name, first, last) in [
            ("words, ten", first.words, last.words),
            ("words, a hundred", first.candidates, last.candidates),
            ("meaning, a hundred", first.meaning, last.meaning),
            ("write", first.write, last.write),
        ] {
            verdicts.at_most(&format!("{name}: has grown"), last / first, grown, "times");
        }
    }
    verdicts.finish(run)
}

async fn measure(filling: &mut Filling, options: &Options) -> anyhow::Result<Costs> {
    let started = ProcessTime::now();
    filling.index.flush()?;
    filling.cpu += started.elapsed();
    let queries = corpus::queries(&corpus::documents(None, 0..200)?, options.searches);
    filling.index.preload(WORKSPACE)?;
    let words = |limit| {
        mean_millis(&queries, |query| {
            let words = ParsedQuery::parse(query);
            let query = LexicalQuery {
                workspace: WORKSPACE,
                words: &words,
                containers: None,
                documents: None,
                limit,
            };
            black_box(filling.index.search(&query)?);
            Ok(())
        })
    };
    let (page, candidates) = (words(PAGE)?, words(CANDIDATES)?);
    let mut vectors = Vec::with_capacity(queries.len());
    for query in &queries {
        vectors.push(filling.vector(query).await?);
    }
    let meaning = mean_millis(&vectors, |vector| {
        let query = VectorQuery {
            workspace: WORKSPACE,
            vector,
            containers: None,
            documents: None,
            limit: CANDIDATES,
        };
        black_box(filling.index.vectors().search(&query)?);
        Ok(())
    })?;
    let write = write(filling).await?;
    Ok(Costs {
        chunks: filling.chunks,
        indexing: filling.cpu.as_secs_f64() * 1e3,
        words: page,
        candidates,
        meaning,
        write,
    })
}

/// The same documents each time, so that the index stays the size that it is.
async fn write(filling: &Filling) -> anyhow::Result<f64> {
    let mut prepared = Vec::new();
    for (number, mut document) in (1_u128 << 64..).zip(corpus::documents(None, 0..WRITES as usize)?) {
        document.text.truncate(900);
        prepared.push(prepare(&filling.embedder, &document, number));
    }
    let mut fresh = Duration::ZERO;
    for document in prepared {
        let batch = Batch { documents: vec![document], ..Batch::default() };
        let started = ThreadTime::now();
        filling.index.apply(batch)?;
        fresh += started.elapsed();
    }
    filling.index.flush()?;
    Ok(fresh.as_secs_f64() * 1e3 / WRITES as f64)
}

fn mean_millis<T>(items: &[T], mut call: impl FnMut(&T) -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let started = ThreadTime::now();
    for item in items {
        call(item)?;
    }
    Ok(started.elapsed().as_secs_f64() * 1e3 / items.len().max(1) as f64)
}
