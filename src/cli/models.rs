//! The command line of `cairn models`.

use std::path::PathBuf;

use cairn_embed::{AddOptions, DEFAULT_HUB, prefix_fault};
use clap::{Args, Subcommand};

use super::embedder::models_in;
use super::{OutboundOptions, Role};
use crate::client::ConnectionOptions;

pub(super) const EXAMPLES: &str = "Examples:
  cairn models add sentence-transformers/all-MiniLM-L6-v2     fetched, tried, and kept in ./cairn-data
  cairn models add /srv/models/bge-small-en-v1.5 --data /srv/cairn
  cairn models add ./tuned --query-prefix 'query: ' --passage-prefix 'passage: '     trained as e5 models are
  cairn models list --json | jq -r '.[].name'
  cairn models check bge-small-en-v1.5      its files are what came, and it still computes
  cairn up --embedder candle:bge-small-en-v1.5                embed with it from the next start on
  cairn models status --url https://cairn.example             how far the index of it is
  cairn models remove bge-small-en-v1.5     when no index is made with it any more

A model is a folder with config.json, tokenizer.json and model.safetensors, as sentence-transformers writes it, of the BERT family.
What is no such model is refused and leaves nothing. Prefixes that a model was trained with are taken from its
config_sentence_transformers.json; of e5, bge, mxbai, arctic and nomic models, known by their names, those of the model card.
With another embedder than before, the texts are embedded anew in the background
while the old index answers; `cairn eval COLLECTION --embedder candle:NAME` tells beforehand what it is worth.";

/// What is done about models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Show the models that there are, and which one the index is made with.
    #[command(after_help = EXAMPLES)]
    List(ListModelsOptions),
    /// Add a model: copied from a folder, or fetched by the name that it has on the hub.
    #[command(after_help = EXAMPLES)]
    Add(AddModelOptions),
    /// Compare a model's files with what came, and have it compute; ends with 1 when something is wrong.
    #[command(after_help = EXAMPLES)]
    Check(NamedModelOptions),
    /// Remove a model.
    #[command(after_help = EXAMPLES)]
    Remove(RemoveModelOptions),
    /// Ask a running Cairn which embedder its searches use, and how far the index of the next one is.
    #[command(after_help = EXAMPLES)]
    Status(ModelStatusOptions),
}

/// Where the models are.
#[derive(Debug, Args)]
pub(crate) struct ModelsPlace {
    /// The data folder of `cairn up`, or of `cairn serve retrieval`.
    #[arg(long, env = "CAIRN_DATA", value_name = "DIR", default_value = "./cairn-data")]
    data: PathBuf,
    /// The folder of the models. Default: embedder/models among the data.
    #[arg(long, env = "CAIRN_EMBEDDER_MODELS", value_name = "DIR")]
    models: Option<PathBuf>,
}

impl ModelsPlace {
    /// What the service of the index keeps: in the data folder of `cairn up`, or below that of `cairn serve`.
    pub(crate) fn service_data(&self) -> PathBuf {
        let of_serve = self.data.join(Role::Retrieval.name());
        if of_serve.is_dir() { of_serve } else { self.data.clone() }
    }

    /// The folder of the models.
    pub(crate) fn models(&self) -> PathBuf {
        self.models.clone().unwrap_or_else(|| models_in(&self.service_data()))
    }
}

#[derive(Debug, Args)]
pub(crate) struct ListModelsOptions {
    #[command(flatten)]
    pub(crate) place: ModelsPlace,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AddModelOptions {
    /// The folder of a model, or its name on the hub. A folder that is there is a folder, whatever else its name may mean.
    #[arg(value_name = "FOLDER|NAME")]
    pub(crate) source: String,
    /// The name that a model from a folder gets. Default: that of the folder.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The SHA-256 that model.safetensors must have, in hexadecimal.
    #[arg(long, value_name = "SHA256", value_parser = sha256)]
    pub(crate) sha256: Option<String>,
    /// The text that the model expects before a query, with the space behind it; '' for none. Default: as published, else as
    /// recommended for its family. To change it, remove the model and add it again: texts are then embedded anew.
    #[arg(long, value_name = "TEXT", value_parser = prefix)]
    pub(crate) query_prefix: Option<String>,
    /// The text that it expects before a passage; as there.
    #[arg(long, value_name = "TEXT", value_parser = prefix)]
    pub(crate) passage_prefix: Option<String>,
    /// Where models are fetched from: public hosts over https, unless CAIRN_OUTBOUND_ALLOW names the network.
    #[arg(long, env = "CAIRN_MODEL_HUB", value_name = "URL", default_value = DEFAULT_HUB)]
    pub(crate) model_hub: String,
    #[command(flatten)]
    pub(crate) outbound: OutboundOptions,
    #[command(flatten)]
    pub(crate) place: ModelsPlace,
    /// Show no progress.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl AddModelOptions {
    /// The options of the embedding crate.
    pub(crate) fn add_options(&self) -> AddOptions {
        AddOptions {
            sha256: self.sha256.clone(),
            query_prefix: self.query_prefix.clone(),
            passage_prefix: self.passage_prefix.clone(),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct NamedModelOptions {
    /// The model, as `cairn models list` shows it.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) place: ModelsPlace,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveModelOptions {
    #[command(flatten)]
    pub(crate) named: NamedModelOptions,
    /// Remove it although the index is made with it: searches then go by words until another embedder's index is built.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ModelStatusOptions {
    #[command(flatten)]
    pub(crate) connection: ConnectionOptions,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn prefix(text: &str) -> Result<String, String> {
    match prefix_fault(text) {
        Some(fault) => Err(fault.to_owned()),
        None => Ok(text.to_owned()),
    }
}

fn sha256(text: &str) -> Result<String, String> {
    let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("a SHA-256 has 64 hexadecimal digits".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_where_the_service_looks_for_them() {
        let data = tempfile::tempdir().unwrap();
        let place = ModelsPlace { data: data.path().to_owned(), models: None };
        assert_eq!(place.models(), data.path().join("embedder/models"));
        std::fs::create_dir(data.path().join("retrieval")).unwrap();
        assert_eq!(place.models(), data.path().join("retrieval/embedder/models"));
        let elsewhere = ModelsPlace { models: Some("elsewhere".into()), ..place };
        assert_eq!(elsewhere.models(), PathBuf::from("elsewhere"));
    }

    #[test]
    fn a_prefix_keeps_its_spaces() {
        assert_eq!(prefix("query: ").unwrap(), "query: ");
        assert_eq!(prefix("").unwrap(), "");
        assert!(prefix("\u{0}").is_err() && prefix(&"x".repeat(1025)).is_err());
    }

    #[test]
    fn a_hash_is_one() {
        assert_eq!(sha256(&"A0".repeat(32)).unwrap(), "a0".repeat(32));
        assert!(sha256("a0").is_err() && sha256(&"x0".repeat(32)).is_err());
    }
}
