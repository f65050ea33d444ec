//! Reads a file without escaping from the folder.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path};
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::{Body, ExternalId, Fault, Fetched, MAX_BODY_BYTES, Version, mime};

/// Longer than the granularity of whole-second file systems, and of FAT's two seconds: two writes within it may have the same time.
const COARSE: Duration = Duration::from_secs(3);
/// Several ticks of the kernel's coarse clock, which timestamps files.
const FINE: Duration = Duration::from_millis(50);

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);
// Does not block on pipes.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// Whether the folder can be read.
pub(super) fn check(root: &Path) -> Result<(), Fault> {
    let opened = rustix::fs::openat(CWD, root, FOLDER, Mode::empty()).map_err(fault_of)?;
    rustix::fs::Dir::new(opened).map_err(fault_of).map(drop)
}

/// Fetches a file by its id, unless it still has the known version.
pub(super) fn fetch(
    root: &Path,
    id: &ExternalId,
    known: Option<&Version>,
    now: Timestamp,
) -> Result<Fetched, Fault> {
    let mut file = match open(root, id.as_str()) {
        Ok(file) => file,
        Err(Fault::Gone) => return Ok(Fetched::Gone),
        Err(fault) => return Err(fault),
    };
    let before = file.metadata().map_err(|_| Fault::Unavailable)?;
    if !before.is_file() {
        return Ok(Fetched::Gone);
    }
    let plain = Version::new(plain_version(&before));
    if !is_racy(&before, now) && known == Some(&plain) {
        return Ok(Fetched::Same);
    }
    let most = u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX);
    if before.len() > most {
        return Ok(Fetched::TooLarge(before.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(before.len()).unwrap_or(0));
    (&mut file).take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|_| Fault::Unavailable)?;
    if bytes.len() > MAX_BODY_BYTES {
        return Ok(Fetched::TooLarge(most.saturating_add(1)));
    }
    let after = file.metadata().map_err(|_| Fault::Unavailable)?;
    if plain_version(&after) != plain_version(&before) {
        // It is being written: a partial file is useless.
        return Err(Fault::Unavailable);
    }
    let version = if is_racy(&after, now) { with_hash(&after, &blake3::hash(&bytes)) } else { plain };
    if known == Some(&version) {
        return Ok(Fetched::Same);
    }
    Ok(Fetched::Body(Body::new(bytes, mime::of_name(id.as_str()), version)))
}

/// The version of a file. A file that was written just now may be written again within the same clock tick of the file system, so its
/// version includes the hash.
pub(super) fn version(root: &Path, path: &str, metadata: &Metadata, now: Timestamp) -> Version {
    let plain = || Version::new(plain_version(metadata));
    if !is_racy(metadata, now) || metadata.len() > u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX) {
        return plain();
    }
    let mut hasher = blake3::Hasher::new();
    match open(root, path).map(|mut file| io::copy(&mut file, &mut hasher)) {
        Ok(Ok(_)) => with_hash(metadata, &hasher.finalize()),
        Ok(Err(_)) | Err(_) => plain(),
    }
}

fn with_hash(metadata: &Metadata, hash: &blake3::Hash) -> Version {
    Version::new(format!("{}-{}", plain_version(metadata), hash.to_hex().get(..32).unwrap_or_default()))
}

fn plain_version(metadata: &Metadata) -> String {
    let modified = (metadata.mtime(), metadata.mtime_nsec());
    let changed = (metadata.ctime(), metadata.ctime_nsec());
    format!("{}-{}.{}-{}.{}-{}", metadata.len(), modified.0, modified.1, changed.0, changed.1, metadata.ino())
}

fn is_racy(metadata: &Metadata, now: Timestamp) -> bool {
    let margin = if metadata.ctime_nsec() == 0 { COARSE } else { FINE };
    let changed = Timestamp::from_seconds(metadata.ctime())
        .plus(Duration::from_nanos(u64::try_from(metadata.ctime_nsec()).unwrap_or(0)));
    now.since(changed) < margin
}

/// Opens a path below the root component by component, without following links, which is safe against concurrent renames.
fn open(root: &Path, path: &str) -> Result<File, Fault> {
    let parts = Path::new(path).components().map(|part| match part {
        Component::Normal(part) if !part.as_encoded_bytes().starts_with(b".") => Ok(part),
        Component::Normal(_)
        | Component::CurDir
        | Component::ParentDir
        | Component::RootDir
        | Component::Prefix(_) => Err(Fault::Gone),
    });
    let parts = parts.collect::<Result<Vec<_>, Fault>>()?;
    let (name, folders) = parts.split_last().ok_or(Fault::Gone)?;
    let mut folder = rustix::fs::openat(CWD, root, FOLDER, Mode::empty()).map_err(fault_of)?;
    for part in folders {
        folder = rustix::fs::openat(&folder, *part, FOLDER, Mode::empty()).map_err(fault_of)?;
    }
    Ok(File::from(rustix::fs::openat(&folder, *name, FILE, Mode::empty()).map_err(fault_of)?))
}

fn fault_of(error: Errno) -> Fault {
    match error {
        // ELOOP: a link; ENXIO: a socket.
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::NAMETOOLONG => Fault::Gone,
        Errno::ACCESS | Errno::PERM => Fault::Forbidden,
        _ => Fault::Unavailable,
    }
}
