//! `cairn backup`, `cairn restore`, `cairn verify`: the data of `cairn up` as it was at one moment, in a folder or a bucket
//! (docs/adr/0086).
//!
//! `snapshot` reads databases while others write, `repository` keeps pieces of files and the lists of them, `restore` puts
//! them back; here is what belongs into a backup and in which order it is read.

mod manifest;
mod repository;
mod restore;
mod snapshot;

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use cairn_chassis::clock::{Clock as _, SystemClock};
use cairn_chassis::sealing::Keyring;
use cairn_content::AssetLocation;
use fs_err as fs;
use futures::stream::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectStoreExt as _;
use object_store::path::Path as Key;

use self::manifest::{KeptFile, Manifest};
use self::repository::{Repository, Saved};
pub(crate) use self::restore::{restore, verify};
use self::snapshot::{Part, Snapshot};
use crate::cli::{ASSETS_FOLDER, BackupKeyOptions, BackupOptions, Role};
use crate::{secret_keys, storages, version};

/// While it is locked, no other backup of the folder runs.
const LOCK_FILE: &str = "backup.lock";
/// What is backed up, in the order in which it is read.
const ROLES: [Role; 5] = [Role::Auth, Role::Content, Role::Ingest, Role::Sync, Role::Retrieval];
/// How often all is read again because an asset was deleted on the way.
const ATTEMPTS: usize = 5;

/// Makes a backup, and says what it holds.
pub(crate) async fn run(options: BackupOptions) -> anyhow::Result<()> {
    let data = &options.data;
    if storages::of_up(Role::Auth, data).is_none() {
        bail!("no data of `cairn up` in {}; name its folder with --data", data.display());
    }
    let _claim = claim(data)?;
    let repository = Repository::open(&options.to, key(&options.key)?).await?;
    let previous = repository.newest_that_is_alike().await?;
    let mut saved = Saved::of(previous);
    let manifest = copy(&options, &repository, &mut saved).await?;
    let name = repository.finish(&manifest, SystemClock.now()).await?;
    let removed = match options.keep {
        Some(keep) => repository.keep_newest(usize::try_from(keep)?).await?,
        None => 0,
    };
    if options.quiet {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{name}: {} files, {} bytes, of which {} are new in {}",
        manifest.files.len(),
        manifest.size(),
        saved.new_bytes(),
        options.to
    )?;
    if removed > 0 {
        writeln!(out, "{removed} older ones were removed")?;
    }
    if !repository.is_sealed() {
        writeln!(out, "It is not encrypted. {} is not in it: keep a copy apart.", secret_keys::FILE_NAME)?;
    }
    Ok(out.flush()?)
}

/// The keys that backups are encrypted with, if they are.
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

/// Everything as it was at one moment; read again where an asset of that moment has gone meanwhile.
async fn copy(
    options: &BackupOptions,
    repository: &Repository,
    saved: &mut Saved,
) -> anyhow::Result<Manifest> {
    let location = options.assets.clone();
    let location = location.unwrap_or_else(|| AssetLocation::Folder(options.data.join(ASSETS_FOLDER)));
    for _ in 0..ATTEMPTS {
        let mut snapshots = Vec::new();
        // All at about the same moment: scopes and memories of one name what another keeps.
        for role in ROLES {
            if storages::of_up(role, &options.data).is_some() {
                snapshots.push(Snapshot::pin(&options.data, role.name()).await?);
            }
        }
        let created_at = SystemClock.now();
        let mut files = Vec::new();
        let mut objects = Vec::new();
        for mut snapshot in snapshots {
            if snapshot.service() == Role::Content.name() {
                objects = snapshot.rows(cairn_content::STORED_OBJECTS).await?;
            }
            files.extend(copy_database(repository, saved, snapshot).await?);
        }
        match copy_assets(&location, repository, saved, objects).await? {
            Some(assets) => files.extend(assets),
            None => continue,
        }
        if repository.is_sealed() {
            files.extend(copy_secret_key(&options.data, repository, saved).await?);
        }
        return Ok(Manifest::new(created_at.to_rfc3339(), version::VERSION.to_owned(), files));
    }
    bail!("assets were deleted faster than they could be read, {ATTEMPTS} times; try again")
}

/// The files of a database. Its transaction ends when they are read.
async fn copy_database(
    repository: &Repository,
    saved: &mut Saved,
    snapshot: Snapshot,
) -> anyhow::Result<Vec<KeptFile>> {
    let mut files = Vec::new();
    for part in snapshot.parts() {
        let kept = repository.save(saved, part.name(), Part::pieces(&part)).await?;
        if part.is_as_it_was()? {
            files.push(kept);
        }
    }
    snapshot.release().await;
    Ok(files)
}

/// The bytes of these assets; `None` when one of them is not there any more.
async fn copy_assets(
    location: &AssetLocation,
    repository: &Repository,
    saved: &mut Saved,
    objects: Vec<(String, String, i64)>,
) -> anyhow::Result<Option<Vec<KeptFile>>> {
    if objects.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let engine = location.open_engine().await.with_context(|| format!("{location} cannot be read"))?;
    let mut files = Vec::with_capacity(objects.len());
    for (workspace, object, size) in objects {
        let path = format!("{}/{workspace}/{object}", manifest::ASSETS);
        // An object is written once, under a name that is used once.
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
    Ok(Some(files))
}

/// The key of stored secrets, where there is a file of it: only into what is encrypted itself.
async fn copy_secret_key(
    data: &Path,
    repository: &Repository,
    saved: &mut Saved,
) -> anyhow::Result<Option<KeptFile>> {
    let path = data.join(secret_keys::FILE_NAME);
    if !path.exists() {
        return Ok(None);
    }
    let bytes = bytes::Bytes::from(fs::read(path)?);
    let pieces = futures::stream::iter([Ok(bytes)]).boxed();
    repository.save(saved, secret_keys::FILE_NAME, pieces).await.map(Some)
}

/// Files by what they are called.
type Files = HashMap<String, KeptFile>;
