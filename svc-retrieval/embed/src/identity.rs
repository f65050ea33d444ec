//! The identity of an embedder, which its vectors are stored with.

use serde::{Deserialize, Serialize};

use super::Embedder;

/// The embedder that made the vectors of an index. Each has its own generation of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbedderIdentity {
    /// The embedder's name, which identifies its model and version.
    pub embedder: String,
    /// The length of its vectors.
    pub dimensions: usize,
    /// Where the embedder came from, so that it can be opened again when another one is configured by then. Holds no
    /// secret.
    pub origin: String,
}

impl EmbedderIdentity {
    /// The identity of an embedder.
    pub fn of(embedder: &dyn Embedder) -> Self {
        Self {
            embedder: embedder.name().to_owned(),
            dimensions: embedder.dimensions(),
            origin: embedder.origin().to_owned(),
        }
    }

    /// Whether vectors of both are comparable, wherever the models came from.
    pub fn fits(&self, other: &Self) -> bool {
        self.embedder == other.embedder && self.dimensions == other.dimensions
    }

    /// A name for a folder or a collection, in letters, digits, `-` and `_`; different for each embedder.
    pub fn slug(&self) -> String {
        let readable = self.embedder.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        let readable: String = readable.take(40).collect();
        let digest = blake3::hash(format!("{}\n{}", self.embedder, self.dimensions).as_bytes()).to_hex();
        format!("{readable}_{}", digest.get(..8).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(embedder: &str) -> EmbedderIdentity {
        EmbedderIdentity { embedder: embedder.to_owned(), dimensions: 4, origin: "somewhere".to_owned() }
    }

    #[test]
    fn a_slug_names_an_embedder_and_suits_a_folder() {
        let slugs = ["openai-a/b", "openai-a-b", "openai-a:b", "../../etc", "", "ä"]
            .map(|name| identity(name).slug());
        for (place, slug) in slugs.iter().enumerate() {
            assert!(slug.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'), "{slug}");
            assert!(!slugs[..place].contains(slug), "{slug} is not unique");
        }
        let longer = EmbedderIdentity { dimensions: 8, ..identity("openai-a/b") };
        assert_ne!(longer.slug(), slugs[0]);
        let elsewhere = EmbedderIdentity { origin: "elsewhere".to_owned(), ..identity("openai-a/b") };
        assert_eq!(elsewhere.slug(), slugs[0], "a model that moved is the same model");
    }
}
