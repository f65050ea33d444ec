//! Restores a backup.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use cairn_chassis::clock::Timestamp;
use cairn_content::AssetLocation;
use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use futures::stream::TryStreamExt as _;
use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path as Key;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::manifest::{Destination, FileEntry, Manifest};
use super::progress::Progress;
use super::repository::{Repository, Selection};
use crate::cli::{ASSETS_FOLDER, ChosenBackup, RestoreOptions, shown_span};
use crate::data_folder::{self, DataFolder, LOCK_FILE, UNFINISHED};
use crate::secret_keys;

/// The part size of an asset's upload.
const PART_BYTES: usize = 5 * 1024 * 1024;
/// Created by the file system itself in the root of a volume.
const OF_FILE_SYSTEM: &str = "lost+found";
/// No other user may read the files.
const OWNER_ONLY: u32 = 0o600;

/// Restores a backup into an empty data folder, or lists the backups.
pub(crate) async fn restore(options: RestoreOptions) -> anyhow::Result<()> {
    let repository =
        Repository::open_existing(&options.chosen.place()?, super::key(&options.chosen.key)?).await?;
    let mut out = std::io::stdout().lock();
    if options.list {
        let names = repository.names().await?;
        if options.json {
            writeln!(out, "{:#}", json!({ "backups": names }))?;
        } else {
            names.iter().try_for_each(|name| writeln!(out, "{name}"))?;
        }
        return Ok(out.flush()?);
    }
    // Before anything is modified: the backup may be unreadable.
    let selection = selection(&options.chosen)?;
    let (name, manifest) = repository.manifest(&selection).await?;
    let before = before(&selection, &manifest);
    let data = DataFolder::claim_for_restore(&options.data)?;
    let assets = options.assets.clone().unwrap_or_else(|| AssetLocation::Folder(data.join(ASSETS_FOLDER)));
    empty(data.path(), options.replace)?;
    let progress = Progress::new(options.quiet || options.json);
    write_files(&repository, &manifest, data.path(), &assets, progress).await?;
    fs::remove_file(data.join(UNFINISHED))?;
    data_folder::sync(data.path())?;
    let lacks_key = !data.join(secret_keys::FILE_NAME).exists();
    if options.json {
        let mut said = about(&name, &manifest);
        if let Some(said) = said.as_object_mut() {
            said.insert("needsSecretKey".to_owned(), lacks_key.into());
            if let Some(before) = before {
                said.insert("secondsBefore".to_owned(), before.as_secs().into());
            }
        }
        writeln!(out, "{said:#}")?;
    } else {
        let (files, bytes) = (manifest.files.len(), manifest.size());
        writeln!(out, "{name} is in {}: {files} files, {bytes} bytes", data.path().display())?;
        if let Some(before) = before {
            writeln!(out, "It shows {}: {} before that time", manifest.created_at, shown_span(before))?;
        }
        if lacks_key {
            let file = secret_keys::FILE_NAME;
            writeln!(
                out,
                "It holds no {file}: put your copy into the folder, or set CAIRN_SECRET_KEY, before you start"
            )?;
        }
    }
    Ok(out.flush()?)
}

/// The selected backup.
pub(super) fn selection(chosen: &ChosenBackup) -> anyhow::Result<Selection> {
    Ok(match (&chosen.snapshot, &chosen.at) {
        (Some(name), _) => Selection::Named(name.clone()),
        (None, Some(at)) => Selection::At(
            Timestamp::parse_rfc3339(at)
                .context("--at takes a time such as 2026-11-28T09:50:00Z or 2026-11-28T10:50:00+01:00")?,
        ),
        (None, None) => Selection::Newest,
    })
}

/// How much older the backup is than the requested time.
fn before(selection: &Selection, manifest: &Manifest) -> Option<Duration> {
    match selection {
        Selection::At(at) => Some(at.since(Timestamp::parse_rfc3339(&manifest.created_at)?)),
        Selection::Newest | Selection::Named(_) => None,
    }
}

/// A backup as JSON.
pub(super) fn about(name: &str, manifest: &Manifest) -> Value {
    json!({
        "name": name,
        "createdAt": manifest.created_at,
        "version": manifest.version,
        "files": manifest.files.len(),
        "bytes": manifest.size(),
    })
}

/// Removes the remains of an interrupted restore, and existing data if it may be replaced; creates the marker of a
/// restore under way.
fn empty(data: &Path, may_replace: bool) -> anyhow::Result<()> {
    let stays = |name: &OsStr| name == LOCK_FILE || name == UNFINISHED || name == OF_FILE_SYSTEM;
    let is_cut = data.join(UNFINISHED).exists();
    let mut found = Vec::new();
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        if !stays(&entry.file_name()) {
            found.push(entry);
        }
    }
    if !found.is_empty() && !is_cut && !may_replace {
        bail!(
            "{} is not empty: restore into another folder with --data, or replace what it holds with --replace",
            data.display()
        );
    }
    // The marker first: from here on nothing starts on the folder.
    fs::File::create(data.join(UNFINISHED))?.sync_all()?;
    data_folder::sync(data)?;
    for entry in found {
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(data_folder::sync(data)?)
}

/// Writes every file of a backup; all of it is durable on return.
pub(super) async fn write_files(
    repository: &Repository,
    manifest: &Manifest,
    data: &Path,
    assets: &AssetLocation,
    progress: Progress,
) -> anyhow::Result<()> {
    let mut engine = None;
    let bar = progress.bytes("restore", manifest.size());
    for file in &manifest.files {
        match file.place()? {
            Destination::Data(name) => put_file(repository, file, &data.join(name)).await?,
            Destination::Asset { workspace, object } => {
                let opened = match engine.take() {
                    Some(opened) => opened,
                    None => assets.open_engine().await.with_context(|| format!("{assets} cannot be used"))?,
                };
                let key = Key::from_iter([workspace, object]);
                put_asset(repository, file, Arc::clone(&opened), key).await?;
                engine = Some(opened);
            }
        }
        bar.inc(file.size);
    }
    bar.finish_and_clear();
    Ok(data_folder::sync(data)?)
}

async fn put_file(repository: &Repository, file: &FileEntry, path: &Path) -> anyhow::Result<()> {
    let mut written =
        fs::OpenOptions::new().create(true).truncate(true).write(true).mode(OWNER_ONLY).open(path)?;
    let mut pieces = std::pin::pin!(repository.read(file));
    while let Some(piece) = pieces.try_next().await? {
        written.write_all(&piece)?;
    }
    Ok(written.sync_all()?)
}

async fn put_asset(
    repository: &Repository,
    file: &FileEntry,
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

/// File names survive a power failure only once their folder is synced.
#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_is_emptied_only_when_that_is_said_or_a_restore_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("assets/a")).unwrap();
        for name in ["auth.db", LOCK_FILE] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        std::fs::create_dir(folder.path().join(OF_FILE_SYSTEM)).unwrap();
        let before = names(folder.path());
        assert!(empty(folder.path(), false).unwrap_err().to_string().contains("--replace"));
        assert_eq!(names(folder.path()), before, "nothing was touched");
        empty(folder.path(), true).unwrap();
        assert_eq!(names(folder.path()), [LOCK_FILE, OF_FILE_SYSTEM, UNFINISHED]);
        std::fs::write(folder.path().join("auth.db"), "half").unwrap();
        empty(folder.path(), false).unwrap();
        assert_eq!(names(folder.path()), [LOCK_FILE, OF_FILE_SYSTEM, UNFINISHED]);
    }
}
