//! The Markdown files of a folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// All files below it, sorted by path.
pub(crate) fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("cannot read {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
