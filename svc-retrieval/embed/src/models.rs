//! The folder of added models: each in a folder of its own, which is complete and tested before it gets its name.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Error, Prefixes};

#[cfg(feature = "transformer")]
mod add;

/// The name of a model: `owner/model`, as on hubs, or `model` alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName(String);

impl ModelName {
    /// Parses a name; `None` for a path. Accepts the folder form `owner--model`, too.
    pub fn parse(text: &str) -> Option<Self> {
        let name = text.replacen(OWNER_IN_FOLDER, "/", 1);
        let is_name = match name.split_once('/') {
            Some((owner, model)) => is_part(owner) && is_part(model),
            None => is_part(&name),
        };
        is_name.then_some(Self(name))
    }

    /// Whether it names an owner, as the names of a hub do.
    pub fn is_of_hub(&self) -> bool {
        self.0.contains('/')
    }

    /// The name as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Replaces the slash of a model's name in the name of its folder.
const OWNER_IN_FOLDER: &str = "--";

fn is_part(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !part.is_empty() && !part.starts_with('.') && part.bytes().all(plain)
}

/// An added model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedModel {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The size of its weights.
    pub bytes: u64,
    /// The length of its vectors, where its configuration can be read.
    pub dimensions: Option<u64>,
    /// Its prefixes, if its files can be read.
    pub prefixes: Option<Prefixes>,
}

/// Options of adding a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// The SHA-256 that the weights must have, in hexadecimal.
    pub sha256: Option<String>,
    /// The prefix of queries; empty for none. Default: as published, else as recommended for the model's family.
    pub query_prefix: Option<String>,
    /// The prefix of passages, with the same default.
    pub passage_prefix: Option<String>,
}

/// The outcome of testing a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TriedModel {
    /// The length of its vectors.
    pub dimensions: usize,
    /// The window length in tokens; a longer text is read in several windows.
    pub window: usize,
}

/// Progress of a file.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The file.
    pub file: &'a str,
    /// Bytes so far.
    pub bytes: u64,
    /// Bytes in total, where known.
    pub whole: Option<u64>,
}

/// Why a model was not added, found or removed. The texts are for the operator.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The folder of that name is taken.
    #[error("there is a model {name} already; `cairn models remove {name}` removes it")]
    Exists {
        /// Its name.
        name: String,
    },
    /// There is none of that name.
    #[error("there is no model {name}; `cairn models list` shows those that there are")]
    Absent {
        /// The name that was asked for.
        name: String,
    },
    /// A file that every model has is missing.
    #[error(
        "{} has no {file}: a model is a folder with config.json, tokenizer.json and model.safetensors, as \
         sentence-transformers writes it{hint}", .folder.display()
    )]
    Incomplete {
        /// The folder that was to be added.
        folder: PathBuf,
        /// The missing file.
        file: &'static str,
        /// A hint on a file in another format, or nothing.
        hint: &'static str,
    },
    /// The hub did not give a file.
    #[error("cannot fetch {name}: {reason}")]
    NotFetched {
        /// The model.
        name: String,
        /// Which file, and why.
        reason: String,
    },
    /// The hash of the weights is not the expected one.
    #[error("model.safetensors has the SHA-256 {found}, not {expected}")]
    OtherWeights {
        /// The expected SHA-256.
        expected: String,
        /// The actual SHA-256.
        found: String,
    },
    /// Files have changed since the model was added.
    #[error("{name}: {files} changed since it was added; remove it and add it again")]
    Changed {
        /// The model.
        name: String,
        /// Which files.
        files: String,
    },
    /// It does not run here, or gives no vectors.
    #[error(transparent)]
    Unusable(#[from] Error),
    /// The disk.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The folder of added models.
#[derive(Debug, Clone)]
pub struct Models {
    folder: PathBuf,
}

impl Models {
    /// The models in that folder, which need not exist.
    pub const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder for a model of that name, whether it exists or not.
    pub fn folder_of(&self, name: &ModelName) -> PathBuf {
        self.folder.join(name.as_str().replacen('/', OWNER_IN_FOLDER, 1))
    }

    /// The folder of the model of that name, if it exists.
    pub fn find(&self, name: &ModelName) -> Option<PathBuf> {
        Some(self.folder_of(name)).filter(|folder| folder.is_dir())
    }

    /// All models, by their names.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self) -> Result<Vec<AddedModel>, ModelError> {
        let entries = match fs_err::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            // Skips staging folders: a name does not begin with a dot.
            let name = ModelName::parse(&entry.file_name().to_string_lossy());
            if let Some(name) = name.filter(|_| entry.path().is_dir()) {
                found.push(described(name, entry.path()));
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// Removes a model.
    ///
    /// # Errors
    /// When there is none of that name, or it cannot be removed.
    pub fn remove(&self, name: &ModelName) -> Result<(), ModelError> {
        let folder = self.find(name).ok_or_else(|| absent(name))?;
        Ok(fs_err::remove_dir_all(folder)?)
    }
}

fn absent(name: &ModelName) -> ModelError {
    ModelError::Absent { name: name.as_str().to_owned() }
}

fn described(name: ModelName, folder: PathBuf) -> AddedModel {
    let bytes = fs_err::metadata(folder.join("model.safetensors")).map_or(0, |found| found.len());
    let dimensions = dimensions_of(&folder.join("config.json"));
    let prefixes = Prefixes::of_folder(&folder).ok();
    AddedModel { name: name.0, folder, bytes, dimensions, prefixes }
}

fn dimensions_of(config: &Path) -> Option<u64> {
    let config: Value = serde_json::from_slice(&fs_err::read(config).ok()?).ok()?;
    config.get("hidden_size")?.as_u64()
}

#[cfg(not(feature = "transformer"))]
mod left_out {
    //! A binary that cannot run models adds none.

    use cairn_chassis::outbound::Guard;

    use super::{AddOptions, Error, ModelError, ModelName, Models, Path, Progress, TriedModel};
    use crate::FetchedModel;
    use crate::embedders::NO_TRANSFORMER_FEATURE;

    impl Models {
        /// Refused.
        ///
        /// # Errors
        /// Always.
        pub fn add_folder(
            &self,
            _name: &ModelName,
            _source: &Path,
            _options: &AddOptions,
            _progress: &mut (dyn FnMut(Progress<'_>) + Send),
        ) -> Result<TriedModel, ModelError> {
            Err(left_out())
        }

        /// Refused.
        ///
        /// # Errors
        /// Always.
        pub async fn add_fetched(
            &self,
            _model: &FetchedModel,
            _guard: &Guard,
            _options: &AddOptions,
            _progress: &mut (dyn FnMut(Progress<'_>) + Send),
        ) -> Result<TriedModel, ModelError> {
            Err(left_out())
        }

        /// Refused.
        ///
        /// # Errors
        /// Always.
        pub fn check(&self, _name: &ModelName) -> Result<TriedModel, ModelError> {
            Err(left_out())
        }
    }

    fn left_out() -> ModelError {
        Error::Model { reason: NO_TRANSFORMER_FEATURE.to_owned() }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path_and_a_folder_tells_it() {
        for name in ["tiny", "owner/tiny", "sentence-transformers/all-MiniLM-L6-v2"] {
            let parsed = ModelName::parse(name).unwrap();
            assert_eq!(parsed.as_str(), name);
            let folder = Models::new("models".into()).folder_of(&parsed);
            let told = folder.file_name().unwrap().to_string_lossy().into_owned();
            assert_eq!(ModelName::parse(&told), Some(parsed));
        }
        for path in
            ["", "/models/tiny", "./tiny", "../tiny", "a/b/c", "a/", "a/..", "~/tiny", "a b", ".adding-x"]
        {
            assert_eq!(ModelName::parse(path), None, "{path:?}");
        }
    }

    #[test]
    fn what_is_no_model_is_not_listed() {
        let root = tempfile::tempdir().unwrap();
        let models = Models::new(root.path().join("models"));
        assert!(models.list().unwrap().is_empty());
        for folder in ["models/b", "models/owner--a", "models/.adding-c"] {
            fs_err::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs_err::write(root.path().join("models/b/config.json"), "{\"hidden_size\": 384}").unwrap();
        let listed = models.list().unwrap();
        let names: Vec<&str> = listed.iter().map(|model| model.name.as_str()).collect();
        assert_eq!(names, ["b", "owner/a"]);
        assert_eq!(listed[0].dimensions, Some(384));
        assert_eq!(listed[0].prefixes, Some(Prefixes::default()));
        models.remove(&ModelName::parse("b").unwrap()).unwrap();
        let again = models.remove(&ModelName::parse("b").unwrap());
        assert!(matches!(again, Err(ModelError::Absent { .. })));
    }
}
