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
use cairn_chassis::sealing::Keyring;
use cairn_content::AssetLocation;
use futures::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};

use super::Files;
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
            let bytes = self.stored(&piece_key(&piece.object), Some(&piece.object)).await?;
            let bytes = self.unpack(&bytes, &piece.hash, piece.size as usize)?;
            if blake3::hash(&bytes).to_hex().as_str() != piece.hash {
                bail!("piece {} of {} is damaged", piece.object, file.path);
            }
            Ok(bytes)
        };
        stream::iter(&file.pieces).map(read).buffered(AT_ONCE)
    }

    /// Keeps the list of a backup, which makes it one. Its name is the moment, which sorts as time goes.
    pub(super) async fn finish(&self, manifest: &Manifest, now: Timestamp) -> anyhow::Result<String> {
        let micros = u64::try_from(now.as_micros()).unwrap_or(0);
        let second = manifest.created_at.get(..19).unwrap_or_default().replace(':', "");
        let name = format!("{second}-{micros:020}");
        let stored = self.pack(&serde_json::to_vec(manifest)?, &name)?;
        self.engine.put(&snapshot_key(&name), PutPayload::from(stored)).await?;
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

    /// The list of that backup, or of the newest.
    pub(super) async fn manifest(&self, name: Option<&str>) -> anyhow::Result<(String, Manifest)> {
        let names = self.names().await?;
        let found = match name {
            Some(wanted) => names.into_iter().find(|name| name == wanted),
            None => names.into_iter().next_back(),
        };
        let Some(name) = found else {
            bail!("no such backup in {}; `cairn restore --list` shows what is there", self.location)
        };
        let stored = self.stored(&snapshot_key(&name), None).await?;
        let manifest = Manifest::read(&self.unpack(&stored, &name, LIST_LIMIT)?);
        Ok((
            name,
            manifest.with_context(|| format!("the list of a backup in {} cannot be read", self.location))?,
        ))
    }

    /// The newest backup, when it is encrypted as this one will be: otherwise nothing of it may be used again.
    pub(super) async fn newest_that_is_alike(&self) -> anyhow::Result<Option<Manifest>> {
        let Some(newest) = self.names().await?.pop() else { return Ok(None) };
        let stored = self.stored(&snapshot_key(&newest), None).await?;
        let is_sealed = stored.first() == Some(&SEALED);
        let is_current = match (&self.ring, stored.get(1..)) {
            (Some(ring), Some(envelope)) => ring.is_current(envelope),
            _ => true,
        };
        if is_sealed != self.is_sealed() || !is_current {
            return Ok(None);
        }
        Ok(Some(self.manifest(Some(&newest)).await?.1))
    }

    /// Removes all but so many of the newest backups, and the pieces that no backup names any more.
    pub(super) async fn keep_newest(&self, count: usize) -> anyhow::Result<usize> {
        let mut names = self.names().await?;
        let kept = names.split_off(names.len().saturating_sub(count.max(1)));
        let mut named = HashSet::new();
        for name in &kept {
            let (_, manifest) = self.manifest(Some(name)).await?;
            named.extend(manifest.files.into_iter().flat_map(|file| file.pieces).map(|piece| piece.object));
        }
        for name in &names {
            self.engine.delete(&snapshot_key(name)).await?;
        }
        let mut pieces = self.engine.list(Some(&Key::from(PIECES)));
        while let Some(meta) = pieces.try_next().await? {
            if meta.location.filename().is_some_and(|object| !named.contains(object)) {
                self.engine.delete(&meta.location).await?;
            }
        }
        if let AssetLocation::Folder(folder) = &self.location {
            remove_cut(&folder.join(PIECES))?;
        }
        Ok(names.len())
    }

    async fn stored(&self, key: &Key, hash: Option<&str>) -> anyhow::Result<Bytes> {
        let found = self.engine.get(key).await.with_context(|| format!("{} lacks {key}", self.location))?;
        let bytes = found.bytes().await?;
        if hash.is_some_and(|hash| blake3::hash(&bytes).to_hex().as_str() != hash) {
            bail!("{key} in {} is damaged", self.location);
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
                bail!("the backup in {} is encrypted: give its key in CAIRN_BACKUP_KEY", self.location)
            }
            _ => bail!("what is in {} is no backup of Cairn", self.location),
        };
        let opened = opened.context("the backup does not open with this CAIRN_BACKUP_KEY")?;
        Ok(decompress(&opened, most)?)
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
fn remove_cut(pieces: &Path) -> std::io::Result<()> {
    for folder in fs_err::read_dir(pieces)? {
        for entry in fs_err::read_dir(folder?.path())? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().contains('#') {
                fs_err::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn repository(folder: &Path, ring: Option<&str>) -> Repository {
        let ring = ring.map(|digit| Keyring::parse(&digit.repeat(64)).unwrap());
        Repository::open(&AssetLocation::Folder(folder.to_owned()), ring).await.unwrap()
    }

    fn pieces(parts: &[&'static [u8]]) -> BoxStream<'static, anyhow::Result<Bytes>> {
        let parts: Vec<_> = parts.iter().map(|part| Ok(Bytes::from_static(part))).collect();
        stream::iter(parts).boxed()
    }

    async fn whole(repository: &Repository, file: &KeptFile) -> anyhow::Result<Vec<u8>> {
        let parts: Vec<Vec<u8>> = repository.read(file).try_collect().await?;
        Ok(parts.concat())
    }

    fn list(file: KeptFile) -> Manifest {
        Manifest::new("2026-01-01T00:00:00Z".to_owned(), "1".to_owned(), vec![file])
    }

    #[tokio::test]
    async fn what_is_known_is_not_stored_again_and_what_nothing_names_goes() {
        for ring in [None, Some("a")] {
            let folder = tempfile::tempdir().unwrap();
            let repository = repository(folder.path(), ring).await;
            let mut saved = Saved::default();
            let first = repository.save(&mut saved, "auth.db", pieces(&[b"one", b"two"])).await.unwrap();
            assert_eq!(whole(&repository, &first).await.unwrap(), b"onetwo");
            repository.finish(&list(first), Timestamp::from_seconds(1)).await.unwrap();

            let mut saved = Saved::of(repository.newest_that_is_alike().await.unwrap());
            let second = repository.save(&mut saved, "auth.db", pieces(&[b"one"])).await.unwrap();
            assert_eq!(saved.new_bytes(), 0);
            repository.finish(&list(second.clone()), Timestamp::from_seconds(2)).await.unwrap();
            let cut = folder.path().join(PIECES).join(&second.pieces[0].object[..2]).join("x#1");
            std::fs::write(&cut, "").unwrap();
            assert_eq!(repository.keep_newest(1).await.unwrap(), 1);
            assert_eq!(repository.engine.list(Some(&Key::from(PIECES))).count().await, 1);
            assert!(!cut.exists());
            assert_eq!(whole(&repository, &second).await.unwrap(), b"one");
        }
    }

    #[tokio::test]
    async fn what_is_encrypted_opens_with_its_key_alone_and_is_not_mixed_with_what_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let sealed = repository(folder.path(), Some("a")).await;
        let file = sealed.save(&mut Saved::default(), "auth.db", pieces(&[b"a secret"])).await.unwrap();
        sealed.finish(&list(file), Timestamp::from_seconds(1)).await.unwrap();
        for (ring, about) in [(None, "is encrypted"), (Some("b"), "does not open")] {
            let other = repository(folder.path(), ring).await;
            let refusal = format!("{:#}", other.manifest(None).await.unwrap_err());
            assert!(refusal.contains(about), "{refusal}");
            assert!(other.newest_that_is_alike().await.unwrap().is_none());
        }
        assert!(sealed.newest_that_is_alike().await.unwrap().is_some());
    }

    #[tokio::test]
    async fn damage_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let repository = repository(folder.path(), None).await;
        let file = repository.save(&mut Saved::default(), "auth.db", pieces(&[b"one"])).await.unwrap();
        let object = &file.pieces[0].object;
        let path = folder.path().join(PIECES).join(&object[..2]).join(object);
        std::fs::write(&path, "other").unwrap();
        assert!(whole(&repository, &file).await.unwrap_err().to_string().contains("damaged"));
        std::fs::remove_file(&path).unwrap();
        assert!(whole(&repository, &file).await.unwrap_err().to_string().contains("lacks"));
    }

    #[tokio::test]
    async fn chunks_of_any_size_become_pieces() {
        let chunks =
            vec![Ok(Bytes::from(vec![1; PIECE_BYTES + 5])), Ok(Bytes::new()), Ok(Bytes::from_static(b"end"))];
        let pieces: Vec<Bytes> = in_pieces(stream::iter(chunks).boxed()).try_collect().await.unwrap();
        assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [PIECE_BYTES, 8]);
    }
}
