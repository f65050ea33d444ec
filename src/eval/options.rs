//! The command line of `cairn eval`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) const EXAMPLES: &str = "Examples:
  cairn eval ./cranfield                              a collection, in a temporary service
  cairn eval ./cranfield --save before.json           keep the figures …
  cairn eval ./cranfield --against before.json        … and say what has changed since
  cairn eval ./cranfield --embedder candle:/models/all-MiniLM-L6-v2
  cairn eval golden.jsonl --documents ./handbook      your own questions on your own documents
  export CAIRN_URL=https://cairn.example CAIRN_TOKEN=…
  cairn eval golden.jsonl                             … on the workspace of the token
  cairn eval workspace:/eval/golden.jsonl             … with the questions kept in the workspace

A collection is a folder with
  corpus.jsonl    a line for each document: {\"id\": \"7\", \"title\": \"…\", \"text\": \"…\"}
  queries.jsonl   a line for each query: {\"id\": \"q1\", \"text\": \"…\"}
  qrels.tsv       a line for each judgement: query, document and gain, separated by tabs

A file of golden questions has a line for each question:
  {\"question\": \"How long are invoices kept?\", \"expect\": [\"/handbook/finance.md\", \"/legal.md:12-30\"]}
What is expected is the path or the id of a document, if wished with lines of it.";

/// What to measure, and where.
#[derive(Args)]
pub(crate) struct EvalOptions {
    /// A collection's folder, a file of golden questions, or `workspace:` and the path of such a file in the workspace.
    #[arg(value_name = "COLLECTION|QUESTIONS")]
    pub(super) source: String,
    /// The service to ask. Default: a temporary one, in a temporary folder.
    #[arg(long, env = "CAIRN_URL", value_name = "URL", requires = "token")]
    pub(super) url: Option<String>,
    /// The token for it; better set by the environment. A collection needs an empty workspace, and read, write and delete.
    #[arg(long, env = "CAIRN_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(super) token: Option<String>,
    /// The text files below this folder go into the temporary service, for golden questions.
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub(super) documents: Option<PathBuf>,
    /// The embedder of the temporary service, as for `cairn up`; its other options are taken from CAIRN_EMBEDDER_….
    #[arg(long, value_name = "WHICH", conflicts_with = "url")]
    pub(super) embedder: Option<String>,
    /// Only these strategies, separated by commas.
    #[arg(long, value_name = "STRATEGIES", value_delimiter = ',', default_value = "hybrid,keyword,semantic")]
    pub(super) strategies: Vec<Strategy>,
    /// Keep this run in a file.
    #[arg(long, value_name = "FILE")]
    pub(super) save: Option<PathBuf>,
    /// Say what has changed since the run kept in this file.
    #[arg(long, value_name = "FILE")]
    pub(super) against: Option<PathBuf>,
    /// Print the run as JSON, in the form of --save.
    #[arg(long)]
    pub(super) json: bool,
    /// Show no progress.
    #[arg(long)]
    pub(super) quiet: bool,
}

cairn_chassis::debug_fields!(EvalOptions { source });

/// A strategy of `search_context`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Strategy {
    /// Words and meaning.
    Hybrid,
    /// Words.
    Keyword,
    /// Meaning.
    Semantic,
}

impl Strategy {
    /// Its name in the API.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Keyword => "keyword",
            Self::Semantic => "semantic",
        }
    }
}
