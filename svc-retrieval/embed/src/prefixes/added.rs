//! Decides the prefixes of a model that is being added.

use std::io::{self, Write as _};
use std::path::Path;

use super::{PREFIXES_FILE, Prefixes, published, unusable};
use crate::{AddOptions, Error};

/// The instruction that several families put before English queries.
const ENGLISH_INSTRUCTION: &str = "Represent this sentence for searching relevant passages: ";

/// A family of models whose card recommends prefixes.
struct Family {
    /// Parts that the model's name must all have.
    parts: &'static [&'static str],
    /// Parts that it must not have: those of related models that were trained differently.
    without: &'static [&'static str],
    query: &'static str,
    passage: &'static str,
}

/// The recommendations of the model cards, for models that are published without prompts in their configuration. The cards of
/// gte (thenlper/gte-small) and of sentence-transformers' own models recommend none, so they have no row.
const FAMILIES: &[Family] = &[
    // intfloat/e5-small-v2, intfloat/multilingual-e5-small: "each input text should start with "query: " or "passage: "".
    Family { parts: &["e5"], without: &["instruct"], query: "query: ", passage: "passage: " },
    // BAAI/bge-small-en-v1.5, "Model List": an instruction before queries, none before passages.
    Family { parts: &["bge", "en"], without: &[], query: ENGLISH_INSTRUCTION, passage: "" },
    // BAAI/bge-small-zh-v1.5, the same list, in which the bge-*-zh-noinstruct models have no instruction.
    Family {
        parts: &["bge", "zh"],
        without: &["noinstruct"],
        query: "为这个句子生成表示以用于检索相关文章：",
        passage: "",
    },
    // mixedbread-ai/mxbai-embed-large-v1, "Quickstart".
    Family { parts: &["mxbai", "embed"], without: &[], query: ENGLISH_INSTRUCTION, passage: "" },
    // Snowflake/snowflake-arctic-embed-s, "Usage". Version 2 has other prefixes, and another architecture.
    Family { parts: &["arctic", "embed"], without: &["v2"], query: ENGLISH_INSTRUCTION, passage: "" },
    // nomic-ai/nomic-embed-text-v1.5, "Task instruction prefixes". Of these, only derivatives of the BERT family run here.
    Family {
        parts: &["nomic", "embed"],
        without: &[],
        query: "search_query: ",
        passage: "search_document: ",
    },
];

/// Decides the prefixes of the model in `folder` and stores them there. Those of the options have precedence, then the published
/// ones, then those recommended for the family of the first name that has one.
///
/// # Errors
/// [`Error::Model`] when the published prompts cannot be read, a prefix is invalid, or the file cannot be written.
pub(crate) fn store(folder: &Path, names: &[&str], options: &AddOptions) -> Result<(), Error> {
    let published = published(folder)?;
    let default = if published.are_empty() { recommended(names) } else { published };
    let prefixes = Prefixes {
        query: options.query_prefix.clone().unwrap_or(default.query),
        passage: options.passage_prefix.clone().unwrap_or(default.passage),
    };
    write(folder, &prefixes.validated()?).map_err(unusable)
}

fn write(folder: &Path, prefixes: &Prefixes) -> io::Result<()> {
    let mut file = fs_err::File::create(folder.join(PREFIXES_FILE))?;
    file.write_all(&serde_json::to_vec_pretty(prefixes)?)?;
    file.sync_all()
}

/// The recommendation for the family of the first name that has one; else no prefixes.
fn recommended(names: &[&str]) -> Prefixes {
    let family = names.iter().find_map(|name| family_of(name));
    family.map_or_else(Prefixes::default, |family| Prefixes {
        query: family.query.to_owned(),
        passage: family.passage.to_owned(),
    })
}

fn family_of(name: &str) -> Option<&'static Family> {
    let model = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let parts: Vec<&str> = model.split(|character: char| !character.is_ascii_alphanumeric()).collect();
    FAMILIES.iter().find(|family| {
        family.parts.iter().all(|part| parts.contains(part))
            && !family.without.iter().any(|part| parts.contains(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefixes::PROMPTS_FILE;

    fn decided(folder: &Path, names: &[&str], options: &AddOptions) -> (String, String) {
        store(folder, names, options).unwrap();
        let Prefixes { query, passage } = Prefixes::of_folder(folder).unwrap();
        (query, passage)
    }

    #[test]
    fn a_family_is_known_by_the_name_of_its_models() {
        for (name, query, passage) in [
            ("intfloat/e5-small-v2", "query: ", "passage: "),
            ("multilingual-E5-small", "query: ", "passage: "),
            ("intfloat/multilingual-e5-large-instruct", "", ""),
            ("BAAI/bge-small-en-v1.5", ENGLISH_INSTRUCTION, ""),
            ("BAAI/bge-large-zh-noinstruct", "", ""),
            ("bge-m3", "", ""),
            ("Snowflake/snowflake-arctic-embed-xs", ENGLISH_INSTRUCTION, ""),
            ("Snowflake/snowflake-arctic-embed-l-v2.0", "", ""),
            ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
            ("thenlper/gte-small", "", ""),
            ("sentence-transformers/all-MiniLM-L6-v2", "", ""),
            ("e5/mine", "", ""),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let found = decided(folder.path(), &[name], &AddOptions::default());
            assert_eq!(found, (query.to_owned(), passage.to_owned()), "{name}");
        }
    }

    #[test]
    fn options_come_before_published_prompts_and_these_before_the_family() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["mine", "e5-small-v2"];
        let pair = |query: &str, passage: &str| (query.to_owned(), passage.to_owned());
        assert_eq!(decided(folder.path(), &names, &AddOptions::default()), pair("query: ", "passage: "));
        // As newer versions of sentence-transformers write it where nothing was said.
        let prompts = |text: &str| fs_err::write(folder.path().join(PROMPTS_FILE), text).unwrap();
        prompts("{\"prompts\": {\"query\": \"\", \"document\": \"\"}}");
        assert_eq!(decided(folder.path(), &names, &AddOptions::default()), pair("query: ", "passage: "));
        prompts("{\"prompts\": {\"query\": \"q: \"}}");
        assert_eq!(decided(folder.path(), &names, &AddOptions::default()), pair("q: ", ""));
        let options = AddOptions { passage_prefix: Some("text: ".to_owned()), ..AddOptions::default() };
        assert_eq!(decided(folder.path(), &names, &options), pair("q: ", "text: "));
        let none = AddOptions { query_prefix: Some(String::new()), ..AddOptions::default() };
        assert_eq!(decided(folder.path(), &names, &none), pair("", ""));
    }
}
