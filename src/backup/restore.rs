//! Puts a backup back, and tries whether it could be.

use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use cairn_content::AssetLocation;
use fs_err as fs;
use futures::stream::TryStreamExt as _;
use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path as Key;
use tokio::io::AsyncWriteExt as _;

use super::manifest::{KeptFile, Manifest, Place};
use super::repository::Repository;
use crate::cli::{ASSETS_FOLDER, DoctorOptions, RestoreOptions, StoredOptions, VerifyOptions};
use crate::data_folder::{DataFolder, LOCK_FILE, UNFINISHED};
use crate::{doctor, secret_keys};

/// What an asset is sent in at once.
const PART_BYTES: usize = 5 * 1024 * 1024;

/// Puts a backup into an empty data folder, or lists what there is.
pub(crate) async fn restore(options: RestoreOptions) -> anyhow::Result<()> {
    let repository = Repository::open_existing(&options.from, super::key(&options.key)?).await?;
    let mut out = std::io::stdout().lock();
    if options.list {
        for name in repository.names().await? {
            writeln!(out, "{name}")?;
        }
        return Ok(out.flush()?);
    }
    let (name, manifest) = repository.manifest(options.snapshot.as_deref()).await?;
    let data = DataFolder::claim_for_restore(&options.data)?;
    let assets = options.assets.clone().unwrap_or_else(|| AssetLocation::Folder(data.join(ASSETS_FOLDER)));
    empty(data.path())?;
    put_back(&repository, &manifest, data.path(), &assets).await?;
    fs::remove_file(data.join(UNFINISHED))?;
    sync(data.path())?;
    writeln!(
        out,
        "{name} is in {}: {} files, {} bytes",
        data.path().display(),
        manifest.files.len(),
        manifest.size()
    )?;
    if !data.join(secret_keys::FILE_NAME).exists() {
        let file = secret_keys::FILE_NAME;
        writeln!(
            out,
            "It holds no {file}: put your copy into the folder, or set CAIRN_SECRET_KEY, before you start"
        )?;
    }
    Ok(out.flush()?)
}

/// Puts a backup into a folder that is removed afterwards, and looks every invariant over.
pub(crate) async fn verify(options: VerifyOptions) -> anyhow::Result<()> {
    let repository = Repository::open_existing(&options.from, super::key(&options.key)?).await?;
    let (name, manifest) = repository.manifest(options.snapshot.as_deref()).await?;
    let scratch = match &options.scratch {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let scratch = scratch.context("there is no place to put the backup to; name one with --scratch")?;
    let assets = AssetLocation::Folder(scratch.path().join(ASSETS_FOLDER));
    put_back(&repository, &manifest, scratch.path(), &assets).await?;
    let stored = StoredOptions { data: scratch.path().to_owned(), database: None };
    let asked =
        DoctorOptions { stored, assets: Some(assets), secret_key: options.secret_key, quiet: options.quiet };
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{name}: {} files, {} bytes, every piece as it was kept",
        manifest.files.len(),
        manifest.size()
    )?;
    drop(out);
    doctor::run(asked).await
}

/// What an earlier restore that was cut has left goes, and a mark says that one is under way.
fn empty(data: &Path) -> anyhow::Result<()> {
    let is_ours = |name: &std::ffi::OsStr| name == LOCK_FILE || name == UNFINISHED;
    let is_cut = data.join(UNFINISHED).exists();
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        if is_ours(&entry.file_name()) {
            continue;
        }
        if !is_cut {
            bail!("{} is not empty: restore into another folder with --data", data.display());
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    fs::File::create(data.join(UNFINISHED))?.sync_all()?;
    sync(data)
}

async fn put_back(
    repository: &Repository,
    manifest: &Manifest,
    data: &Path,
    assets: &AssetLocation,
) -> anyhow::Result<()> {
    let mut engine = None;
    for file in &manifest.files {
        match file.place()? {
            Place::Data(name) => put_file(repository, file, &data.join(name)).await?,
            Place::Asset { workspace, object } => {
                let opened = match engine.take() {
                    Some(opened) => opened,
                    None => assets.open_engine().await?,
                };
                let key = Key::from_iter([workspace, object]);
                put_asset(repository, file, Arc::clone(&opened), key).await?;
                engine = Some(opened);
            }
        }
    }
    sync(data)
}

async fn put_file(repository: &Repository, file: &KeptFile, path: &Path) -> anyhow::Result<()> {
    let mut written = fs::File::create(path)?;
    let mut pieces = std::pin::pin!(repository.read(file));
    while let Some(piece) = pieces.try_next().await? {
        written.write_all(&piece)?;
    }
    Ok(written.sync_all()?)
}

async fn put_asset(
    repository: &Repository,
    file: &KeptFile,
    engine: Arc<dyn ObjectStore>,
    key: Key,
) -> anyhow::Result<()> {
    let mut writer = BufWriter::with_capacity(engine, key, PART_BYTES);
    let mut pieces = std::pin::pin!(repository.read(file));
    while let Some(piece) = pieces.try_next().await? {
        writer.put(piece.into()).await?;
    }
    Ok(writer.shutdown().await?)
}

/// Names of files survive a power cut only when their folder was written.
fn sync(folder: &Path) -> anyhow::Result<()> {
    match fs::File::open(folder)?.sync_all() {
        // Some file systems do not sync folders.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        ended => Ok(ended?),
    }
}
