//! `cairn models`: the embedding models of a data folder.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use cairn_chassis::outbound::Guard;
use cairn_embed::{AddedModel, FetchedModel, ModelName, Models, Prefixes, Progress, TriedModel};
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Method;
use reqwest::header::ACCEPT;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::{
    AddModelOptions, INDEX_FOLDER, ListModelsOptions, ModelStatusOptions, ModelsCommand, ModelsPlace,
    NamedModelOptions, RemoveModelOptions,
};
use crate::client::Connection;

const BAR: &str = "{msg:26} {bar:40} {bytes}/{total_bytes}  {eta} left";
const MEBIBYTE: f64 = 1_048_576.0;
/// What a client of `/mcp` says that it takes.
const MCP_TYPES: &str = "application/json, text/event-stream";

/// Runs a command about models.
pub(crate) async fn run(command: ModelsCommand) -> anyhow::Result<()> {
    match command {
        ModelsCommand::List(options) => list(&options),
        ModelsCommand::Add(options) => add(&options).await,
        ModelsCommand::Check(options) => check(&options).await,
        ModelsCommand::Remove(options) => remove(&options),
        ModelsCommand::Status(options) => status(&options).await,
    }
}

fn list(options: &ListModelsOptions) -> anyhow::Result<()> {
    let added = Models::new(options.place.models()).list()?;
    let in_use = folder_in_use(&options.place)?;
    let is_in_use = |model: &AddedModel| is_same(&model.folder, in_use.as_deref());
    if options.json {
        let shown = |model: &AddedModel| {
            json!({
                "name": model.name,
                "folder": model.folder.display().to_string(),
                "bytes": model.bytes,
                "dimensions": model.dimensions,
                "queryPrefix": model.prefixes.as_ref().map(|prefixes| &prefixes.query),
                "passagePrefix": model.prefixes.as_ref().map(|prefixes| &prefixes.passage),
                "isInUse": is_in_use(model),
            })
        };
        return say_json(&added.iter().map(shown).collect());
    }
    if added.is_empty() {
        return say("There is no model yet; `cairn models add` adds one.");
    }
    let width = added.iter().map(|model| model.name.len()).max().unwrap_or(0);
    for model in &added {
        let dimensions = model.dimensions.map_or_else(|| "?".to_owned(), |dimensions| dimensions.to_string());
        let mebibytes = model.bytes as f64 / MEBIBYTE;
        let prefixes = model.prefixes.as_ref().map(prefixes_as_text).unwrap_or_default();
        let in_use = if is_in_use(model) { "  in use" } else { "" };
        say(&format!(
            "{:width$}  {dimensions:>5} numbers  {mebibytes:7.1} MiB{prefixes}{in_use}",
            model.name
        ))?;
    }
    Ok(())
}

async fn add(options: &AddModelOptions) -> anyhow::Result<()> {
    let models = Models::new(options.place.models());
    let bar = Bar::new(options.quiet || options.json);
    let source = Path::new(&options.source);
    let (name, tried) = match source.is_dir() {
        true => copy(options, &models, source, bar).await?,
        false => fetch(options, &models, bar).await?,
    };
    let folder = models.folder_of(&name);
    if options.json {
        return say_tried(&name, &folder, tried);
    }
    let TriedModel { dimensions, window } = tried;
    let prefixes = prefixes_as_text(&Prefixes::of_folder(&folder)?);
    say(&format!(
        "Added {0}: vectors of {dimensions} numbers, {window} tokens at once{prefixes}.\n\
         It embeds from the next start with --embedder candle:{0} (CAIRN_EMBEDDER) on. The texts are then embedded anew while the \
         old index answers; `cairn models status` tells how far that is.",
        name.as_str()
    ))
}

async fn copy(
    options: &AddModelOptions,
    models: &Models,
    source: &Path,
    mut bar: Bar,
) -> anyhow::Result<(ModelName, TriedModel)> {
    let source = source.canonicalize().with_context(|| format!("cannot read {}", source.display()))?;
    let of_folder = source.file_name().map(|name| name.to_string_lossy().into_owned());
    let wanted = options.name.clone().or(of_folder).unwrap_or_default();
    let name = ModelName::parse(&wanted).with_context(|| {
        format!(
            "`{wanted}` cannot be the name of a model: give one of letters, digits, -, _ and . with --name"
        )
    })?;
    let (models, to, options) = (models.clone(), name.clone(), options.add_options());
    let adding =
        move || models.add_folder(&to, &source, &options, &mut |progress: Progress<'_>| bar.show(progress));
    let tried = tokio::task::spawn_blocking(adding).await??;
    Ok((name, tried))
}

async fn fetch(
    options: &AddModelOptions,
    models: &Models,
    mut bar: Bar,
) -> anyhow::Result<(ModelName, TriedModel)> {
    let source = &options.source;
    if options.name.is_some() {
        bail!("there is no folder {source}; --name is for a model that is copied from one");
    }
    let name = ModelName::parse(source).filter(ModelName::is_of_hub).with_context(|| {
        format!("there is no folder {source}, and no hub has a model of that name: theirs are OWNER/MODEL")
    })?;
    let wanted = FetchedModel {
        hub: options.model_hub.clone(),
        name: name.as_str().to_owned(),
        models: options.place.models(),
        allowed: options.outbound.outbound_allow.clone(),
    };
    let guard = Guard::new(&wanted.allowed)?;
    let mut show = |progress: Progress<'_>| bar.show(progress);
    let tried = models.add_fetched(&wanted, &guard, &options.add_options(), &mut show).await?;
    Ok((name, tried))
}

async fn check(options: &NamedModelOptions) -> anyhow::Result<()> {
    let (models, name) = (Models::new(options.place.models()), named(&options.name)?);
    let folder = models.folder_of(&name);
    let asked = name.clone();
    let tried = tokio::task::spawn_blocking(move || models.check(&asked)).await??;
    if options.json {
        return say_tried(&name, &folder, tried);
    }
    let TriedModel { dimensions, window } = tried;
    let prefixes = prefixes_as_text(&Prefixes::of_folder(&folder)?);
    say(&format!("OK: {}, vectors of {dimensions} numbers, {window} tokens at once{prefixes}", name.as_str()))
}

/// The prefixes that a model has, each behind a comma and quoted, so that spaces are seen.
fn prefixes_as_text(prefixes: &Prefixes) -> String {
    let mut text = String::new();
    for (prefix, kind) in [(&prefixes.query, "queries"), (&prefixes.passage, "passages")] {
        if !prefix.is_empty() {
            text += &format!(", {prefix:?} before {kind}");
        }
    }
    text
}

fn remove(options: &RemoveModelOptions) -> anyhow::Result<()> {
    let NamedModelOptions { name, place, json } = &options.named;
    let (models, name) = (Models::new(place.models()), named(name)?);
    let in_use = folder_in_use(place)?;
    if !options.force && is_same(&models.folder_of(&name), in_use.as_deref()) {
        bail!(
            "the index is made with {0}: start Cairn with another embedder, and remove {0} when `cairn models list` shows it no \
             longer as in use; or add --force",
            name.as_str()
        );
    }
    models.remove(&name)?;
    if *json { say_json(&json!({"name": name.as_str(), "removed": true})) } else { say("Removed.") }
}

fn named(name: &str) -> anyhow::Result<ModelName> {
    ModelName::parse(name).with_context(|| format!("`{name}` is no name of a model"))
}

/// The folder of the transformer that the current index is made with. Of an index in Qdrant it is not known.
fn folder_in_use(place: &ModelsPlace) -> anyhow::Result<Option<PathBuf>> {
    let current = cairn_index::current(&place.service_data().join(INDEX_FOLDER))?;
    Ok(current.as_ref().and_then(cairn_embed::folder_of))
}

/// Whether both are the same folder, however they are written.
fn is_same(folder: &Path, other: Option<&Path>) -> bool {
    let Some(other) = other else { return false };
    match (fs::canonicalize(folder), fs::canonicalize(other)) {
        (Ok(folder), Ok(other)) => folder == other,
        _ => false,
    }
}

/// What a Cairn tells of its index.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Indexing {
    embedder: Option<String>,
    next_embedder: Option<String>,
    next_embedder_percent: Option<u32>,
    changes_without_meaning: Option<u64>,
}

async fn status(options: &ModelStatusOptions) -> anyhow::Result<()> {
    let connection = Connection::open(&options.connection)?;
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "get_workspace_overview", "arguments": {}},
    });
    let request = connection.request(Method::POST, "/mcp").header(ACCEPT, MCP_TYPES).json(&call);
    let answer = connection.json(request).await?;
    let told = answer.pointer("/result/structuredContent/indexing");
    let told = told.context("the answer is not as expected: is it a Cairn?")?;
    let indexing = Indexing::deserialize(told).context("the answer is not as expected")?;
    if options.json {
        return say_json(&json!({
            "embedder": indexing.embedder,
            "nextEmbedder": indexing.next_embedder,
            "nextEmbedderPercent": indexing.next_embedder_percent,
            "changesWithoutMeaning": indexing.changes_without_meaning,
        }));
    }
    say(&as_text(&indexing)?)
}

fn as_text(indexing: &Indexing) -> anyhow::Result<String> {
    let embedder = indexing.embedder.as_deref().context("the service of the index does not answer")?;
    let mut text = format!("searches use {embedder}");
    if let Some(next) = &indexing.next_embedder {
        let percent = indexing.next_embedder_percent.map(|percent| format!(", {percent} % of it are there"));
        text += &format!("\nan index of {next} is being built{}", percent.unwrap_or_default());
    }
    if let Some(changes) = indexing.changes_without_meaning.filter(|changes| *changes > 0) {
        text += &format!("\nchanges that are found by words and not yet by meaning: {changes}");
    }
    Ok(text)
}

/// How far a file is, on a terminal; nothing elsewhere.
struct Bar {
    is_quiet: bool,
    file: String,
    bar: ProgressBar,
}

impl Bar {
    fn new(is_quiet: bool) -> Self {
        Self { is_quiet, file: String::new(), bar: ProgressBar::hidden() }
    }

    fn show(&mut self, progress: Progress<'_>) {
        if self.is_quiet {
            return;
        }
        if self.file != progress.file {
            self.file = progress.file.to_owned();
            let bar = ProgressBar::new(progress.whole.unwrap_or(0)).with_message(self.file.clone());
            self.bar.finish_and_clear();
            self.bar = match ProgressStyle::with_template(BAR) {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            };
        }
        self.bar.set_position(progress.bytes);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn say_tried(name: &ModelName, folder: &Path, tried: TriedModel) -> anyhow::Result<()> {
    let prefixes = Prefixes::of_folder(folder)?;
    say_json(&json!({
        "name": name.as_str(),
        "folder": folder.display().to_string(),
        "dimensions": tried.dimensions,
        "window": tried.window,
        "queryPrefix": prefixes.query,
        "passagePrefix": prefixes.passage,
    }))
}

fn say_json(value: &Value) -> anyhow::Result<()> {
    say(&serde_json::to_string_pretty(value)?)
}

fn say(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexing(next: Option<&str>, percent: Option<u32>, changes: u64) -> Indexing {
        Indexing {
            embedder: Some("one".to_owned()),
            next_embedder: next.map(str::to_owned),
            next_embedder_percent: percent,
            changes_without_meaning: Some(changes),
        }
    }

    #[test]
    fn prefixes_are_shown_with_their_spaces() {
        let prefixes = |query: &str, passage: &str| {
            prefixes_as_text(&Prefixes { query: query.to_owned(), passage: passage.to_owned() })
        };
        assert_eq!(prefixes("", ""), "");
        assert_eq!(prefixes("query: ", ""), ", \"query: \" before queries");
        let both = ", \"query: \" before queries, \"passage: \" before passages";
        assert_eq!(prefixes("query: ", "passage: "), both);
    }

    #[test]
    fn a_status_tells_what_answers_and_what_comes() {
        assert_eq!(as_text(&indexing(None, None, 0)).unwrap(), "searches use one");
        let text = as_text(&indexing(Some("two"), Some(40), 3)).unwrap();
        assert!(text.contains("an index of two is being built, 40 % of it are there"), "{text}");
        assert!(text.ends_with("not yet by meaning: 3"), "{text}");
        let away = Indexing { embedder: None, ..indexing(None, None, 0) };
        assert!(as_text(&away).is_err());
    }

    #[test]
    fn a_folder_is_the_same_however_it_is_written() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("models");
        fs::create_dir(&folder).unwrap();
        assert!(is_same(&folder, Some(&root.path().join("./models"))));
        assert!(!is_same(&folder, Some(root.path())));
        assert!(!is_same(&folder, None) && !is_same(&folder, Some(Path::new("/nowhere"))));
    }
}
