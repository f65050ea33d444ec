//! Options about what turns texts into vectors.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use cairn_chassis::debug_fields;
use cairn_embed::{
    Choice, Config, DEFAULT_BATCH, DEFAULT_HUB, EndpointConfig, FetchedModel, ModelName, Models, Spending,
};
use clap::Args;

use super::OutboundOptions;

/// The folder of added models, and of what an endpoint has cost, among a service's data.
const FOLDER: &str = "embedder";
/// The folder of added models in it.
const MODELS: &str = "models";

/// The folder of added models among a service's data.
pub(crate) fn models_in(data: &Path) -> PathBuf {
    data.join(FOLDER).join(MODELS)
}

/// What turns texts into vectors.
#[derive(Clone, Args)]
pub(crate) struct EmbedderOptions {
    /// What turns texts into vectors: built-in; candle:DIR, a transformer of the BERT family in this process, from a
    /// folder; candle:NAME, one that `cairn models add` has added; openai:URL, an endpoint that speaks OpenAI's /embeddings.
    /// With another one than before, texts are embedded anew while the old index answers.
    #[arg(long, env = "CAIRN_EMBEDDER", value_name = "WHICH", default_value = "built-in")]
    pub(crate) embedder: String,
    /// The folder of the models that candle:NAME names. Default: embedder/models among the data of the service.
    #[arg(long, env = "CAIRN_EMBEDDER_MODELS", value_name = "DIR")]
    pub(crate) embedder_models: Option<PathBuf>,
    /// The model at the endpoint.
    #[arg(long, env = "CAIRN_EMBEDDER_MODEL", value_name = "NAME")]
    pub(crate) embedder_model: Option<String>,
    /// The key for the endpoint; better set by the environment.
    #[arg(long, env = "CAIRN_EMBEDDER_KEY", hide_env_values = true, value_name = "KEY")]
    pub(crate) embedder_key: Option<String>,
    /// A file that holds the key.
    #[arg(long, env = "CAIRN_EMBEDDER_KEY_FILE", value_name = "FILE", conflicts_with = "embedder_key")]
    pub(crate) embedder_key_file: Option<PathBuf>,
    /// The length of vectors that the endpoint is asked for. Default: what the model gives.
    #[arg(
        long,
        env = "CAIRN_EMBEDDER_DIMENSIONS",
        value_name = "NUMBER",
        value_parser = clap::value_parser!(u32).range(1..=8_192)
    )]
    pub(crate) embedder_dimensions: Option<u32>,
    /// The most texts of one call of the endpoint.
    #[arg(
        long,
        env = "CAIRN_EMBEDDER_BATCH",
        value_name = "TEXTS",
        default_value_t = DEFAULT_BATCH as u32,
        value_parser = clap::value_parser!(u32).range(1..=2_048)
    )]
    pub(crate) embedder_batch: u32,
    /// How long a call of the endpoint may take.
    #[arg(
        long,
        env = "CAIRN_EMBEDDER_TIMEOUT_MS",
        value_name = "MILLISECONDS",
        default_value_t = 30_000,
        value_parser = clap::value_parser!(u64).range(1..=600_000)
    )]
    pub(crate) embedder_timeout_ms: u64,
    /// How long the endpoint is left alone after five failures in a row.
    #[arg(
        long,
        env = "CAIRN_EMBEDDER_PAUSE_MS",
        value_name = "MILLISECONDS",
        default_value_t = 15_000,
        value_parser = clap::value_parser!(u64).range(1..=3_600_000)
    )]
    pub(crate) embedder_pause_ms: u64,
    /// How long a search waits for the vector of its query before it goes by words alone.
    #[arg(
        long,
        env = "CAIRN_EMBEDDER_QUERY_TIMEOUT_MS",
        value_name = "MILLISECONDS",
        default_value_t = 1_000,
        value_parser = clap::value_parser!(u64).range(1..=30_000)
    )]
    pub(crate) embedder_query_timeout_ms: u64,
    /// The most tokens a minute that the endpoint is sent. Default: no limit.
    #[arg(long, env = "CAIRN_EMBEDDER_TOKENS_PER_MINUTE", value_name = "TOKENS")]
    pub(crate) embedder_tokens_per_minute: Option<u64>,
    /// The most tokens a day (UTC) that the endpoint is sent. Default: no limit.
    #[arg(long, env = "CAIRN_EMBEDDER_TOKENS_PER_DAY", value_name = "TOKENS")]
    pub(crate) embedder_tokens_per_day: Option<u64>,
    /// The words' share of a hybrid score, 0 to 1; the meaning has the rest.
    #[arg(
        long,
        env = "CAIRN_EMBEDDER_WORD_WEIGHT",
        value_name = "SHARE",
        default_value_t = cairn_retrieval::WORD_WEIGHT,
        value_parser = share
    )]
    pub(crate) embedder_word_weight: f32,
    /// Where models are fetched from.
    #[arg(long, env = "CAIRN_MODEL_HUB", value_name = "URL", default_value = DEFAULT_HUB)]
    pub(crate) model_hub: String,
    /// Let the service fetch a model that is not there yet, as `cairn models add` does.
    #[arg(
        long,
        env = "CAIRN_ALLOW_DOWNLOADS",
        value_name = "WHETHER",
        num_args = 0..=1,
        default_value_t = false,
        default_missing_value = "true"
    )]
    pub(crate) allow_downloads: bool,
}

debug_fields!(EmbedderOptions { embedder });

impl EmbedderOptions {
    /// What svc-retrieval is told. What it keeps for the embedder goes into `data`.
    pub(crate) fn config(&self, data: &Path, outbound: &OutboundOptions) -> anyhow::Result<Config> {
        Ok(Config {
            choice: self.choice(data, outbound)?,
            query_limit: Duration::from_millis(self.embedder_query_timeout_ms),
        })
    }

    fn choice(&self, data: &Path, outbound: &OutboundOptions) -> anyhow::Result<Choice> {
        let (kind, place) = self.embedder.trim().split_once(':').unwrap_or((self.embedder.trim(), ""));
        match (kind, place) {
            ("" | "built-in", "") => Ok(Choice::BuiltIn),
            ("candle", place) if !place.is_empty() => self.transformer(place, data, outbound),
            ("openai", place) if place.starts_with("http://") || place.starts_with("https://") => {
                Ok(Choice::Endpoint(self.endpoint(place, &data.join(FOLDER))?))
            }
            _ => bail!(
                "CAIRN_EMBEDDER is built-in, candle:DIR, candle:NAME or openai:URL, such as \
                 openai:http://127.0.0.1:11434/v1"
            ),
        }
    }

    /// A folder that is there is a folder, whatever else its name may mean.
    fn transformer(&self, place: &str, data: &Path, outbound: &OutboundOptions) -> anyhow::Result<Choice> {
        let name = ModelName::parse(place).filter(|_| !Path::new(place).is_dir());
        let Some(name) = name else { return Ok(Choice::Folder(PathBuf::from(place))) };
        let models = self.embedder_models.clone().unwrap_or_else(|| models_in(data));
        if let Some(folder) = Models::new(models.clone()).find(&name) {
            return Ok(Choice::Folder(folder));
        }
        if !name.is_of_hub() {
            bail!(
                "there is no folder {place}, and no model of that name: `cairn models add` adds one, \
                 `cairn models list` shows those that there are"
            );
        }
        if !self.allow_downloads {
            bail!(
                "there is no folder {place}, and no model of that name: `cairn models add {place}` fetches it, \
                 and so does the service itself, once, with CAIRN_ALLOW_DOWNLOADS=true"
            );
        }
        Ok(Choice::Fetched(FetchedModel {
            hub: self.model_hub.clone(),
            name: name.as_str().to_owned(),
            models,
            allowed: outbound.outbound_allow.clone(),
        }))
    }

    fn endpoint(&self, base_url: &str, folder: &Path) -> anyhow::Result<EndpointConfig> {
        let given = |value: &Option<String>| value.clone().filter(|value| !value.trim().is_empty());
        let model = given(&self.embedder_model)
            .context("an endpoint needs CAIRN_EMBEDDER_MODEL, such as text-embedding-3-small")?;
        let spending = Spending {
            tokens_a_minute: self.embedder_tokens_per_minute,
            tokens_a_day: self.embedder_tokens_per_day,
        };
        let spent_file = spending.tokens_a_day.map(|_| folder.join("spent.json"));
        Ok(EndpointConfig {
            base_url: base_url.to_owned(),
            model,
            key: match &self.embedder_key_file {
                Some(file) => Some(fs_err::read_to_string(file)?.trim().to_owned()),
                None => given(&self.embedder_key),
            },
            dimensions: self.embedder_dimensions.and_then(|number| usize::try_from(number).ok()),
            batch: usize::try_from(self.embedder_batch).unwrap_or(DEFAULT_BATCH),
            timeout: Duration::from_millis(self.embedder_timeout_ms),
            pause: Duration::from_millis(self.embedder_pause_ms),
            spending,
            spent_file,
        })
    }
}

fn share(text: &str) -> Result<f32, String> {
    let share: f32 = text.parse().map_err(|_| "a share is a number from 0 to 1".to_owned())?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("a share is a number from 0 to 1".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;

    fn config(arguments: &[&str]) -> anyhow::Result<Choice> {
        let command = OutboundOptions::augment_args(EmbedderOptions::augment_args(Command::new("cairn")));
        let matches = command.try_get_matches_from(["cairn"].iter().chain(arguments))?;
        let options = EmbedderOptions::from_arg_matches(&matches)?;
        let data = tempfile::tempdir()?;
        Ok(options.config(data.path(), &OutboundOptions::from_arg_matches(&matches)?)?.choice)
    }

    #[test]
    fn an_embedder_is_named_by_its_kind_and_place() {
        assert_eq!(config(&[]).unwrap(), Choice::BuiltIn);
        assert_eq!(config(&["--embedder", "candle:/models/x"]).unwrap(), Choice::Folder("/models/x".into()));
        let endpoint =
            config(&["--embedder", "openai:http://[::1]:8080/v1", "--embedder-model", "m"]).unwrap();
        assert!(matches!(endpoint, Choice::Endpoint(config) if config.base_url == "http://[::1]:8080/v1"));
        for (wrong, told) in [
            ("openai:http://host/v1", "CAIRN_EMBEDDER_MODEL"),
            ("openai:host", "CAIRN_EMBEDDER is"),
            ("candle:", "CAIRN_EMBEDDER is"),
            ("word2vec", "CAIRN_EMBEDDER is"),
            ("candle:nobody/has-this", "CAIRN_ALLOW_DOWNLOADS"),
            ("candle:has-this", "cairn models list"),
        ] {
            let refusal = config(&["--embedder", wrong]).unwrap_err().to_string();
            assert!(refusal.contains(told), "{wrong}: {refusal}");
        }
    }

    #[test]
    fn a_model_is_fetched_only_when_that_is_allowed() {
        let allowed = ["--embedder", "candle:owner/model", "--allow-downloads"];
        assert!(matches!(config(&allowed).unwrap(), Choice::Fetched(model) if model.name == "owner/model"));
    }

    #[test]
    fn a_model_that_was_added_is_found_by_its_name() {
        let models = tempfile::tempdir().unwrap();
        let folder = models.path().join("owner--model");
        std::fs::create_dir(&folder).unwrap();
        let models = models.path().to_str().unwrap();
        let named = config(&["--embedder", "candle:owner/model", "--embedder-models", models]).unwrap();
        assert_eq!(named, Choice::Folder(folder));
    }

    #[test]
    fn a_key_is_never_shown() {
        let command = EmbedderOptions::augment_args(Command::new("cairn"));
        let matches = command.try_get_matches_from(["cairn", "--embedder-key", "s3cret"]).unwrap();
        let options = EmbedderOptions::from_arg_matches(&matches).unwrap();
        assert!(!format!("{options:?}").contains("s3cret"));
    }
}
