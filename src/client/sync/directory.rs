//! The documents of a directory.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use ignore::WalkBuilder;

/// The limit of one run (spec, section 8).
const MAX_DOCUMENTS: usize = 5_000;
const MAX_BYTES: u64 = 5 * 1024 * 1024;
/// Like `.gitignore`, for files that only Cairn should ignore.
const IGNORE_FILE: &str = ".cairnignore";

/// A document to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Document {
    /// Relative to the directory, with `/` as the separator.
    pub(super) path: String,
    pub(super) content: String,
}

/// A file that is not sent, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Skipped {
    path: String,
    why: &'static str,
}

impl fmt::Display for Skipped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path.replace(char::is_control, "\u{fffd}"), self.why)
    }
}

/// The contents of a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Read {
    /// By path.
    pub(super) documents: Vec<Document>,
    pub(super) left_out: Vec<Skipped>,
}

/// Path, size and modification time: the fingerprint of a file.
pub(super) type Stamp = (PathBuf, u64, Option<SystemTime>);

/// A directory on this machine.
#[derive(Debug)]
pub(super) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let root = fs_err::canonicalize(path).context("there is no such directory")?;
        if !root.is_dir() {
            bail!("{} is no directory: a single file is sent with `cairn ingest`", path.display());
        }
        Ok(Self { root })
    }

    /// Its own name.
    pub(super) fn name(&self) -> Option<String> {
        self.root.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    /// Reads all documents below it.
    pub(super) fn read(&self) -> anyhow::Result<Read> {
        let mut read = Read::default();
        for file in self.files()? {
            let path = self.path_of(&file)?;
            if fs_err::metadata(&file)?.len() > MAX_BYTES {
                read.left_out.push(Skipped { path, why: "it is larger than 5 MB" });
                continue;
            }
            let content = String::from_utf8(fs_err::read(&file)?).ok().filter(|text| !text.contains('\0'));
            match content {
                Some(content) => read.documents.push(Document { path, content }),
                None => read.left_out.push(Skipped { path, why: "it is no UTF-8 text" }),
            }
        }
        if read.documents.len() > MAX_DOCUMENTS {
            let found = read.documents.len();
            bail!(
                "there are {found} documents, and a sync takes {MAX_DOCUMENTS}: sync its folders one by one, each with a --name"
            );
        }
        Ok(read)
    }

    /// The fingerprints of its files, to detect changes.
    pub(super) fn stamps(&self) -> anyhow::Result<Vec<Stamp>> {
        let stamp = |file: PathBuf| {
            // A file that was deleted meanwhile is absent from the next scan.
            let metadata = fs_err::metadata(&file).ok()?;
            Some((file, metadata.len(), metadata.modified().ok()))
        };
        Ok(self.files()?.into_iter().filter_map(stamp).collect())
    }

    /// The files that are not ignored, by path.
    fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let walk = WalkBuilder::new(&self.root)
            .add_custom_ignore_filename(IGNORE_FILE)
            .require_git(false)
            .follow_links(false)
            .build();
        let mut files = Vec::new();
        for entry in walk {
            let entry = entry.context("the directory cannot be read")?;
            if entry.file_type().is_some_and(|kind| kind.is_file()) {
                files.push(entry.into_path());
            }
        }
        files.sort();
        Ok(files)
    }

    fn path_of(&self, file: &Path) -> anyhow::Result<String> {
        let names = file.strip_prefix(&self.root)?.components();
        let names: Option<Vec<&str>> = names.map(|name| name.as_os_str().to_str()).collect();
        let told =
            || format!("the name of {} is no UTF-8: rename it, or name it in {IGNORE_FILE}", file.display());
        Ok(names.with_context(told)?.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_ignores_is_left_out_and_so_is_what_is_no_text() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, content: &[u8]| {
            let path = folder.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, content).unwrap();
        };
        write("b.md", b"# B");
        write("a/deep.txt", b"deep");
        write("picture.png", &[0xff, 0xd8, 0]);
        write("nul.txt", b"a\0b");
        write("large.txt", &vec![b'x'; 5 * 1024 * 1024 + 1]);
        write(".hidden", b"x");
        write(".git/config", b"x");
        write("target/out.txt", b"x");
        write("draft.md", b"x");
        write(".gitignore", b"target/\n");
        write(".cairnignore", b"draft.md\n");
        let directory = Directory::open(folder.path()).unwrap();
        let read = directory.read().unwrap();
        let paths: Vec<_> = read.documents.iter().map(|document| document.path.as_str()).collect();
        assert_eq!(paths, ["a/deep.txt", "b.md"]);
        let left_out: Vec<_> = read.left_out.iter().map(ToString::to_string).collect();
        assert_eq!(
            left_out,
            [
                "large.txt: it is larger than 5 MB",
                "nul.txt: it is no UTF-8 text",
                "picture.png: it is no UTF-8 text"
            ]
        );
        let before = directory.stamps().unwrap();
        assert_eq!(before, directory.stamps().unwrap());
        write("a/deep.txt", b"deeper");
        assert_ne!(before, directory.stamps().unwrap());
        assert!(Directory::open(&folder.path().join("b.md")).is_err());
        assert!(Directory::open(&folder.path().join("nothing")).is_err());
    }
}
