//! A transformer of the BERT family that runs in this process, through candle.
//!
//! The folder is one as sentence-transformers writes it: `config.json`, `tokenizer.json`, `model.safetensors`, and, if
//! there are any, `sentence_bert_config.json` (the length of text it was trained for), `1_Pooling/config.json` and
//! `config_sentence_transformers.json` (the prefixes of queries and passages).

mod footprint;
mod windows;

use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokenizers::Tokenizer;
use tokio::sync::{Semaphore, oneshot};

use self::footprint::{Footprint, Limits};
use self::windows::{Window, Windows};
use super::embedders::TRANSFORMER_ORIGIN;
use super::prefixes::PROMPTS_FILE;
use super::vector::normalise;
use super::{Embedder, Error, Prefixes, TextKind};

/// Up to this total size texts go to the pool of questions; batches of passages are larger.
const QUESTION_BYTES: usize = 2 * 1024;

pub(super) const CONFIG_FILE: &str = "config.json";
const TOKENIZER_FILE: &str = "tokenizer.json";
pub(super) const WEIGHTS_FILE: &str = "model.safetensors";
/// Ends the name of a model with prefixes, so that people see in every status that they are applied.
const PREFIXED: &str = "-prefixed";
const LENGTH_FILE: &str = "sentence_bert_config.json";
const POOLING_FILE: &str = "1_Pooling/config.json";

/// The files that a folder must have.
pub(super) const REQUIRED_FILES: [&str; 3] = [CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE];
/// The files that it may have.
pub(super) const OPTIONAL_FILES: [&str; 3] = [LENGTH_FILE, POOLING_FILE, PROMPTS_FILE];

/// A model from a folder.
pub(super) struct Transformer {
    name: String,
    origin: String,
    dimensions: usize,
    model: Arc<Model>,
    workers: Workers,
}

struct Model {
    bert: BertModel,
    windows: Windows,
    pooling: Pooling,
    footprint: Footprint,
    limits: Limits,
}

/// How a window's tokens become one vector. The names of the variants are part of the digest in the embedder's name: renaming one
/// would re-embed everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pooling {
    Mean,
    /// The vector of the first token (CLS).
    First,
}

#[derive(Debug, Deserialize)]
struct FamilyConfig {
    model_type: Option<String>,
}

#[derive(Debug, Deserialize)]
struct LengthConfig {
    max_seq_length: Option<usize>,
}

#[derive(Debug, Deserialize)]
struct PoolingConfig {
    #[serde(default)]
    pooling_mode_cls_token: bool,
}

impl Transformer {
    /// Reads the model of a folder; takes as long as reading its weights. Blocks: runs off the async threads.
    ///
    /// # Errors
    /// [`Error::Model`] when a file is missing, cannot be read, or is of another family.
    pub(super) fn open(folder: &Path) -> Result<Self, Error> {
        Self::open_within(folder, Limits::of_this_machine())
    }

    fn open_within(folder: &Path, limits: Limits) -> Result<Self, Error> {
        let config_text = read(&folder.join(CONFIG_FILE))?;
        let tokenizer_text = read(&folder.join(TOKENIZER_FILE))?;
        let weights = read(&folder.join(WEIGHTS_FILE))?;
        let config = supported(&config_text)?;
        let length: Option<LengthConfig> = parsed_if_there(&folder.join(LENGTH_FILE))?;
        let pooling: Option<PoolingConfig> = parsed_if_there(&folder.join(POOLING_FILE))?;
        let prefixes = Prefixes::of_folder(folder)?;

        let trained_for = length.and_then(|config| config.max_seq_length).unwrap_or(usize::MAX);
        let footprint = Footprint::of(&config);
        let window = footprint.longest(limits, trained_for.min(config.max_position_embeddings));
        let first = pooling.is_some_and(|config| config.pooling_mode_cls_token);
        let pooling = if first { Pooling::First } else { Pooling::Mean };
        let dimensions = config.hidden_size;
        let settings = format!("{window} {pooling:?}");
        let hashed: [&[u8]; 4] = [&config_text, &tokenizer_text, &weights, settings.as_bytes()];
        let name = name_of(folder, dimensions, &hashed, &prefixes);
        let windows = Windows::new(tokenizer(&tokenizer_text)?, window, &prefixes)?;
        let weights = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu);
        let bert = weights.and_then(|weights| BertModel::load(weights, &config)).map_err(unusable)?;
        let origin = format!("{TRANSFORMER_ORIGIN}{}", folder.display());
        let model = Arc::new(Model { bert, windows, pooling, footprint, limits });
        Ok(Self { name, origin, dimensions, model, workers: Workers::new(limits)? })
    }

    /// As [`Embedder::embed`], on this thread.
    pub(super) fn embed_here(&self, kind: TextKind, texts: &[String]) -> Result<Vec<Vec<f32>>, Error> {
        self.model.embed(kind, texts)
    }

    /// The window length in tokens; a longer text is read in several windows.
    pub(super) fn window(&self) -> usize {
        self.model.windows.length()
    }
}

/// Checks that the `config.json` of a folder is one of a supported model, before the weights are downloaded or copied.
///
/// # Errors
/// [`Error::Model`], when not.
pub(super) fn check_config(folder: &Path) -> Result<(), Error> {
    supported(&read(&folder.join(CONFIG_FILE))?).map(drop)
}

fn supported(config: &[u8]) -> Result<Config, Error> {
    // Checked first: the name of another family is a better message than a missing field.
    let family: FamilyConfig = parsed(config, CONFIG_FILE)?;
    if let Some(family) = family.model_type.filter(|family| family != "bert") {
        return Err(unusable(format!("config.json is of the family {family}, another family than bert")));
    }
    let config: Config = parsed(config, CONFIG_FILE)?;
    if !config.hidden_size.is_multiple_of(config.num_attention_heads) || config.hidden_size == 0 {
        return Err(unusable("config.json: the hidden size is no multiple of the number of heads"));
    }
    Ok(config)
}

/// The worker threads of a model. Dedicated threads bound memory: the allocator caches memory for each thread that runs a model,
/// so the shared blocking pool would hold a share for each of its threads.
struct Workers {
    passages: Pool,
    /// Questions do not queue behind batches of passages.
    questions: Pool,
}

impl Workers {
    fn new(limits: Limits) -> Result<Self, Error> {
        Ok(Self { passages: Pool::new("passages", limits.threads)?, questions: Pool::new("questions", 1)? })
    }

    fn of(&self, texts: &[String]) -> &Pool {
        let bytes: usize = texts.iter().map(String::len).sum();
        if bytes <= QUESTION_BYTES { &self.questions } else { &self.passages }
    }
}

/// A pool that runs one batch at a time on all of its threads, so that activations are in memory once.
struct Pool {
    threads: ThreadPool,
    turn: Arc<Semaphore>,
}

impl Pool {
    fn new(name: &'static str, threads: usize) -> Result<Self, Error> {
        let threads = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(move |thread| format!("embed-{name}-{thread}"))
            // Without a handler a panic would abort the process; with it, the call fails.
            .panic_handler(|_| ())
            .build()
            .map_err(unusable)?;
        Ok(Self { threads, turn: Arc::new(Semaphore::new(1)) })
    }
}

/// Truncation and padding of the file are switched off: texts are cut into windows here, and padded per batch.
fn tokenizer(text: &[u8]) -> Result<Tokenizer, Error> {
    let mut tokenizer = Tokenizer::from_bytes(text).map_err(unusable)?;
    tokenizer.with_padding(None).with_truncation(None).map_err(unusable)?;
    Ok(tokenizer)
}

/// Names the folder, for people, and has a digest of all bytes that the vectors depend on. A model without prefixes has the
/// digest of versions without prefixes, so that nothing is embedded again.
fn name_of(folder: &Path, dimensions: usize, parts: &[&[u8]], prefixes: &Prefixes) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(blake3::hash(part).as_bytes());
    }
    if !prefixes.are_empty() {
        hasher.update(blake3::hash(prefixes.query.as_bytes()).as_bytes());
        hasher.update(blake3::hash(prefixes.passage.as_bytes()).as_bytes());
    }
    let digest = hasher.finalize().to_hex();
    let digest = digest.get(..12).unwrap_or_default();
    let folder = folder.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let suffix = if prefixes.are_empty() { "" } else { PREFIXED };
    format!("candle-{folder}-{dimensions}-{digest}{suffix}")
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs_err::read(path).map_err(unusable)
}

fn parsed<T: DeserializeOwned>(text: &[u8], file: &str) -> Result<T, Error> {
    serde_json::from_slice(text).map_err(|error| unusable(format!("{file}: {error}")))
}

fn parsed_if_there<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    match fs_err::read(path) {
        Ok(text) => Ok(Some(parsed(&text, &path.display().to_string())?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(error)),
    }
}

fn unusable(reason: impl ToString) -> Error {
    Error::Model { reason: reason.to_string() }
}

impl Model {
    fn embed(&self, kind: TextKind, texts: &[String]) -> Result<Vec<Vec<f32>>, Error> {
        let mut windows = self.windows.cut(kind, texts)?;
        // Sorted by length, to minimize padding.
        windows.sort_by_key(|window| window.tokens.len());
        let mut sums: Vec<Vec<f32>> = vec![Vec::new(); texts.len()];
        let mut rest = windows.as_slice();
        while !rest.is_empty() {
            let lengths = rest.iter().map(|window| window.tokens.len());
            let (together, later) = rest.split_at(self.footprint.together(self.limits, lengths));
            rest = later;
            for (window, vector) in together.iter().zip(self.forward(together).map_err(failed)?) {
                // The vector of a long text is the mean of its windows, each counting by its length: what the mean over
                // all its tokens would be, if the model could read it at once.
                let weight = window.tokens.len() as f32;
                let Some(sum) = sums.get_mut(window.text) else { continue };
                sum.resize(vector.len(), 0.0);
                sum.iter_mut().zip(vector).for_each(|(total, value)| *total += weight * value);
            }
        }
        sums.iter_mut().for_each(|sum| normalise(sum));
        Ok(sums)
    }

    /// The pooled, normalised vector of each window.
    fn forward(&self, windows: &[Window]) -> candle_core::Result<Vec<Vec<f32>>> {
        let longest = windows.iter().map(|window| window.tokens.len()).max().unwrap_or(0);
        let padded = |value: fn(u32) -> u32| {
            let rows = windows.iter().flat_map(|window| {
                let row = window.tokens.iter().copied().map(value);
                row.chain(std::iter::repeat(0)).take(longest)
            });
            Tensor::from_vec(rows.collect::<Vec<u32>>(), (windows.len(), longest), &Device::Cpu)
        };
        let (tokens, mask) = (padded(|token| token)?, padded(|_| 1)?);
        let states = self.bert.forward(&tokens, &tokens.zeros_like()?, Some(&mask))?;
        let pooled = match self.pooling {
            Pooling::First => states.narrow(1, 0, 1)?.squeeze(1)?,
            Pooling::Mean => {
                let mask = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
                states.broadcast_mul(&mask)?.sum(1)?.broadcast_div(&mask.sum(1)?)?
            }
        };
        let mut vectors: Vec<Vec<f32>> = pooled.to_vec2()?;
        vectors.iter_mut().for_each(|vector| normalise(vector));
        Ok(vectors)
    }
}

fn failed(reason: impl ToString) -> Error {
    Error::Unavailable { reason: reason.to_string() }
}

#[async_trait]
impl Embedder for Transformer {
    fn name(&self) -> &str {
        &self.name
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn origin(&self) -> &str {
        &self.origin
    }

    async fn embed(&self, kind: TextKind, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let model = Arc::clone(&self.model);
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let dimensions = self.dimensions;
        let (done, embedded) = oneshot::channel();
        let pool = self.workers.of(&texts);
        let turn = Arc::clone(&pool.turn).acquire_owned().await.map_err(failed)?;
        pool.threads.spawn(move || {
            let vectors = model.embed(kind, &texts);
            drop(turn);
            // The caller may have been cancelled.
            let _ = done.send(vectors);
        });
        let mut vectors = embedded.await.map_err(failed)??;
        // Texts without tokens have not been through the model.
        vectors
            .iter_mut()
            .filter(|vector| vector.is_empty())
            .for_each(|vector| vector.resize(dimensions, 0.0));
        Ok(vectors)
    }
}

cairn_chassis::debug_fields!(Transformer { name });

#[cfg(test)]
mod measured;
#[cfg(test)]
pub(crate) mod tests;
