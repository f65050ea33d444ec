//! The usage guides in `guides/`, embedded by the build script with the digest of each file.
//!
//! They are served as MCP skills and by `get_usage_guide`.

/// A guide: a folder with a `SKILL.md` and the files it refers to.
#[derive(Debug)]
pub(crate) struct Guide {
    /// The folder's name, and the last segment of its URI.
    pub(crate) name: &'static str,
    /// When an agent should read it.
    pub(crate) description: &'static str,
    /// The front matter of `SKILL.md`, as JSON.
    pub(crate) front_matter: &'static str,
    /// Where the body of `SKILL.md` begins, after its front matter.
    body_at: usize,
    /// `SKILL.md` first, then the others by path.
    pub(crate) files: &'static [GuideFile],
}

/// A file of a guide.
#[derive(Debug)]
pub(crate) struct GuideFile {
    /// Its path within the guide.
    pub(crate) path: &'static str,
    pub(crate) text: &'static str,
    /// `sha256:` and 64 hexadecimal digits, of the text.
    pub(crate) digest: &'static str,
}

/// The main file of every guide.
pub(crate) const MAIN_FILE: &str = "SKILL.md";

include!(concat!(env!("OUT_DIR"), "/guides.rs"));

/// Every guide, by name.
pub(crate) fn all() -> &'static [Guide] {
    GUIDES
}

/// The guide of that name.
pub(crate) fn named(name: &str) -> Option<&'static Guide> {
    GUIDES.iter().find(|guide| guide.name == name)
}

impl Guide {
    /// A file by its path.
    pub(crate) fn file(&self, path: &str) -> Option<&'static GuideFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The body of `SKILL.md`, without its front matter.
    pub(crate) fn body(&self) -> &'static str {
        let main = self.file(MAIN_FILE).map(|file| file.text).unwrap_or_default();
        main.get(self.body_at..).unwrap_or(main)
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn every_digest_is_that_of_the_bytes() {
        for file in all().iter().flat_map(|guide| guide.files) {
            let hex = hex::encode(Sha256::digest(file.text.as_bytes()));
            assert_eq!(file.digest, format!("sha256:{hex}"), "{}", file.path);
        }
    }

    #[test]
    fn a_guide_begins_with_its_main_file_and_names_itself() {
        for guide in all() {
            assert_eq!(guide.files[0].path, MAIN_FILE, "{}", guide.name);
            let front_matter: serde_json::Value = serde_json::from_str(guide.front_matter).unwrap();
            assert_eq!(front_matter["name"], guide.name);
            assert_eq!(front_matter["description"], guide.description);
            assert!(guide.body().starts_with("# "), "{}", guide.name);
            assert!(guide.file(MAIN_FILE).unwrap().text.ends_with(guide.body()), "{}", guide.name);
        }
    }
}
