//! Compiles the contracts with protox, so that no protoc is needed, and keeps their descriptors for reflection.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let mut files = Vec::new();
    collect(&root.join("cairn"), &mut files)?;
    files.sort();

    // tonic-prost-build does not emit these itself when given a descriptor set.
    println!("cargo:rerun-if-changed=cairn");
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
    }

    let descriptors = protox::compile(&files, [&root])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    Ok(())
}
