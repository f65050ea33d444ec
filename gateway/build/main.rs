//! Generates what the binary embeds: the usage guides, and the assets of the console's pages.

mod assets;
mod guides;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    println!("cargo:rerun-if-changed=build");
    let target = PathBuf::from(std::env::var("OUT_DIR")?);
    guides::write(&target)?;
    assets::write(&target)
}

/// The entries of a folder, sorted by name, without hidden files.
fn sorted(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<Result<Vec<_>, _>>()?;
    paths.retain(|path| path.file_name().is_none_or(|name| !name.to_string_lossy().starts_with('.')));
    paths.sort();
    Ok(paths)
}
