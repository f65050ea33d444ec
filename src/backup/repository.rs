//! Where backups are: pieces of files, each stored once, and for each backup the list of what it is made of.
//!
//! `pieces/<two digits>/<hash>` and `snapshots/<moment>`. The list is written last, so a backup that was cut leaves pieces
//! that nothing names, and never half a backup. What is stored begins with a byte that says whether it is encrypted, and
//! is named by its own hash: so neither names nor equal contents tell anything about what is encrypted.

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
use super::keeping::Keeping;
use super::manifest::{KeptFile, Manifest, Piece};

/// What of a file is compared and stored at once. Pages of SQLite do not move, so of a database that changed here and
/// there most pieces are known.
pub(super) const PIECE_BYTES: usize = 256 * 1024;
/// How many pieces are on their way at once.
const AT_ONCE: usize = 4;
const PIECES: &str = "pieces";
const SNAPSHOTS: &str = "snapshots";
const PLAIN: u8 = 0;
const SEALED: u8 = 1;
const COMPRESSION: i32 = 3;
/// A list of a hundred million pieces is no list of ours.
const LIST_LIMIT: usize = 1 << 30;
/// How many backups are named to whoever asked for an earlier one.
const NEAREST: usize = 3;

/// Which backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
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

/// What is stored already, by the backup before and by this one.
#[derive(Default)]
pub(super) struct Saved {
    objects: HashMap<String, String>,
    files: Files,
    new_bytes: u64,
}

impl Saved {
    /// By that backup.
    pub(super) fn of(previous: Option<Manifest>) -> Self {
        let files = previous.map(|manifest| manifest.files).unwrap_or_default();
        let pieces = files.iter().flat_map(|file| &file.pieces);
        let objects = pieces.map(|piece| (piece.hash.clone(), piece.object.clone())).collect();
        let files = files.into_iter().map(|file| (file.path.clone(), file)).collect();
        Self { objects, files, new_bytes: 0 }
    }

    /// The file of that name and size.
    pub(super) fn file(&self, path: &str, size: u64) -> Option<KeptFile> {
        self.files.get(path).filter(|file| file.size == size).cloned()
    }

    /// How many bytes were stored for this backup.
    pub(super) const fn new_bytes(&self) -> u64 {
        self.new_bytes
    }
}

impl Repository {
    /// Opens the place; a folder is made when it is missing.
    pub(super) async fn open(location: &AssetLocation, ring: Option<Keyring>) -> anyhow::Result<Self> {
        let engine = location.open_engine().await.with_context(|| format!("{location} cannot be used"))?;
        Ok(Self { engine, location: location.clone(), ring })
    }

    /// Opens a place that has backups.
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

    /// Whether what it stores is encrypted.
    pub(super) const fn is_sealed(&self) -> bool {
        self.ring.is_some()
    }

    /// Stores what of a file is not stored yet.
    pub(super) async fn save(
        &self,
        saved: &mut Saved,
        path: &str,
        pieces: BoxStream<'_, anyhow::Result<Bytes>>,
    ) -> anyhow::Result<KeptFile> {
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
            .try_buffered(AT_ONCE)
            .try_collect()
            .await
            .with_context(|| format!("{path} cannot be kept in {}", self.location))?;
        saved.new_bytes += kept.iter().map(|(_, length)| length).sum::<u64>();
        let pieces: Vec<Piece> = kept.into_iter().map(|(piece, _)| piece).collect();
        saved.objects.extend(pieces.iter().map(|piece| (piece.hash.clone(), piece.object.clone())));
        let size = pieces.iter().map(|piece| u64::from(piece.size)).sum();
        let file = KeptFile { path: path.to_owned(), size, pieces };
        saved.files.insert(path.to_owned(), file.clone());
        Ok(file)
    }

    /// The bytes of a file, each piece compared with its hash.
    pub(super) fn read<'a>(&'a self, file: &'a KeptFile) -> impl Stream<Item = anyhow::Result<Vec<u8>>> + 'a {
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
        stream::iter(&file.pieces).map(read).buffered(AT_ONCE)
    }

    /// Keeps the list of a backup, which makes it one. Its name is the moment that it shows, so names sort as time goes.
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

    /// The list of the backup that is wanted.
    ///
    /// # Errors
    /// When there is none, when it does not open, and when it is not encrypted though there is a key: then whoever may write
    /// to the place may have made it.
    pub(super) async fn manifest(&self, wanted: &Wanted) -> anyhow::Result<(String, Manifest)> {
        let names = self.names().await?;
        let found = match wanted {
            Wanted::Newest => names.last(),
            Wanted::Named(wanted) => names.iter().find(|name| *name == wanted),
            Wanted::At(at) => {
                let latest = name_of(*at);
                names.iter().take_while(|name| **name <= latest).last()
            }
        };
        let Some(name) = found.cloned() else { bail!(self.lacking(wanted, &names)) };
        let (is_sealed, manifest) = self.list(&name).await?;
        if self.is_sealed() && !is_sealed {
            bail!(
                "the backup {name} is not encrypted: leave out CAIRN_BACKUP_KEY if you trust it all the same"
            )
        }
        Ok((name, manifest))
    }

    /// What is said when a backup is not there, with those that come nearest.
    fn lacking(&self, wanted: &Wanted, names: &[String]) -> String {
        let place = &self.location;
        if names.is_empty() {
            return format!("no such backup in {place}: there is none");
        }
        match wanted {
            Wanted::At(at) => {
                let first = names.iter().take(NEAREST).map(String::as_str).collect::<Vec<_>>().join(", ");
                let at = at.to_rfc3339();
                format!("no such backup in {place}: all are later than {at}; the first ones are {first}")
            }
            Wanted::Newest | Wanted::Named(_) => {
                format!("no such backup in {place}; `cairn restore --list` shows what is there")
            }
        }
    }

    /// The newest backup, when it is encrypted as this one will be: otherwise nothing of it may be used again.
    pub(super) async fn newest_that_is_alike(&self) -> anyhow::Result<Option<Manifest>> {
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
        Ok(Some(self.list(&newest).await?.1))
    }

    /// Removes the backups that no rule keeps, never that one, and the pieces that no backup names any more.
    pub(super) async fn thin(&self, keeping: &Keeping, made: &str) -> anyhow::Result<usize> {
        let names = self.names().await?;
        let mut gone = keeping.gone(&names);
        // A clock that was put back makes a new one the oldest.
        gone.retain(|name| name != made);
        let kept = names.iter().filter(|name| !gone.contains(name));
        let mut named = HashSet::new();
        // Every list is read before anything goes: one that does not open ends it here.
        for name in kept {
            let (_, manifest) = self.list(name).await?;
            named.extend(manifest.files.into_iter().flat_map(|file| file.pieces).map(|piece| piece.object));
        }
        for name in &gone {
            self.engine.delete(&snapshot_key(name)).await?;
        }
        let mut pieces = self.engine.list(Some(&Key::from(PIECES)));
        while let Some(meta) = pieces.try_next().await? {
            if meta.location.filename().is_some_and(|object| !named.contains(object)) {
                self.engine.delete(&meta.location).await?;
            }
        }
        if let AssetLocation::Folder(folder) = &self.location {
            remove_cut(folder)?;
        }
        Ok(gone.len())
    }

    /// Whether a list is encrypted, and what it says.
    async fn list(&self, name: &str) -> anyhow::Result<(bool, Manifest)> {
        let stored = self.stored(&snapshot_key(name), None).await?;
        let about = || format!("the list of the backup {name} in {} cannot be read", self.location);
        let manifest = Manifest::read(&self.unpack(&stored, name, LIST_LIMIT).with_context(about)?);
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

/// At most so many bytes: what claims to be more is damaged.
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

/// With colons, names of files would trouble some file systems.
fn named(moment: &str) -> String {
    moment.replace(':', "-")
}

fn piece_key(object: &str) -> Key {
    Key::from_iter([PIECES, object.get(..2).unwrap_or_default(), object])
}

fn snapshot_key(name: &str) -> Key {
    Key::from_iter([SNAPSHOTS, name])
}

/// What comes in chunks of any size, in pieces.
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

/// What writes to a folder left behind that were cut. No other backup of the folder's data runs now.
fn remove_cut(folder: &Path) -> std::io::Result<()> {
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
