//! The store of the bytes of assets: objects in a folder or a bucket, keyed by workspace and a name that is never
//! reused.
//!
//! The engines are those of the `object_store` crate; for us they differ only in what an interrupted upload leaves
//! behind.

mod bucket;

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{ObjectId, WorkspaceId};
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt as _};
use tokio::io::AsyncWriteExt as _;

pub use self::bucket::Bucket;

/// The part size of uploads, buffered in memory: the minimum that S3 accepts.
const PART_BYTES: usize = 5 * 1024 * 1024;
/// The number of parts of an upload in flight.
const PARTS_AT_ONCE: usize = 2;
/// The chunk size of downloads.
const CHUNK_BYTES: usize = 64 * 1024;

/// The prefix of quarantined objects, which differ from what was written. No workspace has this name.
const QUARANTINE: &str = "damaged";

/// The location of the objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssetLocation {
    /// In a local folder, created when missing.
    Folder(PathBuf),
    /// In an existing bucket of an S3-compatible store.
    Bucket(Bucket),
    /// In the memory of this process, for tests.
    Memory,
}

/// The text is no location of assets. It is not repeated: it may contain a secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnknownLocation(&'static str);

impl UnknownLocation {
    const PLACE: Self =
        Self("assets are kept in a folder (its path, or file: and its path) or in a bucket (s3://…)");
    const BUCKET: Self = Self("a bucket is named as s3://bucket or s3://bucket/prefix");
    const PARAMETER: Self = Self(
        "the parameters of a bucket are endpoint=https://host:port, region=name and allow_http=true; credentials are \
         AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
    );
    const ENDPOINT: Self = Self("the endpoint of a bucket is an https URL with a host");
    const HTTP: Self =
        Self("an http endpoint needs allow_http=true: everything would be readable on its way");
    const SECRET: Self =
        Self("a bucket's URL has no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead");
}

impl AssetLocation {
    /// Parses a path, a `file:` URL or an `s3:` URL.
    ///
    /// # Errors
    ///
    /// When it is any other URL.
    pub fn from_url(text: &str) -> Result<Self, UnknownLocation> {
        let path = match text.split_once(':') {
            None => text,
            Some(("file", rest)) => rest.strip_prefix("//").unwrap_or(rest),
            Some(("s3", _)) => return Bucket::from_url(text).map(Self::Bucket),
            Some(_) => return Err(UnknownLocation::PLACE),
        };
        if path.is_empty() { Err(UnknownLocation::PLACE) } else { Ok(Self::Folder(path.into())) }
    }
}

impl AssetLocation {
    /// The engine of the folder, created when missing, or of the bucket, for backups and for other data in the same
    /// place.
    ///
    /// # Errors
    ///
    /// When it cannot be created or reached.
    pub async fn open_engine(&self) -> Result<Arc<dyn ObjectStore>, Error> {
        Ok(AssetStore::open(self).await?.engine)
    }
}

impl fmt::Display for AssetLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(formatter),
            Self::Bucket(bucket) => bucket.fmt(formatter),
            Self::Memory => formatter.write_str("memory"),
        }
    }
}

/// An object as the engine lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedObject {
    pub(crate) workspace: WorkspaceId,
    pub(crate) object: ObjectId,
    pub(crate) written_at: Timestamp,
}

/// The store; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct AssetStore {
    engine: Arc<dyn ObjectStore>,
    /// Only for an engine that is a folder.
    folder: Option<Arc<Path>>,
}

impl AssetStore {
    /// Opens the store.
    pub(crate) async fn open(location: &AssetLocation) -> Result<Self, Error> {
        match location {
            AssetLocation::Folder(path) => {
                make_private(path).await.map_err(io_error)?;
                Self::in_folder(path)
            }
            AssetLocation::Bucket(bucket) => Ok(Self { engine: bucket.open().await?, folder: None }),
            AssetLocation::Memory => Ok(Self { engine: Arc::new(InMemory::new()), folder: None }),
        }
    }

    /// Opens an existing store; `None` when there is none.
    pub(crate) async fn open_existing(location: &AssetLocation) -> Result<Option<Self>, Error> {
        match location {
            AssetLocation::Folder(path) if !tokio::fs::try_exists(path).await.unwrap_or(false) => Ok(None),
            AssetLocation::Folder(path) => Self::in_folder(path).map(Some),
            AssetLocation::Bucket(_) | AssetLocation::Memory => Self::open(location).await.map(Some),
        }
    }

    fn in_folder(path: &Path) -> Result<Self, Error> {
        // With fsync, so that an acknowledged upload survives a power failure.
        let engine = LocalFileSystem::new_with_prefix(path)?.with_fsync(true).with_automatic_cleanup(false);
        Ok(Self { engine: Arc::new(engine), folder: Some(path.into()) })
    }

    /// Starts an object. It does not exist until [`ObjectWriter::finish`] returns.
    pub(crate) fn write(&self, workspace: WorkspaceId, object: ObjectId) -> ObjectWriter {
        let writer = BufWriter::with_capacity(Arc::clone(&self.engine), key(workspace, object), PART_BYTES);
        ObjectWriter(Some(writer.with_max_concurrency(PARTS_AT_ONCE)))
    }

    /// A range of an object, which must lie within it. Fails with [`Error::NotFound`] when there is no such object.
    pub(crate) async fn read(
        &self,
        workspace: WorkspaceId,
        object: ObjectId,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
        let key = key(workspace, object);
        if range.is_empty() {
            self.engine.head(&key).await?;
            return Ok(stream::empty().boxed());
        }
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let found = self.engine.get_opts(&key, options).await?;
        Ok(in_chunks(found.into_stream()))
    }

    /// The size of an object in bytes; `None` when it does not exist.
    pub(crate) async fn size(&self, workspace: WorkspaceId, object: ObjectId) -> Result<Option<u64>, Error> {
        match self.engine.head(&key(workspace, object)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes an object; a missing one is no error.
    pub(crate) async fn delete(&self, workspace: WorkspaceId, object: ObjectId) -> Result<(), Error> {
        match self.engine.delete(&key(workspace, object)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Moves an object to the quarantine, for inspection by people; a missing one is no error.
    pub(crate) async fn quarantine(&self, workspace: WorkspaceId, object: ObjectId) -> Result<(), Error> {
        let aside = Key::from_iter([QUARANTINE.to_owned(), format!("{workspace}-{object}")]);
        match self.engine.rename(&key(workspace, object), &aside).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes the empty folder of a workspace; a no-op for other engines.
    pub(crate) async fn remove_folder(&self, workspace: WorkspaceId) {
        if let Some(folder) = &self.folder {
            // Fails while remains of an interrupted upload are in it: the sweep deletes these, and an empty folder
            // does no harm.
            let _ = tokio::fs::remove_dir(folder.join(workspace.to_string())).await;
        }
    }

    /// Every object, in no particular order. Keys in another form are not ours.
    pub(crate) fn list(&self) -> BoxStream<'static, Result<ListedObject, Error>> {
        self.engine.list(None).try_filter_map(async |meta| Ok(listed(&meta))).boxed()
    }

    /// Deletes the remains of uploads that were interrupted by the end of their process before a time. A no-op for
    /// other engines: for a bucket, the operator configures a lifecycle rule.
    pub(crate) async fn remove_interrupted(&self, before: Timestamp) -> Result<usize, Error> {
        let Some(folder) = &self.folder else { return Ok(0) };
        let mut removed = 0;
        let mut workspaces = tokio::fs::read_dir(folder).await.map_err(io_error)?;
        while let Some(workspace) = workspaces.next_entry().await.map_err(io_error)? {
            if workspace.file_name().to_str().is_some_and(|name| name.parse::<WorkspaceId>().is_ok()) {
                removed += remove_interrupted_in(&workspace.path(), before).await.map_err(io_error)?;
            }
        }
        Ok(removed)
    }
}

/// An object being written. Dropped before it is finished, it leaves nothing.
#[derive(Debug)]
pub(crate) struct ObjectWriter(Option<BufWriter>);

impl ObjectWriter {
    /// Writes the next bytes; waits when the engine is slower than the caller (backpressure).
    pub(crate) async fn put(&mut self, bytes: Bytes) -> Result<(), Error> {
        match &mut self.0 {
            Some(writer) => writer.put(bytes).await,
            None => Ok(()),
        }
    }

    /// Completes the object; it is durable when this returns.
    pub(crate) async fn finish(mut self) -> Result<(), Error> {
        match self.0.take() {
            Some(mut writer) => writer.shutdown().await.map_err(io_error),
            None => Ok(()),
        }
    }

    /// Aborts the upload, and waits for its cleanup.
    pub(crate) async fn abort(mut self) {
        if let Some(writer) = self.0.take() {
            give_up(writer).await;
        }
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if let (Some(writer), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(give_up(writer));
        }
    }
}

async fn give_up(mut writer: BufWriter) {
    if let Err(error) = writer.abort().await {
        tracing::warn!(%error, "what was uploaded of an asset could not be removed now");
    }
}

fn key(workspace: WorkspaceId, object: ObjectId) -> Key {
    Key::from_iter([workspace.to_string(), object.to_string()])
}

fn listed(meta: &ObjectMeta) -> Option<ListedObject> {
    let mut parts = meta.location.parts();
    let (workspace, object) = (parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    Some(ListedObject {
        workspace: workspace.as_ref().parse().ok()?,
        object: object.as_ref().parse().ok()?,
        written_at: Timestamp::from_micros(meta.last_modified.timestamp_micros()),
    })
}

/// Engines return pieces of any size; small ones would cost a message each.
fn in_chunks(pieces: BoxStream<'static, Result<Bytes, Error>>) -> BoxStream<'static, Result<Bytes, Error>> {
    stream::try_unfold((pieces, BytesMut::new()), async |(mut pieces, mut chunk)| {
        while chunk.len() < CHUNK_BYTES {
            let Some(piece) = pieces.try_next().await? else { break };
            chunk.extend_from_slice(&piece);
        }
        if chunk.is_empty() {
            return Ok(None);
        }
        let ready = chunk.split_to(chunk.len().min(CHUNK_BYTES)).freeze();
        Ok(Some((ready, (pieces, chunk))))
    })
    .boxed()
}

/// The engine stages an object beside it, under its name with `#` and a number.
async fn remove_interrupted_in(folder: &Path, before: Timestamp) -> std::io::Result<usize> {
    let mut removed = 0;
    let mut entries = tokio::fs::read_dir(folder).await?;
    while let Some(entry) = entries.next_entry().await? {
        let name = entry.file_name();
        let is_ours = name.to_str().and_then(|name| name.split_once('#')).is_some_and(|(object, number)| {
            object.parse::<ObjectId>().is_ok() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        if !is_ours {
            continue;
        }
        let written_at = match entry.metadata().await.and_then(|meta| meta.modified()) {
            Ok(time) => to_timestamp(time),
            // Another process has deleted it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if written_at < before && tokio::fs::remove_file(entry.path()).await.is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

fn to_timestamp(time: std::time::SystemTime) -> Timestamp {
    let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(0).plus(since)
}

/// Makes it inaccessible to other users of the machine.
async fn make_private(path: &Path) -> std::io::Result<()> {
    const OWNER_ONLY: u32 = 0o700;
    tokio::fs::DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(path).await
}

fn io_error(error: std::io::Error) -> Error {
    Error::Generic { store: "assets", source: Box::new(error) }
}

#[cfg(test)]
mod contract;
#[cfg(test)]
#[cfg(feature = "s3")]
mod s3_server;
