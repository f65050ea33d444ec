//! The command line of `cairn eval`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::client::ConnectionOptions;

pub(crate) const EXAMPLES: &str = "Examples:
  cairn eval ./cranfield                              a collection, in a temporary service
  cairn eval ./cranfield --save before.json           keep the figures …
  cairn eval ./cranfield --against before.json        … and say what has changed since
  cairn eval ./cranfield --embedder candle:sentence-transformers/all-MiniLM-L6-v2     `cairn models add` has added it
  cairn eval ./cranfield --against before.json --qdrant http://localhost:6334
  cairn eval golden.jsonl --documents ./handbook      your own questions on your own documents
  cairn eval golden.jsonl --profile work              … on the workspace of a profile (`cairn login`)
  export CAIRN_URL=https://cairn.example CAIRN_TOKEN=…
  cairn eval golden.jsonl                             … or of a token
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
    /// A collection's folder, a file of golden questions, or `workspace:` and the path of such a file in the workspace. A
    /// collection goes into a temporary service, in a temporary folder, unless --url or --profile names one: that needs an empty
    /// workspace, and read, write and delete.
    #[arg(value_name = "COLLECTION|QUESTIONS")]
    pub(super) source: String,
    #[command(flatten)]
    pub(super) connection: ConnectionOptions,
    /// The text files below this folder go into a temporary service, for golden questions.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "profile"])]
    pub(super) documents: Option<PathBuf>,
    /// The embedder of the temporary service, as for `cairn up`; its other options are taken from CAIRN_EMBEDDER_….
    #[arg(long, value_name = "WHICH", conflicts_with_all = ["url", "profile"])]
    pub(super) embedder: Option<String>,
    /// The gRPC address of a Qdrant that the temporary service keeps its index in; its key and authorities are taken from
    /// CAIRN_QDRANT_…, and its collections begin with `cairn-eval` and stay.
    #[arg(long, value_name = "URL", conflicts_with_all = ["url", "profile"])]
    pub(super) qdrant: Option<String>,
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

impl EvalOptions {
    /// Whether a service is asked that is there already: one that is named, or the default one for golden questions, which
    /// bring no documents. A variable that is set to nothing names none.
    pub(super) fn is_elsewhere(&self) -> bool {
        let server = &self.connection.server;
        let is_given = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
        let brings_documents = self.documents.is_some() || Path::new(&self.source).is_dir();
        is_given(&server.url) || is_given(&server.profile) || !brings_documents
    }
}

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
