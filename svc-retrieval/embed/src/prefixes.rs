//! The prefixes that a model was trained with: what it expects before a query, and what before a passage.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Error;

#[cfg(feature = "transformer")]
mod added;

#[cfg(feature = "transformer")]
pub(super) use added::store;

/// The configuration that sentence-transformers writes beside a model.
pub(super) const PROMPTS_FILE: &str = "config_sentence_transformers.json";
/// The prefixes that were decided when the model was added. It has precedence over [`PROMPTS_FILE`].
const PREFIXES_FILE: &str = "prefixes.json";
/// Size limit of both files; published ones have some hundred bytes.
const MAX_FILE_BYTES: usize = 64 * 1024;
/// Size limit of a prefix. Published instructions have at most some hundred bytes.
const MAX_PREFIX_BYTES: usize = 1024;

/// The prompts that sentence-transformers applies to queries (`encode_query`), in the order of precedence.
const QUERY_PROMPTS: &[&str] = &["query"];
/// The prompts that it applies to passages (`encode_document`).
const PASSAGE_PROMPTS: &[&str] = &["document", "passage", "corpus"];

/// The role of an embedded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// A text to search with.
    Query,
    /// A text to be found.
    Passage,
}

/// The prefixes of a model. An empty prefix means that texts are embedded as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prefixes {
    /// The prefix of queries.
    pub query: String,
    /// The prefix of passages.
    pub passage: String,
}

impl Prefixes {
    /// The prefixes of the model in that folder: those decided when it was added, else the published ones, else none.
    ///
    /// # Errors
    /// [`Error::Model`] when a file that has them is too large or malformed.
    pub fn of_folder(folder: &Path) -> Result<Self, Error> {
        match read_json::<Self>(&folder.join(PREFIXES_FILE))? {
            Some(stored) => stored.validated(),
            None => published(folder),
        }
    }

    /// Whether the model takes all texts as they are.
    pub fn are_empty(&self) -> bool {
        self.query.is_empty() && self.passage.is_empty()
    }

    fn validated(self) -> Result<Self, Error> {
        match prefix_fault(&self.query).or_else(|| prefix_fault(&self.passage)) {
            Some(fault) => Err(unusable(fault)),
            None => Ok(self),
        }
    }
}

/// Why a text cannot be a prefix; `None` when it can.
pub fn prefix_fault(prefix: &str) -> Option<&'static str> {
    if prefix.len() > MAX_PREFIX_BYTES {
        return Some("a prefix has at most 1024 bytes");
    }
    let is_forbidden = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    prefix.contains(is_forbidden).then_some("a prefix has no control characters but line breaks and tabs")
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PromptsConfig {
    prompts: Option<BTreeMap<String, String>>,
    default_prompt_name: Option<String>,
}

impl PromptsConfig {
    /// The prefixes as sentence-transformers applies them: a kind of text without a prompt of its own gets the default one.
    fn prefixes(self) -> Result<Prefixes, Error> {
        let prompts = self.prompts.unwrap_or_default();
        let default = match self.default_prompt_name.as_deref().filter(|name| !name.is_empty()) {
            None => "",
            Some(name) => prompts.get(name).map(String::as_str).ok_or_else(|| {
                unusable(format!("{PROMPTS_FILE}: the default prompt {name:?} is not among the prompts"))
            })?,
        };
        let first_of = |names: &[&str]| {
            let prompt = names.iter().find_map(|name| prompts.get(*name));
            prompt.map_or(default, String::as_str).to_owned()
        };
        Ok(Prefixes { query: first_of(QUERY_PROMPTS), passage: first_of(PASSAGE_PROMPTS) })
    }
}

/// The prefixes that were published with the model; empty if the file is missing or has none.
fn published(folder: &Path) -> Result<Prefixes, Error> {
    match read_json::<PromptsConfig>(&folder.join(PROMPTS_FILE))? {
        Some(config) => config.prefixes()?.validated(),
        None => Ok(Prefixes::default()),
    }
}

/// A file of at most [`MAX_FILE_BYTES`]; `None` when there is none.
fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let file = match fs_err::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(error)),
    };
    let mut text = Vec::new();
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut text).map_err(unusable)?;
    if text.len() > MAX_FILE_BYTES {
        return Err(unusable(format!("{} has more than {MAX_FILE_BYTES} bytes", path.display())));
    }
    let parsed = serde_json::from_slice(&text);
    parsed.map(Some).map_err(|error| unusable(format!("{}: {error}", path.display())))
}

fn unusable(reason: impl ToString) -> Error {
    Error::Model { reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn prefixes(query: &str, passage: &str) -> Prefixes {
        Prefixes { query: query.to_owned(), passage: passage.to_owned() }
    }

    /// Of a folder with that configuration.
    fn read(config: &serde_json::Value) -> Result<Prefixes, Error> {
        let folder = tempfile::tempdir().unwrap();
        fs_err::write(folder.path().join(PROMPTS_FILE), config.to_string()).unwrap();
        Prefixes::of_folder(folder.path())
    }

    #[test]
    fn published_prompts_are_read_as_sentence_transformers_applies_them() {
        for (config, expected) in [
            (json!({"__version__": {"transformers": "4.28.1"}}), prefixes("", "")),
            (json!({"prompts": null, "default_prompt_name": null}), prefixes("", "")),
            (json!({"prompts": {"query": "q: ", "passage": "p: "}}), prefixes("q: ", "p: ")),
            (json!({"prompts": {"query": "q: ", "passage": ""}}), prefixes("q: ", "")),
            (
                json!({"prompts": {"query": "q: ", "document": "d: ", "passage": "p: "}}),
                prefixes("q: ", "d: "),
            ),
            (
                json!({"prompts": {"query": "q: ", "x": "x: "}, "default_prompt_name": "x"}),
                prefixes("q: ", "x: "),
            ),
            (
                json!({"prompts": {"passage": "p: "}, "default_prompt_name": "passage"}),
                prefixes("p: ", "p: "),
            ),
        ] {
            assert_eq!(read(&config).unwrap(), expected, "{config}");
        }
        assert!(Prefixes::of_folder(Path::new("/nowhere")).unwrap().are_empty());
    }

    #[test]
    fn a_configuration_that_is_wrong_or_too_large_is_refused_with_a_reason() {
        for (config, reason) in [
            (json!({"prompts": {"query": 1}}), PROMPTS_FILE),
            (json!({"prompts": {"query": "q: "}, "default_prompt_name": "other"}), "\"other\" is not among"),
            (json!({"prompts": {"query": "x".repeat(1025)}}), "at most 1024 bytes"),
            (json!({"prompts": {"passage": "\u{0}"}}), "control characters"),
            (json!({"padding": "x".repeat(MAX_FILE_BYTES)}), "more than 65536 bytes"),
        ] {
            let refusal = read(&config).unwrap_err().to_string();
            assert!(refusal.contains(reason), "{refusal}");
        }
    }

    #[test]
    fn stored_prefixes_have_precedence_over_published_ones() {
        let folder = tempfile::tempdir().unwrap();
        let published = json!({"prompts": {"query": "q: ", "passage": "p: "}});
        fs_err::write(folder.path().join(PROMPTS_FILE), published.to_string()).unwrap();
        fs_err::write(folder.path().join(PREFIXES_FILE), "{\"query\": \"find: \"}").unwrap();
        assert_eq!(Prefixes::of_folder(folder.path()).unwrap(), prefixes("find: ", ""));
        fs_err::write(folder.path().join(PREFIXES_FILE), "[").unwrap();
        assert!(Prefixes::of_folder(folder.path()).unwrap_err().to_string().contains(PREFIXES_FILE));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
            let folder = tempfile::tempdir().unwrap();
            fs_err::write(folder.path().join(PROMPTS_FILE), &bytes).unwrap();
            if let Ok(prefixes) = Prefixes::of_folder(folder.path()) {
                prop_assert!(prefix_fault(&prefixes.query).is_none() && prefix_fault(&prefixes.passage).is_none());
            }
        }
    }
}
