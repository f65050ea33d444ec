//! `cairn backup`, `cairn restore`, `cairn verify`: a consistent copy of the data of `cairn up`, in a folder or a
//! bucket (docs/adr/0086).
//!
//! `snapshot` reads databases while others write to them, `repository` stores pieces of files and the manifests,
//! `restore` writes them back and `verify` checks them; this module defines what belongs into a backup and the order in
//! which it is read.

mod manifest;
mod progress;
mod repository;
mod restore;
mod retention;
mod series;
mod snapshot;
mod verify;

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use cairn_chassis::clock::{Clock, SystemClock};
use cairn_chassis::sealing::Keyring;
use cairn_content::AssetLocation;
use fs_err as fs;
use futures::stream::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectStoreExt as _;
use object_store::path::Path as Key;
use serde_json::{Value, json};

use self::manifest::{FileEntry, Manifest};
use self::progress::Progress;
use self::repository::{Repository, Saved};
pub(crate) use self::restore::restore;
use self::retention::Retention;
use self::snapshot::{Part, Snapshot};
pub(crate) use self::verify::{unpacked, verify};
use crate::cli::{ASSETS_FOLDER, BackupKeyOptions, BackupOptions, Role};
use crate::{secret_keys, storages, version};

/// Held during a backup, so that backups of a folder do not run concurrently.
const LOCK_FILE: &str = "backup.lock";
/// The services, in the order in which their snapshots are pinned: a service that refers to objects of another comes
/// before it, so that the referenced objects exist. auth refers to folders, retrieval and sync to contents, content to
/// documents of ingest.
const ROLES: [Role; 5] = [Role::Auth, Role::Retrieval, Role::Sync, Role::Content, Role::Ingest];
/// How often all snapshots are pinned again because an asset was deleted meanwhile. Assets that were read are not read
/// again, so each attempt is shorter than the one before.
const ATTEMPTS: usize = 20;

/// Files by name.
type Files = HashMap<String, FileEntry>;

/// Makes one backup, or a series, and reports on each.
pub(crate) async fn run(options: BackupOptions) -> anyhow::Result<()> {
    let retention = Retention::of(&options.retention)?;
    if let Some(every) = options.every {
        return series::run(&options, every, retention.unwrap_or(Retention::OF_SERIES)).await;
    }
    let made = Box::pin(make(&options, retention)).await?;
    let mut out = std::io::stdout().lock();
    if options.json {
        writeln!(out, "{:#}", made.in_json())?;
    } else if !options.quiet {
        made.tell(&options, &mut out)?;
    }
    Ok(out.flush()?)
}

/// The report on a backup.
struct BackupReport {
    name: String,
    created_at: String,
    files: usize,
    bytes: u64,
    new_bytes: u64,
    is_sealed: bool,
    /// How many earlier backups were removed.
    removed: usize,
}

/// Makes a backup, then applies the retention policy.
async fn make(options: &BackupOptions, retention: Option<Retention>) -> anyhow::Result<BackupReport> {
    let data = &options.data;
    if storages::of_up(Role::Auth, data).is_none() {
        bail!("no data of `cairn up` in {}; name its folder with --data", data.display());
    }
    let _claim = claim(data)?;
    let repository = Repository::open(&options.to, key(&options.key)?).await?;
    let previous = if options.full { None } else { repository.newest_compatible().await? };
    let mut saved = Saved::of(previous);
    let manifest = copy(options, &repository, &mut saved, &SystemClock).await?;
    let name = repository.finish(&manifest).await?;
    let removed = match retention {
        Some(retention) => {
            let pruned = repository.prune(&retention, &name).await;
            pruned.with_context(|| format!("{name} is made, and older ones cannot be removed"))?
        }
        None => 0,
    };
    Ok(BackupReport {
        files: manifest.files.len(),
        bytes: manifest.size(),
        new_bytes: saved.new_bytes(),
        is_sealed: repository.is_sealed(),
        created_at: manifest.created_at,
        name,
        removed,
    })
}

impl BackupReport {
    fn in_json(&self) -> Value {
        json!({
            "name": self.name,
            "createdAt": self.created_at,
            "files": self.files,
            "bytes": self.bytes,
            "newBytes": self.new_bytes,
            "isEncrypted": self.is_sealed,
            "removed": self.removed,
        })
    }

    fn tell(&self, options: &BackupOptions, out: &mut impl std::io::Write) -> std::io::Result<()> {
        self.tell_briefly(options, out)?;
        if !self.is_sealed {
            let file = secret_keys::FILE_NAME;
            writeln!(out, "It is not encrypted. {file} is not in it: keep a copy apart.")?;
        }
        Ok(())
    }

    fn tell_briefly(&self, options: &BackupOptions, out: &mut impl std::io::Write) -> std::io::Result<()> {
        let Self { name, files, bytes, new_bytes, removed, .. } = self;
        writeln!(
            out,
            "{name}: {files} files, {bytes} bytes, of which {new_bytes} are new in {}",
            options.to
        )?;
        if *removed > 0 {
            writeln!(out, "{removed} older ones were removed")?;
        }
        Ok(())
    }
}

/// The keyring that backups are encrypted with, if any.
fn key(options: &BackupKeyOptions) -> anyhow::Result<Option<Keyring>> {
    let text = options.key.as_deref().filter(|text| !text.trim().is_empty());
    text.map(Keyring::parse).transpose().context("CAIRN_BACKUP_KEY cannot be used")
}

fn claim(data: &Path) -> anyhow::Result<File> {
    let lock = fs::OpenOptions::new().create(true).truncate(false).write(true).open(data.join(LOCK_FILE))?;
    let (lock, path) = lock.into_parts();
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => bail!("another backup of {} runs", data.display()),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("{} cannot be locked", path.display()))
        }
    }
}

/// Copies everything as of one moment; starts over if an asset of that moment was deleted meanwhile.
async fn copy(
    options: &BackupOptions,
    repository: &Repository,
    saved: &mut Saved,
    clock: &dyn Clock,
) -> anyhow::Result<Manifest> {
    let location = options.assets.clone();
    let location = location.unwrap_or_else(|| AssetLocation::Folder(options.data.join(ASSETS_FOLDER)));
    let progress = Progress::new(options.quiet || options.json);
    for _ in 0..ATTEMPTS {
        let mut snapshots = Vec::new();
        for role in ROLES {
            if storages::of_up(role, &options.data).is_some() {
                snapshots.push(Snapshot::pin(&options.data, role.name()).await?);
            }
        }
        let created_at = clock.now();
        let mut objects = Vec::new();
        for snapshot in &mut snapshots {
            if snapshot.service() == Role::Content.name() {
                objects = snapshot.rows(cairn_content::STORED_OBJECTS).await?;
            }
        }
        // Before the databases, whose snapshots are pinned: the sooner assets are read, the fewer have been deleted.
        let Some(mut files) = copy_assets(&location, repository, saved, objects, progress).await? else {
            for snapshot in snapshots {
                snapshot.release().await;
            }
            continue;
        };
        for snapshot in snapshots {
            files.extend(copy_database(repository, saved, snapshot, progress).await?);
        }
        if repository.is_sealed() {
            files.extend(copy_secret_key(&options.data, repository, saved).await?);
        }
        return Ok(Manifest::new(created_at, version::VERSION.to_owned(), files));
    }
    bail!("assets were deleted faster than they could be read, {ATTEMPTS} times; try again")
}

/// The files of a database. Its read transaction ends once they are read.
async fn copy_database(
    repository: &Repository,
    saved: &mut Saved,
    snapshot: Snapshot,
    progress: Progress,
) -> anyhow::Result<Vec<FileEntry>> {
    let mut files = Vec::new();
    for part in snapshot.parts() {
        let bar = progress.bytes(part.name(), part.length());
        let pieces = Part::pieces(&part).inspect_ok(|piece: &Bytes| bar.inc(piece.len() as u64)).boxed();
        let kept = repository.save(saved, part.name(), pieces).await?;
        bar.finish_and_clear();
        if part.is_as_it_was()? {
            files.push(kept);
        }
    }
    snapshot.release().await;
    Ok(files)
}

/// The bytes of these assets; `None` if one of them no longer exists.
async fn copy_assets(
    location: &AssetLocation,
    repository: &Repository,
    saved: &mut Saved,
    objects: Vec<(String, String, i64)>,
    progress: Progress,
) -> anyhow::Result<Option<Vec<FileEntry>>> {
    if objects.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let engine = location.open_engine().await.with_context(|| format!("{location} cannot be read"))?;
    let bar = progress.count("assets", objects.len());
    let mut files = Vec::with_capacity(objects.len());
    for (workspace, object, size) in objects {
        bar.inc(1);
        let path = format!("{}/{workspace}/{object}", manifest::ASSETS);
        // Objects are immutable and their names are never reused.
        if let Some(kept) = saved.file(&path, u64::try_from(size)?) {
            files.push(kept);
            continue;
        }
        let found = engine.get(&Key::from_iter([workspace.as_str(), object.as_str()])).await;
        let bytes = match found {
            Ok(found) => found.into_stream().map_err(anyhow::Error::from).boxed(),
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("{location} cannot be read")),
        };
        files.push(repository.save(saved, &path, repository::in_pieces(bytes)).await?);
    }
    bar.finish_and_clear();
    Ok(Some(files))
}

/// The key file of stored secrets, if there is one: only into an encrypted backup.
async fn copy_secret_key(
    data: &Path,
    repository: &Repository,
    saved: &mut Saved,
) -> anyhow::Result<Option<FileEntry>> {
    let path = data.join(secret_keys::FILE_NAME);
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = Bytes::from(fs::read(path)?);
    let pieces = futures::stream::iter([Ok(bytes)]).boxed();
    repository.save(saved, secret_keys::FILE_NAME, pieces).await.map(Some)
}
