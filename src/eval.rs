//! `cairn eval`: how well search finds what it should, measured from outside through the public API.

mod api;
mod collection;
mod documents;
mod golden;
mod judgement;
mod metrics;
mod options;
mod progress;
mod report;
mod run;
mod service;

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use cairn_chassis::clock::{Clock as _, SystemClock};
use cairn_chassis::shutdown;
use fs_err as fs;

use self::api::{Api, Hit};
use self::collection::Collection;
use self::judgement::Question;
use self::options::Strategy;
pub(crate) use self::options::{EXAMPLES, EvalOptions};
use self::progress::Progress;
use self::run::{Figures, Measured, Run};
use self::service::TemporaryService;
use crate::client::Connection;

/// The prefix of the path of golden questions in the workspace.
const IN_WORKSPACE: &str = "workspace:";

/// Measures, prints the figures, and saves the run if requested.
pub(crate) async fn run(options: EvalOptions) -> anyhow::Result<()> {
    let before = options.against.as_deref().map(Run::read).transpose()?;
    let interrupted = shutdown::on_signal().context("cannot listen for signals")?;
    let run = tokio::select! {
        run = measure(&options) => run?,
        () = interrupted.cancelled() => bail!("interrupted; on a service of your own, a folder `cairn-eval-…` may be left"),
    };
    if let Some(before) = &before {
        run.ensure_comparable(before)?;
    }
    if let Some(path) = &options.save {
        run.write(path)?;
    }
    let text = match options.json {
        true => serde_json::to_string_pretty(&run)? + "\n",
        false => report::render(&run, before.as_ref()),
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

async fn measure(options: &EvalOptions) -> anyhow::Result<Run> {
    let progress = Progress { quiet: options.quiet };
    if Path::new(&options.source).is_dir() {
        let collection = Collection::read(Path::new(&options.source))?;
        return measure_collection(options, &collection, progress).await;
    }
    measure_golden(options, progress).await
}

async fn measure_collection(
    options: &EvalOptions,
    collection: &Collection,
    progress: Progress,
) -> anyhow::Result<Run> {
    let service = Service::open(options).await?;
    let folder = match service.temporary {
        Some(_) => None,
        None => Some(service.api.create_folder(&folder_name(), None).await?),
    };
    let measured = async {
        let files =
            documents::upload_collection(&service.api, &collection.documents, folder.as_deref(), &progress)
                .await?;
        ask(options, &service.api, &collection.questions, Some(&files), progress).await
    };
    let measured = measured.await;
    if let Some(folder) = &folder {
        service.api.delete_folder(folder).await?;
    }
    measured
}

async fn measure_golden(options: &EvalOptions, progress: Progress) -> anyhow::Result<Run> {
    let service = Service::open(options).await?;
    if let Some(folder) = &options.documents {
        documents::upload_folder(&service.api, folder, &progress).await?;
    }
    let text = match options.source.strip_prefix(IN_WORKSPACE) {
        Some(path) => service.api.read_file(path.trim_start_matches('/')).await?,
        None => fs::read_to_string(&options.source)?,
    };
    let questions = golden::parse(&text, &options.source)?;
    ask(options, &service.api, &questions, None, progress).await
}

/// Runs every question with every strategy. `documents` maps file ids to ids of the collection; a hit outside of it is
/// ignored and takes no rank.
async fn ask(
    options: &EvalOptions,
    api: &Api,
    questions: &[Question],
    documents: Option<&HashMap<String, String>>,
    progress: Progress,
) -> anyhow::Result<Run> {
    let embedder = api.embedder().await?;
    let mut strategies = BTreeMap::new();
    for strategy in &options.strategies {
        let measured = ask_with(*strategy, api, questions, documents, progress).await?;
        strategies.insert(strategy.name().to_owned(), measured);
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Ok(Run { source: options.source.clone(), version, embedder, strategies })
}

async fn ask_with(
    strategy: Strategy,
    api: &Api,
    questions: &[Question],
    documents: Option<&HashMap<String, String>>,
    progress: Progress,
) -> anyhow::Result<Measured> {
    let bar = progress.bar(strategy.name(), questions.len());
    let mut figures = BTreeMap::new();
    let mut times = Vec::with_capacity(questions.len());
    for question in questions {
        let (hits, took) = api.search(&question.text, strategy).await?;
        let hits = match documents {
            Some(documents) => hits.into_iter().filter_map(|hit| of_collection(hit, documents)).collect(),
            None => hits,
        };
        figures.insert(question.id.clone(), Figures::of(&question.gains(&hits), &question.judged()));
        times.push(took);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(Measured::new(figures, &times))
}

fn of_collection(hit: Hit, documents: &HashMap<String, String>) -> Option<Hit> {
    let document_id = documents.get(&hit.document_id)?.clone();
    Some(Hit { document_id, ..hit })
}

/// A name that is unique across runs.
fn folder_name() -> String {
    format!("cairn-eval-{}", SystemClock.now().as_micros())
}

/// The service under evaluation.
struct Service {
    api: Api,
    temporary: Option<TemporaryService>,
}

impl Service {
    async fn open(options: &EvalOptions) -> anyhow::Result<Self> {
        if options.is_elsewhere() {
            if options.embedder.is_some() {
                bail!("--embedder is of a temporary service, which takes a collection or --documents");
            }
            if options.qdrant.is_some() {
                bail!("--qdrant is of a temporary service, which takes a collection or --documents");
            }
            let connection = Connection::open(&options.connection).with_context(|| {
                format!("`{}` is measured in a workspace, unless --documents gives a folder", options.source)
            })?;
            return Ok(Self { api: Api::new(connection), temporary: None });
        }
        let mut service = TemporaryService::start(options.embedder.as_deref(), options.qdrant.as_deref())?;
        let (url, token) = service.access().await?;
        Ok(Self { api: Api::new(Connection::at(&url, Some(&token))?), temporary: Some(service) })
    }
}
