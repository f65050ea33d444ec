//! The storage of backups: pieces of files, each stored once, and a manifest for each backup.
//!
//! Objects are `pieces/<two digits>/<hash>` and `snapshots/<moment>`. The manifest is written last, so an interrupted
//! backup leaves unreferenced pieces, but never a partial backup. Every object begins with a byte that says whether it
//! is encrypted, and pieces are named by the hash of their stored bytes: neither names nor equal contents reveal
//! anything about encrypted data.

use std::collections::{HashMap, HashSet};
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bytes::{Bytes, BytesMut};
use cairn_chassis::clock::Timestamp;
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::sealing::{Keyring, OpenError};
use cairn_content::AssetLocation;
use futures::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};

use super::Files;
use super::manifest::{FileEntry, Manifest, Piece};
use super::retention::Retention;

/// The unit of deduplication. Pages of SQLite do not move, so most pieces of a database with scattered changes are
/// already stored.
pub(super) const PIECE_BYTES: usize = 256 * 1024;
/// How many pieces are transferred concurrently.
const CONCURRENCY: usize = 4;
const PIECES: &str = "pieces";
const SNAPSHOTS: &str = "snapshots";
const PLAIN: u8 = 0;
const SEALED: u8 = 1;
const COMPRESSION: i32 = 3;
/// A manifest of this size would list a hundred million pieces.
const MAX_MANIFEST_BYTES: usize = 1 << 30;
/// How many names are suggested if the requested backup does not exist.
const NEAREST: usize = 3;

/// Selects a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Selection {
    Newest,
    Named(String),
    /// The newest that is not after this moment.
    At(Timestamp),
}

/// A folder or a bucket of backups.
pub(super) struct Repository {
    engine: Arc<dyn ObjectStore>,
    location: AssetLocation,
    ring: Option<Keyring>,
}

/// What is already stored, by the previous backup and by this one.
#[derive(Default)]
pub(super) struct Saved {
    objects: HashMap<String, String>,
    files: Files,
    new_bytes: u64,
}

impl Saved {
    /// The pieces of the previous backup.
    pub(super) fn of(previous: Option<Manifest>) -> Self {
        let files = previous.map(|manifest| manifest.files).unwrap_or_default();
        let pieces = files.iter().flat_map(|file| &file.pieces);
        let objects = pieces.map(|piece| (piece.hash.clone(), piece.object.clone())).collect();
        let files = files.into_iter().map(|file| (file.path.clone(), file)).collect();
        Self { objects, files, new_bytes: 0 }
    }

    /// The file of that name and size, if it is stored.
    pub(super) fn file(&self, path: &str, size: u64) -> Option<FileEntry> {
        self.files.get(path).filter(|file| file.size == size).cloned()
    }

    /// How many bytes were stored for this backup.
    pub(super) const fn new_bytes(&self) -> u64 {
        self.new_bytes
    }
}

impl Repository {
    /// Opens the location; a missing folder is created.
    pub(super) async fn open(location: &AssetLocation, ring: Option<Keyring>) -> anyhow::Result<Self> {
        let engine = location.open_engine().await.with_context(|| format!("{location} cannot be used"))?;
        Ok(Self { engine, location: location.clone(), ring })
    }

    /// Opens a location that already has backups.
    pub(super) async fn open_existing(
        location: &AssetLocation,
        ring: Option<Keyring>,
    ) -> anyhow::Result<Self> {
        if let AssetLocation::Folder(folder) = location
            && !folder.exists()
        {
            bail!("there is no folder {location}: name the place of the backups with --from");
        }
        Self::open(location, ring).await
    }

    /// Whether new objects are encrypted.
    pub(super) const fn is_sealed(&self) -> bool {
        self.ring.is_some()
    }

    /// Stores the pieces of a file that are not stored yet.
    pub(super) async fn save(
        &self,
        saved: &mut Saved,
        path: &str,
        pieces: BoxStream<'_, anyhow::Result<Bytes>>,
    ) -> anyhow::Result<FileEntry> {
        let known = &saved.objects;
        let keep = move |bytes: Bytes| async move {
            let hash = blake3::hash(&bytes).to_hex().to_string();
            let size = u32::try_from(bytes.len())?;
            if let Some(object) = known.get(&hash) {
                return Ok::<_, anyhow::Error>((Piece { hash, object: object.clone(), size }, 0));
            }
            let stored = self.pack(&bytes, &hash)?;
            let object = blake3::hash(&stored).to_hex().to_string();
            let length = stored.len() as u64;
            self.engine.put(&piece_key(&object), PutPayload::from(stored)).await?;
            Ok((Piece { hash, object, size }, length))
        };
        let kept: Vec<(Piece, u64)> = pieces
            .map_ok(keep)
            .try_buffered(CONCURRENCY)
            .try_collect()
            .await
            .with_context(|| format!("{path} cannot be kept in {}", self.location))?;
        saved.new_bytes += kept.iter().map(|(_, length)| length).sum::<u64>();
        let pieces: Vec<Piece> = kept.into_iter().map(|(piece, _)| piece).collect();
        saved.objects.extend(pieces.iter().map(|piece| (piece.hash.clone(), piece.object.clone())));
        let size = pieces.iter().map(|piece| u64::from(piece.size)).sum();
        let file = FileEntry { path: path.to_owned(), size, pieces };
        saved.files.insert(path.to_owned(), file.clone());
        Ok(file)
    }

    /// Streams a file, verifying the hash of each piece.
    pub(super) fn read<'a>(
        &'a self,
        file: &'a FileEntry,
    ) -> impl Stream<Item = anyhow::Result<Vec<u8>>> + 'a {
        let read = move |piece: &'a Piece| async move {
            let about = || format!("{} cannot be put together", file.path);
            let bytes =
                self.stored(&piece_key(&piece.object), Some(&piece.object)).await.with_context(about)?;
            let bytes = self.unpack(&bytes, &piece.hash, piece.size as usize).with_context(about)?;
            if blake3::hash(&bytes).to_hex().as_str() != piece.hash {
                bail!("{} is not what was kept of {}", piece_key(&piece.object), file.path);
            }
            Ok(bytes)
        };
        stream::iter(&file.pieces).map(read).buffered(CONCURRENCY)
    }

    /// Writes the manifest, which commits the backup. Its name is its timestamp, so names sort chronologically.
    pub(super) async fn finish(&self, manifest: &Manifest) -> anyhow::Result<String> {
        let name = named(&manifest.created_at);
        if self.names().await?.contains(&name) {
            bail!("{} has a backup of the same moment: one place is for one deployment", self.location);
        }
        let stored = self.pack(&serde_json::to_vec(manifest)?, &name)?;
        let kept = self.engine.put(&snapshot_key(&name), PutPayload::from(stored)).await;
        kept.with_context(|| format!("the list of the backup cannot be kept in {}", self.location))?;
        Ok(name)
    }

    /// The names of all backups, oldest first.
    pub(super) async fn names(&self) -> anyhow::Result<Vec<String>> {
        let listed = self.engine.list(Some(&Key::from(SNAPSHOTS)));
        let mut names: Vec<String> = listed
            .try_filter_map(async |meta| Ok(meta.location.filename().map(ToOwned::to_owned)))
            .try_collect()
            .await?;
        names.sort();
        Ok(names)
    }

    /// The manifest of the selected backup.
    ///
    /// # Errors
    /// When there is none, when it cannot be opened, and when it is not encrypted although there is a key: then anybody
    /// who can write to the location may have forged it.
    pub(super) async fn manifest(&self, selection: &Selection) -> anyhow::Result<(String, Manifest)> {
        let names = self.names().await?;
        let found = match selection {
            Selection::Newest => names.last(),
            Selection::Named(selection) => names.iter().find(|name| *name == selection),
            Selection::At(at) => {
                let latest = name_of(*at);
                names.iter().take_while(|name| **name <= latest).last()
            }
        };
        let Some(name) = found.cloned() else { bail!(self.not_found(selection, &names)) };
        let (is_sealed, manifest) = self.stored_manifest(&name).await?;
        if self.is_sealed() && !is_sealed {
            bail!(
                "the backup {name} is not encrypted: leave out CAIRN_BACKUP_KEY if you trust it all the same"
            )
        }
        Ok((name, manifest))
    }

    /// The error if there is no such backup, with the nearest ones.
    fn not_found(&self, selection: &Selection, names: &[String]) -> String {
        let place = &self.location;
        if names.is_empty() {
            return format!("no such backup in {place}: there is none");
        }
        match selection {
            Selection::At(at) => {
                let first = names.iter().take(NEAREST).map(String::as_str).collect::<Vec<_>>().join(", ");
                let at = at.to_rfc3339();
                format!("no such backup in {place}: all are later than {at}; the first ones are {first}")
            }
            Selection::Newest | Selection::Named(_) => {
                format!("no such backup in {place}; `cairn restore --list` shows what is there")
            }
        }
    }

    /// The newest backup, if its encryption is that of the new one: otherwise its pieces cannot be reused.
    pub(super) async fn newest_compatible(&self) -> anyhow::Result<Option<Manifest>> {
        let Some(newest) = self.names().await?.pop() else { return Ok(None) };
        let stored = self.stored(&snapshot_key(&newest), None).await?;
        let is_current = match (&self.ring, stored.split_first()) {
            (Some(ring), Some((&SEALED, envelope))) => ring.is_current(envelope),
            (None, Some((&PLAIN, _))) => true,
            _ => false,
        };
        if !is_current {
            return Ok(None);
        }
        Ok(Some(self.stored_manifest(&newest).await?.1))
    }

    /// Removes the backups that no rule keeps, never `made`, and the pieces that are no longer referenced.
    pub(super) async fn prune(&self, retention: &Retention, made: &str) -> anyhow::Result<usize> {
        let names = self.names().await?;
        let mut expired = retention.expired(&names);
        // If the clock was set back, the new backup may sort as the oldest.
        expired.retain(|name| name != made);
        let kept = names.iter().filter(|name| !expired.contains(name));
        let mut named = HashSet::new();
        // Every manifest is read before anything is deleted: one that cannot be opened aborts the removal.
        for name in kept {
            let (_, manifest) = self.stored_manifest(name).await?;
            named.extend(manifest.files.into_iter().flat_map(|file| file.pieces).map(|piece| piece.object));
        }
        for name in &expired {
            self.engine.delete(&snapshot_key(name)).await?;
        }
        let mut pieces = self.engine.list(Some(&Key::from(PIECES)));
        while let Some(meta) = pieces.try_next().await? {
            if meta.location.filename().is_some_and(|object| !named.contains(object)) {
                self.engine.delete(&meta.location).await?;
            }
        }
        if let AssetLocation::Folder(folder) = &self.location {
            remove_temporary(folder)?;
        }
        Ok(expired.len())
    }

    /// A manifest, and whether it is encrypted.
    async fn stored_manifest(&self, name: &str) -> anyhow::Result<(bool, Manifest)> {
        let stored = self.stored(&snapshot_key(name), None).await?;
        let about = || format!("the list of the backup {name} in {} cannot be read", self.location);
        let manifest = Manifest::read(&self.unpack(&stored, name, MAX_MANIFEST_BYTES).with_context(about)?);
        Ok((stored.first() == Some(&SEALED), manifest.with_context(about)?))
    }

    async fn stored(&self, key: &Key, hash: Option<&str>) -> anyhow::Result<Bytes> {
        let found = self.engine.get(key).await.with_context(|| format!("{} lacks {key}", self.location))?;
        let bytes = found.bytes().await?;
        if hash.is_some_and(|hash| blake3::hash(&bytes).to_hex().as_str() != hash) {
            bail!("{key} in {} is damaged; a backup with --full stores it anew", self.location);
        }
        Ok(bytes)
    }

    fn pack(&self, bytes: &[u8], place: &str) -> anyhow::Result<Vec<u8>> {
        let small = zstd::bulk::compress(bytes, COMPRESSION)?;
        let (head, body) = match &self.ring {
            Some(ring) => (SEALED, ring.seal(&small, place, &OsEntropy)?),
            None => (PLAIN, small),
        };
        Ok([&[head][..], body.as_slice()].concat())
    }

    fn unpack(&self, stored: &[u8], place: &str, most: usize) -> anyhow::Result<Vec<u8>> {
        let opened = match (stored.split_first(), &self.ring) {
            (Some((&PLAIN, body)), _) => return Ok(decompress(body, most)?),
            (Some((&SEALED, body)), Some(ring)) => ring.open(body, place),
            (Some((&SEALED, _)), None) => {
                bail!("it is encrypted: give the key of the backups in CAIRN_BACKUP_KEY")
            }
            _ => bail!("it is nothing that a backup of Cairn has stored"),
        };
        match opened {
            Ok(opened) => Ok(decompress(&opened, most)?),
            Err(OpenError::UnknownKey(id)) => {
                bail!("it does not open with this CAIRN_BACKUP_KEY: it is encrypted under the key {id}")
            }
            Err(OpenError::Damaged) => {
                bail!("it does not open: it is damaged, or was put in the place of another")
            }
        }
    }
}

/// Decompresses at most `most` bytes: anything larger is damaged.
fn decompress(bytes: &[u8], most: usize) -> std::io::Result<Vec<u8>> {
    let mut read = Vec::new();
    zstd::stream::Decoder::new(bytes)?.take(most as u64 + 1).read_to_end(&mut read)?;
    if read.len() > most {
        return Err(std::io::Error::other("it holds more than it says"));
    }
    Ok(read)
}

fn name_of(moment: Timestamp) -> String {
    named(&moment.to_rfc3339())
}

/// Some file systems do not allow colons in file names.
fn named(moment: &str) -> String {
    moment.replace(':', "-")
}

fn piece_key(object: &str) -> Key {
    Key::from_iter([PIECES, object.get(..2).unwrap_or_default(), object])
}

fn snapshot_key(name: &str) -> Key {
    Key::from_iter([SNAPSHOTS, name])
}

/// Regroups chunks of any size into pieces.
pub(super) fn in_pieces(
    chunks: BoxStream<'static, anyhow::Result<Bytes>>,
) -> BoxStream<'static, anyhow::Result<Bytes>> {
    let next = |(mut chunks, mut held): (BoxStream<'static, anyhow::Result<Bytes>>, BytesMut)| async move {
        while held.len() < PIECE_BYTES {
            match chunks.try_next().await? {
                Some(chunk) => held.extend_from_slice(&chunk),
                None => break,
            }
        }
        if held.is_empty() {
            return Ok::<_, anyhow::Error>(None);
        }
        let piece = held.split_to(held.len().min(PIECE_BYTES)).freeze();
        Ok(Some((piece, (chunks, held))))
    };
    stream::try_unfold((chunks, BytesMut::new()), next).boxed()
}

/// Removes temporary files of interrupted writes. The caller holds the backup lock of the data folder.
fn remove_temporary(folder: &Path) -> std::io::Result<()> {
    let mut folders = vec![folder.join(SNAPSHOTS)];
    for piece in fs_err::read_dir(folder.join(PIECES))? {
        folders.push(piece?.path());
    }
    for entry in folders.iter().map(fs_err::read_dir).collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
        let entry = entry?;
        if entry.file_name().to_string_lossy().contains('#') {
            fs_err::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
