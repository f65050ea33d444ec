//! Adds models: from a folder of this machine, or from a hub.

use std::io::{self, Read as _};
use std::path::Path;

use cairn_chassis::outbound::Guard;

use super::{AddOptions, ModelError, ModelName, Models, Progress, TriedModel, absent};
use crate::draft::Draft;
use crate::prefixes;
use crate::record::{self, FileRecord, FileWriter};
use crate::transformer::{self, CONFIG_FILE, OPTIONAL_FILES, REQUIRED_FILES, Transformer, WEIGHTS_FILE};
use crate::{Embedder as _, Error, FetchedModel, TextKind};

const BUFFER_BYTES: usize = 1 << 20;
/// Unsupported formats of weights, and a hint for each.
const OTHER_WEIGHTS: [(&str, &str); 3] = [
    ("model.safetensors.index.json", "; this one is in several parts, which are not read"),
    (
        "pytorch_model.bin",
        "; this one has pytorch_model.bin, which save_pretrained(…) of transformers converts",
    ),
    ("model.onnx", "; this one has model.onnx, which is not read"),
];
/// The texts that a model is tested with; they differ.
const TRIED: [&str; 2] = ["how to restart the database server", "a recipe for apple pie"];
/// The tolerance for the norm of a vector.
const ROUNDING: f32 = 1e-3;

impl Models {
    /// Copies a model from a folder, when it runs here and, where a hash is given, its weights have it. Decides its prefixes.
    /// Blocks: runs off the async threads.
    ///
    /// # Errors
    /// [`ModelError`]; nothing is left of what was not added.
    pub fn add_folder(
        &self,
        name: &ModelName,
        source: &Path,
        options: &AddOptions,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<TriedModel, ModelError> {
        self.check_free(name)?;
        check_complete(source)?;
        transformer::check_config(source)?;
        let draft = Draft::begin(&self.folder_of(name))?;
        let mut records = Vec::new();
        for file in REQUIRED_FILES.into_iter().chain(OPTIONAL_FILES) {
            if source.join(file).is_file() {
                records.push(copied(source, draft.path(), file, progress)?);
            }
        }
        check_weights(&records, options.sha256.as_deref())?;
        record::write(draft.path(), &records)?;
        let of_source = source.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        prefixes::store(draft.path(), &[name.as_str(), &*of_source], options)?;
        let tried = tried(draft.path())?;
        draft.finish()?;
        Ok(tried)
    }

    /// Fetches a model from a hub, as [`Self::add_folder`] copies one. Its configuration comes first: what does not run here is
    /// refused before its weights are fetched.
    ///
    /// # Errors
    /// As there.
    pub async fn add_fetched(
        &self,
        model: &FetchedModel,
        guard: &Guard,
        options: &AddOptions,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<TriedModel, ModelError> {
        let name =
            ModelName::parse(&model.name).ok_or_else(|| ModelError::Absent { name: model.name.clone() })?;
        self.check_free(&name)?;
        let draft = Draft::begin(&self.folder_of(&name))?;
        let not_fetched = |reason: String| ModelError::NotFetched { name: model.name.clone(), reason };
        let config = model.fetch_file(draft.path(), CONFIG_FILE, guard, &mut |_| ()).await;
        config.map_err(|reason| not_fetched(reason.to_string()))?;
        transformer::check_config(draft.path())?;
        let fetched = model.fetch_into(draft.path(), guard, progress).await;
        let records = fetched.map_err(|reason| not_fetched(reason.to_string()))?;
        check_weights(&records, options.sha256.as_deref())?;
        record::write(draft.path(), &records)?;
        prefixes::store(draft.path(), &[name.as_str()], options)?;
        // Blocks: the weights are read, and the model computes.
        let tried = tokio::task::spawn_blocking(move || tried(draft.path()).map(|tried| (tried, draft)));
        let (tried, draft) = tried.await.map_err(io::Error::other)??;
        draft.finish()?;
        Ok(tried)
    }

    /// Whether a model's files are what came when it was added, and what it does. Blocks: runs off the async threads.
    ///
    /// # Errors
    /// When there is none of that name, or something is wrong with it.
    pub fn check(&self, name: &ModelName) -> Result<TriedModel, ModelError> {
        let folder = self.find(name).ok_or_else(|| absent(name))?;
        let changed = record::changed(&folder)?;
        if !changed.is_empty() {
            let (name, files) = (name.as_str().to_owned(), changed.join(", "));
            return Err(ModelError::Changed { name, files });
        }
        tried(&folder)
    }

    fn check_free(&self, name: &ModelName) -> Result<(), ModelError> {
        match self.find(name) {
            Some(_) => Err(ModelError::Exists { name: name.as_str().to_owned() }),
            None => Ok(()),
        }
    }
}

fn check_complete(folder: &Path) -> Result<(), ModelError> {
    let Some(file) = REQUIRED_FILES.into_iter().find(|file| !folder.join(file).is_file()) else {
        return Ok(());
    };
    let other = OTHER_WEIGHTS.iter().find(|(other, _)| folder.join(other).is_file());
    let hint = other.map(|(_, hint)| *hint).filter(|_| file == WEIGHTS_FILE).unwrap_or_default();
    Err(ModelError::Incomplete { folder: folder.to_owned(), file, hint })
}

fn check_weights(records: &[FileRecord], expected: Option<&str>) -> Result<(), ModelError> {
    let Some(expected) = expected.map(str::to_ascii_lowercase) else { return Ok(()) };
    let weights = records.iter().find(|record| record.url.ends_with(WEIGHTS_FILE));
    let found = weights.map(|record| record.sha256.clone()).unwrap_or_default();
    if found == expected { Ok(()) } else { Err(ModelError::OtherWeights { expected, found }) }
}

fn copied(
    source: &Path,
    folder: &Path,
    file: &'static str,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> io::Result<FileRecord> {
    let path = source.join(file);
    let mut from = fs_err::File::open(&path)?;
    let whole = Some(from.metadata()?.len());
    let mut writer = FileWriter::create(&folder.join(file))?;
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = from.read(&mut buffer)?;
        let Some(part) = buffer.get(..read).filter(|part| !part.is_empty()) else { break };
        let bytes = writer.write(part)?;
        progress(Progress { file, bytes, whole });
    }
    // A path has a slash before the file's name, as a URL does: see `FileRecord::file`.
    writer.finish(path.display().to_string())
}

/// Opens the model of a folder and tests that it embeds.
fn tried(folder: &Path) -> Result<TriedModel, ModelError> {
    let model = Transformer::open(folder)?;
    let texts = TRIED.map(str::to_owned);
    let vectors = model.embed_here(TextKind::Passage, &texts)?;
    if vectors.iter().any(|vector| vector.len() != model.dimensions()) {
        return Err(wrong("its vectors are not as long as its configuration says"));
    }
    if !vectors.iter().all(|vector| is_of_length_one(vector)) {
        return Err(wrong("its vectors are no numbers, or all zero"));
    }
    if vectors.first() == vectors.last() {
        return Err(wrong("it gives different texts the same vector"));
    }
    Ok(TriedModel { dimensions: model.dimensions(), window: model.window() })
}

fn wrong(reason: &str) -> ModelError {
    Error::Model { reason: reason.to_owned() }.into()
}

/// Also false for a vector with NaN.
fn is_of_length_one(vector: &[f32]) -> bool {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    (length - 1.0).abs() < ROUNDING
}

#[cfg(test)]
mod tests;
