//! `cairn backup`, `cairn restore`, `cairn verify`: the data of `cairn up` as it was at one moment, in a folder or a bucket
//! (docs/adr/0086).
//!
//! `snapshot` reads databases while others write, `repository` keeps pieces of files and the lists of them, `restore` puts
//! them back and `verify` looks them over; here is what belongs into a backup and in which order it is read.

mod keeping;
mod manifest;
mod progress;
mod repository;
mod restore;
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

use self::keeping::Keeping;
use self::manifest::{KeptFile, Manifest};
use self::progress::Progress;
use self::repository::{Repository, Saved};
pub(crate) use self::restore::restore;
use self::snapshot::{Part, Snapshot};
pub(crate) use self::verify::{unpacked, verify};
use crate::cli::{ASSETS_FOLDER, BackupKeyOptions, BackupOptions, Role};
use crate::{secret_keys, storages, version};

/// While it is locked, no other backup of the folder runs.
const LOCK_FILE: &str = "backup.lock";
/// What is backed up, in the order in which it is held: who names something of another one before that one, so that what is
/// named is there. auth names folders, retrieval and sync what content has, content documents of ingest.
const ROLES: [Role; 5] = [Role::Auth, Role::Retrieval, Role::Sync, Role::Content, Role::Ingest];
/// How often all is held again because an asset was deleted on the way. What was read before is not read again, so each
/// time takes less than the one before.
const ATTEMPTS: usize = 20;

/// Files by what they are called.
type Files = HashMap<String, KeptFile>;

/// Makes a backup, or one after the other, and says what each holds.
pub(crate) async fn run(options: BackupOptions) -> anyhow::Result<()> {
    let keeping = Keeping::of(&options.keeping)?;
    if let Some(every) = options.every {
        return series::run(&options, every, keeping.unwrap_or(Keeping::OF_SERIES)).await;
    }
    let made = Box::pin(make(&options, keeping)).await?;
    let mut out = std::io::stdout().lock();
    if options.json {
        writeln!(out, "{:#}", made.in_json())?;
    } else if !options.quiet {
        made.tell(&options, &mut out)?;
    }
    Ok(out.flush()?)
}

/// What is told of a backup that was made.
struct Made {
    name: String,
    created_at: String,
    files: usize,
    bytes: u64,
    new_bytes: u64,
    is_sealed: bool,
    /// How many earlier ones were removed.
    removed: usize,
}

/// Makes a backup, and removes those that are not to be kept.
async fn make(options: &BackupOptions, keeping: Option<Keeping>) -> anyhow::Result<Made> {
    let data = &options.data;
    if storages::of_up(Role::Auth, data).is_none() {
        bail!("no data of `cairn up` in {}; name its folder with --data", data.display());
    }
    let _claim = claim(data)?;
    let repository = Repository::open(&options.to, key(&options.key)?).await?;
    let previous = if options.full { None } else { repository.newest_that_is_alike().await? };
    let mut saved = Saved::of(previous);
    let manifest = copy(options, &repository, &mut saved, &SystemClock).await?;
    let name = repository.finish(&manifest).await?;
    let removed = match keeping {
        Some(keeping) => {
            let thinned = repository.thin(&keeping, &name).await;
            thinned.with_context(|| format!("{name} is made, and older ones cannot be removed"))?
        }
        None => 0,
    };
    Ok(Made {
        files: manifest.files.len(),
        bytes: manifest.size(),
        new_bytes: saved.new_bytes(),
        is_sealed: repository.is_sealed(),
        created_at: manifest.created_at,
        name,
        removed,
    })
}

impl Made {
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

/// Everything as it was at one moment; held again where an asset of that moment has gone meanwhile.
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
        // Before the databases, which nobody can take away: the sooner, the less has been deleted.
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

/// The files of a database. Its transaction ends when they are read.
async fn copy_database(
    repository: &Repository,
    saved: &mut Saved,
    snapshot: Snapshot,
    progress: Progress,
) -> anyhow::Result<Vec<KeptFile>> {
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

/// The bytes of these assets; `None` when one of them is not there any more.
async fn copy_assets(
    location: &AssetLocation,
    repository: &Repository,
    saved: &mut Saved,
    objects: Vec<(String, String, i64)>,
    progress: Progress,
) -> anyhow::Result<Option<Vec<KeptFile>>> {
    if objects.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let engine = location.open_engine().await.with_context(|| format!("{location} cannot be read"))?;
    let bar = progress.count("assets", objects.len());
    let mut files = Vec::with_capacity(objects.len());
    for (workspace, object, size) in objects {
        bar.inc(1);
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
    bar.finish_and_clear();
    Ok(Some(files))
}

/// The key of stored secrets, where there is a file of it: only into what is encrypted itself.
async fn copy_secret_key(
    data: &Path,
    repository: &Repository,
    saved: &mut Saved,
) -> anyhow::Result<Option<KeptFile>> {
    let path = data.join(secret_keys::FILE_NAME);
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = Bytes::from(fs::read(path)?);
    let pieces = futures::stream::iter([Ok(bytes)]).boxed();
    repository.save(saved, secret_keys::FILE_NAME, pieces).await.map(Some)
}
